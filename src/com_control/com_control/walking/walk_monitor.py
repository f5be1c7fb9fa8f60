"""What is measured of a walking robot: whether it may walk, and where it is in the walk's frame.

The planned pose of a standing foot gives the robot's place; the measured joints give the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped, find_stance, sole_poses
from com_control.walking.walker import WalkInstant
from com_control.walking.zmp import SoleZmp
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.parameters import parameter
from com_model.sesc.sesc import Sesc


@dataclass(frozen=True, eq=False)
class Reading:
    """What is measured at a time.

    Attributes:
        time: s.
        position: (n,) rad or m.
        wrenches: (2, 6) of the ground on the left and right foot, in the axes and about the origins
            of their sensors; None: not known.
        tilt: rad, of the root link; NaN: not known.
        missing: What is not received and how to fix it; "" when all is.
    """

    time: float
    position: Array
    wrenches: Array | None = None
    tilt: float = float("nan")
    missing: str = ""


@dataclass(frozen=True)
class CheckLimits:
    """Bounds of what counts as standing and as following."""

    load_fraction: float = parameter(
        0.15,
        "fraction of the weight, at least, on each foot of a robot that stands",
        (0.0, 0.5),
        live=True,
    )
    max_tilt: float = parameter(
        0.2, "rad, of the root of a robot that stands", (0.01, 1.5), live=True
    )
    fallen_tilt: float = parameter(
        0.8, "rad, of the root, from which on the robot has fallen", (0.05, 3.2), live=True
    )
    posture_error: float = parameter(
        0.2,
        "rad or m, of a joint from its target or, before the first command, from the nominal "
        "posture, for a walk to begin",
        (0.001, 10.0),
        live=True,
    )
    following_error: float = parameter(
        0.5,
        "rad or m, of a joint from its target in a walk; beyond, the walk stops",
        (0.001, 10.0),
        live=True,
    )


class WalkChecks:
    """WalkChecks of one robot.

    Args:
        biped: The robot.
        limits: The bounds.
        use_wrenches: Force sensors show whether both feet carry.

    Attributes:
        limits: The bounds; may be replaced.
    """

    def __init__(
        self, biped: Biped, limits: CheckLimits | None = None, use_wrenches: bool = True
    ) -> None:
        self._biped, self._use_wrenches = biped, use_wrenches
        self.limits = CheckLimits() if limits is None else limits
        self._soles = SoleZmp(biped)

    def problem(self, reading: Reading, commanded: Array | None) -> str:
        """Why no walk may begin and how to fix it; "" when one may."""
        return (
            self.missing(reading)
            or self.fallen(reading)
            or self._tilted(reading)
            or self._unloaded(reading)
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
        if reading.tilt > self.limits.fallen_tilt:
            return (
                f"its root is tilted by {reading.tilt:.2f} rad, more than "
                f"{self.limits.fallen_tilt:.2f}: set it upright on both feet"
            )
        return ""

    def tracking_problem(self, reading: Reading, commanded: Array | None) -> str:
        """That a joint does not follow its target."""
        error = self._farthest(reading, commanded, self.limits.following_error)
        return f"{error}: check the drives, or give the steps more time" if error else ""

    def _tilted(self, reading: Reading) -> str:
        if reading.tilt > self.limits.max_tilt:
            return (
                f"the robot does not stand upright: its root is tilted by {reading.tilt:.2f} rad, "
                f"at most {self.limits.max_tilt:.2f}"
            )
        return ""

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
        error = self._farthest(reading, aim, self.limits.posture_error)
        what = "its nominal posture" if commanded is None else "its commanded posture"
        return f"the robot does not stand in {what}: {error}; bring it there" if error else ""

    def _farthest(self, reading: Reading, aim: Array | None, most: float) -> str:
        if aim is None:
            return ""
        away = np.abs(reading.position - aim)
        j = int(np.argmax(away))
        if not away[j] > most:
            return ""
        name = self._biped.model.joint_names[j]
        return f"{name} is {away[j]:.2f} rad from {aim[j]:.2f}, at most {most:.2f}"


@dataclass(frozen=True, eq=False)
class WalkEstimate:
    """A measured robot in the walk's frame.

    Attributes:
        R_walk_root: (3, 3) orientation of the root link.
        p_walk_root: (3,) m, its origin.
        soles: (2, 3, 4) poses of the soles.
        com: (3,) m, by the URDF.
        zmp: (3,) m, by the feet's sensors; NaN: not known.
    """

    R_walk_root: Array
    p_walk_root: Array
    soles: Array
    com: Array
    zmp: Array


class WalkEstimator:
    """Estimates where one robot is.

    Args:
        biped: The robot.
    """

    def __init__(self, biped: Biped) -> None:
        self._biped = biped
        self._sesc = Sesc(biped.model)
        self._zmp = SoleZmp(biped)

    def estimate(self, reading: Reading, planned: WalkInstant | None) -> WalkEstimate | None:
        """The robot at a reading.

        Args:
            reading: What is measured.
            planned: What the walk plans for that time; None before the first one: then the frame
                lies between the soles, and None comes back where they are not on one plane.
        """
        own = sole_poses(self._biped, reading.position)
        pose = (
            self._pose_between_feet(reading)
            if planned is None
            else self._pose_on_foot(reading, own, planned)
        )
        if pose is None:
            return None
        R, p = pose
        soles = np.concatenate((R @ own[:, :, :3], (own[:, :, 3] @ R.T + p)[:, :, None]), axis=2)
        zmp = np.full(3, np.nan)
        if reading.wrenches is not None:
            zmp = self._zmp.robot_zmp(reading.wrenches, soles)
        return WalkEstimate(R, p, soles, R @ self._sesc.com(reading.position) + p, zmp)

    def _pose_between_feet(self, reading: Reading) -> tuple[Array, Array] | None:
        try:
            stance = find_stance(self._biped, reading.position)
        except PlanError:
            return None
        return stance.R_walk_root, stance.p_walk_root

    def _pose_on_foot(
        self, reading: Reading, own: Array, planned: WalkInstant
    ) -> tuple[Array, Array]:
        """The root's pose by the foot that stands; of two, the one that carries more."""
        loads = (
            np.ones(2) if reading.wrenches is None else self._zmp.vertical_forces(reading.wrenches)
        )
        foot = int(np.argmax(np.where(planned.stance, np.nan_to_num(loads, nan=0.0), -np.inf)))
        aim = planned.soles[foot]
        R = aim[:, :3] @ own[foot, :, :3].T
        return R, aim[:, 3] - R @ own[foot, :, 3]
