"""Footsteps: positions at which the feet are set down, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import cos, inf, isfinite, pi, sin

import numpy as np

from com_control.exceptions import PlanError
from com_model.arrays import Array
from com_model.parameters import check_options, parameter

SIDES = ("left", "right")


@dataclass(frozen=True)
class Footstep:
    """A foot on the ground.

    Attributes:
        side: "left" or "right".
        x: m, the middle of the sole in the world.
        y: m.
        z: m.
        yaw: rad, its direction.

    Raises:
        PlanError: the side is neither, or a number is not finite or too large.
    """

    side: str
    x: float
    y: float
    z: float = 0.0
    yaw: float = 0.0

    def __post_init__(self) -> None:
        if self.side not in SIDES:
            raise PlanError(f"side is {self.side!r}: give left or right")
        farthest = 1e6  # m and rad
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if not (isinstance(value, (int, float)) and isfinite(value)):
                raise PlanError(
                    f"{field.name} of a footstep is {value}: give a finite number"
                )
            if abs(value) > farthest:
                raise PlanError(
                    f"{field.name} of a footstep is {value:g}: give at most {farthest:g}"
                )

    @property
    def position(self) -> Array:
        """(3,) m, the middle of the sole."""
        return np.array([self.x, self.y, self.z])


@dataclass(frozen=True)
class WalkParameters:
    """A walk straight on, to the side, or in a turn; the defaults are those of [CCGD]."""

    steps: int = parameter(
        6, "of which the last sets both feet side by side", (0, 10_000)
    )
    step_length: float = parameter(
        0.3, "m, by which each foot passes the other; negative: backwards", (-inf, inf)
    )
    side_step: float = parameter(
        0.0,
        "m to the left, by which each pair of steps moves; negative: to the right",
        (-inf, inf),
    )
    turn: float = parameter(
        0.0, "rad to the left, by which each step turns", (-pi / 2, pi / 2)
    )
    climb: float = parameter(
        0.0, "m, by which each step is higher than the one before", (-inf, inf)
    )
    half_width: float = parameter(
        0.065, "m, of each foot from the middle line ([CCGD] s_y)", (1e-3, inf)
    )
    first: str = parameter("right", "side that steps first", choices=SIDES)

    def __post_init__(self) -> None:
        check_options(self, PlanError)


def plan_footsteps(
    parameters: WalkParameters, start: Sequence[Footstep]
) -> tuple[Footstep, ...]:
    """Plans the steps of a walk, each foot in turn.

    The first step is half a step, and the last sets its foot beside the other, so that the robot
    starts and stops with both feet side by side. Feet are placed to the left and right of points
    on a path, which bends in the middle of each step. A step to the side is made by the foot on
    that side; the other follows.

    Args:
        parameters: number and sizes of the steps.
        start: positions of both feet.

    Returns:
        The steps, in the frame of start.

    Raises:
        PlanError: start is not a left and a right foot.
    """
    p = parameters
    left, right = sort_feet(start)
    x, y, z = (0.5 * (left.position + right.position)).tolist()
    yaw = left.yaw + 0.5 * wrap_angle(right.yaw - left.yaw)
    side = p.first
    steps = []
    for i in range(p.steps):
        last = i == p.steps - 1
        outer = (side == "left") == (p.side_step > 0.0)
        ahead, turn, climb = (
            (0.0, 0.0, 0.0) if last else (p.step_length, p.turn, p.climb)
        )
        aside = p.side_step if outer and not last else 0.0
        middle = yaw + 0.5 * turn
        x += ahead * cos(middle) - aside * sin(middle)
        y += ahead * sin(middle) + aside * cos(middle)
        z += climb
        yaw = wrap_angle(yaw + turn)
        sign = 1.0 if side == "left" else -1.0
        steps.append(
            Footstep(
                side,
                x - sign * p.half_width * sin(yaw),
                y + sign * p.half_width * cos(yaw),
                z,
                yaw,
            )
        )
        side = SIDES[1 - SIDES.index(side)]
    return tuple(steps)


def place_beside(foot: Footstep, apart: float) -> Footstep:
    """The other foot side by side with one.

    Args:
        foot: on the ground.
        apart: m, distance between them.
    """
    away = apart if foot.side == "right" else -apart
    x, y = foot.x - away * sin(foot.yaw), foot.y + away * cos(foot.yaw)
    return Footstep(SIDES[1 - SIDES.index(foot.side)], x, y, foot.z, foot.yaw)


def sort_feet(start: Sequence[Footstep]) -> tuple[Footstep, Footstep]:
    """Returns the left and the right foot of a pair.

    Args:
        start: two feet in any order.

    Raises:
        PlanError: they are not one left and one right foot.
    """
    if [foot.side for foot in start] not in (["left", "right"], ["right", "left"]):
        sides = ", ".join(foot.side for foot in start) or "nothing"
        raise PlanError(
            f"the walk starts from {sides}: give one left and one right foot"
        )
    left, right = sorted(start, key=lambda foot: foot.side)
    return left, right


def check_footsteps(
    start: Sequence[Footstep], steps: Sequence[Footstep], min_width: float
) -> None:
    """Checks that a robot can make the footsteps.

    Args:
        start: positions of both feet.
        steps: that follow.
        min_width: m, smallest distance of the left foot to the left of the right one, each seen
            in the other's direction; below it the feet cross or touch.

    Raises:
        PlanError: with the number of the step that cannot be made.
    """
    feet = {foot.side: foot for foot in sort_feet(start)}
    _check_pair(feet, None, min_width)
    previous = ""
    for i, step in enumerate(steps):
        if step.side == previous:
            raise PlanError(f"the {step.side} foot steps twice: the feet take turns", i)
        feet[step.side] = step
        _check_pair(feet, i, min_width)
        previous = step.side


def _check_pair(feet: dict[str, Footstep], step: int | None, min_width: float) -> None:
    left, right = feet["left"], feet["right"]
    turn = abs(wrap_angle(left.yaw - right.yaw))
    most_turn = 0.8  # rad, between both feet
    if turn > most_turn:
        raise PlanError(
            f"turns by {turn:.3f} rad to the other foot, at most {most_turn:.3f}", step
        )
    away = left.position - right.position
    for foot in (left, right):
        width = float(-away[0] * np.sin(foot.yaw) + away[1] * np.cos(foot.yaw))
        if width < min_width:
            raise PlanError(
                f"the feet cross or touch: the left foot would be {width:.3f} m to the left of the "
                f"right one, at least {min_width:.3f} m are needed",
                step,
            )


def wrap_angle(angle: float) -> float:
    """An angle wrapped to -pi to pi.

    Args:
        angle: rad.
    """
    return angle - 2.0 * pi * round(angle / (2.0 * pi))
