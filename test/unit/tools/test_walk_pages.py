"""The walk through the documented commands: what it would run, and that nothing hides."""

import json
import subprocess
import sys

import pytest
from documents import ROOT

sys.path.append(str(ROOT / "tools"))
import walk_pages

RULES = json.loads((ROOT / "tools/walk_pages.json").read_text())
PAGE = """
```
make demo   # a comment
ros2 launch com_bringup hoap2.launch.xml \\
    sway:=true
```
```python
not = a.shell(line)
```
"""


def test_lines_are_joined_and_have_no_comments():
    assert walk_pages.shell_lines(PAGE) == [
        "make demo",
        "ros2 launch com_bringup hoap2.launch.xml      sway:=true",
    ]


def test_what_runs_on_is_known_and_placeholders_are_replaced():
    rules = {"pages": {"page.md": {"placeholders": {"hoap2": "talos"}}}}
    demo, launch = walk_pages.plan_page("page.md", PAGE, rules)
    assert not demo.background
    assert launch.background
    assert launch.command == "ros2 launch com_bringup talos.launch.xml sway:=true"


@pytest.mark.parametrize("kind", ["left_out", "shortened", "placeholders"])
def test_a_rule_without_a_line_is_an_error(kind):
    rules = {"pages": {"page.md": {kind: {"make other": "why"}}}}
    with pytest.raises(ValueError, match="make other"):
        walk_pages.plan_page("page.md", PAGE, rules)


@pytest.mark.parametrize("page", RULES["pages"])
def test_every_rule_of_a_page_has_its_line(page):
    lines = walk_pages.plan_page(page, (ROOT / page).read_text(), RULES)
    assert len(lines) > sum(bool(line.reason) for line in lines)


def test_the_readme_and_all_tutorials_are_walked_and_nothing_of_the_readme_is_left_out():
    tutorials = {f"docs/{path.name}" for path in (ROOT / "docs").glob("tutorial_*.md")}
    assert set(RULES["pages"]) >= {"README.md", *tutorials}
    lines = walk_pages.plan_page("README.md", (ROOT / "README.md").read_text(), RULES)
    assert not any(line.reason for line in lines)


def test_in_a_checkout_nothing_of_the_user_is_removed(tmp_path, monkeypatch, capsys):
    for command in (
        ["git", "init", "-q"],
        ["mkdir", ".venv"],
        ["touch", ".venv/x", "mine.urdf"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.setattr(walk_pages, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="2"):
        walk_pages.main(["--here"])
    told = capsys.readouterr().err
    assert "mine.urdf" in told
    assert ".venv/x" not in told
