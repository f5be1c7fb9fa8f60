"""What is measured of a walking robot: whether it may walk, and where it is in the walk's frame.

The planned pose of a standing foot gives the robot's place; the measured joints give the rest.

The zero moment point is measured by force and torque under the feet. A sensor at p in the sole's
frame, rotated by R, reads force f and torque t. About the sole's origin, on the sole's plane,

  F = R f,  M = R t + p x F,  zmp_x = -M_y / F_z,  zmp_y = M_x / F_z

For a sensor with the sole's axes at the height d above it that is (-t_y - f_x d) / f_z and
(t_x - f_y d) / f_z: [CCGD] eqs 15, 16 in the axes of the paper. Of both feet together: the same
with the sum of their forces and moments about a point of the ground.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import BipedError, PlanError
from com_control.walking.biped import Biped, find_stance
from com_control.walking.walker import WalkInstant
from com_model import Sesc, link_pose
from com_model.arrays import Array, as_array
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames
from com_model.geometry.rotations import skew
from com_model.parameters import live_parameter

MIN_FORCE = 0.02  # fraction of the weight below which the ZMP is not determined


@dataclass(frozen=True, eq=False)
class Reading:
    """What is measured at a time."""

    time: float  # s
    position: Array  # (n,) rad or m
    # (2, 6) of the ground on the left and right foot, in the axes and about the origins of
    # their sensors; None: not known
    wrenches: Array | None = None
    tilt: float = float("nan")  # rad, of the root link; NaN: not known
    missing: str = ""  # what is not received and how to fix it; "" when all is
    R_world_root: Array | None = None  # (3, 3) orientation of the root link by the IMU


@dataclass(frozen=True)
class CheckLimits:
    """Bounds of what counts as standing."""

    load_fraction: float = live_parameter(
        0.15, "fraction of the weight, at least, on each foot of a robot that stands", (0.0, 0.5)
    )
    max_tilt: float = live_parameter(0.2, "rad, of the root of a robot that stands", (0.01, 1.5))
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
    """WalkChecks of one robot."""

    def __init__(
        self, biped: Biped, limits: CheckLimits | None = None, use_wrenches: bool = True
    ) -> None:
        self._biped, self._use_wrenches = biped, use_wrenches
        self.limits = CheckLimits() if limits is None else limits
        self._soles = SoleZmp(biped)

    def problem(self, reading: Reading, commanded: Array | None, sways: bool = False) -> str:
        """Why no walk may begin and how to fix it; "" when one may.

        Args:
            commanded: (n,) rad or m, where the joints are to be; None: in the nominal posture.
            sways: It may be tilted, and a foot be light, as that of a robot that is pushed.
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
        """What is not received or is no number."""
        if reading.missing:
            return reading.missing
        if self._use_wrenches and not (
            reading.wrenches is not None and np.isfinite(reading.wrenches).all()
        ):
            return "the feet's forces are not known: check their sensors, or set use_wrench false"
        return ""

    def fallen(self, reading: Reading) -> str:
        """That the robot has fallen, or nearly."""
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


@dataclass(frozen=True, eq=False)
class WalkEstimate:
    """A measured robot in the walk's frame."""

    R_walk_root: Array  # (3, 3) orientation of the root link
    p_walk_root: Array  # (3,) m, its origin
    soles: Array  # (2, 3, 4) poses of the soles
    com: Array  # (3,) m, by the URDF
    zmp: Array  # (3,) m, by the feet's sensors; NaN: not known


class WalkEstimator:
    """Estimates where one robot is."""

    def __init__(self, biped: Biped) -> None:
        self._biped = biped
        self._sesc = Sesc(biped.model)
        self._frames = LinkFrames(biped.model, [leg.foot.frame for leg in biped.legs])
        self._zmp = SoleZmp(biped)

    def estimate(self, reading: Reading, planned: WalkInstant | None) -> WalkEstimate | None:
        """The robot at a reading.

        Args:
            planned: What the walk plans for that time; None before the first one: then the frame
                is between the soles, and None comes back where they are not on one plane.
        """
        R, p = self._frames.poses(reading.position)
        own = np.concatenate((R, p[:, :, None]), axis=2)
        if planned is not None:
            R, p = self._pose_on_foot(reading, own, planned)
        else:
            try:
                stance = find_stance(self._biped, reading.position)
            except PlanError:
                return None
            R, p = stance.R_walk_root, stance.p_walk_root
        soles = np.concatenate((R @ own[:, :, :3], (own[:, :, 3] @ R.T + p)[:, :, None]), axis=2)
        zmp = np.full(3, np.nan)
        if reading.wrenches is not None:
            zmp = self._zmp.robot_zmp(reading.wrenches, soles)
        return WalkEstimate(R, p, soles, R @ self._sesc.com(reading.position) + p, zmp)

    def _pose_on_foot(
        self, reading: Reading, own: Array, planned: WalkInstant
    ) -> tuple[Array, Array]:
        """The root's pose by the foot that stands; of two, the one that carries more."""
        wrenches = reading.wrenches
        loads = np.ones(2) if wrenches is None else self._zmp.vertical_forces(wrenches)
        foot = int(np.argmax(np.where(planned.stance, np.fmax(loads, 0.0), -1.0)))
        aim = planned.soles[foot]
        R = aim[:, :3] @ own[foot, :, :3].T
        return R, aim[:, 3] - R @ own[foot, :, 3]


class SoleZmp:
    """Turns readings of the feet's sensors into the ZMP.

    Raises:
        BipedError: A sensor is not fixed to its sole.
    """

    def __init__(self, biped: Biped) -> None:
        self._least = MIN_FORCE * biped.model.mass * GRAVITY
        mounts = [_mount(biped, leg.foot.frame, leg.foot.wrench_frame) for leg in biped.legs]
        self._R, self._p_cross = (np.array(part) for part in zip(*mounts, strict=True))

    def wrenches_at_soles(self, wrenches: ArrayLike) -> Array:
        """Wrenches (2, 6) of the ground on the feet about the soles' origins, in the soles' axes.

        Args:
            wrenches: (2, 6) force (N) and torque (N m) of the ground on the left and right foot, in
                the axes and about the origins of their sensors.
        """
        measured = as_array("wrenches", wrenches, (2, 6)).reshape(2, 2, 3, 1)
        force = self._R @ measured[:, 0]
        moment = self._R @ measured[:, 1] + self._p_cross @ force
        return np.concatenate((force, moment), axis=1)[:, :, 0]

    def robot_zmp(self, wrenches: ArrayLike, soles: ArrayLike) -> Array:
        """ZMP (3,) m of the robot in a frame with z upwards; NaN: the ground carries nothing.

        On the plane through the middle of the soles' origins, weighted by what each carries.

        Args:
            wrenches: (2, 6) as for wrenches_at_soles.
            soles: (2, 3, 4) poses [R p] of the soles in that frame.
        """
        poses = as_array("soles", soles, (2, 3, 4))
        own = self.wrenches_at_soles(wrenches).reshape(2, 2, 3, 1)
        F, M = ((poses[:, :, :3] @ own[:, k])[:, :, 0] for k in range(2))
        (px, py, pz), (fx, fy, fz) = poses[:, :, 3].T, F.T
        force, carried = F.sum(axis=0), np.maximum(fz, 0.0)
        if not force[2] > self._least:
            return np.full(3, np.nan)
        height = float(carried @ pz / carried.sum())
        x = height * force[0] - (M[:, 1] + pz * fx - px * fz).sum()
        y = height * force[1] + (M[:, 0] + py * fz - pz * fy).sum()
        return np.array([x / force[2], y / force[2], height])

    def vertical_forces(self, wrenches: ArrayLike) -> Array:
        """Force normal to each sole (2,) N, upwards on the foot."""
        return np.array(self.wrenches_at_soles(wrenches)[:, 2])


def _mount(biped: Biped, sole: str, sensor: str) -> tuple[Array, Array]:
    """Orientation of a foot's sensor in its sole's frame, and [p]x of where it is there."""
    model = biped.model
    bodies = [int(model.bodies.body_of_link[model.link_index(name)]) for name in (sole, sensor)]
    if bodies[0] != bodies[1]:
        raise BipedError(
            f"the force sensor {sensor!r} is not fixed to the sole {sole!r}: give wrench.frame in "
            "the configuration a link of the foot"
        )
    q = biped.posture
    (R, p), (R_sensor, p_sensor) = (link_pose(model, q, name) for name in (sole, sensor))
    return R.T @ R_sensor, skew(R.T @ (p_sensor - p))
