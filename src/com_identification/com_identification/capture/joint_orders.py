"""Which joint each position of a log is, and its sign: a search by what a standing robot allows."""

from collections.abc import Sequence
from itertools import combinations, permutations, product

import numpy as np

from com_identification.capture.standing_log import SURE, Agreement, FlatFeet, exchanged
from com_identification.exceptions import LogFitError
from com_model.arrays import Array, Indices
from com_model.text import listing

GOOD, POOR = 0.2, 0.5  # disagreement of an order that fits, and of one that does not
_RATED = 60  # orders and signs that are looked at closely


def find_order(
    stance: FlatFeet, labels: Sequence[str]
) -> tuple[Agreement, tuple[str, ...], Array]:
    """Agreement, names and signs (k,) of the log's joints that disagree least with physics.

    Raises:
        LogFitError: Nothing fits, or the log lacks joints of the legs.
    """
    leg, ones = stance.leg_names, np.ones(len(labels))
    places = [i for i, name in enumerate(labels) if name in leg]
    missing = [name for name in leg if name not in labels]
    if missing:
        raise LogFitError(
            f"the log has no {listing(missing)}, of {listing(labels, 30)}: name the joints in any "
            "order (joints.names of a mapping)"
        )
    given = tuple(labels)
    asked = stance.evaluate(given, ones)
    best = asked, given, ones
    if asked.total > GOOD:
        starts = [(given, ones), *_Orders(stance, labels).best()]
        rated = [(stance.evaluate(*each), *each) for each in starts]
        rated.sort(key=lambda each: each[0].total)
        # of the best three starts
        for start in rated[:3]:
            best = min(best, start, key=lambda each: each[0].total)
            if best[0].total > GOOD:
                found = _improved(stance, start, places)
                best = min(best, found, key=lambda each: each[0].total)
    if asked.total < best[0].total + SURE:
        best = asked, given, ones
    if best[0].total > POOR:
        raise LogFitError(
            f"no order and no signs of the joints fit (disagreement {best[0].total:.2f}, limit "
            f"{POOR:g}): let the robot stand on flat ground, on all feet, and move its trunk; "
            "is it the URDF of this robot?"
        )
    return best


class _Orders:
    """Orders that loggers use, with the signs by which the feet keep their distances best.

    The joints of a leg follow each other (or those of a kind, one of each leg), in any order, the
    same in all legs; legs are in any order. Each leg's signs give its foot's path, and each two
    paths whether the feet keep their distance: the sum over all pairs is rated.
    """

    def __init__(self, stance: FlatFeet, labels: Sequence[str]) -> None:
        self._stance, self._labels = stance, labels
        self._places = [i for i, name in enumerate(labels) if name in stance.leg_names]
        self._count, self._legs = len(stance.legs[0]), range(len(stance.legs))
        width = self._count
        # all orders of legs with three joints are tried
        small = width <= 3
        self._inner = (
            list(permutations(range(width)))
            if small
            else [tuple(range(width)), tuple(reversed(range(width)))]
        )
        self._signs = np.array(list(product((1.0, -1.0), repeat=width)))

    def best(self) -> list[tuple[tuple[str, ...], Array]]:
        """The best orders with their signs."""
        if any(len(own) != self._count for own in self._stance.legs):
            return []
        rated: list[tuple[float, tuple[str, ...], Array]] = []
        for by_kind, inside in product((False, True), self._inner):
            rated += self._rate(by_kind, inside)
        rated.sort(key=lambda each: each[0])
        return [each[1:] for each in rated[:_RATED]]

    def _rate(
        self, by_kind: bool, inside: Sequence[int]
    ) -> list[tuple[float, tuple[str, ...], Array]]:
        """Ratings, names and signs of all orders of the legs."""
        shape = len(self._legs), self._count
        groups = (
            np.reshape(self._places, shape[::-1]).T
            if by_kind
            else np.reshape(self._places, shape)
        )
        paths: dict[tuple[int, int], tuple[Array, Array]] = {}
        for shift in self._legs:
            shifted = [(i + shift) % len(self._legs) for i in self._legs]
            q = [
                self._stance.positions(
                    *self._named(groups, shifted, inside, [row] * len(shifted))
                )
                for row in self._signs
            ]
            P, beyond = self._stance.contacts(np.array(q))
            for i in self._legs:
                own = np.flatnonzero(self._stance.foot == i)[:3]
                paths[i, shifted[i]] = (
                    P[..., own, :],
                    beyond[:, self._stance.legs[i]].sum(1),
                )
        scale = self._stance.scale
        tables = {}
        for (i, g), (j, h) in product(paths, paths):
            if i < j and g != h:
                A, B = paths[i, g][0], paths[j, h][0]
                apart = A[:, None, ..., :, None, :] - B[None, ..., None, :, :]
                distance = np.linalg.norm(apart, axis=-1)
                change = distance[:, :, 1] - distance[:, :, 0]
                tables[i, g, j, h] = np.sqrt((change**2).mean(axis=(2, 3, 4))) / scale
        rated = []
        for legs in permutations(self._legs):
            total = np.zeros([len(self._signs)] * len(self._legs))
            for i in self._legs:
                along = [1] * len(self._legs)
                along[i] = -1
                total = total + paths[i, legs[i]][1].reshape(along)
                for j in range(i + 1, len(self._legs)):
                    axes = [1] * len(self._legs)
                    axes[i] = axes[j] = len(self._signs)
                    total = total + tables[i, legs[i], j, legs[j]].reshape(axes)
            order = np.argsort(total, axis=None)[:_RATED]
            for at in zip(*np.unravel_index(order, total.shape), strict=True):
                signs = [self._signs[k] for k in at]
                named = self._named(groups, legs, inside, signs)
                rated.append((float(total[at]), *named))
        return rated

    def _named(
        self,
        groups: Indices,
        legs: Sequence[int],
        inside: Sequence[int],
        signs: Sequence[Array],
    ) -> tuple[tuple[str, ...], Array]:
        """Names and signs (k,): leg i has the places of a group, in an order of its joints."""
        names, own = list(self._labels), np.ones(len(self._labels))
        for i, group in enumerate(legs):
            for place, k in zip(groups[group].tolist(), inside, strict=True):
                joint = self._stance.legs[i][k]
                names[place], own[place] = (
                    self._stance.model.joint_names[joint],
                    signs[i][k],
                )
        return tuple(names), own


def _improved(
    stance: FlatFeet,
    start: tuple[Agreement, tuple[str, ...], Array],
    places: Sequence[int],
) -> tuple[Agreement, tuple[str, ...], Array]:
    """The best that exchanges of two joints and reversals of one or two lead to."""
    best = start
    for _ in range(6):
        before = best
        for i, j in combinations(places, 2):
            for swap, a, b in product((False, True), (1.0, -1.0), (1.0, -1.0)):
                names = exchanged(before[1], i, j) if swap else before[1]
                signs = before[2].copy()
                signs[[i, j]] *= a, b
                found = stance.evaluate(names, signs)
                if found.total < best[0].total - 1e-9:
                    best = found, names, signs
        if best is before or best[0].total < GOOD:
            break
    return best
