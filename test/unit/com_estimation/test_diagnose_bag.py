"""diagnose_bag: the same samples as the robot's, what happened on the page, and refusals."""

import re
from dataclasses import replace

import numpy as np
import pytest
from html_page import assert_report
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_bags import Bag, SensorReader, TopicRequest, UnitError, find_topics
from com_demos.bag_writer import BagWriter
from com_estimation.commands.diagnose_bag import diagnose, main, samples
from com_model import Sesc, find_robot
from com_model.dynamics.link_frames import LinkFrames
from com_model.robot_config import ground_wrenches
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.true_errors import Payload
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow

START_NS = 1_700_000_000_000_000_000
LOADED_AT = 2.0  # s


def write_bag(path, rate=200.0, seconds=4.0, topics=lambda name: True):
    """HOAP-2 stands; a weight is put into its left hand. Returns the readings."""
    robot, readings = shipped_robot("hoap2"), []
    model = robot.config.attach(robot.model)
    hand = model.bodies.names[list(model.bodies.joint_names).index("LARM_JOINT4")]
    world = build_world(model, robot.config, urdf_path=find_robot("hoap2").urdf)
    load = Payload(0.4, (0.0, 0.0, 0.0), LOADED_AT, hand)
    noise = NoiseLevels(position=5e-5, force=0.1, torque=0.005, orientation=3e-5)
    simulation = Simulation(world, 1.0 / rate, noise, payload=load)
    with BagWriter(path, world, noise, START_NS) as bag:
        put = bag._put
        bag._put = lambda topic, *values, **named: (
            topics(topic) and put(topic, *values, **named)
        )
        while simulation.time < seconds:
            readings.append(simulation.advance())
            bag.write(readings[-1])
    return readings


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "stand"
    return path, write_bag(path)


def test_samples_are_those_of_the_robot(bag) -> None:
    path, readings = bag
    config, model = shipped_robot("hoap2")[:2]
    model = config.attach(model)
    link = LinkFrames(model, [config.imu_link or model.root_link])
    with Bag(path) as opened:
        topics = find_topics(opened.topics(), config.feet, TopicRequest(), True, "bag")
        reader = SensorReader(opened, model, config.feet, topics, link.links[0])
        found = list(samples(reader.blocks(), config, link, 0.005))
    assert len(found) == len(readings)
    for (time, q, R, wrenches), reading in zip(
        found[::40], readings[::40], strict=True
    ):
        assert time - START_NS / 1e9 == pytest.approx(reading.time, abs=1e-6)
        np.testing.assert_array_equal(q, reading.position)
        root = Rotation.from_quat(reading.root_orientation).as_matrix()
        np.testing.assert_allclose(R, root, atol=5e-4)
        expected = ground_wrenches(reading.wrenches, config.feet)
        np.testing.assert_allclose(wrenches, expected, atol=1e-9)


def test_a_weight_is_found_with_its_time_and_the_page_says_so(
    bag, tmp_path, capsys
) -> None:
    page, last = tmp_path / "page.html", bag[1][-1]
    assert main([str(bag[0]), "--robot", "hoap2", "--output", str(page)]) == 0
    said = capsys.readouterr().out
    changed = re.search(r"^ +(\d\.\d\d) s  something has changed", said, re.M)
    assert changed is not None, said
    assert float(changed[1]) == pytest.approx(LOADED_AT, abs=0.15)
    both = {"payload on the left hand", "payload on the trunk"}  # it stands
    assert set(re.split(r": | or |; ", said)[1:3]) == both, said
    assert "move the arms" in said
    off = re.search(r"centre of mass is (\d+\.\d) mm from where the URDF has it", said)
    believed = Sesc(shipped_robot("hoap2").model).com(last.position)
    assert off is not None
    assert float(off[1]) == pytest.approx(
        1e3 * np.linalg.norm(last.com - believed), abs=1.0
    )
    text = page.read_text()
    assert assert_report(text).paragraphs[0] == said.splitlines()[0]
    assert said.splitlines()[0] in text
    assert "<svg" in text
    assert "something has changed" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"topics": lambda name: name != "imu", "seconds": 0.2},
            "/imu: no message of it",
        ),
        ({"rate": 50.0, "seconds": 1.0}, "has 50 Hz, expected 95 Hz or more"),
    ],
)
def test_bags_that_do_not_do_are_refused(tmp_path, capsys, options, said) -> None:
    write_bag(tmp_path / "bag", **options)
    words = [
        str(tmp_path / "bag"),
        "--robot",
        "hoap2",
        "--output",
        str(tmp_path / "page.html"),
    ]
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("signs", "words"),
    [((1, -1), "would pull at the ground"), ((-1, -1), "have the opposite sign")],
)
def test_forces_of_the_opposite_sign_are_refused(bag, signs, words) -> None:
    config, model = shipped_robot("hoap2")[:2]
    feet = tuple(
        replace(foot, wrench_sign=sign)
        for foot, sign in zip(config.feet, signs, strict=True)
    )
    with pytest.raises(UnitError, match=words):
        diagnose(bag[0], model, replace(config, feet=feet), TopicRequest())
