"""A slow motion of the whole body, safe for a standing robot and suited to show a hanging one."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from com_model import Foot, RobotConfig, RobotModel, Sesc, SupportPolygon
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_model.geometry.rotations import upright_axes
from com_model.geometry.support import sole_points
from com_simulation.exceptions import SwayError
from com_simulation.physics.contacts import support_normal

# Root motions, tried in turn: amplitudes forwards, sideways, downwards (of the height) and turning.
# Legs without sideways joints can do the second one only.
ROOT_MOTIONS = ((0.5, 1.0, 0.3, 0.5), (0.5, 0.0, 0.3, 0.0))


class PlantedFeet:
    """Poses of a robot's feet in a posture, which other postures must keep.

    Args:
        robot: the robot.
        feet: of its configuration.
        posture: (n,) rad or m.

    Attributes:
        robot: as given.
        posture: as given.
        contacts: (k, 3) m, corners of the soles and centres of balls, root link's frame.
        joints: indices of the joints above the feet.
    """

    def __init__(self, robot: RobotModel, feet: Sequence[Foot], posture: Array) -> None:
        self.robot, self.posture = robot, posture
        names, centers = [foot.frame for foot in feet], [foot.center for foot in feet]
        self._frames = LinkFrames(robot, names, centers)
        self._flat = np.array([len(foot.corners) > 0 for foot in feet])
        self._R, self._p = self._frames.poses(posture)
        poses = zip(self._R, self._p, feet, strict=True)
        self.contacts = np.concatenate(
            [sole_points(R, p, foot.corners) for R, p, foot in poses]
        )
        self.joints = np.unique(robot.bodies.q_index[self._frames.frames.path])

    def below(self, start: Array, R_root: Array, p_root: Array) -> Array:
        """Finds joint positions that keep the feet in place with the root moved.

        A sole with corners keeps position and orientation, a ball its centre. Newton's method
        with the shortest step. Joints that would leave their limits stay, where the others can
        do without them.

        Args:
            start: (n,) rad or m, initial guess; joints that are not above a foot stay there.
            R_root: (3, 3) orientation of the root relative to that in the posture.
            p_root: (3,) m, position of the root relative to that in the posture.

        Returns:
            (n,) rad or m.

        Raises:
            SwayError: the legs do not reach.
        """
        robot, joints = self.robot, self.joints
        # of a joint's range that stays free at either end
        reach = 0.02 * np.nan_to_num(robot.upper - robot.lower, posinf=0.0)
        lower = np.minimum(robot.lower + reach, self.posture)
        upper = np.maximum(robot.upper - reach, self.posture)
        q = start.copy()
        for _ in range(15):
            R, p, jacobian = self._frames.motions(q)
            turns = Rotation.from_matrix(
                R_root @ R @ self._R.transpose(0, 2, 1)
            ).as_rotvec()
            shifts = p_root + p @ R_root.T - self._p
            error = np.concatenate((shifts, turns[self._flat])).ravel()
            # m and rad, of the feet's places
            if np.abs(error).max() < 1e-6:
                return q
            moves, spins = (
                R_root @ jacobian[:, :3, joints],
                R_root @ jacobian[self._flat, 3:][..., joints],
            )
            J = np.concatenate((moves, spins)).reshape(-1, len(joints))
            at_lower, at_upper = q[joints] <= lower[joints], q[joints] >= upper[joints]
            free = np.ones(len(joints))
            held = np.ones(len(joints), dtype=bool)
            while held.any():
                step = np.linalg.lstsq(J * free, -error, rcond=1e-6)[0] * free
                held = (at_lower & (step < 0.0)) | (at_upper & (step > 0.0))
                free[held] = 0.0
            q[joints] += step
            np.clip(q, lower, upper, out=q)
        raise SwayError("the legs do not reach, or a joint is at its limit")


@dataclass(frozen=True, eq=False)
class Sway:
    """A motion that starts at rest in the nominal posture and repeats after the first period.

    Attributes:
        posture: (n,) nominal joint positions, rad or m.
        period: s.
        amplitude: rad, as far as the limits and the support margin allowed.
        margin: m, the smallest support margin; NaN for a robot that does not stand.
    """

    posture: Array
    period: float
    amplitude: float
    margin: float
    _begin: CubicSpline
    _repeat: CubicSpline

    def sample(self, time: float) -> tuple[Array, Array]:
        """The motion at a time.

        Args:
            time: s from the start.

        Returns:
            Joint positions (n,) rad or m and velocities (n,) rad/s or m/s.
        """
        time = max(time, 0.0)
        if time < self.period:
            return self._begin(time), self._begin(time, 1)
        phase = time % self.period
        return self._repeat(phase), self._repeat(phase, 1)


def plan_sway(
    robot: RobotModel,
    config: RobotConfig | None,
    standing: bool,
    amplitude: float,
    period: float,
) -> Sway:
    """Plans a motion for a robot whose feet stand, or whose root is fixed.

    All joints that are not above a foot move independently, each with its own phase. A standing
    robot's root moves sideways by amplitude times its height over the soles, half as far
    forwards, and slightly down and around; the legs follow so that the feet stay in place. The
    amplitude is reduced until the CoM keeps half of the support margin that it has at rest.

    Args:
        robot: the robot.
        config: its feet and nominal posture; None: no feet, in its neutral posture.
        standing: the robot stands on its feet; else its root is fixed.
        amplitude: rad, of the joints.
        period: s.

    Returns:
        The motion.

    Raises:
        SwayError: no motion of a tenth of that size keeps the robot standing.
    """
    posture = robot.neutral.copy() if config is None else config.nominal_posture(robot)
    if standing and config is not None and config.feet:
        return _plan_standing(robot, config, posture, amplitude, period)
    free = _free_joints(robot, posture, np.arange(robot.n_joints), amplitude, period)
    return _through(_tables(free), posture, period, amplitude)


def _plan_standing(
    robot: RobotModel,
    config: RobotConfig,
    posture: Array,
    amplitude: float,
    period: float,
) -> Sway:
    stance = PlantedFeet(robot, config.feet, posture)
    up = support_normal(robot, config.feet, posture)
    polygon = SupportPolygon.from_points(stance.contacts, up)
    sesc = Sesc(robot)
    at_rest = float(polygon.margin(sesc.com(posture)))
    if at_rest <= 0.0:
        raise SwayError(
            f"in the nominal posture the CoM is {-1000.0 * at_rest:.0f} mm outside the support "
            "polygon: correct posture or feet in the robot's configuration"
        )
    problem = ""
    shrink = 0.65
    sizes = amplitude * shrink ** np.arange(np.ceil(np.log(0.1) / np.log(shrink)) + 1)
    for motion, size in itertools.product(ROOT_MOTIONS, sizes.tolist()):
        root = _root_motion(up, stance, motion, size)
        try:
            tables, margin = _standing_tables(stance, root, polygon, sesc, size, period)
            if margin < 0.5 * at_rest:
                raise SwayError(
                    f"the support margin shrinks to {1000.0 * margin:.0f} mm"
                )
            sway = _through(tables, posture, period, size, margin)
            _check_speed(robot, sway)
            return sway
        except SwayError as error:
            problem = str(error)
    raise SwayError(
        f"cannot sway by {amplitude:g} rad in {period:g} s nor by a tenth of it: {problem}"
    )


Root = Callable[[float, float], tuple[Array, Array]]  # phase, scale -> R (3, 3), p (3,)


def _root_motion(
    up: Array, stance: PlantedFeet, motion: Sequence[float], amplitude: float
) -> Root:
    """Motion of a standing robot's root, in its frame of the nominal posture."""
    axes = upright_axes(np.array([1.0, 0.0, 0.0]), up)
    height = float(-up @ stance.contacts.mean(axis=0))
    ahead, sideways, downwards, turning = motion

    def at(phase: float, scale: float) -> tuple[Array, Array]:
        """Pose of the root: R (3, 3), p (3,) m.

        Args:
            phase: rad.
            scale: 0 to 1, of the amplitude.
        """
        swing, twice = scale * np.sin(phase), scale * np.sin(2.0 * phase)
        steps = np.array([ahead * twice, sideways * swing, -downwards * swing * swing])
        R = Rotation.from_rotvec(turning * amplitude * swing * axes[2]).as_matrix()
        return R, amplitude * height * steps @ axes

    return at


def _free_joints(
    robot: RobotModel,
    posture: Array,
    joints: NDArray[np.int64],
    amplitude: float,
    period: float,
) -> Callable[[float, float], Array]:
    """Joints that swing about the middle of what their limits allow: phase, scale -> (n,)."""
    slides = np.array([kind == "prismatic" for kind in robot.joint_types], dtype=bool)
    # amplitude of prismatic joints
    wanted = np.where(slides, 0.2 * amplitude, amplitude)
    # of a joint's range, to either side of the middle of its motion
    by_range = 0.4 * (robot.upper - robot.lower)
    by_speed = _allowed_speed(robot) * period / (2.0 * np.pi)
    reach = np.zeros(robot.n_joints)
    reach[joints] = np.minimum(np.minimum(wanted, by_range), by_speed)[joints]
    middle = np.clip(posture, robot.lower + reach, robot.upper - reach)
    offset = np.where(reach > 0.0, middle - posture, 0.0)
    # the golden angle, rad, keeps the phases of the joints apart
    phases = 2.4 * np.arange(robot.n_joints)
    return lambda phase, scale: (
        posture + scale * (offset + reach * np.sin(phase + phases))
    )


def _standing_tables(
    stance: PlantedFeet,
    root: Root,
    polygon: SupportPolygon,
    sesc: Sesc,
    amplitude: float,
    period: float,
) -> tuple[tuple[Array, Array], float]:
    """Joint positions of the first and of all later periods, and the smallest support margin."""
    robot, posture = stance.robot, stance.posture
    others = np.setdiff1d(np.arange(robot.n_joints), stance.joints)
    free = _free_joints(robot, posture, others, amplitude, period)
    coms = []
    legs = posture

    def position(phase: float, scale: float) -> Array:
        """Joint positions (n,) with the feet where they are; adds the CoM to `coms`.

        Args:
            phase: rad.
            scale: 0 to 1, of the amplitude.
        """
        nonlocal legs
        start = free(phase, scale)
        start[stance.joints] = legs[stance.joints]
        R, p = root(phase, scale)
        legs = stance.below(start, R, p)
        coms.append(p + R @ sesc.com(legs))
        return legs

    tables = _tables(position)
    return tables, float(np.min(polygon.margin(np.array(coms))))


def _tables(position: Callable[[float, float], Array]) -> tuple[Array, Array]:
    """Samples (49, n) of the first period, which grows from zero, and of the next."""
    progress = np.linspace(0.0, 1.0, 49)
    scales = progress**2 * (3.0 - 2.0 * progress)
    phases = 2.0 * np.pi * progress
    begin = np.array([position(p, s) for p, s in zip(phases, scales, strict=True)])
    repeat = np.array([position(p, 1.0) for p in phases])
    repeat[-1] = repeat[0]
    begin[-1] = repeat[0]
    return begin, repeat


def _through(
    tables: tuple[Array, Array],
    posture: Array,
    period: float,
    amplitude: float,
    margin: float = float("nan"),
) -> Sway:
    begin, repeat = tables
    times = np.linspace(0.0, period, len(begin))
    again = CubicSpline(times, repeat, bc_type="periodic")
    first = CubicSpline(
        times, begin, bc_type=((1, np.zeros_like(posture)), (1, again(0.0, 1)))
    )
    return Sway(posture, period, amplitude, margin, first, again)


def _allowed_speed(robot: RobotModel) -> Array:
    """Joint speeds (n,) that the motion may use; a limit of 0 in a URDF means none."""
    limits = np.where(robot.velocity_limits > 0.0, robot.velocity_limits, np.inf)
    # of the joints' velocity limits
    return np.asarray(0.5 * limits)


def _check_speed(robot: RobotModel, sway: Sway) -> None:
    speeds = np.array(
        [np.abs(sway.sample(t)[1]) for t in np.linspace(0.0, 2.0 * sway.period, 200)]
    )
    too_fast = speeds.max(axis=0) > _allowed_speed(robot)
    if too_fast.any():
        name = robot.joint_names[int(np.argmax(too_fast))]
        raise SwayError(
            f"joint '{name}' would need more than half of its velocity limit"
        )
