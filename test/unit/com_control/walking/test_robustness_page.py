"""docs/walking_robustness.md is that of the stored result, failures included."""

import json

from run_all import RESULTS
from walk_robustness_page import PAGE, page

RECORD = json.loads((RESULTS / "walk_robustness.json").read_text())


def test_the_page_is_that_of_the_stored_result():
    assert PAGE.read_text() == page(RECORD)


def test_falls_are_on_the_page():
    cells = RECORD["figures"]["cells"]
    cells["stiff"]["talos"] |= {
        "open": "2/2",
        "fed_back": "0/2",
        "mean_mm": None,
        "max_mm": None,
    }
    text = page(RECORD)
    assert "stiff: talos 2 of 2" in text
    assert "2/2, 0/2 |" in text
