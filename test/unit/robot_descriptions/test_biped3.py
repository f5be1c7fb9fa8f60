"""The three-link biped against Table 1 of [Muscolo], and against its planar formulas."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from baselines.muscolo import PlanarFoot, planar_links

from com_model import Sesc, audit, link_poses

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
NAME = "biped3"
SCRIPT = PACKAGE.parents[1] / "tools" / "robots" / "make_biped3_urdf.py"
# [Muscolo] Table 1: kg, and mm from the point of the ground between the feet.
TABLE_1 = {
    "r_foot": (6.72, (0, -200, 26.32)),
    "r_shin": (0.95, (0, -200, 300)),
    "r_thigh": (1.16, (0, -200, 750)),
    "l_foot": (6.72, (0, 200, 26.32)),
    "l_shin": (0.95, (0, 200, 300)),
    "l_thigh": (1.16, (0, 200, 750)),
    "base_link": (0.94, (0, 0, 1000)),
}


def test_masses_and_places_are_those_of_the_table(robot):
    model, _ = robot
    R, p = link_poses(model, model.neutral)
    ground = [0.0, 0.0, p[model.link_index("l_sole"), 2]]
    for name, (mass, place) in TABLE_1.items():
        i = model.link_index(name)
        assert model.link_masses[i] == pytest.approx(mass), name
        com = p[i] + R[i] @ model.link_coms[i] - ground
        np.testing.assert_allclose(1e3 * com, place, atol=1e-9, err_msg=name)
    assert model.mass == pytest.approx(18.60)
    assert model.joint_names == ("l_knee", "l_ankle", "r_knee", "r_ankle")


def test_nothing_is_wrong_with_it(robot):
    assert not [f for f in audit(robot[0]).issues if f.severity in ("error", "warning")]


def test_the_papers_method_finds_its_links_from_its_com(robot):
    """Both legs move together: shins, and thighs with the waist, are the two links of the plane."""
    model, _ = robot
    sesc, tilts, com = Sesc(model), [(0.2, 0.2), (0.0, 0.2), (-0.1, 0.3)], []
    for shin, thigh in tilts:
        # Root axes are the thigh's: turned back by its tilt, its joints below it.
        q = np.tile([shin - thigh, -shin], 2)
        c, s = np.cos(thigh), np.sin(thigh)
        R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
        _, p = link_poses(model, q)
        sole = R @ p[model.link_index("l_sole")]
        com.append(1e3 * (R @ sesc.com(q) - sole)[[0, 2]])
    foot = PlanarFoot(2 * 6.72, 0.0, 26.32, 100.0)
    found = planar_links([1.9, 2 * 1.16 + 0.94], [400.0], foot, tilts, com)
    thigh = (2 * 1.16 * 250 + 0.94 * 500) / (2 * 1.16 + 0.94)
    np.testing.assert_allclose(found, [[0, 200], [0, thigh]], atol=1e-9)


def test_committed_urdf_is_what_the_script_writes(tmp_path):
    def run(*arguments):
        command = [sys.executable, str(SCRIPT), *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False
        )

    assert run("--check").returncode == 0
    copy = tmp_path / "biped3.urdf"
    copy.write_text("<robot name='biped3'/>")
    result = run("--check", "--output", copy)
    assert result.returncode == 1
    assert "is not what the tables give: run make_biped3_urdf.py" in result.stderr
