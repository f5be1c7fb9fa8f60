"""What can go wrong in a demonstration."""

from com_simulation.exceptions import ComSimulationError


class RenderError(ComSimulationError):
    """Nothing can be drawn off screen on this machine."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(
            f"no off-screen rendering by EGL ({' '.join(str(reason).split())[:200]}): install "
            "libegl1 and libgl1-mesa-dri, or a driver of the graphics card"
        )


class RunError(ComSimulationError):
    """A run that brought no data, or wrong data; the message says what is known of the reason."""
