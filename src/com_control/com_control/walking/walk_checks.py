"""What must hold for a robot to begin a walk, and to go on with one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from com_control.walking.biped import Biped
from com_control.walking.sole_zmp import SoleZmp
from com_model.arrays import Array
from com_model.dynamics import GRAVITY


@dataclass(frozen=True, eq=False)
class Reading:
    """What is measured at a time.

    Attributes:
        time: s.
        position: (n,) rad or m.
        wrenches: (2, 6) of the ground on the left and right foot, in the axes and about the origins
            of their sensors; None: not known.
        tilt: rad, of the root link; NaN: not known.
        missing: What is not heard and how to fix it; "" when all is.
    """

    time: float
    position: Array
    wrenches: Array | None = None
    tilt: float = float("nan")
    missing: str = ""


@dataclass(frozen=True)
class Limits:
    """Bounds of what counts as standing and as following.

    Attributes:
        load_share: Of the weight, at least, on each foot of a robot that stands.
        max_tilt: rad, of the root link of a robot that stands.
        fallen_tilt: rad, from which on it has fallen.
        posture_error: rad or m, of a joint from where it is told to be, or, before anything was
            told, from the nominal posture.
        following_error: rad or m, of a joint from its target in a walk.
    """

    load_share: float = 0.15
    max_tilt: float = 0.2
    fallen_tilt: float = 0.8
    posture_error: float = 0.2
    following_error: float = 0.5


class Checks:
    """Checks of one robot.

    Args:
        biped: The robot.
        limits: The bounds.
        use_wrenches: Force sensors tell whether both feet carry.
    """

    def __init__(
        self, biped: Biped, limits: Limits | None = None, use_wrenches: bool = True
    ) -> None:
        self._biped, self._use_wrenches = biped, use_wrenches
        self._limits = Limits() if limits is None else limits
        self._soles = SoleZmp(biped)

    def problem(self, reading: Reading, told: Array | None) -> str:
        """Why no walk may begin and how to fix it; "" when one may."""
        return (
            self.missing(reading)
            or self.fallen(reading)
            or self._tilted(reading)
            or self._unloaded(reading)
            or self._elsewhere(reading, told)
        )

    def missing(self, reading: Reading) -> str:
        """What is not heard or is no number."""
        if reading.missing:
            return reading.missing
        if self._use_wrenches and not (
            reading.wrenches is not None and np.isfinite(reading.wrenches).all()
        ):
            return "the feet's forces are not known: check their sensors, or set use_wrench false"
        return ""

    def fallen(self, reading: Reading) -> str:
        """That the robot lies, or nearly."""
        if reading.tilt > self._limits.fallen_tilt:
            return (
                f"its root is tilted by {reading.tilt:.2f} rad, more than "
                f"{self._limits.fallen_tilt:.2f}: set it upright on both feet"
            )
        return ""

    def astray(self, reading: Reading, told: Array | None) -> str:
        """That a joint does not follow its target."""
        error = self._farthest(reading, told, self._limits.following_error)
        return f"{error}: check the drives, or give the steps more time" if error else ""

    def _tilted(self, reading: Reading) -> str:
        if reading.tilt > self._limits.max_tilt:
            return (
                f"the robot does not stand upright: its root is tilted by {reading.tilt:.2f} rad, "
                f"at most {self._limits.max_tilt:.2f}"
            )
        return ""

    def _unloaded(self, reading: Reading) -> str:
        if not self._use_wrenches or reading.wrenches is None:
            return ""
        least = self._limits.load_share * self._biped.model.mass * GRAVITY
        loads = self._soles.loads(reading.wrenches)
        for leg, load in zip(self._biped.legs, loads.tolist(), strict=True):
            if not load >= least:
                return (
                    f"the robot does not stand: the {leg.side} foot carries {load:.0f} N, at least "
                    f"{least:.0f} N are needed; set it on both feet, or check sign and frame of "
                    f"{leg.foot.wrench_topic} in the configuration"
                )
        return ""

    def _elsewhere(self, reading: Reading, told: Array | None) -> str:
        nominal = told is None
        aim = self._biped.posture if told is None else told
        error = self._farthest(reading, aim, self._limits.posture_error)
        what = "its nominal posture" if nominal else "where it was told to be"
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
