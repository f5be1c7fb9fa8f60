"""Errors of com_simulation, with the data that a diagnosis needs."""

from com_model.exceptions import ComModelError


class ComSimulationError(ComModelError):
    """Root of all errors of this package."""


class WorldError(ComSimulationError):
    """MuJoCo cannot simulate a robot or world; the message says why and what to change."""


class CommandError(ComSimulationError):
    """A motion command is refused; the message says why and what to send instead."""


class DivergedError(ComSimulationError):
    """The physics became unstable.

    Args:
        time: s, simulated.
        step: s, of the physics.

    Attributes:
        time: as given.
    """

    def __init__(self, time: float, step: float) -> None:
        self.time = time
        super().__init__(
            f"the physics diverged at {time:.3f} s: take a physics step below {step:g} s or less "
            "stiff servos"
        )


class SwayError(ComSimulationError):
    """No motion keeps the robot standing; the message says what prevents it."""
