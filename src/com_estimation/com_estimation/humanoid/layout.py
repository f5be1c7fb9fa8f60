"""Possible causes of residuals of a robot with foot wrench sensors: parameters, priors, names.

A cause is a group of parameters that is either within tolerance (the narrow prior, "spike") or
beyond it (the wide prior, "slab"); all other parameters (nuisance) stay within tolerance.
Tolerances scale with the robot's mass M and CoM height h. Vectors that belong to a body are in
its triad: axes fixed to the body that point forwards, to the left and upwards when the robot
stands in its nominal posture.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from com_estimation.humanoid.step import Blocks, Plant
from com_model import ConfigError, RobotConfig, RobotModel
from com_model.arrays import Array, FrozenArrays, Indices
from com_model.bodies import REVOLUTE, steiner
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses
from com_model.dynamics.link_frames import tree_of
from com_model.geometry.rotations import upright_axes

DEG = np.pi / 180.0


class Kind(IntEnum):
    """Kinds of causes and their parameters; values of com_msgs/Culprit.

    Attributes:
        UNKNOWN: not set.
        TRUNK_COM: error of the trunk's first moment (3) kg m, trunk's triad.
        WRENCH_ZERO: wrench bias of a foot sensor: force (3) N and torque (3) N m, axes of the
            sensor.
        IMU_TILT: mounting error of the IMU (2) rad about the forward and left axes of its body.
        ENCODER_ZERO: encoder biases, rad, of the joints next to a foot.
        PAYLOAD: mass kg and first moment (3) kg m about the body's CoM, triad.
        PULL: force (3) N and moment (3) N m about the trunk's CoM, constant in the world.
    """

    UNKNOWN = 0
    TRUNK_COM = 1
    WRENCH_ZERO = 2
    IMU_TILT = 3
    ENCODER_ZERO = 4
    PAYLOAD = 5
    PULL = 6


@dataclass(frozen=True, eq=False)
class Culprit(FrozenArrays):
    """A possible cause: a group of parameters that may be beyond tolerance; see Kind.

    Attributes:
        kind: what the parameters mean.
        name: in plain words.
        columns: (k,) of its parameters among all n.
        slab: (k,) prior standard deviations of the parameters where it is the cause.
        spike: (k,) those within tolerance; zeros: its parameters are 0 unless it is the cause.
        parts: names of the sole frame, the joints, or the body that it is about.
    """

    kind: Kind
    name: str
    columns: Indices
    slab: Array
    spike: Array
    parts: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether it may be there from the start, with others; else it begins at an onset."""
        return bool(self.spike.any())


@dataclass(frozen=True, eq=False)
class Layout(FrozenArrays):
    """Parameters and possible causes of one robot.

    Attributes:
        plant: the robot as the compiled step uses it.
        culprits: the possible causes.
        tolerance: (n,) standard deviation of each parameter within tolerance.
        mass: kg.
        height: m, of the CoM above the soles.
        mass_columns: (n,) kg by which the robot's mass changes by unit parameter.
        flat: all feet have soles with corners.
    """

    plant: Plant
    culprits: tuple[Culprit, ...]
    tolerance: Array
    mass: float
    height: float
    mass_columns: Array
    flat: bool

    @property
    def weight(self) -> float:
        """Weight of the robot, N."""
        return self.mass * GRAVITY

    @property
    def count(self) -> int:
        """Number of parameters, n."""
        return len(self.tolerance)


def make_layout(model: RobotModel, config: RobotConfig) -> Layout:
    """Lists the possible causes of a robot, with the priors of their parameters.

    The trunk is the last body that all arms and heads share; hands are at the ends of the
    configuration's joint groups left_arm and right_arm. Ankles are the last two joints above a
    flat foot, the last one above a point foot.

    Args:
        model: the robot.
        config: its configuration, with two feet or more that have force sensors.

    Returns:
        The layout of the n parameters.

    Raises:
        ConfigError: the configuration has fewer than two feet, or belongs to another robot.
    """
    model = config.attach(model)
    bodies = model.bodies
    if len(config.feet) < 2:
        problem = f"has {len(config.feet)} feet: give at least two with wrench sensors"
        raise ConfigError(problem, config.source, "feet")
    soles = [model.link_index(foot.frame) for foot in config.feet]
    sensors = [model.link_index(foot.wrench_frame) for foot in config.feet]
    chains = [bodies.path_to(bodies.body_of_link[link]) for link in soles]
    shared = [
        a for a, *b in zip(*chains, strict=False) if all(a == other for other in b)
    ]
    chains = [chain[len(shared) :] for chain in chains]
    pelvis = shared[-1] if shared else 0
    legs = {
        b
        for chain in chains
        for b in range(chain[0], int(bodies.subtree_end[chain[0]]))
    }
    trunk = _trunk(model, legs)
    hands = [(f"the {side} hand", body) for side, body in config.hands(model)]
    q = config.nominal_posture(model)
    R, p = body_poses(bodies, q)
    heading = _heading(R, bodies.body_of_link[soles], bodies.R_body_link[soles])
    com = np.array(
        [
            h / m if m > 0.0 else h
            for h, m in zip(bodies.first_moment, bodies.mass, strict=True)
        ]
    )
    p_com = p + np.einsum("bij,bj->bi", R, com)
    sole_points = p[bodies.body_of_link[soles]] + np.einsum(
        "fij,fj->fi", R[bodies.body_of_link[soles]], bodies.p_body_link[soles]
    )
    c = bodies.mass @ p_com / model.mass
    height = float(heading[:, 2] @ (c - sole_points.mean(axis=0)))
    parts = _Parts(model.mass * height)
    # kg and m of the robot whose sensors' tolerances are given
    force = model.mass / 90.3
    torque = force * height / 0.86
    flat = [len(foot.corners) > 0 for foot in config.feet]

    mu = np.array([6e-4, 6e-4, 1.5e-3])
    named = "CoM of the trunk", parts.mh * mu, parts.mh * 4.5e-3, bodies.names[trunk]
    first = [parts.add(Kind.TRUNK_COM, *named)]
    unit = np.repeat([force, torque], 3)
    zeros = [
        parts.add(
            Kind.WRENCH_ZERO,
            f"zero of {foot.frame}'s force sensor",
            unit * ([0.7] * 3 + [0.07] * 3),
            unit * ([7.0] * 3 + [0.7] * 3),
            foot.frame,
        )
        for foot in config.feet
    ]
    imu = (
        int(bodies.body_of_link[model.link_index(config.imu_link)])
        if config.imu_link
        else 0
    )
    wide = 0.7 * DEG
    tilt = parts.add(
        Kind.IMU_TILT, "tilt of the IMU", np.full(2, 0.1 * DEG), wide, bodies.names[imu]
    )
    joints: list[tuple[int, int, int]] = []  # body, foot, column
    rest: list[tuple[int, int]] = []
    for i, chain in enumerate(chains):
        moving = [b for b in chain if bodies.joint_type[b] == REVOLUTE]
        ankles = moving[-2:] if flat[i] else moving[-1:]
        rest += [(b, i) for b in moving[: -len(ankles)]]
        names = [bodies.joint_names[b] for b in ankles]
        name, spike = (
            f"encoder zeros of {', '.join(names)}",
            np.full(len(ankles), 0.06 * DEG),
        )
        at = parts.add(Kind.ENCODER_ZERO, name, spike, 0.4 * DEG, *names)
        joints += [(b, i, at + k) for k, b in enumerate(ankles)]
    payload, where = [], [*hands, ("the trunk", trunk)]
    for name, body in where:
        moment = (6e-3 if body != trunk else 1.2e-2) * parts.mh
        slab = np.array([0.035 * model.mass, *[moment] * 3])
        what, none = f"payload on {name}", np.zeros(4)
        payload.append(parts.add(Kind.PAYLOAD, what, none, slab, bodies.names[body]))
    weight = model.mass * GRAVITY
    slab = np.repeat([0.02 * weight, 0.01 * weight * height], 3)
    pull = parts.add(Kind.PULL, "steady pull or push", np.zeros(6), slab)
    if pelvis != trunk:
        first.append(parts.nuisance(parts.mh * np.array([4e-4, 4e-4, 1e-3])))
    joints += [(b, i, parts.nuisance([0.04 * DEG])) for b, i in rest]
    group, groups = _mass_groups(model, chains, trunk, legs)
    masses = parts.nuisance(np.full(groups, 0.015))
    gains = parts.nuisance(np.full(len(chains), 5e-3))
    trunk_mass = parts.nuisance([4e-3 * model.mass])
    delay = parts.nuisance([0.01])
    flexibility = parts.nuisance([1.5e-4, 1.5e-3])  # half of a backlash of 0.17 degrees
    imu_delay = parts.nuisance([0.01])
    n = len(parts.tolerance)

    mass_columns = np.zeros(n)
    mass_columns[payload], mass_columns[trunk_mass] = 1.0, 1.0
    for b in range(bodies.count):
        if group[b] >= 0:
            mass_columns[masses + group[b]] += bodies.mass[b]
    triads = np.array([R[b].T @ heading for b in range(bodies.count)])
    dipoles = [(trunk, first[0]), *([(pelvis, first[1])] if len(first) > 1 else [])]
    dipoles += [(body, at + 1) for (_, body), at in zip(where, payload, strict=True)]
    points = [(body, at) for (_, body), at in zip(where, payload, strict=True)]
    plant = Plant(
        tree=tree_of(bodies),
        com=com,
        inertia=np.array(
            bodies.inertia - bodies.mass[:, None, None] * steiner(com)
        ),  # about the CoM
        mass_group=group,
        triad=triads,
        dipole=np.array(dipoles, dtype=np.int64),
        point=np.array([*points, (trunk, trunk_mass)], dtype=np.int64),
        foot_body=np.array(bodies.body_of_link[soles]),
        sensor_body=np.array(bodies.body_of_link[sensors]),
        R_sensor=np.array(bodies.R_body_link[sensors]),
        p_sensor=np.array(bodies.p_body_link[sensors]),
        R_sole=np.array(bodies.R_body_link[soles]),
        p_sole=np.array(bodies.p_body_link[soles]),
        joint=np.array(joints, dtype=np.int64),
        blocks=Blocks(
            n, trunk, imu, zeros[0], tilt, pull, masses, gains, delay,
            flexibility, imu_delay, 5e-3 * weight * height, float(model.mass),
        ),
    )  # fmt: skip
    return Layout(
        plant, tuple(parts.culprits), np.array(parts.tolerance), float(model.mass), height,
        mass_columns, all(flat),
    )  # fmt: skip


class _Parts:
    """Builds the list of parameters, one block after the other.

    Args:
        mh: kg m, mass of the robot times the height of its CoM.

    Attributes:
        mh: as given.
        culprits: causes added so far.
        tolerance: standard deviation within tolerance of each parameter so far.
    """

    def __init__(self, mh: float) -> None:
        self.mh = mh  # kg m, mass times height
        self.culprits: list[Culprit] = []
        self.tolerance: list[float] = []

    def nuisance(self, tolerance: object) -> int:
        """Adds parameters that stay within tolerance.

        Args:
            tolerance: standard deviations, one for each parameter.

        Returns:
            The column of the first one.
        """
        at = len(self.tolerance)
        self.tolerance += np.asarray(tolerance, dtype=float).tolist()
        return at

    def add(
        self, kind: Kind, name: str, spike: Array, slab: object, *parts: str
    ) -> int:
        """Adds a possible cause.

        Args:
            kind: of the cause.
            name: in plain words.
            spike: (k,) standard deviations of its parameters within tolerance; zeros: see
                Culprit.
            slab: standard deviations where it is the cause, one for all or one for each
                parameter.
            *parts: names of the sole frame, the joints, or the body that it is about.

        Returns:
            The column of its first parameter.
        """
        at = self.nuisance(spike)
        columns = np.arange(at, at + len(spike))
        wide = np.broadcast_to(np.asarray(slab, dtype=float), columns.shape)
        self.culprits.append(
            Culprit(kind, name, columns, wide, np.asarray(spike), parts)
        )
        return at


def _trunk(model: RobotModel, legs: set[int]) -> int:
    """Last body that the paths to all ends other than legs share; 0 with fewer than two ends."""
    bodies = model.bodies
    ends = [
        b
        for b in range(1, bodies.count)
        if bodies.subtree_end[b] == b + 1 and b not in legs
    ]
    paths = [bodies.path_to(b) for b in ends]
    shared = [
        a for a, *b in zip(*paths, strict=False) if all(a == other for other in b)
    ]
    return shared[-1] if len(ends) > 1 and shared else 0


def _heading(R: Array, feet: Indices, R_sole: Array) -> Array:
    """Axes forwards, to the left and upwards (3, 3), from the soles, in the root's frame."""
    soles = R[feet] @ R_sole
    up = soles[:, :, 2].sum(axis=0)
    return upright_axes(soles[:, :, 0].sum(axis=0), up / np.linalg.norm(up)).T


def _mass_groups(
    model: RobotModel, chains: list[list[int]], trunk: int, legs: set[int]
) -> tuple[Indices, int]:
    """Groups of bodies whose mass errors are common: upper legs, lower legs, arms, rest.

    Returns:
        (B,) index of each body's group, -1 for the trunk; and the number of groups.
    """
    bodies = model.bodies
    group = np.full(bodies.count, -1, dtype=np.int64)
    lower = {
        b for chain in chains for b in range(chain[len(chain) // 2], chain[-1] + 1)
    }
    for b in range(bodies.count):
        if b in legs:
            group[b] = int(b in lower)
        elif b != trunk:
            carried = trunk < b < bodies.subtree_end[trunk]
            group[b] = (
                2 if carried and not legs & set(range(b, bodies.subtree_end[b])) else 3
            )
    used = sorted({int(g) for g in group if g >= 0})
    return np.array(
        [used.index(int(g)) if g >= 0 else -1 for g in group], dtype=np.int64
    ), len(used)
