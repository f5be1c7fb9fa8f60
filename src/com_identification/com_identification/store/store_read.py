"""Reads a file of postures, and trusts nothing in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from com_identification.exceptions import StoreError
from com_identification.regression.postures import Posture
from com_identification.store.store_records import (
    FORMAT,
    MAX_LINE,
    decode,
    offset_of,
    posture_of,
    whole,
)
from com_model import RobotModel
from com_model.text import listing

_MOST_POSTURES = 100_000


class Contents:
    """What a file of postures says.

    Args:
        feet: How many feet the robot has.

    Attributes:
        postures: By id.
        stamps: When each was captured, ns, by id; 0 where not known.
        next_id: The next one.
        tare: (f, 6) offsets as read.
        size: Bytes of the whole lines that were read.
        warnings: What was amiss.
    """

    def __init__(self, feet: int) -> None:
        self.postures: dict[int, Posture] = {}
        self.stamps: dict[int, int] = {}
        self.next_id = 1
        self.tare = np.zeros((feet, 6))
        self.size = 0
        self.warnings: tuple[str, ...] = ()

    def apply(self, record: Mapping[str, Any], model: RobotModel) -> None:
        """Follows a change.

        Raises:
            ValueError: It is none; says why.
        """
        kind = record["kind"]
        if kind == "posture":
            stamp_ns = whole(record, "stamp_ns") if "stamp_ns" in record else 0
            self._add(whole(record, "id"), posture_of(record, model, len(self.tare)), stamp_ns)
        elif kind == "remove":
            if self.postures.pop(whole(record, "id"), None) is None:
                raise ValueError(f"no posture has the id {record['id']}")
            del self.stamps[record["id"]]
        elif kind == "tare":
            foot = whole(record, "foot")
            if foot >= len(self.tare):
                raise ValueError(f"there is no foot {foot}")
            self.tare[foot] = offset_of(record)
        elif kind == "next":
            self.next_id = max(self.next_id, whole(record, "id"))
        else:
            raise ValueError(f"its kind {kind[:20]!r} is not known")

    def _add(self, identity: int, posture: Posture, stamp_ns: int) -> None:
        if identity < self.next_id and self.postures.get(identity) is not None:
            raise ValueError(f"the id {identity} is there twice")
        if len(self.postures) >= _MOST_POSTURES:
            raise ValueError(f"there are more than {_MOST_POSTURES} postures")
        self.postures[identity] = posture
        self.stamps[identity] = stamp_ns
        self.next_id = max(self.next_id, identity + 1)


def read_contents(
    stream: BinaryIO, name: str, model: RobotModel, robot: Mapping[str, Any]
) -> Contents:
    """Reads a file of postures; a last line that was cut is left out.

    Args:
        stream: The file.
        name: Its name, for messages.
        model: The robot whose postures they must be.
        robot: Its record.

    Raises:
        StoreError: A line is none, or the file is another robot's.
    """
    contents = Contents(len(robot["feet"]))
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if not line.endswith(b"\n"):
            if len(line) > MAX_LINE:
                raise _damaged(name, number, f"it is longer than {MAX_LINE} bytes")
            text = f"{name}: line {number} was cut and is left out: it was never acknowledged."
            contents.warnings += (text,)
            break
        try:
            record = decode(line)
            if number > 1:
                contents.apply(record, model)
        except (ValueError, RecursionError, OverflowError) as error:
            raise _damaged(name, number, str(error)) from error
        if number == 1:
            check_robot(record, robot, name)
        contents.size += len(line)
    return contents


def check_robot(record: Mapping[str, Any], robot: Mapping[str, Any], name: str) -> None:
    """Refuses a file of another robot.

    Raises:
        StoreError: Says what differs.
    """
    if record.get("kind") != "robot" or record.get("format") != FORMAT:
        raise StoreError(f"{name} is no file of postures of format {FORMAT}: give another file")
    for key, what in (
        ("joints", "joints"),
        ("feet", "feet"),
        ("sensors", "frames and signs of the force sensors"),
        ("kinematics", "places and axes of the joints"),
    ):
        if record.get(key) != robot[key]:
            file, robots = _differing(record.get(key), robot[key])
            raise StoreError(
                f"{name} is of another robot: its {what} differ (file: {file}; this robot: "
                f"{robots}). Give another file"
            )


def _damaged(name: str, number: int, problem: str) -> StoreError:
    return StoreError(
        f"{name}: line {number} is damaged: {problem}. Give another file, or take that line out"
    )


def _differing(a: Any, b: Any) -> tuple[str, str]:
    """What two values do not share, in words."""
    if not isinstance(a, list) or not isinstance(b, list):
        return str(a)[:40], str(b)[:40]
    only = ([x for x in a if x not in b], [y for y in b if y not in a])
    if not any(only):
        only = (a, b)  # the order differs
    first, second = (listing([str(item)[:40] for item in items]) or "none" for items in only)
    return first, second
