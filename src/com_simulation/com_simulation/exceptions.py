"""What can go wrong in com_simulation, with the data that a diagnosis needs."""

from pathlib import Path


class ComSimulationError(Exception):
    """Root of all errors of this package."""


class MeshError(ComSimulationError):
    """A mesh file that cannot be read.

    Attributes:
        path: the file.
        reason: what is wrong with it.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{self.path.name}: {reason}")
