"""Converts messages of joints, IMU, feet and gait to samples for the trunk estimators."""

import numpy as np
from numpy.typing import NDArray

from com_estimation.nodes.trunk_robot import Parameters, TrunkRobot
from com_estimation.trunk.ground_reaction import LEG_NAMES, SENSOR
from com_estimation.trunk.interface import Sample
from com_estimation.trunk.sensor_checks import Problem, Severity
from com_model import Foot
from com_model.arrays import Flags
from com_model.dynamics.link_frames import LinkFrames
from com_msgs.msg import GaitPhase
from com_ros.conversions import NS_PER_S
from com_ros.inputs import Latest, Paired, WrenchInputs
from com_ros.joint_input import JointSample

# s between parts of the joints; a leg moves by centimetres meanwhile
LARGEST_SPREAD = 0.03
_APART = (
    "joints in joint_states are {:.0f} ms older than others: check the drivers that report them; "
    f"an estimate needs all within {1e3 * LARGEST_SPREAD:.0f} ms"
)
_LATE = (
    "imu and joint_states are {:.1f} ms apart: stamp them with one clock, and let the imu come as "
    "often"
)


Pair = Paired[JointSample]


class TrunkInput:
    """Combines the messages of one instant to a sample; feet are in the order of the legs.

    Args:
        p: timeouts and tolerances.
        feet: of the four legs.

    Attributes:
        wrenches: of the feet's sensors, in the order of the legs.
        uses_wrenches: the forces come from sensors in the feet.
        imu_age_s: time between the last sample's joints and the IMU reading paired with it, s.
    """

    def __init__(self, p: Parameters, feet: tuple[Foot, ...]) -> None:
        self._p = p
        self._feet = feet
        self.wrenches = WrenchInputs(feet, p.wrench_timeout)
        self._stance: Latest[Flags] = Latest(p.stance_timeout)
        self.uses_wrenches = p.ground_reaction == SENSOR
        self.imu_age_s = float("nan")
        self._sensors: LinkFrames | None = None

    def set_parameters(self, p: Parameters) -> None:
        """Uses changed timeouts and tolerances.

        Args:
            p: all parameters.
        """
        self._p = p
        self.wrenches.timeout_s, self._stance.timeout_s = (
            p.wrench_timeout,
            p.stance_timeout,
        )

    def use_robot(self, robot: TrunkRobot) -> None:
        """Uses a new model.

        Args:
            robot: the model with its legs.
        """
        frames = [leg.foot.wrench_frame for leg in robot.legs]
        self._sensors = LinkFrames(robot.model, frames)

    def set_gait(self, msg: GaitPhase, time_ns: int) -> None:
        """Stores which legs should stand; a message with the state UNKNOWN is ignored.

        Args:
            msg: from gait/stance.
            time_ns: ns, its stamp.
        """
        stance = dict(zip(msg.legs, msg.stance, strict=True))
        if msg.state != GaitPhase.UNKNOWN and all(name in stance for name in LEG_NAMES):
            self._stance.set(
                np.array([stance[name] for name in LEG_NAMES], dtype=np.bool_), time_ns
            )

    def sample(self, pair: Pair) -> tuple[Sample, list[Problem]]:
        """Makes the sample of one instant.

        Args:
            pair: joints with the IMU's reading nearest to them in time.

        Returns:
            The sample, and the problems of its inputs: old joints, a late IMU, missing wrenches.
        """
        joints, imu = pair.joints, pair.imu
        problems = [Problem(Severity.NOTE, text) for text in joints.warnings]
        self.imu_age_s = pair.age_s
        if joints.spread_s > LARGEST_SPREAD:
            problems.append(
                Problem(Severity.HOLD, _APART.format(1e3 * joints.spread_s))
            )
        if pair.age_s > self._p.imu_tolerance:
            problems.append(Problem(Severity.DEGRADE, _LATE.format(1e3 * pair.age_s)))
        forces = None
        if self.uses_wrenches:
            forces, problem = self._foot_forces(joints.position, pair.time_ns)
            problems += [Problem(Severity.DEGRADE, problem)] if problem else []
        sample = Sample(
            time=pair.time_ns / NS_PER_S,
            position=joints.position,
            effort=joints.effort,
            velocity=joints.velocity,
            angular_velocity=imu.angular_velocity,
            specific_force=imu.specific_force,
            R_world_imu=imu.R_world_imu,
            foot_forces=forces,
            # That of this sample may come before or after it, that of the one before has come.
            stance=self._stance.current(pair.time_ns - 1),
        )
        return sample, problems

    def _foot_forces(
        self, q: NDArray[np.float64], time_ns: int
    ) -> tuple[NDArray[np.float64] | None, str]:
        """Forces (4, 3) N of the ground on the feet in root axes, or None with the reason."""
        measured, problem = self.wrenches.forces(time_ns)
        if measured is None or self._sensors is None:
            topics = ", ".join(foot.wrench_topic for foot in self._feet)
            return None, problem or f"no wrench of the feet is received on {topics}"
        R = self._sensors.poses(q)[0]
        return np.einsum("kij,kj->ki", R, measured), ""
