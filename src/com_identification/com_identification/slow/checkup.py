"""Why a robot leans or drifts: posterior over causes from a minute of swaying or trotting.

Of a robot that stands and sways the rows are those of slow.rows, of a trotting quadruped those of
walking.checkup; each with the tolerances of a factory as priors, see walking.causes.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.slow import rows
from com_identification.slow.system import (
    TEMPERING,
    SlowSystem,
    drive_sizes,
    make_system,
    slow_unknowns,
)
from com_identification.walking.causes import (
    GAIN,
    OFF_ANGLE,
    OFF_PULL,
    CheckUp,
    Choices,
    Evidence,
    compare,
    describe_size,
    factory_std,
    robot_causes,
    unknown_sides,
    wide,
)
from com_identification.walking.checkup import check_up_trot
from com_identification.walking.fit import huber_weights
from com_identification.walking.preparation import find_limbs
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, Indices


def check_up(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    mass: float | None = None,
) -> CheckUp:
    """Finds why a robot leans or drifts.

    Args:
        logs: standing and swaying slowly on all feet, or trotting on point feet, with torques and
            an IMU.
        model: as its URDF says, or as it was identified.
        config: its feet, drives and the IMU's link.
        mass: kg, weighed; None: unknown.

    Raises:
        WalkError: the recordings cannot be used; says why.
    """
    attached = config.attach(model)
    steps = [rows.feet_move(attached, config, log) for log in logs]
    if all(steps) and len(config.feet) > 2:
        return check_up_trot(logs, model, config, mass)
    if any(steps) and not all(steps):
        raise WalkError(
            "some recordings are of standing, others of walking: expected one kind. Check them up "
            "one after the other"
        )
    limbs = find_limbs(attached, config)
    u = slow_unknowns(attached, config, limbs, drive_sizes(attached))
    prior = replace(u, std=factory_std(u))
    system = make_system(logs, [False] * len(logs), model, config, unknowns=prior)
    choices, legs = _hypotheses(system), np.flatnonzero(system.robot.legs)
    everything = np.hstack([V for own in choices.values() for V in own])
    evidence = _evidence(system, everything, mass)
    axes = "in the left sole's axes" if system.robot.flat else "in the feet's axes"
    names = [attached.joint_names[j] for j in legs]
    causes, none = compare(
        evidence,
        choices,
        {"encoder zero": names, "torque scale": names},
        partial(describe_size, attached, axes),
    )
    posture = np.mean(
        [each.motion.q.mean(axis=0) for each in system.recordings], axis=0
    )
    J = np.zeros((2, len(evidence.g)))
    J[:, :-1] = system.unknowns.com(system.unknowns.mean, posture)[1][:2]
    hang, walk = "hang it (docs/gantry.md)", "walk it (identify --use walk)"
    return CheckUp(
        causes,
        none,
        evidence.bound(np.hstack([*choices["payload"], *choices["torso CoM"]]), J),
        f"{hang if system.robot.flat else walk} and identify",
    )


def _places(system: SlowSystem) -> list[tuple[Indices, Indices]]:
    """Where the slope and the pull of each recording are in z."""
    counts = system.robot.extras(hung=False)
    first, each = len(system.base.std), sum(counts)
    _, slope, _, pull = np.split(first + np.arange(each), np.cumsum(counts)[:-1])
    starts = each * np.arange(len(system.recordings))
    return [(start + slope, start + pull) for start in starts]


def _tolerances(system: SlowSystem) -> Array:
    """Factor L (Z + 1, k) of the prior of z, and of the mean gain of the legs."""
    s = np.append(system.unknowns.std, GAIN / np.sqrt(system.robot.legs.sum()))
    for slope, pull in _places(system):
        s[slope] = np.deg2rad(0.3)
        s[pull] = 1e-3  # N: no outside pull
    return np.hstack([np.diag(s), *unknown_sides(system.base, len(s))])


def _hypotheses(system: SlowSystem) -> Choices:
    """The causes; those of slope and pull in all recordings at once."""
    size = len(system.unknowns.std) + 1
    slopes, pulls = [], []
    for each, (slope, pull) in zip(system.recordings, _places(system), strict=True):
        V = np.zeros((size, 2))
        V[slope] = OFF_ANGLE * system.robot.tilts(each.motion.q)
        slopes.append(V)
        pulls.append(wide(size, dict.fromkeys(pull[:2].tolist(), OFF_PULL)))
    found = robot_causes(system.base, size, np.flatnonzero(system.robot.legs))
    return found | {
        "floor slope": [np.hstack(slopes)],
        "outside pull": [np.hstack(pulls)],
    }


def _evidence(system: SlowSystem, V: Array, mass: float | None) -> Evidence:
    """Information about z and the mean gain of the legs, by the rows about the prior's mean.

    Huber's weights are by the residuals that are left where every cause is possible.

    Args:
        system: rows and unknowns.
        V: (Z + 1, k) every cause.
        mass: kg, weighed; None: unknown.
    """
    u = system.unknowns
    made, x = system.rows(u.mean), u.coefficients(u.mean)
    gains = made.X[:, u.gain_columns] @ x[u.gain_columns]
    A, r = np.column_stack([made.X @ u.jacobian(u.mean), gains]), made.X @ x
    weights, factory = np.ones(len(r)), _tolerances(system)
    for _ in range(2):
        H = (A * weights[:, None]).T @ A / TEMPERING
        found = Evidence(H, -A.T @ (weights * r) / TEMPERING, factory)
        if mass is not None:
            own = np.append(u.mass_direction(u.mean), 0.0)
            found = found.weighed(own, float(np.log(mass / u.total_mass(u.mean))))
        weights = huber_weights(r + A @ found.of(V)[1], made.joint, 1.0)
        weights[made.joint == rows.TIED] = 1.0
    return found
