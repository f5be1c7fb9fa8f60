"""Parameters of a trot."""

from dataclasses import dataclass, replace
from math import sqrt

from com_control.exceptions import GaitError
from com_model.dynamics import GRAVITY
from com_model.legs import DIAGONALS
from com_model.parameters import check_options, parameter
from com_model.robot_config import TrotSizes


@dataclass(frozen=True)
class GaitParameters:
    """Parameters of a trot; a value of 0 is the configuration's, else derived from the robot.

    Without CoM feedback the lower swing foot, touching down early, corrects the tilt of a trunk
    whose CoM is off: swing_compensation ([Ding] eq. 19) removes that effect.
    """

    frequency: float = parameter(
        0.0,
        "1/s, periods of the gait; each leg steps once; 0: 1/s, with CoM feedback by its height",
        (0.0, 10.0),
    )
    duty_factor: float = parameter(
        0.5, "fraction of the period in which a leg carries load", (0.5, 0.95)
    )
    step_height: float = parameter(
        0.0, "m, swing height above the ground; 0: a ninth of the height", (0.0, 1.0)
    )
    height: float = parameter(
        0.0,
        "m, hip height above the ground; 0: 93 % of that of the nominal posture",
        (0.0, 10.0),
    )
    start_delay: float = parameter(
        0.0, "s, of standing before the first step", (0.0, 1e4)
    )
    velocity_x: float = parameter(
        0.0, "m/s, forwards; 0: stepping in place", (-10.0, 10.0)
    )
    velocity_y: float = parameter(0.0, "m/s, to the left", (-10.0, 10.0))
    yaw_rate: float = parameter(0.0, "rad/s, to the left", (-10.0, 10.0))
    ramp_time: float = parameter(
        1.0, "s, in which velocity and foot placement grow to their values", (0.0, 1e3)
    )
    first: str = parameter(
        "left_front",
        "front leg of the diagonal that swings first",
        choices=tuple(DIAGONALS),
    )
    swing_compensation: bool = parameter(
        False,
        "keep the height of swing feet when the trunk tilts, without CoM feedback too",
    )
    max_compensation: float = parameter(
        0.06, "rad, tilt up to which the height of swing feet is kept", (0.0, 1.0)
    )
    blend: float = parameter(
        0.0,
        "fraction of half a period in which feet move from touch-down to their stance; 0: 0.2, "
        "with CoM feedback 0.6",
        (0.0, 1.0),
    )
    capture_time: float = parameter(
        0.0,
        "s: feet land where the trunk, as it tilts, comes to rest; with CoM feedback and half "
        "periods up to this only; 0: sqrt(height / g)",
        (0.0, 10.0),
    )
    max_placement: float = parameter(
        0.0, "m, bound of it; 0: 15 % of the height", (0.0, 10.0)
    )
    max_com_shift: float = parameter(
        0.0,
        "m, bound of the feet's shift for the CoM; 0: a fifth of the height",
        (0.0, 10.0),
    )
    com_shift_time: float = parameter(
        0.15,
        "s, time constant with which the shift follows the estimate",
        (0.001, 60.0),
    )
    com_shift_rate: float = parameter(
        0.0,
        "m/s, bound of its speed; 0: a fifth of the height in a second",
        (0.0, 10.0),
    )
    attitude_filter: float = parameter(
        1.0,
        "s, time constant with which the gyroscope's attitude follows the measured one",
        (0.0, 10.0),
    )
    attitude_filter_alone: float = parameter(
        0.01,
        "s, time constant of the attitude's filter without a gyroscope",
        (0.0, 1.0),
    )
    slope_time: float = parameter(
        4.0,
        "s, time constant with which the ground's slope follows the trunk's tilt; with CoM "
        "feedback only",
        (0.1, 1e9),
    )
    max_wait: float = parameter(
        2.0,
        "s after start_delay, for which the first lift-off waits at most until the feet are "
        "shifted; with CoM feedback only",
        (0.0, 60.0),
    )

    def __post_init__(self) -> None:
        check_options(self, GaitError)

    def derived(
        self, height: float, sizes: TrotSizes, feedback: bool = False
    ) -> "GaitParameters":
        """Replaces values of 0 by those of the configuration, or derived from the robot's size.

        Args:
            height: m, of the hips in the nominal posture.
            sizes: of the configuration.
            feedback: the gait uses an estimate of the CoM.

        Returns:
            Parameters without values of 0 that have a default.
        """
        # 0.93 of the nominal height by default, so that the legs reach
        height = self.height or sizes.body_height or 0.93 * height
        capture = self.capture_time or sqrt(height / GRAVITY)
        # With it footholds must come soon: half a period over sqrt(height / g). Compliant legs
        # need it shorter than stiff ones: ANYmal's fall aside, slowly, at 0.92.
        default = 0.5 / (0.775 * capture) if feedback else 1.0
        # compliant legs that straighten the trunk abruptly throw it aside
        return replace(
            self,
            frequency=self.frequency or sizes.frequency or default,
            height=height,
            capture_time=capture,
            blend=self.blend or (0.6 if feedback else 0.2),
            step_height=self.step_height or sizes.step_height or height / 9.0,
            max_placement=self.max_placement or 0.15 * height,
            max_com_shift=self.max_com_shift or 0.2 * height,
            com_shift_rate=self.com_shift_rate or 0.2 * height,
        )
