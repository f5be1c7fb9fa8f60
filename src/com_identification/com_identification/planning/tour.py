"""Ways of an operator who leads a robot through postures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_identification.planning.plan import PlanOptions
from com_identification.planning.planner import PosturePlanner
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.timed_way import TimedWay, timed_way


class TourWays:
    """Finds ways from posture to posture.

    Args:
        model: The robot.
        feet: Its feet, with corners.
        nominal: (n,) posture in which it stands; feet that stay are where they are in it.
        margin: m, of the URDF's CoM inside the support polygon on the way.
        speed: rad/s or m/s, of any joint at most.
        velocity_share: Of the model's velocity limits that is used at most.

    Raises:
        IdentificationError: A foot has no corners.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        nominal: Array,
        margin: float,
        speed: float,
        velocity_share: float,
    ) -> None:
        # Whether a posture at either end may be taken, its planner has judged.
        plan = PlanOptions(keep_feet=True, margin=margin, effort_share=0.0)
        self._planner = PosturePlanner(model, feet, nominal, plan=plan)
        self._nominal = nominal
        limits = np.where(model.velocity_limits > 0.0, model.velocity_limits, np.inf)
        self.speeds = np.minimum(speed, velocity_share * limits)

    def standing(self, start: Array, end: Array) -> list[TimedWay]:
        """Ways one after the other that keep the feet in place; none: it cannot get there."""
        direct = self._planner.path_between(start, end)
        if direct is not None:
            return [timed_way(direct, self.speeds)]
        stations = (start, self._nominal), (self._nominal, end)
        parts = [self._planner.path_between(*ends) for ends in stations]
        if any(part is None for part in parts):
            return []
        return [timed_way(part, self.speeds) for part in parts if part is not None]

    def in_air(self, start: Array, end: Array) -> list[TimedWay]:
        """Ways of a lifted robot, by the nominal posture: limbs get less into each other's way."""
        stations = (start, self._nominal), (self._nominal, end)
        return [timed_way(np.array(ends), self.speeds) for ends in stations]
