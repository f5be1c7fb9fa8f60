"""The tools that write the evidence page and compare figures with stored results."""

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
check = load(ROOT / "tools/evidence_check.py")
RESULTS = tool.read_results(ROOT / tool.RESULTS)
FIGURES = [
    (path.name, match)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for match in tool.FIGURE.finditer(path.read_text())
]
README = (ROOT / "README.md").read_text()
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
    assert "| 3 |" in said.text
    missing = tool.line_of(row, {})
    assert missing.verdict == tool.NOT_YET
    assert "| not measured yet |" in missing.text
    assert tool.line_of(row, result(step=None)).verdict == tool.NOT_YET
    with pytest.raises(KeyError, match="no 'step' among"):
        tool.line_of(row, result(stride=4))


def test_the_readme_is_short_and_has_no_comments():
    assert "<!--" not in README
    assert len(README.split()) <= 700


TEXT = "mean 3.7<!-- walk.error_m *1000 +-10% --> mm"


def test_a_figure_is_found_with_its_key():
    (found,) = tool.FIGURE.finditer(TEXT)
    assert found.groups() == ("3.7", "walk.error_m", "1000", "10")


@pytest.mark.parametrize(
    ("measured", "wrong"), [(0.0037, 0), (0.0040, 0), (0.0050, 1), (-0.0037, 1)]
)
def test_a_figure_that_was_not_measured_is_named(measured, wrong):
    said = list(check.wrong_figures(TEXT, result(error_m=measured)))
    assert len(said) == wrong
    assert all("walk.error_m" in text for text in said)


@pytest.mark.parametrize(
    ("readme", "wrong"),
    [
        ("it is 3.7 mm off, then 8 mm", []),
        ("it is 3.7 mm off, then 9 mm", ["walk.then"]),
        ("it is 5 mm off, then 8 mm", ["walk.now"]),
        ("it is good", ["walk.now"]),
        ("it is bad", ["walk.now"]),
    ],
)
def test_the_figures_of_readme_are_found_by_the_words_before_them(readme, wrong):
    figures = [
        {"after": "it is ", "key": "walk.now"},
        {"after": "then ", "key": "walk.then"},
    ]
    known = {"percent": 10, "figures": figures}
    said = list(check.wrong_readme_figures(readme, known, result(now=3.6, then=8.1)))
    assert [text.split()[-1] for text in said] == wrong


def test_only_changes_to_code_make_a_result_stale():
    then = {
        "benchmarks/walk.py": "import com_x.gait\nSTEPS = 3",
        "src/com_x/com_x/gait.py": '"""Gait."""\nfrom com_x import arrays  # later',
        "src/com_x/com_x/arrays.py": "def f(): return 1",
        "src/com_x/com_x/other.py": "not read",
    }
    folders = ("benchmarks", "src/com_x")
    was = tool.imported("benchmarks/walk.py", then.get, folders)
    assert sorted(was) == sorted(then)[:3]
    layout = then | {"src/com_x/com_x/gait.py": "from com_x import (\n    arrays)\n"}
    assert tool.imported("benchmarks/walk.py", layout.get, folders) == was
    code = then | {"src/com_x/com_x/arrays.py": "def f(): return 2"}
    assert tool.imported("benchmarks/walk.py", code.get, folders) != was


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
