"""What can go wrong in com_simulation, with the data that a diagnosis needs."""

from com_model.exceptions import ComModelError


class ComSimulationError(ComModelError):
    """Root of all errors of this package."""


class WorldError(ComSimulationError):
    """A robot that MuJoCo cannot simulate; the message says why and what to change."""


class CommandError(ComSimulationError):
    """A motion command that is refused; the message says why and what to send instead."""


class DivergedError(ComSimulationError):
    """The physics became unstable at a time, s, of the simulation."""

    def __init__(self, time: float, step: float) -> None:
        self.time = time
        super().__init__(
            f"the physics diverged at {time:.3f} s: take a physics step below {step:g} s or less "
            "stiff servos"
        )


class SwayError(ComSimulationError):
    """No motion keeps the robot standing; the message says what stands in its way."""
