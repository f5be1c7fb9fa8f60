"""The report of a result from walking: text, and an HTML page."""

from collections.abc import Sequence

import numpy as np

from com_identification.walking.advice import com_std, stays_at_urdf
from com_identification.walking.evidence import MassEvidence
from com_identification.walking.identify import WalkResult
from com_identification.walking.unknowns import PARAMETERS
from com_model.arrays import Array
from com_model.html import (
    bullets,
    coordinates,
    folded,
    number,
    plus_minus,
    report,
    svg,
    table,
)
from com_model.plotting import robot_figure

_JOINTS = {  # heading by kind, scale, digits
    "coulomb": ("Coulomb friction (N m)", 1.0, 2),
    "viscous": ("viscous friction (N m s)", 1.0, 3),
    "armature": ("armature (kg m²)", 1.0, 4),
    "load_friction": ("load friction (motor side)", 1.0, 3),
    "gain": ("torque, true / read", 1.0, 3),
    "torque_bias": ("torque bias (N m)", 1.0, 2),
    "encoder_zero": ("encoder bias (deg)", 180.0 / np.pi, 2),
}


Section = tuple[str, Sequence[str], Sequence[str], Sequence[Sequence[str]]]
"""A heading, sentences, and head and rows of a table."""


def sections(result: WalkResult) -> tuple[Section, ...]:
    """Returns the whole report: result, tests, bodies and joints.

    Args:
        result: of the walk.
    """
    failed = {True: "FAILED", False: "warning"}
    rows = [
        (g.name, "passed" if g.passed else failed[g.required], g.text)
        for g in result.gates
    ]
    tests = "Tests", (), ("test", "", "found"), rows
    return (_summary(result), tests, _bodies(result), _joints(result))


def summary(result: WalkResult) -> str:
    """Returns the result in a few sentences, or which tests failed.

    Args:
        result: of the walk.
    """
    title, sentences, *_ = _summary(result)
    failed = [f"{gate.name}: {gate.text}" for gate in result.gates if not gate.passed]
    return ". ".join([title, *(sentences if result.accepted else failed)])


def report_page(result: WalkResult) -> str:
    """Returns the report as an HTML page.

    Args:
        result: of the walk.
    """
    parts = [
        svg(
            robot_figure(
                result.model,
                result.posture,
                "The URDF, in the mean posture of the walk",
            )
        )
    ]
    (_, found, *_), tests, *details = sections(result)
    parts.append(bullets(found))
    for title, lines, head, rows in (tests, *details):
        content = bullets(lines), table(head, rows, len(head) - 1)
        parts += content if title == tests[0] else [folded(title, *content)]
    after, before = (coordinates(std, "mm", scale=1e3) for std in _spreads(result))
    failed = [
        f"{g.name}: {g.text}" for g in result.gates if g.required and not g.passed
    ]
    verdict = f"Rejected, no URDF is written. {'; '.join(failed)}."
    then = (
        "Correct what the failed tests name and record again: "
        "`ros2 bag record /joint_states /imu`"
    )
    if result.accepted:
        verdict = (
            f"The CoM of the whole robot is now known to {after} (one sigma, in postures like "
            f"those of the walk), before to {before}. Its mass is "
            f"{plus_minus(*result.total_mass)} kg, {result.model.mass:.2f} kg in the URDF."
        )
        then = (
            "Bodies that stay at the URDF need other motions. Check the corrected URDF, in the "
            "folder of this page: `ros2 run com_model audit corrected.urdf`"
        )
    return report(
        f"Masses and centres of mass of {result.model.name}, identified from walking",
        verdict,
        *parts,
        then=[
            then,
            "What it means: docs/tutorial_walk_identification.md",
        ],
        failed=not result.accepted,
    )


def evidence_lines(evidence: MassEvidence) -> list[str]:
    """Returns what recordings show of a URDF, in lines of text.

    Args:
        evidence: of the recordings.
    """
    first = f"verdict: {evidence.verdict.value}, by {evidence.strides} steady strides"
    parts = [*(f"  {reason}" for reason in evidence.reasons)]
    return [first, *parts, *(f"  note: {note}" for note in evidence.notes)]


def evidence_page(evidence: MassEvidence) -> str:
    """Returns an HTML page of what recordings show of a URDF.

    Args:
        evidence: of recordings that do not show all masses.
    """
    first, *lines = evidence_lines(evidence)
    return report(
        f"Mass and trunk of {evidence.unknowns.model.name}, judged by walking",
        f"V{first[1:]}.",
        bullets([line.strip() for line in lines]),
        then=["What it means: docs/real_data.md"],
        failed=not evidence.confirmed,
    )


def _spreads(result: WalkResult) -> tuple[Array, Array]:
    """Standard deviations (3,) m of the robot's CoM in random postures, after and before."""
    unknowns, q = result.unknowns, result.posture
    return com_std(unknowns, result.z, result.covariance, q), com_std(
        unknowns, unknowns.mean, np.diag(unknowns.std**2), q
    )


def _summary(result: WalkResult) -> Section:
    mass, std = result.total_mass
    bodies, own = result.model.bodies, result.theta[0]
    com, C = result.com(result.posture)
    spread, before = (_mm(stds) for stds in _spreads(result))
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
            f"total mass {plus_minus(mass, std, 3)} kg (URDF {result.model.mass:.3f}); scale {how}",
            f"trunk ({bodies.names[0]}): {plus_minus(own[0], 2.0 * own[0] * stds[0], 3)} kg "
            f"(URDF {bodies.mass[0]:.3f}); CoM {_mm(own[1:4] / own[0], stds[7:])} "
            f"(URDF {_mm(bodies.first_moment[0] / bodies.mass[0])})",
            f"whole robot in the mean posture: CoM {_mm(com, np.sqrt(np.diag(C)))}; standard "
            f"deviation in random postures near it {spread} (before {before})",
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
    for name, own, r in zip(
        names, result.theta[result.unknowns.bodies], ratios, strict=True
    ):
        # posterior over prior standard deviation
        weak = min(r[0], r[7:].min()) > 0.5
        verdict = (
            "stays at the URDF" if stays_at_urdf(r) else "weak" if weak else "found"
        )
        com = (number(value, 1, 1e3) for value in own[1:4] / own[0])
        each = [f"{value:.2f}" for value in (r[0], *r[7:], r[1:7].min(), r[1:7].max())]
        rows.append(
            (name, verdict, f"{own[0]:.3f}", *com, *each[:4], " to ".join(each[4:]))
        )
    lines = [
        "ratio: standard deviation after over before the recording; 1: it says nothing. Mass moves "
        "between a body and its parent unseen: single links may be wrong in a robot that is right",
        "ratio of the inertia: least and largest of six, of the radii along x, y, z and the shears",
    ]
    head = (
        *("body", "", "mass (kg)", "CoM x (mm)", "y (mm)", "z (mm)"),
        *("ratio of the mass", "of CoM x", "y", "z", "of the inertia"),
    )
    return "Bodies", lines, head, rows


def _joints(result: WalkResult) -> Section:
    columns, unknowns = [], result.unknowns
    covariances = result.covariance, np.diag(unknowns.std**2)
    for kind, (_, scale, digits) in _JOINTS.items():
        values = scale * unknowns.joints(result.z, kind)
        stds, before = (scale * unknowns.joint_stds(C, kind) for C in covariances)
        each = zip(values, stds, stds / before, strict=True)
        columns.append([f"{plus_minus(v, s, digits)} ({r:.2f})" for v, s, r in each])
    rows = list(zip(result.model.joint_names, *columns, strict=True))
    return (
        "Joints",
        (
            "in brackets: the ratio as above; near 1 the value is the one assumed before",
        ),
        ("joint", *(head for head, _, _ in _JOINTS.values())),
        rows,
    )


def _mm(values: Array, stds: Sequence[float] | Array = (0.0,) * 3) -> str:
    return coordinates(values, "mm", stds, 1e3)
