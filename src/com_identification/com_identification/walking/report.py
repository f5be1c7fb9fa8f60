"""What a walk says of a robot, in words and tables: printed, and as a page."""

from collections.abc import Sequence

import numpy as np

from com_identification.walking.advice import com_std, stays_at_urdf
from com_identification.walking.identify import WalkResult
from com_identification.walking.inertia import PARAMETERS
from com_model.arrays import Array
from com_model.html import bullets, element, report, table

_WEAK = 0.5  # posterior over prior standard deviation
_JOINTS = {  # heading by kind, scale, digits
    "coulomb": ("Coulomb N m", 1.0, 2),
    "viscous": ("viscous N m s", 1.0, 3),
    "armature": ("armature kg m2", 1.0, 4),
    "gain": ("true / read", 1.0, 3),
    "torque_bias": ("bias N m", 1.0, 2),
    "encoder_zero": ("zero deg", 180.0 / np.pi, 2),
}


Section = tuple[str, Sequence[str], Sequence[str], Sequence[Sequence[str]]]
"""A heading, sentences, and head and rows of a table."""


def sections(result: WalkResult) -> tuple[Section, ...]:
    """The whole report."""
    failed = {True: "FAILED", False: "warning"}
    rows = [(g.name, "passed" if g.passed else failed[g.required], g.text) for g in result.gates]
    tests = "Tests", (), ("test", "", "found"), rows
    return (_summary(result), tests, _bodies(result), _joints(result))


def summary(result: WalkResult) -> str:
    """What was found in a few sentences, or which tests failed."""
    title, sentences, *_ = _summary(result)
    failed = [f"{gate.name}: {gate.text}" for gate in result.gates if not gate.passed]
    return ". ".join([title, *(sentences if result.accepted else failed)])


def report_page(result: WalkResult) -> str:
    """As a page."""
    parts = []
    for title, lines, head, rows in sections(result):
        parts += [element("h2", title), bullets(lines)]
        parts += [table(head, rows, len(head) - 1)] if rows else []
    refusal, sentences, *_ = _summary(result)
    verdict = sentences[0] if result.accepted else refusal
    then = "Audit corrected.urdf and walk with it. Bodies that stay at the URDF need other motions."
    if not result.accepted:
        then = "The tests that failed say what is wrong with recording or robot: record again."
    title = f"{result.model.name}: identified from walking"
    return report(title, verdict, *parts, then=[then], failed=not result.accepted)


def _summary(result: WalkResult) -> Section:
    mass, std = result.total_mass
    bodies, own = result.model.bodies, result.theta[0]
    com, C = result.com(result.posture)
    unknowns, posture = result.unknowns, result.posture
    spread = com_std(unknowns, result.z, result.covariance, posture)
    before = com_std(unknowns, unknowns.mean, np.diag(unknowns.std**2), posture)
    stds = np.sqrt(np.diag(result.covariance)[:PARAMETERS])
    how = f"by the weighed mass; torques alone had {100.0 * (1.0 / result.rho - 1.0):+.1f} %"
    if result.scale.payload is not None:
        how = f"by a payload of {result.scale.payload:g} kg, known to {100 * result.rho_std:.1f} %"
    elif result.scale.mass is None:
        how = (
            f"by a mean gain of the legs' torques of 1 (known to {100.0 * result.rho_std:.1f} %): "
            "no motion shows the common scale of masses and torques. Weigh the robot: --mass KG"
        )
    fused = f"{result.postures} resting postures on foot force sensors are part of the estimate"
    return (
        "Result" if result.accepted else "REFUSED: not all required tests passed",
        [
            f"total mass {mass:.3f} +- {std:.3f} kg (URDF {result.model.mass:.3f}); scale {how}",
            f"trunk ({bodies.names[0]}): {own[0]:.3f} +- {2.0 * own[0] * stds[0]:.3f} kg "
            f"(URDF {bodies.mass[0]:.3f}); CoM {_mm(own[1:4] / own[0])} +- {_mm(stds[7:])} mm "
            f"(URDF {_mm(bodies.first_moment[0] / bodies.mass[0])})",
            f"whole robot in the mean posture: CoM {_mm(com)} +- {_mm(np.sqrt(np.diag(C)))} mm; "
            f"in random postures near it +- {_mm(spread)} mm (before {_mm(before)})",
            f"{result.fit.dominated} of {len(result.z)} directions of the unknowns are found by "
            f"{result.seconds:.0f} s of walking; the others stay near the URDF and usual values",
            *result.notes,
            *([fused] if result.postures else [f"next: {result.advice.text}"]),
        ],
        (),
        (),
    )


def _bodies(result: WalkResult) -> Section:
    names = result.unknowns.body_names
    ratios = result.ratios[: PARAMETERS * len(names)].reshape(-1, PARAMETERS)
    rows = []
    for name, own, r in zip(names, result.theta[result.unknowns.bodies], ratios, strict=True):
        weak = min(r[0], r[7:].min()) > _WEAK
        verdict = "stays at the URDF" if stays_at_urdf(r) else "weak" if weak else "found"
        shape, place = (" ".join(f"{v:.2f}" for v in part) for part in (r[1:7], r[7:]))
        numbers = f"{own[0]:.3f}", _mm(own[1:4] / own[0]), f"{r[0]:.2f}", place, shape
        rows.append((name, *numbers, verdict))
    lines = [
        "ratio: standard deviation after over before the recording; 1: it says nothing. Mass moves "
        "between a body and its parent unseen: single links may be wrong in a robot that is right",
        "ratio inertia: of the radii along x, y, z, and the shears xy, xz, yz",
    ]
    head = ("body", "kg", "CoM mm", "ratio kg", "ratio x y z", "ratio inertia", "")
    return "Bodies", lines, head, rows


def _joints(result: WalkResult) -> Section:
    columns, unknowns = [], result.unknowns
    covariances = result.covariance, np.diag(unknowns.std**2)
    for kind, (_, scale, digits) in _JOINTS.items():
        values = scale * unknowns.joints(result.z, kind)
        stds, before = (scale * unknowns.joint_stds(C, kind) for C in covariances)
        each = zip(values, stds, stds / before, strict=True)
        columns.append([f"{v:.{digits}f} +- {s:.{digits}f} ({r:.2f})" for v, s, r in each])
    rows = list(zip(result.model.joint_names, *columns, strict=True))
    lines = ["in brackets: the ratio as above; near 1 the value is the one assumed before"]
    return "Joints", lines, ("joint", *(head for head, _, _ in _JOINTS.values())), rows


def _mm(values: Array) -> str:
    return " ".join(f"{1e3 * v:.1f}" for v in values)
