"""Figures in the documents that carry no key of a benchmark: settings, inputs, and what is printed.

A number with a unit of a measurement is a result, which needs a key, unless it stands in code, in
the first column of a table (the case), in a table of settings, or in SETTINGS below.
"""

import importlib.util
import re
import sys

import pytest
from documents import ROOT

SPEC = importlib.util.spec_from_file_location(
    "evidence_page", ROOT / "tools/evidence_page.py"
)
tool = sys.modules["evidence_page"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)

# Written by programs from the code or from results; symbols and priors.
NO_RESULTS = {"configuration.md", "conventions.md", "walking_robustness.md"}
NO_RESULTS |= {page.name for page in tool.PAGES}
PAGES = [  # test_evidence.py has README's figures and their sources
    *(
        path
        for path in sorted((ROOT / "docs").glob("*.md"))
        if path.name not in NO_RESULTS
    ),
    *sorted((ROOT / "src").glob("*/README.md")),
]
RESULT = re.compile(
    r"(?<![\w.])-?\d[\d.]*(?:e-?\d+)?(?=(?:(?:,| /| to| or| and) ?-?\d[\d.]*)*"
    r" (?:mm|um|us|ms|%|N|N m|MB|times|deg|degrees|of \d+)(?![\w/^]))"
)
SETTINGS_TABLE = re.compile(r"\b(?:default|prior)\b")  # in the header
SETTINGS = {
    "real_data.md": (
        "at most 7 % and 10 mm (x, y)",
        "a scale of all torques that is 5 % off",
        "0.8 kg unseen",
        "about 28 % of its torque",
        "A common gain of all torques (5 %)",
        "against each other (3 %)",
        "leave 7.9 N of the vertical force up to 5 Hz, those of the velocity 10.0 N",
        "by up to 3 cm",
        "-12 mm by the first and -3 mm by the second",
        "than 19 of 20 robots",
    ),
    "src/com_simulation/README.md": (
        "wrenches 0.2 % of the weight and a bias of 0.3 %",
    ),
    "balance.md": ("by 5 deg/s to 10 deg",),
    "derivations.md": (
        "0.2 deg at 0.85 m are 3 mm",
        "at 10 deg, the full",
        "15 to 180 ms",
        "5 % of the torque",
        "is 30 times that of its noise",
        "(a gain error of 1 % is about 2 mm on SCALF-II)",
        "up to 40 times",
        r"/ 80\,\mathrm{ms}",
        "1.6 %",
        "0.1 N m",
        "divided by 0.5 deg",
        "= 1.5 deg",
        "lags by 20 mm",
    ),
    "hoap2_lab.md": (
        "pressure is 2 mm",
        "(4 deg at hips",
        "last 15 mm",
    ),
    "human.md": (
        "228.3 mm",
        "by more than 15 mm",
        "masses 10 % and CoMs 20 mm away",
        "2 N and 1 N m",
        "standard deviation of 5 mm",
        "2 mm from the CoM",
        "registered 2 mm wrong",
        "masses 10 %, centres of mass 20 mm (12 mm along each axis)",
        "each joint is 5 degrees off",
        "angles with 2 degrees of noise",
    ),
    "install.md": ("131 MB",),  # of a download
    "gantry.md": (
        "pitch by 10 degrees or more",
        "expect 1.5 to 3 times the error",
        "is known to 2 mm",
        "The last 15 % of the recordings",
        "torso_link 0.001 0 0.40",
        "calves have 20 to 34 % of load friction",
    ),
    "stabiliser.md": (
        "within 3 % for HOAP-2",  # tests require these
        "less than 2 mm in 10 s",
        "below 70 % of its height",
        "at most 7.5 % of the height",
        "of +-5 mm",
        "a tilt of 30 degrees",
    ),
    "tables.md": (
        "2 mm or 0.5 degrees, put",
        "and 30 % of it as noise",
        "off by 5 mm",
        "ankles rotated by 5 degrees",
        "0.5 degrees, put",
        "encoder zeros 0.3 degrees off",
    ),
    "tutorial_diagnosis.md": (
        "a posterior of 90 % on",
        "off by less than 2 cm",
        "(masses 2 %, CoMs 3 mm, encoder zeros 0.25 degrees, torque gains 2.5 %)",
        "(95 %)",
        "holds for 10 ms",
        "(0.45 % of mass times height)",
        "tilted by 10 degrees within 0.25 s",
        "or by 6 degrees within 0.1 s",
        "had tilted by 10 degrees",
        "has tilted by 2 degrees",
    ),
    "tutorial_your_robot.md": (
        "2 kg that it does not have make the error of a Go2 about 1.6 times",
        "Wrenches are 7.5 ms late",
        "in contact from 12 % of the weight on, down to 9 %",
    ),
    "tutorial_identification.md": (
        "off by 5 mm",
        "moves the CoM by 0.9 mm",
        "(25 mm) must be larger",
        "(5 to 20 mm)",
        "accurate to 0.1 degrees",
        "a tilt of 0.1 degrees",
    ),
    "tutorial_walk_identification.md": (
        "more than 40 % of the samples lost",
        "mass to about 5 %, as drives of one type",
        "by 4 ms or more",
        "to 2 ms",
        "The 95 % band",
        "IMU 6 ms late",
        "everything by 10 %",
        "leans by 10 degrees or more",
    ),
    "tutorial_trunk.md": (
        "at most 5 ms apart, up to 30 ms",
        "to 1 % of the leg length",
        "by 2 mm or 1 %",
        "(20 ms) are",
    ),
    "tutorial_walking.md": ("98 %",),
    "viewer.md": ("from 30 mm of margin on", "0 to vermillion 20 mm"),
}


def unkeyed(text, settings=()):
    """Lines with results that have neither a key nor stand among the settings, by their number."""
    found, code, table, skipped = {}, False, False, False
    for number, line in enumerate(text.splitlines(), 1):
        code ^= line.startswith("```")
        if code:
            continue
        plain = re.sub(r"`[^`]*`", "``", tool.FIGURE.sub("", line))
        for fragment in settings:
            plain = plain.replace(fragment, "")
        if line.startswith("|"):
            skipped = skipped if table else bool(SETTINGS_TABLE.search(line))
            table, plain = True, plain.removeprefix("| ").partition(" | ")[2]
        else:
            table = skipped = False
        if not skipped and RESULT.search(plain):
            found[number] = line
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_results_have_keys(page):
    name = page.name if page.parent.name == "docs" else str(page.relative_to(ROOT))
    settings = SETTINGS.get(name, ())
    text = page.read_text()
    found = unkeyed(text, settings)
    assert not found, (
        "give the key of a benchmark, or add to SETTINGS: is it no result?"
    )
    for fragment in settings:
        assert fragment in text, f"{fragment!r} is no longer in the page"


@pytest.mark.parametrize(
    "line",
    [
        "The error is 3.7 mm.",
        "| case of 5 mm | 3.7<!-- walk.error_m *1000 +-10% -->, 4.1 mm |",
        "| case | 1.2, 1.3 mm |",
        "It is -3 mm off, or 5 to 6 % of it.",
        "It is 17 times as fast.",
        "It leans by 2.5 deg, and falls in 3 of 5 runs.",
    ],
)
def test_a_result_without_key_is_found(line):
    assert list(unkeyed(line)) == [1]


@pytest.mark.parametrize(
    "line",
    [
        "The error is 3.7<!-- walk.error_m *1000 +-10% --> mm.",
        "| tiles of 5 mm | 3.7<!-- walk.error_m *1000 +-10% --> mm |",
        "| parameter | default |\n|---|---|\n| `a` | 5 mm |",
        "```\nrobot --margin 5 mm\n```",
        "`limit: 5 mm` at 200 Hz, section 3",
    ],
)
def test_what_is_no_result_is_let_through(line):
    assert not unkeyed(line)
