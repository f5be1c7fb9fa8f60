"""The look of plots."""

from itertools import combinations

import numpy as np
import pytest

from com_model.plotting import BLUE, GREEN, PURPLE, RED

# Linear RGB as the eye without green or red cones sees it: Machado, Oliveira and Fernandes 2009.
BLINDNESS = {
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}
RGB_TO_XYZ = [
    [0.4124, 0.3576, 0.1805],
    [0.2126, 0.7152, 0.0722],
    [0.0193, 0.1192, 0.9505],
]


def lab(color, seen_as):
    """Colour "#rrggbb" in CIE L*a*b*, where a just noticeable difference is about 2.3."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = RGB_TO_XYZ @ np.clip(seen_as @ linear, 0.0, 1.0) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0)
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_differ_for_colour_blind_readers(kind):
    seen_as = np.array(BLINDNESS[kind])
    pairs = combinations((RED, GREEN, BLUE, PURPLE), 2)
    gaps = {(a, b): np.linalg.norm(lab(a, seen_as) - lab(b, seen_as)) for a, b in pairs}
    assert min(gaps.values()) > 17.0, gaps  # red and green of traffic lights: 15
