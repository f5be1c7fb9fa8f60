"""What joint state messages mean, live and in recordings: which joints, and who contradicts whom.

A message carries one position for each of its names, or none: a driver may send velocities or
efforts on their own, which leave the positions as they are. Two publishers of the same joints show
as positions that jump and are back one message later.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array, Flags, Indices
from com_model.text import listing

JUMP = 0.01
"""rad or m, from one message to the next, below which a change is none of two publishers."""

BACK = 0.1
"""Of a jump, by which the message after it may differ from the one before it."""

CONFLICTS = 10
"""Jumps there and back, with as many messages between them at most, that two publishers make."""

CONFLICT_SPAN_NS = 10_000_000_000
"""ns, within which so many are counted."""


@dataclass(frozen=True)
class JointLayout:
    """Where the joints of a model are in messages with one list of names.

    Attributes:
        names: The list, as received.
        source: (m,) places in the message of the m joints of the model that it names.
        joints: (m,) their places in the model, ascending.
        complete: Whether these are all joints of the model.
        error: Why such messages cannot be used; "" where they can.
    """

    names: list[str]
    source: Indices
    joints: Indices
    complete: bool
    error: str

    @classmethod
    def from_names(
        cls, names: Sequence[str], index: Mapping[str, int]
    ) -> "JointLayout":
        """Finds the model's joints in a list of names.

        Args:
            names: Of a message.
            index: Places of the joints in the model, by name.
        """
        place = {name: i for i, name in enumerate(names)}
        found = sorted((k, place[name]) for name, k in index.items() if name in place)
        joints = np.array([joint for joint, _ in found], dtype=np.int64)
        source = np.array([i for _, i in found], dtype=np.int64)
        counts = Counter(name for name in names if name in index)
        twice = [name for name, count in counts.items() if count > 1]
        error = ""
        if twice:
            error = (
                f"joint_states names {listing(twice)} more than once: "
                "a message may carry each joint once"
            )
        return cls(list(names), source, joints, len(found) == len(index), error)

    def problem(self, positions: int) -> str:
        """Why a message cannot be used; "" where it can, or has no positions at all.

        Args:
            positions: Their number in the message.
        """
        if self.error or positions in (0, len(self.names)):
            return self.error
        return (
            f"joint_states has {positions} positions for {len(self.names)} names: "
            "a message must carry one position for each name, or none"
        )


def jumps_there_and_back(now: Array, before: Array, earlier: Array) -> Flags:
    """Which values are back after a jump, as those of two publishers in turn are.

    Args:
        now: (..., n) rad or m, positions of a message; NaN where not known.
        before: (..., n) those of the message before.
        earlier: (..., n) those of the message before that.

    Returns:
        (..., n); false where a value is not known.
    """
    step = np.abs(now - before)
    return np.asarray((step > JUMP) & (np.abs(now - earlier) < BACK * step))


class ConflictCheck:
    """Counts jumps there and back of the joints in a series of messages.

    Args:
        names: Of the n joints.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._times = np.full(CONFLICTS, -CONFLICT_SPAN_NS - 1, dtype=np.int64)
        self._joints = np.zeros(len(names), dtype=bool)

    def add(self, jumped: Flags, times: Indices) -> str:
        """Adds messages.

        Args:
            jumped: (N, n) see jumps_there_and_back.
            times: (N,) ns, of the messages.

        Returns:
            Which joints two publishers contradict each other about; "" where none do by now.
        """
        rows = np.flatnonzero(jumped.any(axis=1))
        if len(rows):
            self._joints |= jumped[rows].any(axis=0)
            self._times = np.concatenate([self._times, times[rows]])[-CONFLICTS:]
        last = int(times[-1]) if len(times) else int(self._times[-1])
        if not 0 <= last - self._times[0] <= CONFLICT_SPAN_NS:
            return ""
        joints = [self._names[k] for k in np.flatnonzero(self._joints).tolist()]
        return (
            f"joint_states has two publishers that contradict each other: {listing(joints)} jump "
            "there and back; let one node publish each joint"
        )
