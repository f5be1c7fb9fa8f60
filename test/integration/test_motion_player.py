"""motion_player over DDS: refusals, a smooth beginning, pauses, and what stops it."""

import math

import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from read_back import joint_trajectory_to_numpy
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from com_control.motion.files import write_motion
from com_control.motion.motion import Motion, MotionLayout
from com_control.nodes.motion_player import MotionPlayerNode
from com_model import RobotConfig, RobotModel
from com_msgs.msg import MotionState
from com_msgs.srv import LoadMotion
from com_ros import qos
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state
from com_ros.exceptions import ComRosError

SHARE = get_package_share_directory("robot_descriptions")
FILES = {
    "robot_config": f"{SHARE}/config/hoap2.yaml",
    "motion_layout": f"{SHARE}/config/motion/hoap2.yaml",
}
CONFIG = RobotConfig.from_file(FILES["robot_config"])
MODEL = RobotModel.from_file(CONFIG.urdf)
LAYOUT = MotionLayout.from_file(FILES["motion_layout"], CONFIG, MODEL)
KNEE = LAYOUT.joints.index("LLEG_JOINT4")
T0 = 1_000_000_000_000  # ns, the stamp of the first message
STEP_NS = 10_000_000
IDLE = (MotionState.EMPTY, MotionState.READY, MotionState.REFUSED, MotionState.FINISHED)


def knee_bend(amplitude=0.3):
    """A second of one knee, 10 ms a row."""
    times = 0.01 * np.arange(101)
    positions = np.zeros((101, len(LAYOUT.joints)))
    positions[:, KNEE] = 0.1 + amplitude * np.sin(np.pi * times) ** 2
    return Motion(LAYOUT.joints, times, positions)


class Bench:
    """The node, and a robot that does what it is commanded."""

    def __init__(self, world, folder, **parameters):
        self.world, self.time_ns = world, T0
        write_motion(folder / "bend.csv", knee_bend(), LAYOUT)
        write_motion(folder / "wrong.csv", knee_bend(-0.3), LAYOUT)
        self.states = world.collect(MotionState, "motion/state", 2000)
        self.ways = world.collect(JointTrajectory, "joint_trajectory", 2000)
        self.trace, self.q, self.follows = [], np.zeros(len(LAYOUT.joints)), True
        defaults = {
            "motion_directory": str(folder),
            "joint_timeout": 30.0,
            "approach_fraction": 0.2,
        }
        self.node = world.start(MotionPlayerNode, **FILES, **(defaults | parameters))

    @property
    def last(self):
        """The last word on motion/state."""
        return self.states[-1]

    def sample(self):
        """Send one sample of the joints; wait for what comes of it; do what it says."""
        self.time_ns += STEP_NS
        states, ways = len(self.states), len(self.ways)
        before = self.node._player.state
        joints = numpy_to_joint_state(
            LAYOUT.joints, self.q, stamp=ns_to_stamp(self.time_ns)
        )
        self.world.send("joint_states", joints, qos.stream(100))
        stamp = ns_to_stamp(self.time_ns)
        self.world.spin_until(
            lambda: any(s.header.stamp == stamp for s in self.states[states:]),
            "motion/state",
        )
        if before not in (*IDLE, MotionState.PAUSED):
            self.world.spin_until(lambda: len(self.ways) > ways, "joint_trajectory")
        if self.follows and self.ways:
            _, q, _ = joint_trajectory_to_numpy(self.ways[-1])
            self.q = q[0] if len(self.ways) > ways else q[-1]
        self.trace.append(self.q)
        return self.last

    def run(self, until, most=600):
        """Send samples until the state is one."""
        for _ in range(most):
            if self.sample().state == until:
                return
        raise AssertionError(f"not {until}: {self.last}")

    def call(self, name, kind=Trigger, **request):
        """Call one of its services."""
        client = self.world.node.create_client(kind, f"motion_player/{name}")
        self.world.spin_until(client.service_is_ready, name)
        future = client.call_async(kind.Request(**request))
        self.world.spin_until(future.done, name)
        return future.result()

    def load(self, file, clamp=False):
        """Load a file."""
        return self.call("load", LoadMotion, file=file, clamp=clamp)

    def jolt(self):
        """rad/s^2, the largest change of speed."""
        return np.abs(np.diff(self.trace, 2, axis=0)).max() / (STEP_NS * 1e-9) ** 2


@pytest.fixture
def bench(world, tmp_path):
    return lambda **parameters: Bench(world, tmp_path, **parameters)


def test_it_leads_smoothly_and_plays_and_pauses_and_goes_on(bench):
    robot = bench()
    robot.sample()
    assert robot.last.state == MotionState.EMPTY
    refused = robot.call("play")
    assert (refused.success, refused.message) == (
        False,
        "no motion is loaded: load one",
    )
    loaded = robot.load("bend.csv")
    assert loaded.success, loaded.message
    assert (loaded.rows, loaded.duration, loaded.violations) == (
        101,
        pytest.approx(1.0),
        [],
    )
    began = robot.call("play")
    assert began.success
    assert "the farthest is LLEG_JOINT4, by 5.7 deg" in began.message
    assert not robot.load("bend.csv").success
    robot.sample()
    assert robot.last.state == MotionState.APPROACHING
    way = robot.ways[-1]
    times, q, qd = joint_trajectory_to_numpy(way)
    assert way.header.stamp == ns_to_stamp(robot.time_ns) == robot.last.header.stamp
    assert tuple(way.joint_names) == LAYOUT.joints
    assert times[0] == pytest.approx(0.05)
    np.testing.assert_allclose(q[0], 0.0, atol=0.01)
    np.testing.assert_allclose(qd[-1], 0.0, atol=1e-12)
    robot.run(MotionState.PLAYING)
    for _ in range(30):
        robot.sample()
    assert robot.call("pause").success
    robot.run(MotionState.PAUSED, 80)
    row = robot.last.row
    assert 20 < row < 101
    assert (robot.last.rows, robot.last.rate, robot.last.motion) == (
        101,
        0.0,
        "bend.csv",
    )
    said = robot.call("resume")
    assert said.message == f"continues with row {row} of 101"
    robot.run(MotionState.FINISHED)
    assert (robot.last.row, robot.last.reason) == (101, "")
    assert robot.q[KNEE] == pytest.approx(0.1, abs=1e-4)
    assert np.max(robot.trace, axis=0)[KNEE] == pytest.approx(0.4, abs=2e-3)
    assert robot.jolt() < 15.0  # the bend's own is 6


def test_files_that_would_break_the_robot_are_refused_or_clamped(bench):
    robot = bench()
    robot.sample()
    refused = robot.load("wrong.csv")
    assert not refused.success
    assert math.isnan(refused.duration)
    assert "wrong.csv breaks limits: LLEG_JOINT4: position" in refused.message
    assert len(refused.violations) == 1
    robot.sample()
    assert robot.last.state == MotionState.REFUSED
    assert "breaks limits" in robot.last.reason
    assert not robot.call("play").success
    clamped = robot.load("wrong.csv", clamp=True)
    assert clamped.success
    assert "clamped: LLEG_JOINT4 clipped at -1.00 deg" in clamped.message
    assert clamped.violations == refused.violations
    assert robot.call("play").success
    robot.run(MotionState.FINISHED)
    assert np.min(robot.trace, axis=0)[KNEE] >= LAYOUT.lower[KNEE] - 1e-6


@pytest.mark.parametrize("name", ["../bend.csv", "/etc/passwd", "none.csv", ""])
def test_files_out_of_the_folder_are_refused(bench, tmp_path, name):
    folder = tmp_path / "motions"
    folder.mkdir()
    robot = bench(motion_directory=str(folder))
    answer = robot.load(name)
    assert not answer.success
    assert str(folder) in answer.message


def test_silence_stops_it(bench):
    robot = bench(joint_timeout=0.4, motion="bend.csv")
    robot.world.spin_until(lambda: robot.node._player.rows, "the file is read")
    robot.sample()
    assert robot.call("play").success
    robot.run(MotionState.PLAYING)
    robot.world.spin_until(lambda: "timed out" in robot.last.reason, "the reason")
    said = robot.call("resume")
    assert not said.success
    robot.world.spin_until(
        lambda: robot.node._player.state == MotionState.READY, "it has come to rest"
    )
    _, q, qd = joint_trajectory_to_numpy(robot.ways[-1])
    np.testing.assert_allclose(qd[-1], 0.0, atol=1e-12)
    robot.q = q[-1]
    ways = len(robot.ways)
    robot.sample()
    assert robot.last.state == MotionState.READY
    assert "joint_states timed out" in robot.last.reason
    assert len(robot.ways) == ways
    assert robot.call("play").success
    robot.run(MotionState.FINISHED)


def test_a_joint_that_does_not_follow_stops_it(bench):
    robot = bench(motion="bend.csv", following_error=0.1)
    robot.world.spin_until(lambda: robot.node._player.rows, "the file is read")
    robot.sample()
    assert robot.call("play").success
    robot.run(MotionState.PLAYING)
    robot.follows = False
    robot.run(MotionState.READY)
    assert "LLEG_JOINT4 is 0.1" in robot.last.reason
    assert "following_error is 0.10" in robot.last.reason
    assert robot.last.tracking_joint == "LLEG_JOINT4"


def test_joints_that_are_missing_or_nan_are_no_place_to_start_from(bench):
    robot = bench(motion="bend.csv")
    robot.world.spin_until(lambda: robot.node._player.rows, "the file is read")
    for names, positions in [
        (LAYOUT.joints[:5], np.zeros(5)),
        (LAYOUT.joints, np.where(np.arange(21) == KNEE, np.nan, 0.0)),
    ]:
        robot.time_ns += STEP_NS
        msg = numpy_to_joint_state(names, positions, stamp=ns_to_stamp(robot.time_ns))
        robot.world.send("joint_states", msg, qos.stream(100))
        robot.world.spin_until(lambda: robot.node._problem, "the problem is seen")
        robot.world.spin_until(
            lambda: robot.states and robot.last.state == MotionState.UNKNOWN, "unknown"
        )
        answer = robot.call("play")
        assert not answer.success
        assert "joint_states" in answer.message
        robot.node._problem = ""
    robot.sample()
    assert robot.last.state == MotionState.READY


def test_it_plays_by_itself_when_it_is_told_to(bench):
    robot = bench(motion="bend.csv", play=True)
    robot.world.spin_until(lambda: robot.node._player.rows, "the file is read")
    robot.sample()
    assert robot.last.state == MotionState.APPROACHING
    assert robot.call("stop").success
    robot.run(MotionState.READY)
    assert robot.last.reason == "stopped by ~/stop"
    robot.sample()
    assert robot.last.state == MotionState.READY


def test_it_waits_to_play_by_itself_until_the_joints_are_known(bench):
    robot = bench(motion="bend.csv", play=True, use_sim_time=True)
    robot.world.spin_until(lambda: robot.node._player.rows, "the file is read")
    robot.time_ns = -STEP_NS  # a simulation's first stamp is 0
    robot.sample()
    assert robot.last.state == MotionState.UNKNOWN
    assert "joint_states" in robot.last.reason
    robot.sample()
    assert robot.last.state == MotionState.APPROACHING


def test_a_node_without_a_layout_says_what_to_give(world):
    with pytest.raises(ComRosError, match="'motion_layout' is '': give the path"):
        world.start(MotionPlayerNode, robot_config=FILES["robot_config"])
