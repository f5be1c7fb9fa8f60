"""[Muscolo]: the listing of section 4.2, the 4x4 system and n planar links, without noise; mm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from baselines.muscolo import PlanarFoot, four_by_four, links_from_heights, planar_links
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Section 4.2: mm and kg; the waist's 0.94 kg count with the thigh.
FOOT, MASSES, SHIN = PlanarFoot(6.72, 0.0, 26.32, 100.0), (0.95, 1.16 + 0.94), 400.0
TEN = float(np.radians(10.0))


def total_com(
    masses: Sequence[float],
    lengths: Sequence[float],
    foot: PlanarFoot,
    links: Array,
    tilts: Array,
) -> Array:
    """X and z of the total centre of mass, link by link from the ground up; mm."""
    moment = foot.mass * np.array([foot.across, foot.along])
    joint = np.array([0.0, foot.height])
    for m, length, (r, along), phi in zip(
        masses, (*lengths, 0.0), links, tilts, strict=True
    ):
        up, across = (
            np.array([np.sin(phi), np.cos(phi)]),
            np.array([np.cos(phi), -np.sin(phi)]),
        )
        moment = moment + m * (joint + along * up + r * across)
        joint = joint + length * up
    return np.asarray(moment / (foot.mass + sum(masses)))


def system_of(links: Array, wrong: float | Array = 0.0) -> tuple[Array, Array]:
    """The 4x4 system of postures b (both tilted by 10 degrees) and c (the thigh only).

    `wrong`, (2, 2) mm, is added to x and z of the total CoM of postures b and c.
    """
    com = wrong + np.array(
        [
            total_com(MASSES, (SHIN,), FOOT, links, np.array(tilts))
            for tilts in ((TEN, TEN), (0.0, TEN))
        ]
    )
    return four_by_four(MASSES, FOOT, SHIN, (TEN, TEN), *com)


def listing_error() -> float:
    """Off 200 and 250 mm, from heights alone, CoMs on the links' lines."""
    found = links_from_heights(*system_of(np.array([[0.0, 200.0], [0.0, 250.0]])))
    return float(np.abs(np.array(found) - [200.0, 250.0]).max())


def four_by_four_error() -> float:
    """Off (7, 200, -12, 250) mm."""
    links = np.array([[7.0, 200.0], [-12.0, 250.0]])
    return float(np.abs(np.linalg.solve(*system_of(links)) - links.ravel()).max())


def planar_error() -> float:
    """Largest of 3 to 6 links, with random masses, lengths and as many postures as links."""
    worst = 0.0
    for n in range(3, 7):
        rng = np.random.default_rng(n)
        links = rng.normal([0.0, 200.0], [20.0, 50.0], (n, 2))
        masses = rng.uniform(0.5, 3.0, n).tolist()
        lengths = rng.uniform(200.0, 400.0, n - 1).tolist()
        foot = PlanarFoot(1.5, 8.0, 30.0, 90.0)
        tilts = rng.uniform(-0.5, 0.5, (n, n))
        com = np.array([total_com(masses, lengths, foot, links, phi) for phi in tilts])
        found = planar_links(masses, lengths, foot, tilts, com)
        worst = max(worst, float(np.abs(found - links).max()))
    return worst
