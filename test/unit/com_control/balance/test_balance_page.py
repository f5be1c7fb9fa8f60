"""The page of a balance."""

import numpy as np
import pytest
from balance_lab import Run
from com_balance import balance_page
from html_page import assert_report

pytestmark = pytest.mark.slow


def run(error, fell=False):
    time = np.linspace(0.0, 5.0, 50)
    com = np.column_stack((error * time / 5.0, 0.0 * time, 0.25 + 0.0 * time))
    still = np.full((50, 3), [0.0, 0.0, np.nan])
    return Run(time, com, still, 0.03 * time, 0.002 * time, 1e-3 + 0.0 * time, fell, ())


def test_before_and_after_are_compared_in_the_first_sentence():
    page = assert_report(
        balance_page(run(0.0016), run(0.0217), {"step_ms": 0.7, "fell": False})
    )
    assert page.paragraphs[0] == (
        "On a floor that tilts, the CoM stays within 1.60 mm of where it was; with joints only "
        "held it moves by 21.7 mm."
    )
    for words in (
        "joints only held",
        "balanced",
        "CoM error (mm)",
        "time (s)",
        "ms",
        "0.70",
    ):
        assert words in page.texts, words


def test_a_fall_is_marked():
    assert '<p class="warning">' in balance_page(run(0.1, fell=True), run(0.2), {})
    assert '<p class="warning">' not in balance_page(run(0.1), run(0.2), {})
