"""How a robot is to trot."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf

from com_control.exceptions import GaitError

DIAGONALS = {"left_front": (0, 3), "right_front": (1, 2)}
"""Legs that swing together, by their front leg."""

STANDING = 0.93
"""Default height as a share of the nominal one."""

_BOUNDS = {
    "frequency": (0.05, 10.0),
    "duty_factor": (0.5, 0.95),
    "step_height": (0.0, 1.0),
    "height": (0.0, 10.0),
    "start_delay": (0.0, 1e6),
    "lead_in": (0.0, 1e3),
    "max_compensation": (0.0, 1.0),
    "blend": (0.05, 1.0),
    "tilt_gain": (0.0, 10.0),
    "com_shift_time": (0.001, 60.0),
    "max_placement": (0.0, 10.0),
    "max_com_shift": (0.0, 10.0),
    "com_shift_rate": (0.0, 10.0),
    "attitude_filter": (0.0, 10.0),
    "attitude_filter_alone": (0.0, 1.0),
    "max_wait": (0.0, 60.0),
}


@dataclass(frozen=True)
class GaitParameters:
    """Parameters of a trot; lengths that are 0 are derived from the robot.

    Attributes:
        frequency: 1/s, periods of the gait; each leg steps once in a period.
        duty_factor: Share of the period in which a leg carries, 0.5 or more.
        step_height: m, of the swing feet over the ground; 0: a ninth of the height.
        height: m, of the hips over the contact points; 0: 93 % of that in the nominal posture, so
            that legs reach.
        start_delay: s, of standing before the first lift-off.
        velocity_x: m/s, forwards; 0: stepping in place.
        velocity_y: m/s, to the left.
        yaw_rate: rad/s, to the left.
        lead_in: s, in which velocity and foot placement grow to their values.
        first: Front leg of the diagonal that swings first: left_front or right_front.
        swing_compensation: Swing feet keep their height over the ground when the trunk tilts
            ([Ding] eq. 19) even without CoM feedback, with which they always do. Without, it is the
            lower foot, coming down early, that rights a trunk whose CoM is off.
        max_compensation: rad, tilt up to which they do; beyond, the lower foot comes down early and
            catches the robot.
        blend: Share of half a period in which feet on the ground go from where they came down to
            where they stand.
        tilt_gain: Of the foot placement by attitude; 1 puts the feet below the centre of mass
            however the trunk tilts. Only with CoM feedback.
        max_placement: m, bound of it; 0: 15 % of the height.
        max_com_shift: m, bound of the feet's shift for the centre of mass; 0: a fifth of the
            height.
        com_shift_time: s, time constant with which the shift follows the estimate.
        com_shift_rate: m/s, bound of its speed; 0: a fifth of the height in a second.
        attitude_filter: s, time constant with which the gyroscope's attitude follows the measured
            one; the longer, the less noise gets to the feet.
        attitude_filter_alone: s, time constant of the attitude's filter without a gyroscope.
        max_wait: s after start_delay, for which the first lift-off waits at most until the feet
            are shifted; only with CoM feedback.
    """

    frequency: float = 1.0
    duty_factor: float = 0.5
    step_height: float = 0.0
    height: float = 0.0
    start_delay: float = 0.0
    velocity_x: float = 0.0
    velocity_y: float = 0.0
    yaw_rate: float = 0.0
    lead_in: float = 1.0
    first: str = "left_front"
    swing_compensation: bool = False
    max_compensation: float = 0.06
    blend: float = 0.2
    tilt_gain: float = 0.0
    max_placement: float = 0.0
    max_com_shift: float = 0.0
    com_shift_time: float = 0.15
    com_shift_rate: float = 0.0
    attitude_filter: float = 1.0
    attitude_filter_alone: float = 0.01
    max_wait: float = 2.0

    def __post_init__(self) -> None:
        if self.first not in DIAGONALS:
            raise GaitError(f"first is {self.first!r}: give {' or '.join(DIAGONALS)}")
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, (int, float)):
                continue
            low, high = _BOUNDS.get(field.name, (-inf, inf))
            if not (low <= value <= high and abs(value) < inf):
                raise GaitError(f"{field.name} is {value}: give a number from {low:g} to {high:g}")

    def derived(self, height: float) -> GaitParameters:
        """Fills in what is 0 and derived from the robot.

        Args:
            height: m, of the hips over the contact points in the nominal posture.
        """
        height = self.height or STANDING * height
        return replace(
            self,
            height=height,
            step_height=self.step_height or height / 9.0,
            max_placement=self.max_placement or 0.15 * height,
            max_com_shift=self.max_com_shift or 0.2 * height,
            com_shift_rate=self.com_shift_rate or 0.2 * height,
        )
