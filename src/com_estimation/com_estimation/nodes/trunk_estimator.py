"""Estimates the mass and the centre of mass of a quadruped's trunk while it trots.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one replaces the model.
    joint_states (sensor_msgs/JointState): with effort; matched by name.
    imu (sensor_msgs/Imu): angular velocity, specific force and orientation; each joint_states is
        paired with the reading of its stamp.
    <foot>/wrench (geometry_msgs/WrenchStamped): only with ground_reaction "sensor".
    gait/stance (com_msgs/GaitPhase), optional: which legs should stand.

Publishes, with the stamp of the joint_states message, at most at publish_rate_hz:
    trunk_com (com_msgs/TrunkCom): also when it is unknown, with the reason.
    ground_reaction (com_msgs/GroundReaction): when there is a model and someone subscribes.
    robot_description_corrected (std_msgs/String, latched): with publish_corrected, the URDF with
        the trunk's mass and CoM as estimated; while USABLE or CONVERGED, at most once a second.

Publishes at display_rate_hz; at 1 Hz /diagnostics:
    trunk_com/markers (visualization_msgs/MarkerArray): the CoM, the ellipsoid of three standard
        deviations, the URDF's CoM, and the ground's forces.
    /tf: frame `trunk_com`, parallel to the root link.

Services:
    ~/reset (std_srvs/Trigger): restart the estimation.

Parameters: see trunk_robot.Parameters.
"""

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray

from com_estimation.nodes import trunk_robot
from com_estimation.nodes.trunk_output import (
    CorrectedDescription,
    TrunkDisplay,
    TrunkOutput,
)
from com_estimation.nodes.trunk_robot import EstimatorFactory, Parameters, TrunkRobot
from com_estimation.trunk.ground_reaction import LEG_NAMES, SENSOR
from com_estimation.trunk.interface import Sample, TrunkEstimate, unknown_estimate
from com_estimation.trunk.pipeline import with_problems
from com_estimation.trunk.sensor_checks import Problem, Severity
from com_model import Foot, RobotModel, Status
from com_model.arrays import Flags
from com_model.dynamics.link_frames import LinkFrames
from com_model.legs import LEGS, find_foot
from com_msgs.msg import GaitPhase
from com_ros import diagnostics
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.diagnostics import Diagnosis
from com_ros.inputs import Latest, Paired, WrenchInputs
from com_ros.joint_input import JointSample
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode

# s between parts of the joints; a leg moves by centimetres meanwhile
LARGEST_SPREAD = 0.03


Pair = Paired[JointSample]


class TrunkInput:
    """Combines the messages of one instant to a sample; feet are in the order of the legs.

    Args:
        p: timeouts and tolerances.
        feet: of the four legs.

    Attributes:
        wrenches: of the feet's sensors, in the order of the legs; None: the forces come from
            torques.
        imu_age_s: time between the last sample's joints and the IMU reading paired with it, s.
    """

    def __init__(self, p: Parameters, feet: tuple[Foot, ...]) -> None:
        self._p = p
        self._feet = feet
        self.wrenches: WrenchInputs | None = None
        self._stance: Latest[Flags] = Latest(p.stance_timeout)
        self.imu_age_s = float("nan")
        self._sensors: LinkFrames | None = None

    def set_parameters(self, p: Parameters) -> None:
        """Uses changed timeouts and tolerances.

        Args:
            p: all parameters.
        """
        self._p = p
        self._stance.timeout_s = p.stance_timeout

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
                Problem(
                    Severity.HOLD,
                    f"joints in joint_states are {1e3 * joints.spread_s:.0f} ms older than others: "
                    "check the drivers that report them; an estimate needs all within "
                    f"{1e3 * LARGEST_SPREAD:.0f} ms",
                )
            )
        if pair.age_s > self._p.imu_tolerance:
            problems.append(
                Problem(
                    Severity.DEGRADE,
                    f"imu and joint_states are {1e3 * pair.age_s:.1f} ms apart: stamp them with "
                    "one clock, and let the imu come as often",
                )
            )
        forces = None
        if self.wrenches is not None:
            measured, problem = self.wrenches.forces(pair.time_ns)
            forces, problem = self._foot_forces(joints.position, measured, problem)
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
        self,
        q: NDArray[np.float64],
        measured: NDArray[np.float64] | None,
        problem: str,
    ) -> tuple[NDArray[np.float64] | None, str]:
        """Forces (4, 3) N of the ground on the feet in root axes, or None with the reason."""
        if measured is None or self._sensors is None:
            topics = ", ".join(foot.wrench_topic for foot in self._feet)
            return None, problem or f"no wrench of the feet is received on {topics}"
        R = self._sensors.poses(q)[0]
        return np.einsum("kij,kj->ki", R, measured), ""


LEVELS = {
    Status.UNKNOWN: diagnostics.ERROR,
    Status.ESTIMATING: diagnostics.OK,
    Status.USABLE: diagnostics.OK,
    Status.CONVERGED: diagnostics.OK,
    Status.DEGRADED: diagnostics.WARN,
}


class TrunkEstimatorNode(RobotNode[Parameters]):
    """ROS 2 node `trunk_estimator`: mass and CoM of a quadruped's trunk while it trots.

    The module's docstring lists its topics and services, trunk_robot.Parameters its parameters.

    Args:
        estimator: makes the estimator for each model; the default follows the parameter
            `method`.
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(
        self, estimator: EstimatorFactory = trunk_robot.make_estimator, **options: Any
    ) -> None:
        super().__init__(
            "trunk_estimator", Parameters, subject="trunk's centre of mass", **options
        )
        p = self.parameters
        self._make_estimator = estimator
        self._config = self.require_config("side and end of its four feet")
        feet = tuple(self._config.feet[find_foot(self._config, *leg)] for leg in LEGS)
        self._robot: TrunkRobot | None = None
        self._input = TrunkInput(p, feet)
        self._estimate, self._stamp = (
            unknown_estimate(0.0, "no joint_states yet"),
            Time(),
        )
        self._to_display = False

        self._output = TrunkOutput(self, p)
        self._display = TrunkDisplay(self, p.frame_prefix)
        self._corrected = (
            CorrectedDescription(self, p, self.log) if p.publish_corrected else None
        )
        self.follow_robot_description()
        self.follow_joints_with_imu(
            self._process, p.imu_max_offset, p.imu_wait, self._hold
        )
        if p.ground_reaction == SENSOR:
            self._input.wrenches = self.follow_wrenches(feet, EVERY_SAMPLE)
        self.subscribe(GaitPhase, "gait/stance", self._input.set_gait, EVERY_SAMPLE)
        self.serve_trigger("~/reset", self._reset, "the estimation restarts")
        if p.display_rate_hz > 0.0:
            self.create_steady_timer(1.0 / p.display_rate_hz, self._on_display)

    def assumed_joints(self, model: RobotModel) -> dict[str, float]:
        """Positions of joints outside the legs; see trunk_robot.assumed_joints.

        Args:
            model: the robot, a quadruped.
        """
        return trunk_robot.assumed_joints(model, self._config, self.parameters)

    def use_model(self, model: RobotModel) -> None:
        """Starts with a new model: makes its estimator, checks and force measurement.

        Args:
            model: the robot, a quadruped.

        Raises:
            ConfigError: robot_config does not fit the model.
            ParameterError: a parameter is not allowed for it.
        """
        robot = trunk_robot.make_robot(
            model, self._config, self.parameters, self._make_estimator
        )
        self._input.use_robot(robot)
        self._robot, self._to_display = robot, False
        if self._corrected is not None:
            self._corrected.reset()

    def apply_parameters(self, new: Parameters) -> None:
        """Applies changed timeouts, rates and thresholds.

        Args:
            new: all parameters.
        """
        self._input.set_parameters(new)
        self._output.rate.set(new.publish_rate_hz)
        if self._corrected is not None:
            self._corrected.set_thresholds(
                new.corrected_change, new.corrected_mass_change
            )

    # --- inputs ------------------------------------------------------------------------------
    def _hold(self, sample: JointSample) -> None:
        """Puts the estimate on hold for a sample with an error."""
        time, problem = sample.time_ns / NS_PER_S, Problem(Severity.HOLD, sample.error)
        held: TrunkEstimate | None = unknown_estimate(time, sample.error)
        if self._robot is not None:
            held = self._robot.pipeline.hold(time, problem)
        self._publish(held, ns_to_stamp(sample.stamp_ns))

    def _process(self, pairs: list[Pair]) -> None:
        """Updates the estimate with joints and IMU of the same instants."""
        if self._robot is None:
            return
        for pair in pairs:
            sample, problems = self._input.sample(pair)
            if self.too_slow:
                problems.append(Problem(Severity.DEGRADE, self.too_slow))
            estimate = self._robot.pipeline.update(sample, problems)
            self._publish(estimate, ns_to_stamp(pair.joints.stamp_ns))
            if self._corrected is not None and estimate is not None:
                self._corrected.update(estimate, self._robot.model)

    def on_joints_timeout(self, reason: str) -> None:
        """Puts the estimate on hold; the samples that waited for the IMU have been processed.

        Args:
            reason: why joint_states are stale.
        """
        self._publish(
            with_problems(self._estimate, [Problem(Severity.HOLD, reason)]), self._stamp
        )

    def _reset(self) -> None:
        """Service ~/reset."""
        if self._robot is not None:
            self._robot.pipeline.reset()
            self._estimate, self._to_display = self._robot.pipeline.estimate, False

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, estimate: TrunkEstimate | None, stamp: Time) -> None:
        if estimate is None:
            return
        self._output.publish(estimate, self._robot, stamp)
        self._estimate, self._stamp, self._to_display = estimate, stamp, True
        if (
            estimate.status in (Status.UNKNOWN, Status.DEGRADED)
            and self._robot is not None
        ):
            name = estimate.status.name
            self.log.warn(name, f"trunk_com is {name}: {estimate.reason}")

    def _on_display(self) -> None:
        if self._to_display and self._robot is not None:
            self._display.show(self._estimate, self._robot, self._stamp)
            self._to_display = False

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: that of the last estimate.

        Returns:
            Level by LEVELS, reason, and values: method, mass and its standard deviation, counts
            of samples.
        """
        estimate = self._estimate
        values: dict[str, object] = {
            "status": estimate.status.name,
            "reason": estimate.reason,
            "method": self.parameters.method,
            "imu_age_ms": 1e3 * self._input.imu_age_s,
            "mass_kg": estimate.mass,
            "mass_std_kg": estimate.mass_std,
        }
        if self._robot is not None:
            pipeline = self._robot.pipeline
            values |= {
                "samples": pipeline.seen,
                "samples_held_back": pipeline.held,
                "samples_dropped": pipeline.dropped,
                "restarts": pipeline.restarts,
            }
        text = estimate.reason or "the trunk's centre of mass is known"
        return Diagnosis(LEVELS[estimate.status], text, values)
