"""Walks that follow a velocity: the footsteps are planned while the robot walks.

A walk always has AHEAD steps beyond the present one, and one more that sets both feet side by
side: when nothing more is planned it ends by itself. After each touch-down it is planned again,
with the velocity at that time. Steps made more than KEPT steps ago are left out: their effect on
the pendulum decays by e^(-w T), below 1e-3 of a step.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from com_control.exceptions import PlanError
from com_control.walking.footsteps import (
    Footstep,
    WalkParameters,
    place_beside,
    plan_footsteps,
)
from com_control.walking.walk import Walk, WalkRequest, complete_request, fields_for
from com_control.walking.walk_plan import Stance, Timing, WalkPlan, find_stance
from com_control.walking.walker import Walker
from com_model.arrays import Array

AHEAD = 2  # steps that are planned beyond the present one
KEPT = 3  # steps that are over, from which on a walk is planned again
TURN = 0.25  # rad, at most, of a step


class VelocityWalker:
    """Plans one robot's walks by velocities (3,): m/s forwards, m/s and rad/s to the left.

    Args:
        walker: plans walks of the robot.
        request: how to walk; its step_length is the longest step, and its numbers of the way are
            not used.
        stance: of the robot before its first walk.
    """

    def __init__(self, walker: Walker, request: WalkRequest, stance: Stance) -> None:
        self._walker = walker
        self._request = request = complete_request(request, walker.biped, stance)
        self._longest, self._half_width = (
            abs(request.step_length or 0.0),
            request.half_width or 0.0,
        )

    def begin(self, velocity: Array, q: Array) -> Walk:
        """Plans a walk from the robot's present stance.

        A velocity that cannot be walked is halved, at most twice.

        Args:
            velocity: (3,) m/s forwards and to the left, and rad/s.
            q: (n,) joint positions, rad or m.

        Returns:
            The walk.

        Raises:
            PlanError: it cannot be walked.
        """
        feet = find_stance(self._walker.biped, q).feet
        timing = Timing(**fields_for(self._request, Timing))
        side = "left" if (velocity[1], velocity[2]) > (0.0, 0.0) else "right"

        def plan(part: float) -> Walk:
            steps = self._steps(part * velocity, feet, side, timing)
            return self._walker.plan(replace(self._request, footsteps=steps), q)

        return _first(plan, (1.0, 0.5, 0.25))

    def due(self, walk: Walk, t: float, velocity: Array) -> bool:
        """Whether a walk should be planned again: there are too few steps left, or too many.

        Args:
            walk: as planned.
            t: s of the walk, now.
            velocity: (3,) m/s forwards and to the left, and rad/s; 0: stop.
        """
        left = len(walk.plan.steps) - walk.plan.next_step(t) - 1
        return 0 <= left <= AHEAD if np.any(velocity) else left > 1

    def plan_further(self, walk: Walk, t: float, velocity: Array) -> Walk:
        """Plans the further steps of a walk again, after the present one.

        With the velocity 0 the next step is the last. A velocity that cannot be walked is
        halved, then 0.

        Args:
            walk: as planned.
            t: s of the walk, now.
            velocity: (3,) m/s forwards and to the left, and rad/s.

        Returns:
            The changed walk.

        Raises:
            PlanError: all steps are made, or not even a last one can be walked.
        """
        plan = walk.plan
        made = plan.next_step(t)
        if made == len(plan.steps):
            raise PlanError("the walk ends before it could be planned again")
        dropped = max(made - KEPT, 0)
        start = {
            foot.side: foot for foot in (*plan.start, *plan.steps[:dropped])
        }.values()
        last, kept = plan.steps[made], plan.steps[dropped : made + 1]
        other = place_beside(last, 2.0 * self._half_width)

        def change(part: float) -> Walk:
            steps = self._steps(part * velocity, (last, other), other.side, plan.timing)
            changed = WalkPlan(tuple(start), (*kept, *steps), plan.timing)
            return self._walker.change(walk, changed, t, dropped)

        return _first(change, (1.0, 0.5, 0.0))

    def _steps(
        self,
        velocity: Array,
        feet: tuple[Footstep, Footstep],
        first: str,
        timing: Timing,
    ) -> tuple[Footstep, ...]:
        period = timing.step_time + timing.double_support
        # a pair of steps to the side: 0.6 of the distance between the feet at most
        most = np.array([self._longest, 0.6 * self._half_width, TURN])
        ahead, aside, turn = np.clip(velocity * period, -most, most).tolist()
        count = AHEAD + 1 if np.any(velocity) else 1
        way = WalkParameters(
            count, ahead, 2.0 * aside, turn, 0.0, self._half_width, first
        )
        return plan_footsteps(way, feet)


def _first(plan: Callable[[float], Walk], parts: Sequence[float]) -> Walk:
    """The first walk that can be planned, for fractions of a velocity; raises the first error."""
    problems = []
    for part in parts:
        try:
            return plan(part)
        except PlanError as error:
            problems.append(error)
    raise problems[0]
