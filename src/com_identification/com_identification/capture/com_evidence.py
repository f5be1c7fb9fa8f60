"""Direct knowledge of the centre of mass: its position, or an edge over which the robot tipped."""

from collections.abc import Callable
from typing import Any

import numpy as np

from com_identification.regression.postures import ComConstraint
from com_identification.settings import SensorNoise
from com_model import RobotModel
from com_model.arrays import Array
from com_model.strict_yaml import Section

Channel = Callable[[Any, Section, str], Array]
"""Reads a channel (N,) from its value, the section that contains it, and its key."""

SECTIONS = ("com", "tip_over")
_EDGE = ("edge_x", "edge_y", "direction", "tilt")
_STEEPEST = 1.2  # rad, of a ramp


class ComEvidence:
    """Constraints on the CoM of each row of a table.

    com: {link, x, y, z, std} is the CoM of the whole robot in a link's frame, e.g. by another
    method: with it [Muscolo]'s second formulation needs no force. tip_over: {link, edge_x,
    edge_y, direction, tilt, std} is a robot about to fall over the edge of its sole through
    (edge_x, edge_y) m along e = (cos, sin, 0) of `direction`, the outside o = e x z to its right,
    where the ground slopes down by `tilt`:

      (cos(tilt) o + sin(tilt) z) . (CoM - edge) = 0

    An empty cell is no constraint.

    Args:
        mapping: of the table, with the sections com and tip_over.
        channel: reads a channel of the table.
        model: the robot.

    Attributes:
        known: link, CoM (N, 3) m in its frame, standard deviation m; None without `com`.

    Raises:
        ConfigError: a key is missing or wrong.
    """

    def __init__(self, mapping: Section, channel: Channel, model: RobotModel) -> None:
        self._rows: list[
            tuple[str, Array, Array, float]
        ] = []  # link, normals, offsets, std
        self.known: tuple[str, Array, float] | None = None  # link, CoM (N, 3) m, std m
        for key in SECTIONS:
            if mapping.raw(key) is None:
                continue
            section = mapping.section(key)
            link = section.text("link", model.root_link, model.link_names)
            std = section.number("std", SensorNoise().known_com, 1e-6)
            if key == "com":
                com = self._com(section, channel)
                self.known = link, com, std
                pairs = [
                    (np.tile(np.eye(3)[k], (len(com), 1)), com[:, k]) for k in range(3)
                ]
            else:
                values = (channel(section.raw(name), section, name) for name in _EDGE)
                pairs = [tip_over_planes(section, "tilt", *values)]
            self._rows += [(link, *pair, std) for pair in pairs]
            section.finish()

    def __bool__(self) -> bool:
        return bool(self._rows)

    def constraints(self, row: int) -> tuple[ComConstraint, ...]:
        """Returns the constraints of a row.

        Args:
            row: its index.
        """
        return tuple(
            ComConstraint(link, normals[row], float(offsets[row]), std)
            for link, normals, offsets, std in self._rows
            if np.isfinite(offsets[row])
        )

    def _com(self, section: Section, channel: Channel) -> Array:
        """(N, 3) m, NaN of components that are not given."""
        given = [
            (axis, key)
            for axis, key in enumerate("xyz")
            if section.raw(key) is not None
        ]
        if not given:
            raise section.error("expected x, y or z: the column of the CoM")
        places = {axis: channel(section.raw(key), section, key) for axis, key in given}
        unknown = np.full(len(next(iter(places.values()))), np.nan)
        return np.column_stack([places.get(axis, unknown) for axis in range(3)])


def tip_over_planes(
    section: Section, key: str, x: Array, y: Array, direction: Array, tilt: Array
) -> tuple[Array, Array]:
    """Returns the normals (N, 3) and offsets (N,) m of the planes of ComEvidence through edges.

    Args:
        section: of the mapping, for messages.
        key: of the tilt, for messages.
        x: (N,) m, of a point of the edge in the link's frame.
        y: (N,) m, of that point.
        direction: (N,) rad, of the edge about z.
        tilt: (N,) rad, by which the ground slopes down outside of the edge.

    Raises:
        ConfigError: a tilt is larger than 1.2 rad.
    """
    if (np.abs(tilt[np.isfinite(tilt)]) > _STEEPEST).any():
        text = f"is more than {_STEEPEST} rad: correct its unit, or the column"
        raise section.error(f"a tilt {text}" if key != "tilt" else text, key)
    c, s = np.cos(tilt), np.sin(tilt)
    normals = np.column_stack((c * np.sin(direction), -c * np.cos(direction), s))
    return normals, normals[:, 0] * x + normals[:, 1] * y
