"""Audit of the symmetry: left and right links that should mirror each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from com_model.arrays import Array
from com_model.dynamics.kinematics import link_poses
from com_model.model import RobotModel
from com_model.urdf.findings import Finding

_MASS_TOLERANCE = 0.01  # of the heavier one
_CENTER_TOLERANCE = 2e-3  # m
_FRAME_TOLERANCE = 2e-3  # m
_RIGHT_OF = {"left": "right", "Left": "Right", "LEFT": "RIGHT", "l": "r", "L": "R"}
_OTHER_SIDE = _RIGHT_OF | {right: left for left, right in _RIGHT_OF.items()}


def check_symmetry(model: RobotModel) -> list[Finding]:
    """Compares links whose names differ by left and right.

    Masses are compared for every pair. Centres of mass are compared at q = 0, mirrored at the
    sagittal plane, for the pairs whose frames mirror each other there. That plane is the one across
    x, y or z of the root at which the most pairs do.
    """
    pairs = left_right_pairs(model.link_names)
    if not pairs:
        return []
    left, right = np.array(pairs).T
    R, p = link_poses(model, np.zeros(model.n_joints))
    centers = p + np.einsum("lij,lj->li", R, model.link_coms)
    axis, offset, mirrored = _sagittal_plane(p[left], p[right])
    misses = np.linalg.norm(_mirror(centers[left], axis, offset) - centers[right], axis=1)
    findings = []
    for i, (a, b) in enumerate(pairs):
        masses = model.link_masses[[a, b]]
        difference = abs(masses[0] - masses[1])
        if difference > _MASS_TOLERANCE * masses.max():
            message = f"their masses are {masses[0]:.4g} and {masses[1]:.4g} kg"
            findings.append(_asymmetry(model, a, b, message))
        elif mirrored[i] and masses.min() > 0.0 and misses[i] > _CENTER_TOLERANCE:
            shown = [np.array2string(model.link_coms[k], precision=4) for k in (a, b)]
            message = (
                f"their centres of mass are {misses[i] * 1e3:.1f} mm from mirroring each other "
                f"(in the links' frames {shown[0]} and {shown[1]} m)"
            )
            findings.append(_asymmetry(model, a, b, message))
    return findings


def left_right_pairs(names: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs names that differ in nothing but left and right.

    Words left and right are exchanged in any case, all of them at once; the letters l and r where
    they start or end a word (l_foot, FL_hip, RLEG_1, armL).

    Returns:
        Indices of left and right, each name in at most one pair.
    """
    index = {name: i for i, name in enumerate(names)}
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for name, i in index.items():
        for other in _mirror_names(name):
            j = index.get(other)
            if j is not None and i not in taken and j not in taken:
                pairs.append((i, j))
                taken.update((i, j))
    return pairs


def _mirror_names(name: str) -> list[str]:
    """Names that the right-hand partner of a left-hand name may have, likeliest first."""
    found = []
    words = re.sub(
        "left|right|Left|Right|LEFT|RIGHT",
        lambda match: _OTHER_SIDE[match[0]],
        name,
    )
    if words != name and re.search("left", name, re.IGNORECASE):
        found.append(words)
    for match in re.finditer(r"[lL]", name):
        before, after = name[: match.start()], name[match.end() :]
        hump = match[0].isupper() and before[-1:].islower()
        starts = hump or not before[-1:].isalpha()
        ends = not after[:1].isalpha()
        if starts or ends:
            found.append(before + _OTHER_SIDE[match[0]] + after)
    return found


def _mirror(points: Array, axis: int, offset: float) -> Array:
    mirrored = points.copy()
    mirrored[:, axis] = 2.0 * offset - mirrored[:, axis]
    return mirrored


def _sagittal_plane(left: Array, right: Array) -> tuple[int, float, Array]:
    """Finds the axis, the plane's offset along it, and which pairs of points mirror at it."""
    planes = []
    for axis in (1, 0, 2):
        offset = float(np.median((left[:, axis] + right[:, axis]) / 2))
        misses = np.linalg.norm(_mirror(left, axis, offset) - right, axis=1)
        mirrored = (misses < _FRAME_TOLERANCE) & (left[:, axis] != right[:, axis])
        planes.append((axis, offset, mirrored))
    return max(planes, key=lambda plane: int(plane[2].sum()))


def _asymmetry(model: RobotModel, left: int, right: int, message: str) -> Finding:
    fix = "Where the robot is built alike on both sides, mirror the better known of the two"
    element = f"links {model.link_names[left]!r} and {model.link_names[right]!r}"
    return Finding("warning", element, message, fix)
