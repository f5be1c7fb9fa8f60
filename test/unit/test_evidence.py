"""The evidence page is that of the stored results, and figures with a key agree with them."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


tool = load(ROOT / "tools/evidence_page.py")
RESULTS = tool.read_results(ROOT / tool.RESULTS)
FIGURES = [
    (path.name, match)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for match in tool.FIGURE.finditer(path.read_text())
]
README = (ROOT / "README.md").read_text()
# README has no comments in it: each of its figures, the words before it, and where it comes from.
README_FIGURES = [
    (
        "with every sensor wrong | simulation: ",
        "identification_honesty.robots.hoap2.all, IMU.found_mm",
    ),
    (" mm and ", "identification_honesty.robots.talos.all, IMU.found_mm"),
    (" mm off (URDF: ", "identification_honesty.robots.hoap2.all, IMU.urdf_mm"),
    (" mm and ", "identification_honesty.robots.talos.all, IMU.urdf_mm"),
    (
        " mm), standard deviations ",
        "identification_honesty.robots.hoap2.all, IMU.sigma_mm",
    ),
    (" mm and ", "identification_honesty.robots.talos.all, IMU.sigma_mm"),
    ("from joint torques | simulation: ", "trot_honesty.cases.friction.mean_mm.0"),
    (" mm and ", "trot_honesty.cases.friction.mean_mm.1"),
    ("nobody declared, standard deviation ", "trot_honesty.cases.friction.sigma_mm"),
]
PERCENT = 15.0
NAMES_ELSEWHERE = {"diagnosis_baselines"}  # its culprits are those of diagnosis.py
ROW = {"claim": "c", "paper": "4", "key": "walk.step", "ours": "{}"}


def result(**figures):
    record = {
        "commit": "abc",
        "uncommitted_changes": False,
        "date": "2026-11-22T10:00:00",
    }
    return {"walk": {**record, "options": [], "cores": 2, "python": "3", "seconds": 1.0,
                     "figures": figures}}  # fmt: skip


@pytest.mark.parametrize("page", tool.PAGES, ids=lambda path: path.name)
def test_the_pages_are_those_of_the_stored_results(page):
    text = tool.page(tool.PAGES[page], RESULTS)
    assert text == tool.page(tool.PAGES[page], tool.read_results(ROOT / tool.RESULTS))
    assert text == page.read_text(), "run make evidence"


def test_every_key_is_printed_by_its_benchmark():
    documents = [tool.yaml.safe_load(path.read_text()) for path in tool.PAGES.values()]
    rows = [
        row for d in documents for section in d["sections"] for row in section["rows"]
    ]
    keys = [key for row in rows for key in tool.keys_of(row)]
    for key in [*keys, *(match["key"] for _, match in FIGURES)]:
        name, first = key.split(".")[:2]
        script = (ROOT / "benchmarks" / f"{name}.py").read_text()
        if name in RESULTS:
            tool.look_up(RESULTS, key)  # raises where the result has no such value
        if name in NAMES_ELSEWHERE:
            continue
        # The name of a figure, of a scenario, or of a robot and a scenario.
        assert f'"{first}"' in script or f'"{first.partition(" ")[2]}"' in script, key
    for row in rows:
        assert set(row.get("verdicts", {})) <= set(tool.VERDICTS)
        assert ("why" in row) != ("key" in row)


def test_verdicts_follow_from_the_figure():
    row = {**ROW, "verdicts": {"agrees": [4, 4], "contradicts": "else"}}
    assert tool.line_of(row, result(step=4)).verdict == "agrees"
    said = tool.line_of(row, result(step=3))
    assert said.verdict == "contradicts"
    assert "| 3<!-- walk.step -->" in said.text
    missing = tool.line_of(row, {})
    assert missing.verdict == tool.NOT_YET
    assert "| not measured yet |" in missing.text
    assert tool.line_of(row, result(step=None)).verdict == tool.NOT_YET
    with pytest.raises(KeyError, match="no 'step' among"):
        tool.line_of(row, result(stride=4))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f"{f[0]}:{f[1]['key']}")
def test_a_figure_in_the_documents_is_the_measured_one(figure):
    _, match = figure
    value = tool.look_up(RESULTS, match["key"])
    if value is None:
        pytest.skip(
            f"no stored result: make bench BENCH={match['key'].partition('.')[0]}"
        )
    measured = float(match["factor"] or 1.0) * float(value)
    stated = float(match["figure"].replace(" ", ""))
    assert abs(stated - measured) <= float(match["percent"]) / 100.0 * abs(measured), (
        measured
    )


def test_the_figures_of_the_readme_are_the_measured_ones():
    rest = README
    for before, key in README_FIGURES:
        _, found, rest = rest.partition(before)
        assert found, f"{before!r} is no longer in README, or elsewhere: {key}"
        stated = float(re.match(r"[\d.]+", rest).group())
        value = tool.look_up(RESULTS, key)
        if value is not None:
            assert abs(stated - value) <= PERCENT / 100.0 * abs(value), (key, value)


def test_the_readme_is_short_and_has_no_comments():
    assert "<!--" not in README
    assert len(README.split()) <= 700


def test_figures_are_found_and_wrong_ones_refused():
    (found,) = tool.FIGURE.finditer("mean 3.7<!-- walk.error_m *1000 +-10% --> mm")
    assert (found["figure"], found["key"], found["factor"], found["percent"]) == (
        "3.7",
        "walk.error_m",
        "1000",
        "10",
    )
    for value, ok in ((0.0037, True), (0.0050, False)):
        name = "test_a_figure_in_the_documents_is_the_measured_one"
        RESULTS["walk"] = result(error_m=value)["walk"]
        try:
            if ok:
                globals()[name](("x", found))
            else:
                with pytest.raises(AssertionError):
                    globals()[name](("x", found))
        finally:
            del RESULTS["walk"]


def test_comments_with_keys_are_well_formed():
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if path in tool.PAGES:
            continue
        comments = re.findall(
            r"<!-- [\w /-]+\.[\w .,:/\[\]-]+ .*?-->", path.read_text()
        )
        assert len(comments) == len(tool.FIGURE.findall(path.read_text())), path


def test_make_evidence_is_that_tool():
    said = subprocess.run(
        ["make", "-n", "evidence"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "tools/evidence_page.py" in said.stdout


def test_beside_others_the_least_is_good():
    row = {**ROW, "key": ["walk.ours", "walk.theirs"], "ours": "{} / {}"}
    row["verdicts"] = {"good": "least", "fails": "else"}
    assert tool.line_of(row, result(ours=1.0, theirs=2.0)).verdict == "good"
    assert tool.line_of(row, result(ours=2.0, theirs=1.0)).verdict == "fails"


def test_a_count_is_judged_by_its_fraction():
    row = {
        **ROW,
        "key": ["walk.done", "walk.tried"],
        "ours": "{} of {}",
        "fraction": True,
    }
    row["verdicts"] = {"good": [0.8, 1], "fails": "else"}
    assert tool.line_of(row, result(done=8, tried=10)).verdict == "good"
    assert tool.line_of(row, result(done=10, tried=15)).verdict == "fails"
    row = {**row, "key": "walk.done", "ours": "{}"}
    assert tool.line_of(row, result(done="4/5")).verdict == "good"
    assert tool.line_of(row, result(done="0/5")).verdict == "fails"
