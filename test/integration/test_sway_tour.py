"""sway_tour over DDS: plays its plan from the posture, refuses from elsewhere, stops."""

import numpy as np
import pytest
from shipped_robot import shipped_robot
from trajectory_msgs.msg import JointTrajectory

from com_control.motion.player import MotionPhase
from com_control.nodes.sway_tour import SwayTourNode
from com_model import ConfigError
from com_msgs.msg import MotionState
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state


class Robot:
    """A robot's drivers, which follow."""

    def __init__(self, world, name="hoap3", **parameters):
        self.world, self.robot = world, shipped_robot(name)
        self.q, self.time_ns = self.robot.posture.copy(), 10**12
        self.names = list(self.robot.model.joint_names)
        self.states = world.collect(MotionState, "motion/state")
        self.commands = world.collect(JointTrajectory, "joint_trajectory")
        given = {"joint_timeout": 30.0, **self.robot.parameters, **parameters}
        self.node = world.start(SwayTourNode, **given)

    def step(self, count):
        for _ in range(count):
            self.time_ns += 20_000_000
            stamp, seen = ns_to_stamp(self.time_ns), len(self.states)
            joints = numpy_to_joint_state(self.names, self.q, stamp=stamp)
            self.world.send("joint_states", joints)
            self.world.spin_until(lambda n=seen: len(self.states) > n, "a state")
            if self.commands:
                last = self.commands[-1]
                places = [self.names.index(name) for name in last.joint_names]
                self.q[places] = last.points[0].positions


@pytest.mark.parametrize("name", ["hoap3", "scalf2"])
def test_it_sways_and_stops(world, name):
    robot = Robot(world, name, seconds=30.0)
    robot.step(2)
    assert "plays sway" in world.trigger("sway_tour/play").message
    start = robot.q.copy()
    robot.step(400)
    assert robot.states[-1].state == MotionPhase.PLAYING
    assert np.abs(robot.q - start).max() > 0.05
    assert set(robot.commands[-1].joint_names) == set(robot.names)
    world.trigger("sway_tour/stop")
    robot.step(60)
    held = robot.q.copy()
    robot.step(10)
    np.testing.assert_allclose(robot.q, held, atol=1e-3)


def test_it_refuses_from_another_posture(world):
    robot = Robot(world, seconds=20.0)
    robot.q[robot.names.index("R_LFE_R_KN_joint")] += 0.4
    robot.step(2)
    answer = world.trigger("sway_tour/play")
    assert not answer.success
    assert "R_LFE_R_KN_joint" in answer.message
    assert "let the robot stand in it" in answer.message


def test_hanging_needs_no_posture(world):
    robot = Robot(world, hang=True, seconds=20.0)
    robot.q[robot.names.index("R_LFE_R_KN_joint")] += 0.4
    robot.step(2)
    assert world.trigger("sway_tour/play").success


def test_a_robot_on_four_legs_is_not_hung(world):
    parameters = shipped_robot("scalf2").parameters
    with pytest.raises(ConfigError, match="robot on two legs"):
        world.start(SwayTourNode, hang=True, **parameters)
