"""Measurements of a walking robot: whether it may walk, and its pose in the walk's frame.

The planned pose of a standing foot determines the robot's pose, together with the measured
joints. The zero moment point is measured by force and torque under the feet. A sensor at p in
the sole's frame, rotated by R, reads force f and torque t. About the sole's origin, on the
sole's plane,

  F = R f,  M = R t + p x F,  zmp_x = -M_y / F_z,  zmp_y = M_x / F_z

For a sensor with the sole's axes at the height d above it that is (-t_y - f_x d) / f_z and (t_x
- f_y d) / f_z: [CCGD] eqs 15, 16 in the axes of the paper. Of both feet together: the same with
the sum of their forces and moments about a point of the ground.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import BipedError, PlanError
from com_control.walking.biped import Biped
from com_control.walking.walk_plan import WalkInstant, find_stance
from com_model import Sesc, link_pose
from com_model.arrays import Array, as_array
from com_model.compiled import compiled, entry_point
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames
from com_model.geometry.vector_kernels import add, cross, set_point, set_product, turned
from com_model.parameters import live_parameter

NO_WRENCHES = np.full((2, 6), np.nan)


@dataclass(frozen=True, eq=False)
class Reading:
    """Measurements at one time.

    Attributes:
        time: s.
        position: (n,) rad or m.
        wrenches: (2, 6) force N and moment N m of the ground on the left and right foot, in the
            axes and about the origins of their sensors; None: unknown.
        tilt: rad, of the root link; NaN: unknown.
        missing: input that is not received and how to fix it; "" when all are.
        R_world_root: (3, 3) orientation of the root link by the IMU; None: unknown.
        angular_velocity: (3,) rad/s, of the root link by the IMU, in its axes; None: unknown.
    """

    time: float
    position: Array
    wrenches: Array | None = None
    tilt: float = float("nan")
    missing: str = ""
    R_world_root: Array | None = None
    angular_velocity: Array | None = None


@dataclass(frozen=True)
class CheckLimits:
    """Bounds of load, tilt and posture within which a walk may begin."""

    load_fraction: float = live_parameter(
        0.15,
        "fraction of the weight, at least, on each foot of a robot that stands",
        (0.0, 0.5),
    )
    max_tilt: float = live_parameter(
        0.2, "rad, of the root of a robot that stands", (0.01, 1.5)
    )
    fallen_tilt: float = live_parameter(
        0.8, "rad, of the root, from which on the robot has fallen", (0.05, 3.2)
    )
    posture_error: float = live_parameter(
        0.2,
        "rad or m, of a joint from its target or, before the first command, from the nominal "
        "posture, for a walk to begin",
        (0.001, 10.0),
    )


class WalkChecks:
    """Checks whether one robot may begin a walk, and whether it has fallen.

    Args:
        biped: the robot.
        limits: the defaults by default.
        use_wrenches: the feet must be loaded.

    Attributes:
        limits: as given; may be replaced.
    """

    def __init__(
        self, biped: Biped, limits: CheckLimits | None = None, use_wrenches: bool = True
    ) -> None:
        self._biped, self._use_wrenches = biped, use_wrenches
        self.limits = CheckLimits() if limits is None else limits
        self._soles = SoleZmp(biped)

    def problem(
        self, reading: Reading, commanded: Array | None, sways: bool = False
    ) -> str:
        """Checks whether a walk may begin.

        Args:
            reading: of the sensors.
            commanded: (n,) rad or m, joint targets; None: the nominal posture.
            sways: tilt and lightly loaded feet are allowed, as of a robot that is pushed.

        Returns:
            Why not and how to fix it; "" when it may.
        """
        upright = "the robot does not stand upright: "
        return (
            self.missing(reading)
            or self.fallen(reading)
            or (not sways and self._tilted(reading, self.limits.max_tilt, upright))
            or (not sways and self._unloaded(reading))
            or self._posture_problem(reading, commanded)
        )

    def missing(self, reading: Reading) -> str:
        """Checks that all inputs are there.

        Args:
            reading: of the sensors.

        Returns:
            What is not received or not finite; "" when all is well.
        """
        if reading.missing:
            return reading.missing
        if self._use_wrenches and not (
            reading.wrenches is not None and np.isfinite(reading.wrenches).all()
        ):
            return "the feet's forces are not known: check their sensors, or set use_wrench false"
        return ""

    def fallen(self, reading: Reading) -> str:
        """Checks the tilt.

        Args:
            reading: of the sensors.

        Returns:
            That the robot has fallen, or nearly; "" when it has not.
        """
        tilted = self._tilted(reading, self.limits.fallen_tilt)
        return tilted and f"{tilted}: set it upright on both feet"

    def _tilted(self, reading: Reading, most: float, what: str = "") -> str:
        tilt = reading.tilt
        text = f"{what}its root is tilted by {tilt:.2f} rad, at most {most:.2f}"
        return text if tilt > most else ""

    def _unloaded(self, reading: Reading) -> str:
        if not self._use_wrenches or reading.wrenches is None:
            return ""
        least = self.limits.load_fraction * self._biped.model.mass * GRAVITY
        loads = self._soles.vertical_forces(reading.wrenches)
        for leg, load in zip(self._biped.legs, loads.tolist(), strict=True):
            if not load >= least:
                return (
                    f"the robot does not stand: the {leg.side} foot carries {load:.0f} N, at least "
                    f"{least:.0f} N are needed; set it on both feet, or check sign and frame of "
                    f"{leg.foot.wrench_topic} in the configuration"
                )
        return ""

    def _posture_problem(self, reading: Reading, commanded: Array | None) -> str:
        aim = self._biped.posture if commanded is None else commanded
        away, most = np.abs(reading.position - aim), self.limits.posture_error
        j = int(np.argmax(away))
        if away[j] <= most:
            return ""
        what = "nominal" if commanded is None else "commanded"
        name = self._biped.model.joint_names[j]
        return (
            f"the robot does not stand in its {what} posture: {name} is {away[j]:.2f} rad from "
            f"{aim[j]:.2f}, at most {most:.2f}; bring it there"
        )


class WalkEstimate(NamedTuple):
    """A measured robot in the walk's frame.

    Attributes:
        R_walk_root: (3, 3) orientation of the root link.
        p_walk_root: (3,) m, its origin.
        soles: (2, 3, 4) poses of the soles.
        com: (3,) m, by the URDF.
        zmp: (3,) m, by the feet's sensors; NaN: unknown.
    """

    R_walk_root: Array
    p_walk_root: Array
    soles: Array
    com: Array
    zmp: Array


class WalkEstimator:
    """Estimates pose, CoM and ZMP of one robot in the walk's frame.

    Args:
        biped: the robot.
    """

    def __init__(self, biped: Biped) -> None:
        self._biped = biped
        self._sesc = Sesc(biped.model)
        self._frames = LinkFrames(biped.model, [leg.foot.frame for leg in biped.legs])
        self._zmp = SoleZmp(biped)
        own, empty = (np.empty((0, 3, 3)), np.empty((0, 3))), np.empty(0)
        view = WalkEstimate(own[1], empty, own[0], empty, empty)
        self._place = entry_point(set_estimate, own, empty, NO_WRENCHES, 0.0, view)

    def estimate(
        self, reading: Reading, planned: WalkInstant | None
    ) -> WalkEstimate | None:
        """Estimates the robot's state at a reading.

        Args:
            reading: of the sensors.
            planned: the plan at that time; None before the first walk: then the frame is between
                the soles.

        Returns:
            The estimate; None before the first walk if the soles are not on one plane.
        """
        own, wrenches = self._frames.poses(reading.position), NO_WRENCHES
        if reading.wrenches is not None:
            wrenches = self._zmp.wrenches_at_soles(reading.wrenches)
        if planned is not None:
            foot = standing_foot(planned.stance.tolist(), wrenches[:, 2].tolist())
            aim = planned.soles[foot]
            R = aim[:, :3] @ own[0][foot].T
            p = aim[:, 3] - R @ own[1][foot]
        else:
            try:
                stance = find_stance(self._biped, reading.position)
            except PlanError:
                return None
            R, p = (
                np.ascontiguousarray(x)
                for x in (stance.R_walk_root, stance.p_walk_root)
            )
        view = WalkEstimate(R, p, np.empty((2, 3, 4)), np.empty(3), np.empty(3))
        self._place(
            own, self._sesc.com(reading.position), wrenches, self._zmp.least, view
        )
        return view


def standing_foot(stands: list[bool], loads: list[float]) -> int:
    """The foot that is planned to stand; of two the one with the higher load.

    Args:
        stands: whether left and right are planned to stand.
        loads: N, on left and right.

    Returns:
        0 left, 1 right.
    """
    return int(max(0.0, loads[1]) > max(0.0, loads[0]) if all(stands) else stands[1])


@compiled()
def set_estimate(
    own: tuple[Array, Array],
    com: Array,
    wrenches: Array,
    least: float,
    view: WalkEstimate,
) -> None:
    """Sets soles, CoM and ZMP by the pose of the root and vectors in its frame.

    Args:
        own: orientations (2, 3, 3) and origins (2, 3) m of the soles, root frame.
        com: (3,) m, root frame.
        wrenches: (2, 6) as returned by SoleZmp.wrenches_at_soles.
        least: N, see set_zmp.
        view: with the pose of the root; its other arrays are set.
    """
    R, p, soles, _, zmp = view
    for k in range(2):
        set_product(R, own[0][k], soles[k])
        set_point(R, p, own[1][k], soles[k, :, 3])
    set_point(R, p, com, view.com)
    set_zmp(wrenches, soles, least, zmp)


@compiled()
def set_zmp(wrenches: Array, soles: Array, least: float, zmp: Array) -> None:
    """Sets the ZMP of a robot by wrenches at its soles.

    On the plane through the middle of the soles' origins, weighted by their loads.

    Args:
        wrenches: (2, 6) N and N m at the soles, in their frames.
        soles: (2, 3, 4) their poses.
        least: N, smallest vertical force; below it the ZMP is NaN.
        zmp: (3,) m, set.
    """
    force, moment, carried, level = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, 0.0
    for k in range(2):
        F, M = turned(soles[k], wrenches[k]), turned(soles[k], wrenches[k, 3:])
        force, moment = add(force, F), add(moment, add(M, cross(soles[k, :, 3], F)))
        carried, level = (
            carried + max(F[2], 0.0),
            level + max(F[2], 0.0) * soles[k, 2, 3],
        )
    zmp[:] = np.nan
    if force[2] > least:
        height = level / carried
        zmp[0] = (height * force[0] - moment[1]) / force[2]
        zmp[1] = (height * force[1] + moment[0]) / force[2]
        zmp[2] = height


class Mounts(NamedTuple):
    """Poses of the feet's sensors in the soles' frames.

    Attributes:
        R: (2, 3, 3) orientations.
        p: (2, 3) m, origins.
    """

    R: Array
    p: Array


@compiled()
def set_sole_wrenches(measured: Array, mounts: Mounts, wrenches: Array) -> None:
    """Sets wrenches at the soles by those at the sensors, see SoleZmp.

    Args:
        measured: (2, 6) N and N m, axes and origins of the sensors.
        mounts: poses of the sensors in the soles' frames.
        wrenches: (2, 6) set.
    """
    for k in range(2):
        force = turned(mounts.R[k], measured[k])
        moment = add(turned(mounts.R[k], measured[k, 3:]), cross(mounts.p[k], force))
        for i in range(3):
            wrenches[k, i], wrenches[k, 3 + i] = force[i], moment[i]


class SoleZmp:
    """Converts readings of the feet's sensors to wrenches at the soles and the ZMP.

    Args:
        biped: the robot.

    Attributes:
        least: N, vertical force below which the ZMP is undetermined.

    Raises:
        BipedError: a sensor is not fixed to its sole.
    """

    def __init__(self, biped: Biped) -> None:
        # N, below which the ZMP is not determined
        self.least = 0.02 * biped.model.mass * GRAVITY
        mounts = [
            _mount(biped, leg.foot.frame, leg.foot.wrench_frame) for leg in biped.legs
        ]
        self._mounts = Mounts(*(np.array(part) for part in zip(*mounts, strict=True)))
        self._set = entry_point(
            set_sole_wrenches, NO_WRENCHES, self._mounts, NO_WRENCHES
        )

    def wrenches_at_soles(self, wrenches: ArrayLike) -> Array:
        """Wrenches of the ground on the feet about the soles' origins, in the soles' axes.

        Args:
            wrenches: (2, 6) force (N) and torque (N m) of the ground on the left and right foot,
                in the axes and about the origins of their sensors.

        Returns:
            (2, 6) N and N m.
        """
        measured, found = as_array("wrenches", wrenches, (2, 6)), np.empty((2, 6))
        self._set(np.ascontiguousarray(measured), self._mounts, found)
        return found

    def vertical_forces(self, wrenches: ArrayLike) -> Array:
        """Force normal to each sole, upwards on the foot.

        Args:
            wrenches: (2, 6) as for wrenches_at_soles.

        Returns:
            (2,) N.
        """
        return np.array(self.wrenches_at_soles(wrenches)[:, 2])


def _mount(biped: Biped, sole: str, sensor: str) -> tuple[Array, Array]:
    """Orientation (3, 3) of a foot's sensor in its sole's frame, and its origin (3,) m there."""
    model = biped.model
    bodies = [
        int(model.bodies.body_of_link[model.link_index(name)])
        for name in (sole, sensor)
    ]
    if bodies[0] != bodies[1]:
        raise BipedError(
            f"the force sensor {sensor!r} is not fixed to the sole {sole!r}: give wrench.frame in "
            "the configuration a link of the foot"
        )
    q = biped.posture
    (R, p), (R_sensor, p_sensor) = (
        link_pose(model, q, name) for name in (sole, sensor)
    )
    return R.T @ R_sensor, R.T @ (p_sensor - p)
