"""A requested walk, its plan by the robot's size, and the walk with its joint targets."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped, min_width, sole_center
from com_control.walking.footsteps import (
    SIDES,
    Footstep,
    WalkParameters,
    plan_footsteps,
)
from com_control.walking.walk_plan import (
    Samples,
    Stance,
    Timing,
    WalkInstant,
    WalkPlan,
    find_stance,
)
from com_model.arrays import Array
from com_model.joint_path import JointPath
from com_model.parameters import live_parameter

# exact: the CoM follows the pendulum. refined: the ZMP of the whole robot is the planned one.
# ccgd: the pelvis is found by the paper's algorithm, in steps of 1 mm.
METHODS = ("exact", "refined", "ccgd")


@dataclass(frozen=True)
class WalkRequest:
    """A requested walk; None: by the robot's configuration, its stance or its size.

    The numbers are those of WalkParameters and Timing. As parameters of a node, for what a goal
    leaves open, 0 stands for None.

    Attributes:
        footsteps: the steps, in the walk's frame (see biped.Stance); empty: by the numbers
            below.
    """

    footsteps: tuple[Footstep, ...] = ()
    steps: int | None = live_parameter(
        None, "of which the last sets both feet side by side", (0, 10000)
    )
    step_length: float | None = live_parameter(
        None,
        "m, by which each foot passes the other; 0: a fifth of the CoM's height",
        (-2.0, 2.0),
    )
    side_step: float | None = live_parameter(
        None, "m to the left, of each pair of steps", (-2.0, 2.0)
    )
    turn: float | None = live_parameter(
        None, "rad to the left, of each step", (-1.57, 1.57)
    )
    climb: float | None = live_parameter(None, "m, of each step", (-1.0, 1.0))
    half_width: float | None = live_parameter(
        None, "m, of each foot from the middle line; 0: as it stands", (0.0, 2.0)
    )
    first: str | None = live_parameter(
        None, "side that steps first", choices=("left", "right")
    )
    step_time: float | None = live_parameter(
        None, "s, of a step with one foot in the air; 0: 1.2 s", (0.0, 60.0)
    )
    double_support: float | None = live_parameter(
        None,
        "s, between two steps; 0: 0.4 s, less where legs have five joints",
        (0.0, 60.0),
    )
    step_height: float | None = live_parameter(
        None, "m, of the swing foot; 0: a tenth of the CoM's height", (0.0, 2.0)
    )
    com_height: float | None = live_parameter(
        None,
        "m, of the CoM over the soles; 0: 98 % of that when nominal, but no higher than it is",
        (0.0, 10.0),
    )
    method: str | None = live_parameter(None, "of the joints' angles", choices=METHODS)

    def with_defaults(self, defaults: "WalkRequest") -> "WalkRequest":
        """This request, with values of None replaced by those of another; not the footsteps.

        Args:
            defaults: the other request.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        return replace(defaults, **given)


def complete_request(request: WalkRequest, biped: Biped, stance: Stance) -> WalkRequest:
    """Fills sizes that a request leaves open: the configuration's, else by the robot's size.

    Args:
        request: the walk.
        biped: the robot.
        stance: of the robot.

    Returns:
        The completed request.
    """
    sizes = biped.sizes
    configured = WalkRequest(
        half_width=None if sizes.step_width is None else 0.5 * sizes.step_width,
        step_length=sizes.step_length,
        step_height=sizes.step_height,
        step_time=sizes.step_time,
        com_height=sizes.com_height,
    )
    request = request.with_defaults(configured)
    # a little lower than in the nominal posture: knees are not straight. A walk ends as low as it
    # was walked: the next one must not begin to sink there
    nominal = find_stance(biped, biped.posture).com[2]
    height = request.com_height or float(min(stance.com[2], 0.98 * nominal))
    left, right = stance.feet
    # height and length of a step over the height of the CoM
    fitting = WalkRequest(
        com_height=height,
        step_height=0.1 * height,
        step_length=0.2 * height,
        half_width=0.5 * (left.y - right.y),
    )
    return request.with_defaults(fitting)


def make_plan(request: WalkRequest, biped: Biped, stance: Stance) -> WalkPlan:
    """Plans a request from the robot's stance.

    Args:
        request: the walk.
        biped: the robot.
        stance: of the robot.

    Returns:
        The plan of feet, ZMP and CoM.

    Raises:
        PlanError: its footsteps or times are not possible.
    """
    if request.method not in (None, *METHODS):
        raise PlanError(
            f"method is {request.method!r}: give one of {', '.join(METHODS)}"
        )
    request = complete_request(request, biped, stance)
    zmp_x, zmp_y = sole_center(biped)
    own = {"zmp_x": zmp_x, "zmp_y": zmp_y, "min_width": min_width(biped)}
    timing = Timing(**own, **fields_for(request, Timing))
    if any(leg.free for leg in biped.legs):  # which standing on one foot tilts
        # of a step's time, between two steps, of legs with five joints
        between = request.double_support or 0.7 * timing.step_time
        timing = replace(timing, sway=0.5 * timing.step_time, double_support=between)
    steps = request.footsteps or plan_footsteps(
        WalkParameters(**fields_for(request, WalkParameters)), stance.feet
    )
    most_time = 300.0  # s; a longer walk is given in parts
    longest = most_time - timing.start_time - timing.stop_time
    max_steps = int(longest // (timing.step_time + timing.double_support))
    if len(steps) > max_steps:
        raise PlanError(
            f"{len(steps)} steps would take longer than {most_time:g} s, which is too long for "
            f"one plan: give at most {max_steps} at a time"
        )
    return WalkPlan(stance.feet, steps, timing)


def fields_for(
    request: WalkRequest, kind: type[Timing] | type[WalkParameters]
) -> dict[str, Any]:
    """The values of a request for the fields of a class.

    Args:
        request: the walk.
        kind: the class.

    Returns:
        Keyword arguments, without values of None.
    """
    values = {field.name: getattr(request, field.name, None) for field in fields(kind)}
    return {name: value for name, value in values.items() if value is not None}


def make_stand(biped: Biped, q: Array) -> "Walk":
    """A walk without steps at the present posture.

    Args:
        biped: the robot.
        q: (n,) rad or m.

    Raises:
        PlanError: the soles are not on one plane.
    """
    stance = find_stance(biped, q)
    plan = WalkPlan(
        stance.feet, (), Timing(min_width=0.0, com_height=float(stance.com[2]))
    )
    samples = plan.sample(plan.grid(0.1))
    com, zmp = (
        np.tile(stance.com * scale, (len(samples.time), 1))
        for scale in (1.0, [1, 1, 0])
    )
    path = JointPath(np.zeros(1), q[None], np.zeros((1, len(q))))
    return Walk(plan, replace(samples, com=com, zmp=zmp), path, "exact")


@dataclass(frozen=True, eq=False)
class Walk:
    """A feasible walk with its joint targets.

    Attributes:
        plan: of feet, ZMP and CoM.
        samples: the walk at the times of the path; the CoM with its correction, if any.
        path: joint targets from 0 to plan.duration, within all limits.
        method: by which it was solved.
        note: what the method could not do; "" when there is nothing.
        before: steps that were made before the plan's first one: see Walker.change.
        later: s, by which its time begins later than that of the walk that it changes.
        fed_back: False: the stabiliser does not change it.
    """

    plan: WalkPlan
    samples: Samples
    path: JointPath
    method: str
    note: str = ""
    before: int = 0
    later: float = 0.0
    fed_back: bool = True

    @property
    def duration(self) -> float:
        """Duration of the walk, s."""
        return self.plan.duration

    def instant(self, t: float) -> WalkInstant:
        """The plan at a time; the feet at the next point of the path.

        Args:
            t: s.
        """
        s = self.samples
        i = min(max(int(s.time.searchsorted(t - 1e-9)), 1), len(s.time) - 1)
        begin, end = s.time[i - 1 : i + 1].tolist()
        part = min(max((t - begin) / (end - begin), 0.0), 1.0)
        com, zmp = (x[i - 1] + part * (x[i] - x[i - 1]) for x in (s.com, s.zmp))
        left, right = s.stance[i].tolist()
        swing = "" if left and right else SIDES[int(left)]
        return WalkInstant(com, zmp, s.feet[i], s.stance[i], self.step_at(t), swing)

    @property
    def steps(self) -> int:
        """Number of steps, also of those that were made before the plan's first one."""
        return self.before + len(self.plan.steps)

    def step_at(self, t: float) -> int:
        """Number of the step that is being made, or that comes next.

        Args:
            t: s.

        Returns:
            From 0, including steps before the plan's first one; -1: all are made.
        """
        made = self.steps_made(t)
        return made if made < self.steps else -1

    def steps_made(self, t: float) -> int:
        """Number of steps that are made at a time.

        Args:
            t: s.
        """
        return self.before + int((self.plan.touch_downs <= t).sum())
