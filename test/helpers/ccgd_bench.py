"""ccgd_gait and a robot that is where the last trajectory has it, half its weight on each foot."""

import numpy as np
from geometry_msgs.msg import PointStamped, Quaternion, WrenchStamped
from rclpy.action import ActionClient
from read_back import joint_trajectory_to_numpy
from sensor_msgs.msg import Imu
from shipped_robot import shipped_robot
from trajectory_msgs.msg import JointTrajectory

from com_control.nodes.ccgd_gait import CcgdGaitNode
from com_model.joint_path import JointPath
from com_msgs.action import Walk
from com_msgs.msg import WalkGoal, WalkState
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_joint_state, stamp_to_ns

_, MODEL, POSTURE, ROBOT = shipped_robot("itu_biped")
FEET = ("l_sole/wrench", "r_sole/wrench")
WEIGHT = 9.81 * MODEL.mass
T0 = 1000 * NS_PER_S  # the stamp of the first message
EVERY_NS = 50_000_000
LEVEL = Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
LYING = Quaternion(x=0.8, y=0.0, z=0.0, w=0.6)
SHORT = {
    "steps": [2],
    "step_length": [0.1],
    "step_time": [0.6],
    "double_support": [0.3],
}


class Bench:
    """The node, and a robot that obeys it."""

    def __init__(self, world, **parameters):
        self.world, self.time_ns, self.q = world, T0, POSTURE.copy()
        self.path, self.taken = None, 0
        self.load, self.attitude, self.stale = WEIGHT / 2, None, ()
        self.states = world.collect(WalkState, "gait/state", 2000)
        self.ways = world.collect(JointTrajectory, "joint_trajectory", 2000)
        self.zmps = world.collect(PointStamped, "zmp", 2000)
        defaults = {
            "joint_timeout": 30.0,
            "approach_time": 0.3,
            "walk__com_height": 0.45,
            "display_rate_hz": 100.0,
        }
        self.node = world.start(CcgdGaitNode, **(ROBOT | defaults | parameters))

    @property
    def state(self):
        """The last message on gait/state."""
        return self.states[-1]

    def take(self):
        """Take in new trajectories, none of which may break a limit or jump."""
        for msg in self.ways[self.taken :]:
            times, q, qd = joint_trajectory_to_numpy(msg)
            assert msg.joint_names == list(MODEL.joint_names)
            assert np.isfinite(q).all()
            assert np.isfinite(qd).all()
            assert ((q >= MODEL.lower) & (q <= MODEL.upper)).all()
            assert (np.abs(qd) <= MODEL.velocity_limits * 1.000001).all()
            path = JointPath(times + stamp_to_ns(msg.header.stamp) / NS_PER_S, q, qd)
            before = (
                self.q
                if self.path is None
                else self.path.sample(float(path.time[0]))[0]
            )
            assert (np.abs(path.q[0] - before) <= 0.1 * MODEL.velocity_limits).all(), (
                "a jump"
            )
            self.path = path if self.path is None else self.path.followed_by(path)
        self.taken = len(self.ways)

    def send(self, topic, msg):
        msg.header.stamp = ns_to_stamp(self.time_ns)
        self.world.send(topic, msg)

    def sample(self, every_ns=EVERY_NS):
        """Send one sample of all sensors; wait for what comes of it."""
        self.time_ns += every_ns
        self.take()
        if self.path is not None:
            self.q = self.path.sample(self.time_ns / NS_PER_S)[0]
        if self.attitude is not None and "imu" not in self.stale:
            self.send("imu", Imu(orientation=self.attitude))
        for topic in FEET:
            if topic not in self.stale:
                msg = WrenchStamped()
                msg.wrench.force.z = self.load
                self.send(topic, msg)
        self.world.spin_for(self.pause())
        count = len(self.states)
        self.send("joint_states", numpy_to_joint_state(MODEL.joint_names, self.q))
        self.world.spin_until(lambda: len(self.states) > count, "gait/state")
        return self.state.state

    def pause(self):
        """Real time between two samples, s: the node computes in real time, whatever stamps say.

        A plan may have to wait for its kernels to be compiled; a stop is due in the time of stamps.
        """
        state = self.state.state if self.states else WalkState.UNKNOWN
        if state == WalkState.PLANNING:
            return 0.1
        return 0.05 if state == WalkState.STOPPING or self.stale else 0.002

    def until(self, state, seconds=200.0):
        for _ in range(int(seconds * NS_PER_S / EVERY_NS)):
            if self.sample() == state:
                return
        raise AssertionError(
            f"state {self.state.state} ({self.state.reason}), not {state}"
        )

    def call(self, kind, name, request):
        client = self.world.node.create_client(kind, f"ccgd_gait/{name}")
        self.world.spin_until(client.service_is_ready, name)
        future = client.call_async(request)
        self.world.spin_until(future.done, name)
        return future.result()

    def walk(self, **goal):
        """Ask for a walk by the action; the handle of its goal, and its feedback."""
        client = ActionClient(self.world.node, Walk, "walk")
        self.world.spin_until(client.server_is_ready, "the action")
        feedback = []
        asked = client.send_goal_async(
            Walk.Goal(goal=WalkGoal(**goal)),
            feedback_callback=lambda m: feedback.append(m.feedback),
        )
        self.world.spin_until(asked.done, "the goal is taken")
        return asked.result(), feedback

    def result(self, handle):
        """The result of a walk, with samples until it is there."""
        future = handle.get_result_async()
        for _ in range(600):
            if future.done():
                return future.result().result
            self.sample()
        raise AssertionError("no result")


def disturb(robot, seconds, change):
    """Samples that the node may hold back, in real time, with positions changed by change(q).

    On a busy machine the node skips samples: they go on until it notices, for 8 s at most.
    """
    least, most = round(seconds / 0.05), round(8.0 / 0.05)
    for k in range(most):
        if k >= least and robot.state.state != WalkState.WALKING:
            return
        robot.time_ns += EVERY_NS
        robot.take()
        robot.q = robot.path.sample(robot.time_ns / NS_PER_S)[0]
        for topic in FEET:
            msg = WrenchStamped()
            msg.wrench.force.z = robot.load
            robot.send(topic, msg)
        robot.send(
            "joint_states", numpy_to_joint_state(MODEL.joint_names, change(robot.q))
        )
        robot.world.spin_for(0.05)


def stands_and_walks_again(robot, handle, reason):
    """The walk has ended with both feet down; only one that is asked for begins."""
    result = robot.result(handle)
    assert not result.completed
    assert result.steps < 20
    assert reason in result.reason
    ways = len(robot.ways)
    for _ in range(10):
        robot.sample()
    assert robot.state.state == WalkState.READY
    assert len(robot.ways) == ways
    assert robot.result(robot.walk(**SHORT)[0]).completed


def walk_on(robot):
    """Walk into the first step; the handle of its goal."""
    robot.until(WalkState.READY)
    handle, _ = robot.walk(steps=[20], step_length=[0.1], step_time=[0.6])
    robot.until(WalkState.WALKING)
    for _ in range(45):
        robot.sample()
    return handle
