"""URDFs against the truth: what is compared, in which postures, and how it is reported."""

import json

import numpy as np
import pytest

from com_demos.compare_urdfs import compare, main, standing_postures
from com_model import SupportPolygon, find_robot, link_poses, load_robot
from com_model.sesc.sesc import Sesc
from com_simulation.exceptions import ComSimulationError
from com_simulation.physics.true_errors import TrueErrors, with_true_errors, write_urdf


@pytest.fixture(scope="module")
def biped():
    return load_robot("biped3")


def test_the_robot_stands_in_the_postures(biped):
    model, config = biped
    Q, ups = standing_postures(model, config, 15, seed=2)
    assert len(Q) == 15
    assert np.abs(np.diff(Q, axis=0)).max() > 0.2
    links = [model.link_index(foot.frame) for foot in config.feet]
    for q, up in zip(Q, ups, strict=True):
        R, p = link_poses(model, q)
        np.testing.assert_allclose(R[links][:, :, 2], [up, up], atol=1e-5)
        heights = (p[links] - p[links[0]]) @ up
        np.testing.assert_allclose(heights, 0.0, atol=1e-5)
        corners = [foot.corners for foot in config.feet]
        polygon = SupportPolygon.from_soles(R[links], p[links], corners)
        assert polygon.margin(Sesc(model).com(q)) > 0.009


def test_the_truth_has_no_error_and_another_has_its_own(biped):
    model, config = biped
    true = with_true_errors(model, TrueErrors(com=0.005, seed=1))
    found = compare(true, model, true, config, count=10)
    np.testing.assert_array_equal(found.after, 0.0)
    np.testing.assert_array_equal(found.bodies_after, 0.0)
    figures = found.figures()
    assert figures["com_rms_before_mm"] > 0.5
    assert figures["com_rms_after_mm"] == 0.0
    names = list(true.bodies.names)
    k = found.bodies.index("base_link")
    body = names.index("base_link")
    coms = [m.bodies.first_moment[body] / m.bodies.mass[body] for m in (model, true)]
    np.testing.assert_allclose(found.bodies_before[k], coms[0] - coms[1], atol=1e-12)


def test_the_command(biped, tmp_path, capsys):
    model, _ = biped
    true = with_true_errors(model, TrueErrors(com=0.005, seed=1))
    write_urdf(true, tmp_path / "true.urdf")
    write_urdf(model, tmp_path / "robot.urdf")
    write_urdf(load_robot("hoap2")[0], tmp_path / "hoap2.urdf")
    config = find_robot("biped3").config
    true_path, robot = str(tmp_path / "true.urdf"), str(tmp_path / "robot.urdf")
    words = ["--config", str(config), "--count", "8"]
    assert main([true_path, robot, true_path, *words]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["postures"] == 8
    assert figures["com_max_after_mm"] == 0.0
    assert main([true_path, str(tmp_path / "hoap2.urdf"), robot, *words]) == 2
    assert "different joints: give three of one robot" in capsys.readouterr().err


def test_a_robot_without_soles_cannot_stand():
    model, config = load_robot("solo12")
    with pytest.raises(ComSimulationError, match="no feet with corners"):
        standing_postures(model, config, 3, seed=0)
