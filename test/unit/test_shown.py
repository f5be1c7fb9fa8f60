"""Objects print themselves: as one line, and in a notebook as a table."""

from html.parser import HTMLParser

import numpy as np
import pytest

from com_control.walking.footsteps import Footstep
from com_control.walking.walk_plan import WalkPlan
from com_model import RobotModel, Sesc, audit, load_robot
from com_model.text import Facts, Shown


class Cells(HTMLParser):
    """Reads the rows of the table, and checks that each tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, _: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in {"td", "th"}:
            self.rows[-1].append(data)


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return load_robot("hoap2")[0]


def test_a_robot_shows_its_masses(robot: RobotModel) -> None:
    assert "\n" not in repr(robot)
    assert f"{robot.mass:.4g} kg" in repr(robot)
    head, *rows = Cells(robot._repr_html_()).rows
    assert head == ["link", "kg", "CoM x, mm", "CoM y, mm", "CoM z, mm"]
    names = [row[0] for row in rows]
    heavy = np.flatnonzero(robot.link_masses)
    assert names == [robot.link_names[i] for i in heavy]
    shown = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(shown[:, 0], robot.link_masses[heavy], atol=5e-4)
    np.testing.assert_allclose(shown[:, 1:], 1e3 * robot.link_coms[heavy], atol=0.05)


def test_a_chain_shows_its_vectors(robot: RobotModel) -> None:
    chain = Sesc(robot)
    _, *rows = Cells(chain._repr_html_()).rows
    shown = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(shown, 1e3 * chain.parameters, atol=0.05)
    assert robot.name in repr(chain)


def test_a_walk_shows_its_steps() -> None:
    feet = [Footstep("left", 0.0, 0.1), Footstep("right", 0.0, -0.1)]
    plan = WalkPlan(feet, [Footstep("left", 0.1, 0.1)])
    _, row = Cells(plan._repr_html_()).rows
    assert row[0] == "left"
    assert float(row[1]) == plan.touch_downs[0].round(2)
    assert "1 steps" in repr(plan)


def test_an_audit_shows_its_issues(robot: RobotModel) -> None:
    report = audit(robot, scale_mass=2.0 * robot.mass)
    _, *rows = Cells(report._repr_html_()).rows
    assert [row[0] for row in rows] == [issue.element for issue in report.issues]
    assert f"{len(report.issues)} issues" in repr(report)


def test_names_cannot_be_markup() -> None:
    class Odd(Shown):
        def facts(self) -> Facts:
            return Facts("<b>", ("a",), [("<script>",)])

    assert "<script>" not in Odd()._repr_html_()
    assert Cells(Odd()._repr_html_()).rows == [["a"], ["<script>"]]
