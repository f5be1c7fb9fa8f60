"""The way to a motion's first row and the motion behind it, as one path."""

from __future__ import annotations

from com_control.motion.path import RowPath
from com_model.arrays import Array


class Course:
    """Two curves, one after the other; both begin and end at rest.

    Args:
        lead: From where the robot stands to the first row.
        file: The motion.

    Attributes:
        lead_length: s at full pace, of the first.
        length: s at full pace, of both.
    """

    def __init__(self, lead: RowPath, file: RowPath) -> None:
        self._lead, self._file = lead, file
        self.lead_length = lead.end - lead.start
        self.length = self.lead_length + file.end - file.start

    def at(self, place: float, rate: float) -> tuple[Array, Array]:
        """Positions and velocities (k,) at a place (s from its start), passed at a rate."""
        beyond = place - self.lead_length
        if beyond < 0.0:
            position, velocity = self._lead.at(self._lead.start + place)
        else:
            position, velocity = self._file.at(self._file.start + beyond)
        return position, velocity * rate

    def file_time(self, place: float) -> float | None:
        """Time of the motion at a place, s; None before it."""
        beyond = place - self.lead_length
        return None if beyond < 0.0 else self._file.start + beyond
