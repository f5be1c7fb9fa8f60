"""What is asked of a walking robot, and what of it follows from the robot."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from com_control.walking.biped import Biped
from com_control.walking.exceptions import PlanError
from com_control.walking.footsteps import Footstep, WalkParameters, plan_footsteps
from com_control.walking.standing import Stance, least_width, sole_middle
from com_control.walking.walk_plan import Timing, WalkPlan

METHODS = ("exact", "refined", "ccgd")
"""exact: the CoM follows the pendulum. refined: the ZMP of the whole robot is the planned one.
ccgd: the paper's algorithm, for robots whose legs are the paper's."""
OF_HEIGHT = (
    0.98  # CoM while walking, over its height as the robot stands: knees must not be straight
)
STEP_OF_HEIGHT = 0.2  # length of a step over the height of the CoM
MOST_DURATION = 300.0  # s; a longer walk is given in parts
LIFT_OF_HEIGHT = 0.1  # height of a step over that


@dataclass(frozen=True)
class WalkRequest:
    """A walk that is asked for; None: as the robot stands, or as fits its size.

    Attributes:
        footsteps: The steps, in the walk's frame (see standing); empty: by the numbers.
        steps, step_length, side_step, turn, climb, half_width, first: See WalkParameters.
        step_time, double_support, step_height, com_height: See Timing.
        method: One of METHODS.
    """

    footsteps: tuple[Footstep, ...] = ()
    steps: int | None = None
    step_length: float | None = None
    side_step: float | None = None
    turn: float | None = None
    climb: float | None = None
    half_width: float | None = None
    first: str | None = None
    step_time: float | None = None
    double_support: float | None = None
    step_height: float | None = None
    com_height: float | None = None
    method: str | None = None

    def over(self, defaults: WalkRequest) -> WalkRequest:
        """This, with what it does not say taken from another."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "footsteps"}
        given = {name: value for name, value in own.items() if value is not None}
        return replace(defaults, footsteps=self.footsteps, **given)


def plan_of(request: WalkRequest, biped: Biped, stance: Stance) -> WalkPlan:
    """Plans what is asked for, from where the robot stands.

    Raises:
        PlanError: It cannot be walked, by footsteps or times; says which and what to give.
    """
    if request.method not in (None, *METHODS):
        raise PlanError(f"method is {request.method!r}: give one of {', '.join(METHODS)}")
    timing = _timing(request, biped, stance)
    steps = request.footsteps or plan_footsteps(_parameters(request, stance, timing), stance.feet)
    longest = int(
        (MOST_DURATION - timing.start_time - timing.stop_time)
        // (timing.step_time + timing.double_support)
    )
    if len(steps) > longest:
        raise PlanError(
            f"{len(steps)} steps would take longer than {MOST_DURATION:g} s, which is too long for "
            f"one plan: give at most {longest} at a time"
        )
    return WalkPlan(stance.feet, steps, timing)


def _timing(request: WalkRequest, biped: Biped, stance: Stance) -> Timing:
    height = _or(request.com_height, OF_HEIGHT * float(stance.com[2]))
    zmp_x, zmp_y = sole_middle(biped)
    usual = Timing()
    return Timing(
        step_time=_or(request.step_time, usual.step_time),
        double_support=_or(request.double_support, usual.double_support),
        step_height=_or(request.step_height, LIFT_OF_HEIGHT * height),
        com_height=height,
        zmp_x=zmp_x,
        zmp_y=zmp_y,
        least_width=least_width(biped),
    )


def _parameters(request: WalkRequest, stance: Stance, timing: Timing) -> WalkParameters:
    left, right = stance.feet
    usual = WalkParameters()
    half = 0.5 * (left.y - right.y)
    return WalkParameters(
        steps=usual.steps if request.steps is None else request.steps,
        step_length=_or(request.step_length, STEP_OF_HEIGHT * timing.com_height),
        side_step=_or(request.side_step, usual.side_step),
        turn=_or(request.turn, usual.turn),
        climb=_or(request.climb, usual.climb),
        half_width=_or(request.half_width, half),
        first=usual.first if request.first is None else request.first,
    )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
