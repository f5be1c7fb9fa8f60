"""What joint state messages mean, live and in recordings: which joints, and who contradicts whom.

A message carries one position for each of its names, or none: a driver may send velocities or
efforts on their own, which leave the positions as they are. Two publishers of the same joints show
as positions that jump and are back one message later.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array, Indices
from com_model.text import listing

JUMP = 0.01
"""rad or m, from one message to the next, below which a change is none of two publishers."""


CONFLICTS = 10
"""Jumps back, of which almost all return to where they were, that two publishers make."""


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


REVERSED, RETURNED = 1, 2


def reversals(now: Array, before: Array, earlier: Array) -> Indices:
    """Which values jump back after a jump, and whether to where they were.

    Values of two publishers in turn return; those of a noisy encoder only turn round.

    Args:
        now: (..., n) rad or m, positions of a message; NaN where not known.
        before: (..., n) those of the message before.
        earlier: (..., n) those of the message before that.

    Returns:
        (..., n) REVERSED, RETURNED or 0, also where a value is not known.
    """
    with np.errstate(invalid="ignore"):  # a value that is infinite jumps nowhere
        there, back = before - earlier, now - before
    large = (np.abs(back) > JUMP) & (np.abs(there) > JUMP) & (there * back < 0.0)
    # of a jump, by which the message after it may differ from the one before it
    returned = large & (np.abs(now - earlier) < 0.1 * np.abs(back))
    return np.asarray(large, dtype=np.int64) + returned


class ConflictCheck:
    """Counts jumps there and back of the joints in a series of messages.

    Args:
        names: Of the n joints.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._times = np.full(CONFLICTS, -CONFLICT_SPAN_NS - 1, dtype=np.int64)
        self._returned = np.zeros(
            CONFLICTS, dtype=bool
        )  # most of those that jumped back
        self._joints = np.zeros(len(names), dtype=bool)

    def add(self, found: Indices, times: Indices) -> str:
        """Adds messages.

        Args:
            found: (N, n) see reversals.
            times: (N,) ns, of the messages.

        Returns:
            Which joints two publishers contradict each other about; "" where none do by now.
        """
        rows = np.flatnonzero(found.any(axis=1))
        if len(rows):
            returned = found[rows] == RETURNED
            most = 2 * returned.sum(axis=1) > (found[rows] > 0).sum(axis=1)
            self._joints |= returned[most].any(axis=0)
            self._times = np.concatenate([self._times, times[rows]])[-CONFLICTS:]
            self._returned = np.concatenate([self._returned, most])[-CONFLICTS:]
        last = int(times[-1]) if len(times) else int(self._times[-1])
        if not 0 <= last - self._times[0] <= CONFLICT_SPAN_NS:
            return ""
        # almost all; of the jumps that noise makes every fifth returns at most
        if self._returned.sum() < 9:
            return ""
        joints = [self._names[k] for k in np.flatnonzero(self._joints).tolist()]
        return (
            f"joint_states has two publishers that contradict each other: {listing(joints)} jump "
            "there and back; let one node publish each joint"
        )
