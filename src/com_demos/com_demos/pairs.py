"""Two streams of messages, matched by their stamps as they arrive, in any order."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

S = TypeVar("S")
P = TypeVar("P")

_PENDING = 4096  # of either stream that may wait for their counterpart


class Pairs(Generic[S, P]):
    """Samples and their partners, those of the same stamp.

    Attributes:
        samples: in the order in which they arrived.
        partners: of each sample; None where none has arrived.
    """

    def __init__(self) -> None:
        self.samples: list[S] = []
        self.partners: list[P | None] = []
        self._early: OrderedDict[int, P] = OrderedDict()
        self._waiting: OrderedDict[int, int] = OrderedDict()  # stamp: index of the sample

    def add(self, stamp_ns: int, sample: S) -> None:
        """Take a sample."""
        partner = self._early.pop(stamp_ns, None)
        if partner is None:
            _remember(self._waiting, stamp_ns, len(self.samples))
        self.samples.append(sample)
        self.partners.append(partner)

    def add_partner(self, stamp_ns: int, partner: P) -> None:
        """Take a partner."""
        index = self._waiting.pop(stamp_ns, None)
        if index is None:
            _remember(self._early, stamp_ns, partner)
        else:
            self.partners[index] = partner


def _remember(store: OrderedDict[int, S], stamp_ns: int, value: S) -> None:
    store[stamp_ns] = value
    if len(store) > _PENDING:
        store.popitem(last=False)
