"""Walks from where a robot would stand with both feet side by side, by default those of [CCGD]."""

from math import cos, sin

from com_control.walking.footsteps import Footstep, WalkParameters, plan_footsteps
from com_control.walking.walk_plan import Timing, WalkPlan


def standing(half_width: float = 0.065, yaw: float = 0.0) -> tuple[Footstep, Footstep]:
    """Both feet side by side, left and right of the origin and a direction."""
    x, y = half_width * -sin(yaw), half_width * cos(yaw)
    return Footstep("left", x, y, yaw=yaw), Footstep("right", -x, -y, yaw=yaw)


def paper_walk(
    walk: WalkParameters | None = None, timing: Timing | None = None
) -> WalkPlan:
    """Plans a walk by parameters; the defaults are the six steps of [CCGD]."""
    walk = WalkParameters() if walk is None else walk
    feet = standing(walk.half_width)
    return WalkPlan(feet, plan_footsteps(walk, feet), timing)
