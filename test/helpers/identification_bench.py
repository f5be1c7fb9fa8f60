"""com_identification and the drivers of a robot, by stamps that go faster than time."""

import math
import time

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu
from service_caller import ServiceCaller

from com_identification.nodes.com_identification import ComIdentification
from com_msgs import srv
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    numpy_to_wrench,
    rotation_to_quaternion,
    stamp_to_ns,
)
from com_ros.qos import LATCHED

RATE_HZ = 50  # of the stamps
SAMPLES = 20
MOVE = 5  # readings of a move
QUICK = {
    "capture__collect_time": SAMPLES / RATE_HZ,
    "capture__settle_time": 0.2,
    # A busy machine is neither a silence nor the end of a recording, which drops the readings.
    "capture__timeout": 300.0,
    "end_of_stream": 300.0,
    "plan__candidates": 20,
    "plan__refinements": 0,
    "fit__folds": 2,
    "state_rate_hz": 20.0,
    "check_rate_hz": 5.0,
}
# the CoM above the soles
POSTURE = np.array([0.1, 0.3, 0.1, 0.3]), np.array([0.4, 0.6])


def about_x(roll):
    """R (3, 3) about x."""
    c, s = math.cos(roll), math.sin(roll)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


class Scenario:
    """A node with a robot whose drivers are played, by stamps that go faster than time."""

    def __init__(self, world, robot, directory, **parameters):
        self.world, self.robot, self.directory = world, robot, directory
        (directory / "export").mkdir(exist_ok=True)
        self.state = world.collect(IdentificationState, "identification/state")
        self.results = world.collect(
            IdentificationResult, "identification/result", LATCHED
        )
        self.checks = world.collect(ModelCheck, "identification/model_check")
        self.parameters = {
            "robot_description": robot.model.xml,
            "robot_config": str(robot.config_path),
            "storage_directory": str(directory / "store"),
            "export_directory": str(directory / "export"),
            **QUICK,
            **parameters,
        }
        self.node = world.start(ComIdentification, **self.parameters)
        self.time_ns, self.q = 10**12, np.full(robot.model.n_joints, 0.5)
        self.imu_tilt, self.noise = None, np.random.default_rng(1)
        self.call_later = ServiceCaller(
            world.node, world.spin_until, "com_identification"
        ).begin

    def call(self, kind, name, /, **fields):
        answer = self.call_later(kind, name, **fields)
        self.world.spin_until(answer.done, f"answer of {name}", timeout=200.0)
        return answer.result()

    def play(
        self, q, load, count=50, *, offset=0.0, spoil=lambda Q, W: (Q, W), without=()
    ):
        """Readings of a posture at rest, after a quick move from the one before."""
        Q, W = self.robot.read(q, load, count)
        Q, W = spoil(Q, W + offset)
        self._send(np.linspace(self.q, q, MOVE), W[:MOVE], without)
        self._send(Q, W, without)
        self.world.spin_until(self._has_received, "the readings are received")
        self.world.spin_for(0.15)
        self.q = q

    def play_until(self, condition, what):
        """The robot stands in one posture and its drivers go on until a condition holds."""
        end = time.monotonic() + 200.0
        while not condition():
            assert time.monotonic() < end, f"in vain waited until {what}"
            self.play(*POSTURE)

    def _has_received(self):
        return (
            bool(self.state)
            and stamp_to_ns(self.state[-1].header.stamp) >= self.time_ns
        )

    def _send(self, Q, W, without):
        names = list(self.robot.model.joint_names)
        for position, wrenches in zip(Q, W, strict=True):
            self.time_ns += 1_000_000_000 // RATE_HZ
            stamp = ns_to_stamp(self.time_ns)
            self.world.send(
                "joint_states", numpy_to_joint_state(names, position, stamp=stamp)
            )
            for foot, wrench in zip(self.robot.config.feet, wrenches, strict=True):
                if foot.frame in without:
                    continue
                msg = WrenchStamped(wrench=numpy_to_wrench(wrench))
                msg.header.stamp = stamp
                self.world.send(foot.wrench_topic, msg)
            if self.imu_tilt is not None:
                self.world.send("imu", self._imu(Q[-1], stamp))
            for _ in range(10):  # all of them, and timers
                self.world.executor.spin_once(timeout_sec=0.0)

    def _imu(self, q, stamp):
        """What an IMU in the root link reads that is mounted turned by imu_tilt about x."""
        tilt = self.imu_tilt + 1e-4 * self.noise.normal()
        turn = about_x(tilt)
        R_root_sole, _ = self.robot.frame(q, self.robot.config.feet[0].frame)
        msg = Imu(orientation=rotation_to_quaternion(turn @ R_root_sole.T))
        msg.header.stamp = stamp
        return msg

    def capture(self, *posture, label="", **spoilt):
        """Plays a posture and captures it."""
        self.play(*(posture or self.robot.random_posture()), **spoilt)
        return self.call(
            srv.CapturePosture, "capture_posture", label=label, timeout=0.3
        )

    def fill(self, count):
        for _ in range(count):
            answer = self.capture()
            assert answer.success, answer.message
