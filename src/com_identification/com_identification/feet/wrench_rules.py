"""What true foot wrenches of a robot at rest keep to, and how far others are from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from com_identification.regression.postures import Posture
from com_identification.regression.rows import RowBuilder
from com_model import Foot
from com_model.arrays import Array

Flags = NDArray[np.bool_]

_SURE = 6.0  # deviations
_IN_AIR = 0.02  # share of the weight
_LIGHT = 0.15  # share of the weight up to which an offset may be what is read
_LEAN = 0.1  # rad, of all force against gravity
_SLIDE = 0.6  # rad, of one foot's force against gravity: friction 0.7
_EDGE = 0.01  # m, of the centre of pressure beyond a sole


@dataclass(frozen=True)
class Violation:
    """A rule that wrenches break.

    Attributes:
        rule: weight, lean, push, edge or com.
        share: How far they are off over what may be; above 1.
        text: What was read and what was expected.
        foot: Index of the foot; None for all together.
    """

    rule: str
    share: float
    text: str
    foot: int | None = None


class WrenchRules:
    """The rules for one posture.

    Args:
        builder: Of the robot, with the sensors' noise.
        posture: Its readings.
        mass_share: How far the URDF's mass may be off, a share of it.
        com_std: m, how far its CoM may be off across gravity.
    """

    def __init__(
        self, builder: RowBuilder, posture: Posture, mass_share: float, com_std: float
    ) -> None:
        self._mass_share, self._com_std = mass_share, com_std
        model, statics = builder.model, builder.statics
        self.feet: tuple[Foot, ...] = builder.feet
        self.weight = model.mass * builder.gravity
        self.read = posture.wrenches
        share = _SURE * builder.noise.share(posture.samples)
        self._force, self._moment = share * builder.noise.force, share * builder.noise.moment
        poses = statics.poses(posture.q[None])
        links = [model.link_index(foot.wrench_frame) for foot in builder.feet]
        soles = [model.link_index(foot.frame) for foot in builder.feet]
        R, p = statics.link_frames(poses, links)
        self._R, self._p = R[0], p[0]
        R, p = statics.link_frames(poses, soles)
        self._R_sole, self._p_sole = R[0], p[0]
        self._has_sole = np.array([len(foot.corners) > 0 for foot in builder.feet])
        self._given_up = posture.up
        self._signs = np.array([float(foot.wrench_sign) for foot in builder.feet])[:, None]
        self._com = statics.first_moment(poses)[0] @ statics.parameters / model.mass

    def violations(self, wrenches: Array) -> list[Violation]:
        """The rules that wrenches (f, 6), as read, break."""
        up = self._up(wrenches)
        forces = np.einsum("fij,fj->fi", self._R, (self._signs * wrenches)[:, :3])
        known = np.isfinite(wrenches).all(axis=1)
        found = []
        if known.all():
            found += self._totals(wrenches, forces, up)
        for i in np.flatnonzero(known):
            if np.linalg.norm(forces[i]) > _IN_AIR * self.weight + self._force:
                found += self._foot(int(i), forces[i], wrenches[i], up)
        return [each for each in found if each.share > 1.0]

    def unloaded(self, wrenches: Array) -> list[int]:
        """Feet that read next to nothing while others stand."""
        loads = np.linalg.norm(wrenches[:, :3], axis=1)
        light = loads < _IN_AIR * self.weight + self._force
        return [] if light.all() else [int(i) for i in np.flatnonzero(light)]

    def light(self, foot: int) -> bool:
        """Whether a foot reads so little that an offset may be all of it."""
        return bool(np.linalg.norm(self.read[foot, :3]) < _LIGHT * self.weight)

    def _up(self, wrenches: Array) -> Array:
        """Against gravity (3,): by the IMU or the loaded flat soles; NaN where not known."""
        if np.isfinite(self._given_up).all():
            return self._given_up
        flat = self._loaded(wrenches) & self._has_sole
        if not flat.any():
            return np.full(3, np.nan)
        up = self._R_sole[flat][:, :, 2].sum(axis=0)
        return np.asarray(up / np.linalg.norm(up))

    def _loaded(self, wrenches: Array) -> Flags:
        """Which feet stand: as RowBuilder.loaded()."""
        force = np.linalg.norm(np.nan_to_num(wrenches[:, :3]), axis=1)
        return np.asarray(force > 0.1 * max(float(force.sum()), 1e-9))

    def _totals(self, wrenches: Array, forces: Array, up: Array) -> list[Violation]:
        force = forces.sum(axis=0)
        size = float(np.linalg.norm(force))
        off = abs(size - self.weight) / (self._mass_share * self.weight + 2.0 * self._force)
        text = (
            f"the feet carry {size:.4g} N together, the robot weighs {self.weight:.4g} N by its "
            "URDF"
        )
        found = [Violation("weight", off, text)]
        if not np.isfinite(up).all() or not size > 2.0 * self._force:
            return found
        lean = _angle(force, up)
        text = f"their force leans {np.degrees(lean):.0f} deg against gravity"
        found.append(Violation("lean", lean / (_LEAN + 2.0 * self._force / size), text))
        far = float(np.linalg.norm(self._gap(wrenches, forces, up)))
        may = self._com_std + 2.0 * self._moment / self.weight
        text = f"they put the CoM {1e3 * far:.0f} mm beside the URDF's"
        found.append(Violation("com", far / may, text))
        return found

    def _gap(self, wrenches: Array, forces: Array, up: Array) -> Array:
        """From the URDF's CoM to the vertical by the feet (3,) m, across gravity."""
        moments = np.einsum("fij,fj->fi", self._R, (self._signs * wrenches)[:, 3:])
        center = self._p_sole[self._loaded(wrenches)].mean(axis=0)
        moment = (moments + np.cross(self._p - center, forces)).sum(axis=0)
        push = float(forces.sum(axis=0) @ up)
        if not abs(push) > 1e-9 * self.weight:
            return np.full(3, np.inf)
        gap = center + np.cross(up, moment) / push - self._com
        return np.asarray(gap - (gap @ up) * up)

    def _foot(self, i: int, force: Array, wrench: Array, up: Array) -> list[Violation]:
        name, size = self.feet[i].frame, float(np.linalg.norm(force))
        found = []
        if np.isfinite(up).all():
            angle = _angle(force, up)
            text = (
                f"{name} reads {size:.3g} N at {np.degrees(angle):.0f} deg against gravity, less "
                f"than {np.degrees(_SLIDE):.0f} deg was expected"
            )
            share = angle / (_SLIDE + 2.0 * self._force / size)
            found.append(Violation("push", share, text, i))
        if len(self.feet[i].corners):
            found += self._edge(i, force, wrench)
        return found

    def _edge(self, i: int, force: Array, wrench: Array) -> list[Violation]:
        """How far the centre of pressure is beyond the box around a sole."""
        moment = self._signs[i] * (self._R[i] @ wrench[3:])
        moment = moment + np.cross(self._p[i] - self._p_sole[i], force)
        f, m = self._R_sole[i].T @ force, self._R_sole[i].T @ moment
        if not abs(f[2]) > 0.2 * np.linalg.norm(f):
            return []
        center = np.array([-m[1], m[0]]) / f[2]
        corners = self.feet[i].corners
        beyond = np.maximum(corners.min(axis=0) - center, center - corners.max(axis=0))
        far = float(np.linalg.norm(np.maximum(beyond, 0.0)))
        text = f"the centre of pressure of {self.feet[i].frame} is {1e3 * far:.0f} mm off its sole"
        return [Violation("edge", far / (_EDGE + self._moment / abs(f[2])), text, i)]


def _angle(a: Array, b: Array) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))
