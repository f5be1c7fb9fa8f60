"""Samples and what is true of them, matched by their stamps as they arrive, in any order."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar


class Stamped(Protocol):
    """A sample with a stamp, ns."""

    @property
    def stamp_ns(self) -> int:
        """Return the stamp."""


S = TypeVar("S", bound=Stamped)
P = TypeVar("P")
V = TypeVar("V")

NS_PER_S = 1_000_000_000
_PENDING = 4096  # of either stream that may wait for their counterpart


class Pairs(Generic[S, P]):
    """Samples and the truths of the same stamps.

    Attributes:
        samples: in the order in which they arrived.
        truths: of each sample; None where none has arrived.
    """

    def __init__(self) -> None:
        self.samples: list[S] = []
        self.truths: list[P | None] = []
        self._early: OrderedDict[int, P] = OrderedDict()
        self._waiting: OrderedDict[int, int] = OrderedDict()  # stamp: index of the sample

    def add(self, sample: S) -> None:
        """Add a sample."""
        truth = self._early.pop(sample.stamp_ns, None)
        if truth is None:
            _store(self._waiting, sample.stamp_ns, len(self.samples))
        self.samples.append(sample)
        self.truths.append(truth)

    def add_truth(self, stamp_ns: int, truth: P) -> None:
        """Add a truth."""
        index = self._waiting.pop(stamp_ns, None)
        if index is None:
            _store(self._early, stamp_ns, truth)
        else:
            self.truths[index] = truth


def _store(store: OrderedDict[int, V], stamp_ns: int, value: V) -> None:
    store[stamp_ns] = value
    if len(store) > _PENDING:
        store.popitem(last=False)
