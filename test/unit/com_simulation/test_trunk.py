"""A trunk that is not as the URDF says: payload, shifted CoM, and the truth about it."""

from dataclasses import fields

import numpy as np
import pytest

from com_model import RobotConfig, RobotModel
from com_model.urdf.editing import Inertial
from com_simulation.exceptions import CommandError, WorldError
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.true_errors import Payload, loaded, read_trunk, write_trunk
from com_simulation.physics.world_builder import build_world

GAINS = {"stiffness": 200.0, "damping": 5.0, "armature": 0.02, "effort": 100.0}
CONFIG = RobotConfig.from_dict({"name": "arm", "servo": {"default": GAINS}})
MASS, PLACE = 1.5, (0.03, -0.02, 0.05)
PAYLOAD_LINK = f"""<joint name="load" type="fixed"><parent link="base"/><child link="load"/></joint>
<link name="load"><inertial><origin xyz="{PLACE[0]} {PLACE[1]} {PLACE[2]}"/><mass value="{MASS}"/>
<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


def run(simulation, seconds):
    count = round(seconds / simulation.sample_period)
    simulation.command([0.4, 0.1])
    return [simulation.advance() for _ in range(count)]


def same(a, b):
    return all(
        np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
    )


def arm_world(arm, **options):
    return build_world(arm, CONFIG, base="floating", **options)


def test_a_payload_is_a_link_of_that_mass(arm):
    """Against a URDF that has it as a link, step by step."""
    twin = RobotModel.from_urdf(arm.xml.replace("</robot>", PAYLOAD_LINK))
    payload = Payload(MASS, PLACE)
    given = run(Simulation(arm_world(arm), 0.001, payload=payload), 0.3)
    expected = run(Simulation(arm_world(twin), 0.001), 0.3)
    for a, b in zip(given, expected, strict=True):
        for f in fields(a):
            np.testing.assert_allclose(
                getattr(a, f.name),
                getattr(b, f.name),
                rtol=1e-7,
                atol=1e-7,
                err_msg=f.name,
            )
    moved = np.linalg.norm(given[-1].root_position - given[0].root_position)
    assert moved > 1e-3  # the comparison has seen a motion
    without = run(Simulation(arm_world(arm), 0.001), 0.3)
    assert np.linalg.norm(without[-1].root_position - given[-1].root_position) > 1e-4


def test_it_comes_at_its_time_and_goes_with_a_reset(arm):
    world = arm_world(arm)
    simulation = Simulation(world, 0.01, payload=Payload(MASS, PLACE, 0.1))
    readings = run(simulation, 0.3)
    before = loaded(Inertial(2.0, np.zeros(3), 0.01 * np.eye(3)), 1e-300, np.zeros(3))
    after = loaded(before, MASS, np.array(PLACE))
    for k, reading in enumerate(readings):
        expected = after if k >= 10 else before
        assert reading.trunk_mass == pytest.approx(expected.mass)
        assert reading.mass == pytest.approx(expected.mass + 1.5)
        np.testing.assert_allclose(reading.trunk_com, expected.com, atol=1e-12)
        np.testing.assert_allclose(reading.trunk_inertia, expected.inertia, atol=1e-12)
    simulation.reset()
    again = run(simulation, 0.3)
    assert all(same(a, b) for a, b in zip(readings, again, strict=True))
    other = run(
        Simulation(world, 0.01), 0.3
    )  # worlds are shared, what is put on them is not
    assert other[-1].trunk_mass == pytest.approx(2.0)


def test_it_comes_and_goes_when_told(arm):
    simulation = Simulation(arm_world(arm), 0.01, payload=Payload(MASS, PLACE, 0.2))
    simulation.set_payload(True)
    assert simulation.advance().trunk_mass == pytest.approx(2.0 + MASS)
    simulation.set_payload(False)
    masses = [reading.trunk_mass for reading in run(simulation, 0.3)]
    assert masses == pytest.approx([2.0] * 30)  # also when its time has come
    simulation.set_payload(True)
    assert simulation.advance().trunk_mass == pytest.approx(2.0 + MASS)
    with pytest.raises(CommandError, match=r"there is no payload: give payload\.mass"):
        Simulation(arm_world(arm), 0.01).set_payload(True)


def test_parallel_axes():
    """Two halves of a dumbbell: the same inertia as one body of two point masses."""
    one = Inertial(2.0, np.array([0.5, 0.0, 0.0]), np.zeros((3, 3)))
    both = loaded(one, 2.0, np.array([-0.5, 0.0, 0.0]))
    np.testing.assert_allclose(both.com, 0.0, atol=1e-15)
    np.testing.assert_allclose(both.inertia, np.diag([0.0, 1.0, 1.0]), atol=1e-15)


def test_a_trunk_is_read_as_it_was_written(arm):
    mj = arm_world(arm).mj
    spun = np.array([[2.0, 0.3, -0.1], [0.3, 1.8, 0.2], [-0.1, 0.2, 1.5]])
    write_trunk(mj, Inertial(7.0, np.array([0.1, 0.2, 0.3]), spun))
    trunk = read_trunk(mj)
    np.testing.assert_allclose(trunk.inertia, spun, atol=1e-12)
    np.testing.assert_allclose(trunk.com, [0.1, 0.2, 0.3])
    assert trunk.mass == 7.0
    assert mj.body_subtreemass[1] == pytest.approx(8.5)


def test_a_shifted_com_is_in_the_world_and_not_in_the_model(arm):
    shift = np.array([-0.04, 0.02, 0.01])
    world = arm_world(arm, trunk_com_offset=shift)
    plain, moved = Simulation(arm_world(arm)).advance(), Simulation(world).advance()
    np.testing.assert_allclose(moved.trunk_com - plain.trunk_com, shift, atol=1e-15)
    np.testing.assert_allclose(moved.com - plain.com, shift * 2.0 / 3.5, atol=1e-12)
    np.testing.assert_allclose(moved.trunk_inertia, plain.trunk_inertia, atol=1e-15)
    assert world.robot is arm


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, (0, 0, 0), 0.0), "payload.mass is -1.0: give a number from 0 to 10000"),
        ((np.inf, (0, 0, 0), 0.0), "payload.mass is inf: give"),
        ((1.0, (0, 0), 0.0), r"payload is \(0, 0\): give three finite numbers, m"),
        (
            (1.0, (0, np.nan, 0), 0.0),
            "payload.position is .*: give a number from -100 to 100",
        ),
        (
            (1.0, (0, 0, 0), -1.0),
            "payload.time is -1.0: give a number from 0 to 1e\\+06",
        ),
    ],
)
def test_bad_payloads(arm, arguments, message):
    with pytest.raises(WorldError, match=message):
        Simulation(arm_world(arm), payload=Payload(*arguments))
