"""A rod on a foot, whose tip angle is known, on a slow ramp."""

import numpy as np
import pytest
from tip_protocol import LENGTH, falls
from tip_ramp import Ramp, Turn, ramp_tip_angle, stiff_world

from com_model import RobotConfig, RobotModel

ROD = """<robot name="rod"><link name="foot">
  <inertial><origin xyz="0.02 0 0.01"/><mass value="0.2"/>
  <inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0.025 0 0.01"/>
  <geometry><box size="0.15 0.1 0.02"/></geometry></collision>
</link><joint name="ankle" type="revolute"><parent link="foot"/><child link="rod"/>
  <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/>
</joint><link name="rod"><inertial><origin xyz="0 0 0.5"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
CORNERS = [[0.1, 0.05], [0.1, -0.05], [-0.05, -0.05], [-0.05, 0.05]]
# Above the front edge: 2 kg * 0.5 m * sin + 0.2 kg * 0.02 m = 2.2 kg * 0.1 m; the back edge too.
FRONT, BACK = np.arcsin(0.22 - 0.004), np.arcsin(-0.11 - 0.004)
ANKLE = Turn(["ankle"], ["foot"])


def rod_world(**options):
    config = RobotConfig.from_dict(
        {"name": "rod", "feet": {"foot": {"corners": CORNERS}}}
    )
    return stiff_world(RobotModel.from_urdf(ROD), config, {}, **options)


@pytest.fixture(scope="module")
def world():
    return rod_world()


@pytest.mark.parametrize("angle", [FRONT, BACK])
def test_it_tips_where_the_com_is_over_the_edge(world, angle):
    slow = Ramp(speed=np.radians(1.0))
    begin = angle - np.sign(angle) * np.radians(3.0)
    found = ramp_tip_angle(world, ANKLE, begin, 2.0 * angle, slow)
    assert np.degrees(found) == pytest.approx(np.degrees(angle), abs=0.3)


def test_a_zero_offset_is_not_in_the_encoder(world):
    turn = Turn(["ankle"], ["foot"], offsets={"ankle": 0.03})
    found = ramp_tip_angle(
        world, turn, FRONT - 0.08, 2.0 * FRONT, Ramp(speed=np.radians(1.0))
    )
    assert np.degrees(found) == pytest.approx(np.degrees(FRONT - 0.03), abs=0.3)


def test_a_joint_that_turns_the_other_way(world):
    turn = Turn([], ["foot"], opposite=["ankle"])
    found = ramp_tip_angle(
        world, turn, -FRONT + 0.05, -2.0 * FRONT, Ramp(speed=np.radians(1.0))
    )
    assert np.degrees(found) == pytest.approx(-np.degrees(FRONT), abs=0.3)


def test_a_soft_joint_tips_it_earlier():
    """At the edge the rod's load is m g l sin FRONT; the encoder says so much less."""
    c = 0.02
    soft, sag = rod_world(compliance={"ankle": c}), c * 2.0 * 9.81 * 0.5 * np.sin(FRONT)
    begin = FRONT - sag - np.radians(3.0)
    found = ramp_tip_angle(soft, ANKLE, begin, 2.0 * FRONT, Ramp(speed=np.radians(1.0)))
    assert np.degrees(sag) > 2.0
    assert np.degrees(found) == pytest.approx(np.degrees(FRONT - sag), abs=0.3)


def test_a_ramp_that_ends_before_it_falls_finds_nothing(world):
    assert np.isnan(ramp_tip_angle(world, ANKLE, 0.05, 0.1))


def test_a_fall_before_the_slow_part_is_no_result(world):
    quick = Ramp(approach=1.0)
    assert np.isnan(ramp_tip_angle(world, ANKLE, FRONT + 0.2, FRONT + 0.4, quick))


@pytest.mark.parametrize(("beyond", "fall"), [(-0.002, False), (0.002, True)])
def test_boxes_fall_when_a_com_passes_the_edge_below_it(beyond, fall):
    assert falls([LENGTH / 2.0 - 0.03 + beyond], 0.03) == fall
    # Each CoM of the stack is above the edge below it at 1/6, 1/4 and 1/2 of a box.
    assert (
        falls([LENGTH * part + beyond for part in (1 / 6, 1 / 4, 1 / 2)], 0.0) == fall
    )
