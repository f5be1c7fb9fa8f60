"""Wrenches of the ground on the feet of any legged robot, from joint torques and the IMU.

With w_c the wrench on foot c about its contact point, J_c the foot's Jacobian by the joints, G_c
what the wrench does to the root, ID and W the joint torques and the root's wrench that the motion
takes without contacts:

  leg joints    sum_c J_c^T w_c = ID - (tau - friction)       + noise of the drives
  base          sum_c G_c w_c = W                             + errors of the URDF's masses
  prior         w_c = 0                                       + 0.8 of the weight
                                                                (0.003 of a foot in the air)

solved by weighted least squares after a causal low pass (update_wrenches). The base's
equations are worth most where the robot was weighed as it walks. A foot begins contact at 12 % of
the weight and ends it below 9 %.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_estimation.trunk.floating_base.filter_types import CHANNEL, JOINT_SIGNALS
from com_estimation.trunk.floating_base.signals import (
    are_settled,
    move_to_root,
    read_motion,
    start_channels,
    update_channels,
)
from com_estimation.trunk.interface import Sample
from com_estimation.trunk.motion import imu_link
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled, entry_point
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import (
    Links,
    RootMotion,
    make_links,
    newton_euler,
)
from com_model.dynamics.link_frames import (
    Frames,
    LinkFrames,
    LinkMotions,
    Tree,
    set_link_motions,
    tree_of,
)
from com_model.exceptions import ConfigError


class FootModel(NamedTuple):
    """A robot of n joints with f feet, and what its equations are worth.

    Attributes:
        robot: bodies and joints.
        frames: the feet's contact points, then the frames of their sensors.
        radius: (f,) m, of point feet.
        size: (f,) components of a foot's wrench, 3 or 6.
        joints: (L,) the joints that move feet.
        friction: (4, n) Coulomb N m, viscous N m s/rad, load friction, rotor kg m^2.
        std: (2, n) standard deviations of torques: constant, N m, and relative to the torque.
        prior: (K,) N and N m, standard deviations of the components of a foot on the ground.
        air: factor of 1 / prior^2 of a foot in the air.
        base: (6,) 1/N^2 and 1/(N m)^2, weights of the base's equations.
        heavier: the robot's mass over the URDF's.
        p_imu: (3,) m, position of the IMU in the root's frame.
        enter: N, load from which a foot is in contact.
        leave: N, load below which it no longer is.
        bandwidth: rad/s, of the filter.
        settling: s, until it has forgotten what came before.
    """

    robot: Tree
    frames: Frames
    radius: Array
    size: Indices
    joints: Indices
    friction: Array
    std: Array
    prior: Array
    air: float
    base: Array
    heavier: float
    p_imu: Array
    enter: float
    leave: float
    bandwidth: float
    settling: float


class FootState(NamedTuple):
    """Memory between samples.

    Attributes:
        channels: state of the filters, see floating_base.signals.
        links: of the dynamics.
        motions: of the frames.
        contact: (f,) feet in contact.
    """

    channels: NDArray[np.void]
    links: Links
    motions: LinkMotions
    contact: Flags


class Wrenches(NamedTuple):
    """Result of one sample.

    Attributes:
        wrench: (f, 6) N and N m, in the sensors' frames.
        covariance: (f, 6, 6).
        load: (f,) N, against gravity.
    """

    wrench: Array
    covariance: Array
    load: Array


@njit
def _set_loads(feet: FootModel, w: Array, up: Array, load: Array) -> None:
    """Sets the components (f,) of the forces w (K,) against gravity."""
    at = 0
    for c in range(len(load)):
        load[c] = w[at] * up[0] + w[at + 1] * up[1] + w[at + 2] * up[2]
        at += feet.size[c]


@njit
def _cross_matrix(v: Array) -> Array:
    """[v]x (3, 3)."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


@compiled()
def update_wrenches(
    feet: FootModel, state: FootState, signals: Array, dt: float, result: Wrenches
) -> bool:
    """Filters a sample and solves for the wrenches.

    Args:
        feet: the robot.
        state: changed.
        signals: (9 + 2 n,) of floating_base.signals: angular velocity, specific force at the IMU
            and up in root axes, positions, efforts.
        dt: s since the sample before; not positive: the filter restarts.
        result: set.

    Returns:
        Whether the filter has settled; else nothing is set.
    """
    channels, links, motions, contact = state
    if dt > 0.0:
        update_channels(channels, signals, dt, feet.bandwidth, feet.settling)
    else:
        start_channels(channels, signals, feet.settling)
    if not are_settled(channels, 0, len(channels)):
        return False
    motion = read_motion(channels, feet.bandwidth, 0.0)
    move_to_root(motion, feet.p_imu)
    root = RootMotion(motion.omega, motion.omega_dot, motion.specific_force)
    up, needed = motion.up, np.empty(len(motion.q))
    newton_euler(feet.robot, motion.q, motion.qd, motion.qdd, root, links, needed)
    set_link_motions(motion.q, feet.frames, motions)
    count, own = len(feet.size), feet.joints
    A, y = np.zeros((len(feet.prior), len(own) + 6)), np.empty(len(own) + 6)
    weights = np.empty(len(y))
    for k in range(len(own)):
        j = own[k]
        tau, s = motion.tau[j], motion.direction[j]
        rub = feet.friction[0, j] + feet.friction[2, j] * abs(tau)
        y[k] = needed[j] - tau + rub * s + feet.friction[1, j] * motion.qd[j]
        y[k] += feet.friction[3, j] * motion.qdd[j]
        reversal = rub**2 * (1.0 - s * s)
        weights[k] = 1.0 / (
            feet.std[0, j] ** 2 + (feet.std[1, j] * tau) ** 2 + reversal
        )
    y[-6:-3], y[-3:] = feet.heavier * links.force[0], feet.heavier * links.torque[0]
    weights[-6:] = feet.base
    at = 0
    for c in range(count):
        down = -feet.radius[c] * up
        point, d, J = motions.p[c] + down, feet.size[c], motions.jacobian[c]
        shift, arm = _cross_matrix(down), _cross_matrix(point)
        for k in range(len(own)):
            for i in range(d):
                A[at + i, k] = J[i, own[k]]
            for i in range(3):
                for m in range(3):
                    A[at + i, k] -= shift[i, m] * J[3 + m, own[k]]
        for i in range(d):
            A[at + i, len(own) + i] = 1.0
        for i in range(3):
            for m in range(3):
                A[at + i, len(own) + 3 + m] = arm[m, i]
        at += d
    weighted = A * weights
    H, g = weighted @ A.T, weighted @ y
    wide = 1.0 / feet.prior**2
    C = np.linalg.inv(H + np.diag(wide))
    w = C @ g
    _set_loads(feet, w, up, result.load)
    at = 0
    for c in range(count):
        contact[c] = result.load[c] > (feet.leave if contact[c] else feet.enter)
        if not contact[c]:
            wide[at : at + feet.size[c]] *= feet.air
        at += feet.size[c]
    if not contact.all():
        C = np.linalg.inv(H + np.diag(wide))
        w = C @ g
        _set_loads(feet, w, up, result.load)
    at = 0
    for c in range(count):
        d, R = feet.size[c], motions.R[count + c].T.copy()
        arm = motions.p[c] - feet.radius[c] * up - motions.p[count + c]
        T = np.zeros((6, d))
        T[:3, :3], T[3:, :3] = R, R @ _cross_matrix(arm)
        if d == 6:
            T[3:, 3:] = R
        own_C = C[at : at + d, at : at + d].copy()
        result.wrench[c] = T @ w[at : at + d]
        result.covariance[c] = T @ own_C @ T.T
        at += d
    return True


BANDWIDTH = 400.0
"""rad/s, of the low pass: 32 Hz at -3 dB, a delay of 7.5 ms."""


@dataclass(frozen=True, eq=False)
class FootWrenches:
    """Wrenches of the ground on f feet; NaN where unknown.

    Attributes:
        time: s, of the sample that they were computed from.
        wrenches: (f, 6) force N and moment N m, in the axes and about the origin of each foot's
            wrench_frame.
        covariance: (f, 6, 6) of each.
        R_root_sensor: (f, 3, 3) of each wrench_frame in the root link.
        loads: (f,) N, components of the forces against gravity.
        contact: (f,) feet on the ground; False where unknown.
        problem: why they are unknown, and how to fix it; "" if they are known.
    """

    time: float
    wrenches: Array
    covariance: Array
    R_root_sensor: Array
    loads: Array
    contact: Flags
    problem: str = ""

    @property
    def forces(self) -> Array:
        """(f, 3) N, in the root link's axes."""
        return np.einsum("fij,fj->fi", self.R_root_sensor, self.wrenches[:, :3])

    @property
    def force_std(self) -> Array:
        """(f, 3) N, standard deviations of forces."""
        R, C = self.R_root_sensor, self.covariance[:, :3, :3]
        return np.sqrt(np.einsum("fij,fjk,fik->fi", R, C, R))


def drive_sizes(model: RobotModel) -> Array:
    """Returns sizes (n,) N m of the drives without a recording, see ActuatorModel.filled.

    A third of the URDF's limits; without them those of a Go2's legs, scaled to the mass.

    Args:
        model: the robot.
    """
    limits = model.effort_limits
    usual = 8.0 * (model.mass / 15.0) ** (4 / 3)  # N m and kg of a Go2
    return np.where(np.isfinite(limits) & (limits > 0.0), limits / 3.0, usual)


class FootForceEstimator:
    """Estimates the wrenches of the ground on the feet, sample by sample.

    Args:
        model: the robot.
        config: its feet, drives and the IMU's link.
        mass: kg, of the robot if it was weighed: the URDF's masses are scaled to it, and the
            balance of the whole robot counts for 2 % of the weight; None: for 8 %.
        bandwidth: rad/s, of the filter; wrenches are 3 / bandwidth late.

    Raises:
        ConfigError: there are no feet, no joint moves one, or the IMU is not on the trunk.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        mass: float | None = None,
        bandwidth: float = BANDWIDTH,
    ) -> None:
        prior_std = 0.8  # of the weight, of a foot's force without data
        model, feet = config.attach(model), config.feet
        legs = _leg_joints(model, config)
        link, bodies, weight = (
            imu_link(model, config),
            model.bodies,
            GRAVITY * (mass or model.mass),
        )
        self._R_root_imu = bodies.R_body_link[link]
        self._mass = mass or model.mass
        own = np.unique(np.concatenate([np.array(leg) for leg in legs]))
        self._used = np.isin(np.arange(model.n_joints), own)
        names = [foot.frame for foot in feet] + [foot.wrench_frame for foot in feet]
        places = [foot.center for foot in feet] + [np.zeros(3)] * len(feet)
        size = np.array([6 if len(foot.corners) else 3 for foot in feet])
        reach = [np.abs(foot.corners).max(initial=0.0) for foot in feet]
        units = np.column_stack([np.ones((len(feet), 3)), np.tile(reach, (3, 1)).T])
        drives = config.drives(model.joint_names, legs, drive_sizes(model))
        kinds = ("coulomb", "viscous", "load_friction", "rotor_inertia")
        # of the weight, error of the base's force with the masses of the URDF, or where the robot
        # was weighed
        errors = 0.08 if mass is None else 0.02
        friction, std = (
            np.array(
                [[getattr(d, kind + end) for d in drives] for kind in kinds], float
            )
            for end in ("", "_std")
        )
        bias = np.array([d.torque_bias_std for d in drives], dtype=float)
        self._feet = FootModel(
            robot=tree_of(bodies),
            frames=LinkFrames(model, names, places).frames,
            radius=np.array([foot.radius for foot in feet]),
            size=size,
            joints=own,
            friction=friction,
            # relative error of torques, in addition to that of load friction
            std=np.array([np.hypot(std[0], bias), np.hypot(std[2], 0.03)]),
            prior=prior_std * (weight * units[np.arange(6) < size[:, None]]),
            # 0.003 of the weight: the same of a foot in the air
            air=(prior_std / 0.003) ** 2,
            # m, error of the base's moment over that of its force
            base=1.0 / (weight * errors * np.repeat([1.0, 0.5], 3)) ** 2,
            heavier=weight / (GRAVITY * model.mass),
            p_imu=np.array(bodies.p_body_link[link]),
            # fraction of the weight from which a foot is in contact
            enter=0.12 * weight,
            # fraction of the weight below which it no longer is
            leave=0.09 * weight,
            bandwidth=bandwidth,
            settling=12.0 / bandwidth,  # 5e-4 of what came before are left
        )
        f, n = len(feet), model.n_joints
        motions = np.empty((2 * f, 3, 3)), np.empty((2 * f, 3)), np.empty((2 * f, 6, n))
        self._state = FootState(
            channels=np.zeros(JOINT_SIGNALS + 2 * n, CHANNEL),
            links=make_links(bodies.count),
            motions=LinkMotions(*motions),
            contact=np.zeros(f, dtype=np.bool_),
        )
        self._result = Wrenches(np.empty((f, 6)), np.empty((f, 6, 6)), np.empty(f))
        signals = np.empty(JOINT_SIGNALS + 2 * n)
        self._update = entry_point(
            update_wrenches, self._feet, self._state, signals, 0.0, self._result
        )
        self.reset()

    def reset(self) -> None:
        """Forgets all samples."""
        self._time = np.nan
        self._carried = self._expected = 0.0  # N, low-passed
        self._state.contact[:] = False

    def update(self, sample: Sample) -> FootWrenches | None:
        """Processes a sample.

        Args:
            sample: sensor readings of one instant; of efforts only those of joints that move feet
                are used.

        Returns:
            The wrenches; None when the sample has the time of the one before.
        """
        dt = sample.time - self._time
        if dt == 0.0:
            return None
        self._time, R = sample.time, self._R_root_imu
        imu = [
            R @ values
            for values in (
                sample.angular_velocity,
                sample.specific_force,
                sample.R_world_imu[2],
            )
        ]
        efforts = np.where(self._used, sample.effort, 0.0)
        signals = np.concatenate((*imu, sample.position, efforts))
        usual = 0.0 < dt <= 0.1  # s: the filter restarts after a longer gap
        known = self._update(
            self._feet, self._state, signals, dt if usual else 0.0, self._result
        )
        wrench, covariance, load = (v.copy() for v in self._result)
        problem = self._unlike_weight(load, imu[1] @ imu[2], dt) if known else ""
        if not known or problem:
            self._state.contact[:] = False
            problem = problem or _missing(sample, efforts)
            for values in (wrench, covariance, load):
                values[:] = np.nan
        return FootWrenches(
            sample.time,
            wrench,
            covariance,
            self._state.motions.R[len(load) :].copy(),
            load,
            self._state.contact.copy(),
            problem,
        )

    def _unlike_weight(self, load: Array, up: float, dt: float) -> str:
        """Why the feet cannot carry what is computed: "" where they may.

        Compares loads and accelerations over 0.5 s. A model that is 20 % too light passes, one
        side with another sign does not.

        Args:
            load: (f,) N.
            up: m/s^2, specific force against gravity: what carries the robot.
            dt: s.
        """
        share = min(dt / 0.5, 1.0) if dt > 0.0 else 0.0
        self._carried += share * (load.sum() - self._carried)
        self._expected += share * (self._mass * up - self._expected)
        if abs(self._carried - self._expected) <= 0.25 * self._mass * GRAVITY:
            return ""
        return (
            f"by the torques the feet carry {self._carried:.0f} N, by the accelerations "
            f"{self._expected:.0f} N: check unit and sign of effort; or something else carries it"
        )


def _missing(sample: Sample, efforts: Array) -> str:
    """Why the wrenches are unknown, and how to fix it."""
    texts = {
        "the IMU's rates and accelerations are not known: check the driver of imu": (
            sample.angular_velocity,
            sample.specific_force,
        ),
        "the IMU's orientation is not known: use a driver or filter that gives it": (
            sample.R_world_imu[2],
        ),
        "not all positions of the joints are known: check joint_states": (
            sample.position,
        ),
        "not all efforts of the legs are known: let the driver publish `effort`, N m": (
            efforts,
        ),
    }
    for text, values in texts.items():
        if not np.isfinite(np.concatenate(values)).all():
            return text
    return "the filter settles for some hundredths of a second"


def _leg_joints(model: RobotModel, config: RobotConfig) -> list[list[int]]:
    """Indices of the joints that move each foot, from the root."""
    bodies, legs = model.bodies, list[list[int]]()
    if not config.feet:
        raise ConfigError(
            "has none: com_setup writes them from the URDF", config.source, "feet"
        )
    for foot in config.feet:
        path = bodies.path_to(bodies.body_of_link[model.link_index(foot.frame)])
        legs.append(list(dict.fromkeys(bodies.q_index[path].tolist())))
        if not legs[-1]:
            raise ConfigError("no joint moves it", config.source, f"feet.{foot.frame}")
    return legs
