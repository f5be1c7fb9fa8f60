"""trunk_estimator with a stand-in for the estimator, and the drivers of its robot."""

import math

import numpy as np
from geometry_msgs.msg import Vector3
from read_back import root_body_inertial, trunk_com_to_numpy
from sensor_msgs.msg import Imu, JointState
from shipped_robot import shipped_robot

from com_estimation.nodes.trunk_estimator import TrunkEstimatorNode
from com_estimation.trunk.interface import TrunkEstimate, unknown_estimate
from com_model.legs import quadruped_legs
from com_model.status import Status
from com_msgs.msg import TrunkCom
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state

ROBOT, MODEL, POSTURE, PARAMETERS = shipped_robot("scalf2")
LEGS = quadruped_legs(MODEL, ROBOT)
URDF_TRUNK = root_body_inertial(MODEL)
T0 = 1_000_000_000_000  # ns, the stamp of the first message
# samples after a fault, of 1 ms, until an estimate may be converged again
SETTLED = 600
SHIFT = np.array([0.03, -0.02, 0.01])


class StandIn:
    """Says after every fifth sample that the CoM is shifted; remembers its samples."""

    def __init__(self, model, config, parameters):
        self.samples, self.shift, self.mass = [], SHIFT, float(model.bodies.mass[0])
        self.status, self.resets = Status.CONVERGED, 0
        self.com = np.asarray(root_body_inertial(model).com)
        self.reset()

    def reset(self):
        self.resets += 1
        self.samples.clear()
        self.latest = unknown_estimate(0.0, "no sample yet")

    def update(self, sample):
        self.samples.append(sample)
        if len(self.samples) % 5:
            return None
        self.latest = TrunkEstimate(
            time=sample.time,
            status=self.status,
            reason="" if self.status is Status.CONVERGED else "converging",
            mass=self.mass,
            mass_std=1.0,
            com=self.com + self.shift,
            covariance=np.diag([1e-6, 4e-6, 1e-4]),
            offset_from_urdf=self.shift,
            offset_from_center=self.shift + 0.1,
            observable=np.array([True, True, False]),
            payload_changed_at=math.nan,
        )
        return self.latest


class Robot:
    """Drives the node as a robot's drivers do: joints and IMU of each instant in turn."""

    def __init__(self, world, **parameters):
        self.world = world
        self.trunk = world.collect(TrunkCom, "trunk_com", qos=2000)
        self.made = []
        parameters = {
            "robot_config": PARAMETERS["robot_config"],
            "joint_timeout": 5.0,
            "wrench_timeout": 5.0,
        } | parameters
        self.node = world.start(self._make, **parameters)
        self.rng = np.random.default_rng(1)
        self.k = 0
        world.publisher(JointState, "joint_states", 2000)
        world.publisher(Imu, "imu", 2000)

    def _make(self, **options):
        def estimator(*args):
            self.made.append(StandIn(*args))
            return self.made[-1]

        return TrunkEstimatorNode(estimator, **options)

    @property
    def estimator(self):
        return self.made[-1]

    def joints(self, **changes):
        """The next joint_states; the robot stands and carries 300 kg on stiff, noisy legs."""
        noise = self.rng.normal(size=(3, 12))
        values = {
            "position": POSTURE + 1e-4 * noise[0],
            "velocity": 0.01 * noise[1],
            "effort": standing_torques() * (1.0 + 0.01 * noise[2]),
        } | changes
        stamp = ns_to_stamp(self.time_ns)
        return numpy_to_joint_state(list(MODEL.joint_names), **values, stamp=stamp)

    def imu(self, late_ms=0.0):
        x, y, z = 0.01 * self.rng.normal(size=3)
        msg = Imu(
            angular_velocity=Vector3(x=x, y=y, z=z),
            linear_acceleration=Vector3(x=x, y=y, z=9.81 + z),
        )
        msg.header.stamp = ns_to_stamp(self.time_ns + int(late_ms * 1e6))
        msg.header.frame_id = "imu_link"
        return msg

    @property
    def time_ns(self):
        return T0 + self.k * 1_000_000

    def run(self, count, *, imu=True, late_ms=0.0, spoil=None):
        """Send `count` samples at 1 kHz of their stamps, and wait until they are taken in."""
        for _ in range(count):
            self.k += 1
            self.world.send("joint_states", self.joints(**(spoil() if spoil else {})))
            if imu:
                self.world.send("imu", self.imu(late_ms))
            for _ in range(6):  # both messages, and what is heard of the answers
                self.world.executor.spin_once(timeout_sec=0.0)
        self.world.spin_for(0.2)
        return self.last

    @property
    def last(self):
        return trunk_com_to_numpy(self.trunk[-1])


def standing_torques():
    """Torques (12,) of legs that carry a quarter of the weight each: tau = -J^T f."""
    from com_estimation.trunk.ground_reaction import LegGeometry

    contacts = LegGeometry(MODEL, LEGS).contacts(POSTURE, np.array([0.0, 0.0, 1.0]))
    tau = np.zeros(12)
    for leg, J in zip(LEGS, contacts.jacobians, strict=True):
        tau[leg.joints] = -J.T @ [0.0, 0.0, MODEL.mass * 9.81 / 4]
    return tau


def replace_noise(robot, msg):
    fresh = robot.joints()
    fresh.header.stamp = msg.header.stamp
    return fresh
