"""trunk_bag on a recording of a simulated trot whose trunk is not as in the URDF; broken bags."""

import numpy as np
import pytest
from html_page import assert_report

from com_control.trot.parameters import GaitParameters
from com_control.trot.trot import TrotGait
from com_demos.bag_writer import BagWriter
from com_estimation.commands import trunk_bag
from com_model import RobotModel, load_robot
from com_simulation.physics.sensors import TROT_NOISE
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

OFFSET = np.array([-0.03, 0.04, 0.0])  # m
RATE = 500.0


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    model, config = load_robot("scalf2")
    exact = {"integrator": "euler", "step": 2.5e-4}  # readings obey Newton
    world = build_world(model, config, trunk_com_offset=OFFSET, **exact)
    simulation = Simulation(world, 1.0 / RATE, TROT_NOISE, seed=1)
    gait = TrotGait(model, config, GaitParameters(swing_compensation=False))
    path = tmp_path_factory.mktemp("trot") / "bag"
    with BagWriter(path, world, TROT_NOISE, 1_700_000_000_000_000_000) as writer:
        for k in range(round(5.0 * RATE)):
            reading = simulation.advance()
            writer.write(reading)
            target = gait.step(reading.time + 1.0 / RATE - 1.0 if k > RATE else -1.0)
            simulation.lead(target.position, target.velocity)
    return path


def test_the_trunk_of_a_recorded_trot_is_found(bag, tmp_path, capsys):
    status = trunk_bag.main([str(bag), "--robot", "scalf2", "--output", str(tmp_path)])
    out = capsys.readouterr().out
    assert status == 0, out
    assert "CONVERGED" in out
    before, after = (
        load_robot("scalf2")[0],
        RobotModel.from_file(tmp_path / "corrected.urdf"),
    )
    shift = after.bodies.first_moment[0] / after.bodies.mass[0]
    shift = shift - before.bodies.first_moment[0] / before.bodies.mass[0]
    np.testing.assert_allclose(shift[:2], OFFSET[:2], atol=0.006)
    page = (tmp_path / "trunk.html").read_text()
    assert "CONVERGED after " in assert_report(page).paragraphs[0]
    assert "<svg" in page
    assert "mass (kg)" in page
    again = trunk_bag.main([str(bag), "--robot", "scalf2", "--output", str(tmp_path)])
    assert again == 2  # files are there already
    assert "trunk.html" in capsys.readouterr().err


def test_settings_are_those_of_the_nodes_parameters_file(bag, tmp_path, capsys):
    def mass_std(text):
        path = tmp_path / "parameters.yaml"
        path.write_text(text)
        command = [str(bag), "--robot", "scalf2", "--settings", str(path)]
        assert trunk_bag.main(command) == 0
        line = next(
            line for line in capsys.readouterr().out.splitlines() if "mass (kg)" in line
        )
        return float(line.split("±")[1].split()[0])

    head = "/**:\n  ros__parameters:\n    publish_rate_hz: 200.0\n"
    usual = mass_std(head)
    weighed = "    floating_base: {priors: {common_gain: 0.005, torque_gain: 0.005}}\n"
    assert mass_std(head + weighed) < 0.7 * usual


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/**: {ros__parameters: {floating_base: {gait: 1.0}}}", "gait"),
        ("/**: {ros__parameters: {floating_base: {priors: {hip: -1}}}}", "hip"),
        ("/**: {ros__parameters: {floating_base: {contact_load: 2}}}", "from 0 to 1"),
        ("/**: {ros__parameters: {floating_base.rate_hz: 100.0}}", "section floating"),
        ("com_viewer: {ros__parameters: {}}", "trunk_estimator"),
    ],
)
def test_wrong_settings_are_refused_by_name(bag, tmp_path, capsys, text, message):
    path = tmp_path / "parameters.yaml"
    path.write_text(text)
    command = [str(bag), "--robot", "scalf2", "--settings", str(path)]
    assert trunk_bag.main(command) == 2
    assert message in capsys.readouterr().err


def test_other_robots_and_wrong_paths_are_refused(bag, tmp_path, capsys):
    assert trunk_bag.main([str(bag), "--robot", "hoap2"]) == 2
    assert "trunk_bag: " in capsys.readouterr().err
    assert trunk_bag.main([str(tmp_path / "none"), "--robot", "scalf2"]) == 2
    assert "none" in capsys.readouterr().err
