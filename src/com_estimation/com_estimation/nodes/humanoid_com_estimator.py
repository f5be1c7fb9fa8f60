"""Diagnoses a moving humanoid, corrects its CoM, and warns of a fall.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one replaces the model.
    joint_states (sensor_msgs/JointState): matched by name, 200 Hz or more.
    imu (sensor_msgs/Imu): orientation; each joint_states is paired with the reading of its stamp.
    <foot>/wrench (geometry_msgs/WrenchStamped): those around the stamp are averaged.

Publishes, with the stamp of the joint_states message:
    com_corrected (com_msgs/CenterOfMass): at 200 Hz.
    diagnosis (com_msgs/CentroidalDiagnosis): at each verdict, 2.5 Hz and at events, and at each
        change of the mode.
    external_wrench (geometry_msgs/WrenchStamped): of a push, once; of a steady pull that is named.
    fall_warning (std_msgs/Bool, latched): at each change.
    diagnosis/markers (visualization_msgs/MarkerArray): with each verdict: push, payload, CoM.
    robot_description_corrected (std_msgs/String, latched): with publish_corrected, the URDF with
        the payloads that last, at each change of these.
At 1 Hz: /diagnostics, which keep the reason of a fall_warning until the robot stands again.

Services:
    ~/reset (std_srvs/Trigger): restart.

Parameters: see Parameters.
"""

import math
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Bool, Header, String

from com_estimation.humanoid.diagnosis import Event, EventKind, Finding
from com_estimation.humanoid.estimator import Estimate, HumanoidEstimator, Mode
from com_estimation.humanoid.layout import Kind
from com_estimation.nodes.com_output import ComWriter
from com_estimation.whole_body.com_state import unknown_state
from com_model import RobotModel, Status, UrdfError
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_msgs.msg import CentroidalDiagnosis, Culprit
from com_ros import conversions as cv
from com_ros import diagnostics
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.diagnostics import Diagnosis
from com_ros.inputs import UNKNOWN_IMU, Paired, ground_wrench
from com_ros.joint_input import JointSample
from com_ros.markers import GREEN, ORANGE, RED, MarkerOutput
from com_ros.parameters import AssumedJoints, SensorParameters, parameter
from com_ros.qos import LATCHED, RESULT
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode

WAIT = 0.02  # s of the stamps, for which a sample waits for IMU and wrenches


@dataclass(frozen=True)
class Parameters(SensorParameters, AssumedJoints):
    """Parameters of humanoid_com_estimator; robot_config must give feet and IMU."""

    publish_corrected: bool = parameter(
        False, "publish robot_description_corrected, the URDF with payloads that last"
    )


class HumanoidComEstimator(RobotNode[Parameters]):
    """ROS 2 node `humanoid_com_estimator`: diagnosis, corrected CoM and fall warning.

    The module's docstring lists its topics and services, Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "humanoid_com_estimator", Parameters, subject="diagnosis", **options
        )
        self._config = self.require_config("its feet with wrench sensors, and its IMU")
        self._feet, self._jobs = self._config.feet, self.background_jobs()
        self._estimator: HumanoidEstimator | None = None
        self._model: RobotModel | None = None
        self._estimate: Estimate | None = None
        self._com = ComWriter(self, "com_corrected")
        self._diagnosis = self.create_publisher(
            CentroidalDiagnosis, "diagnosis", RESULT
        )
        self._wrench = self.create_publisher(WrenchStamped, "external_wrench", RESULT)
        self._warning = self.create_publisher(Bool, "fall_warning", LATCHED)
        self._markers = MarkerOutput(self, "diagnosis/markers", 2.0)
        self._corrected = self.create_publisher(
            String, "robot_description_corrected", LATCHED
        )
        self._forget()
        self.follow_robot_description()
        self.follow_joints_with_imu(self._use, self.parameters.imu_timeout, WAIT)
        for i, foot in enumerate(self._feet):
            self.subscribe(
                WrenchStamped,
                foot.wrench_topic,
                partial(self._on_wrench, i),
                EVERY_SAMPLE,
            )
        self.serve_trigger("~/reset", self._reset, "the diagnosis restarts")

    def use_model(self, model: RobotModel) -> None:
        """Starts with a new model; its estimator is made once the rate of joint_states is known.

        Args:
            model: the robot.

        Raises:
            ConfigError: robot_config does not fit the model, or has fewer than two feet.
        """
        HumanoidEstimator(model, self._config)  # raises for a robot that does not fit
        self._imu = LinkFrames(model, [self._config.imu_link or model.root_link])
        self._model, self._estimator = model, None
        self._forget()

    def _forget(self) -> None:
        self._wrenches: list[deque[tuple[int, Array]]] = [
            deque(maxlen=100) for _ in self._feet
        ]
        self._times: list[int] = []
        self._slow = ""  # why their rate is too low
        self._waiting: deque[Paired[JointSample]] = deque()
        self._shown: Event | None = None
        self._carried = [
            -1
        ]  # payloads of the last corrected URDF; -1: there is none yet
        self._mode, self._warns = Mode.UNKNOWN, False
        self._warning.publish(Bool(data=False))

    def _reset(self) -> None:
        if self._estimator is not None:
            self._estimator.restart()
        self._forget()

    def on_restart(self, jump_s: float) -> None:
        """Restarts the diagnosis: another recording is played, or a clock was set.

        Args:
            jump_s: s, by which the stamps have jumped.
        """
        self._reset()

    # --- inputs ------------------------------------------------------------------------------
    def _on_wrench(self, foot: int, msg: WrenchStamped, time_ns: int) -> None:
        self._wrenches[foot].append((time_ns, ground_wrench(msg, self._feet[foot])))
        self._use([])

    def _use(self, pairs: list[Paired[JointSample]]) -> None:
        """Processes each sample once the next one and its wrenches are there, or it has waited."""
        waiting = self._waiting
        waiting.extend(pairs)
        while len(waiting) > 1:
            time_ns = waiting[0].time_ns
            began = max((stored[0][0] if stored else 0) for stored in self._wrenches)
            # its wrenches were forgotten while joint_states were silent
            forgotten = began > time_ns + WAIT * NS_PER_S
            if forgotten or waiting[1].time_ns <= time_ns:  # or sent twice
                waiting.popleft()
                continue
            newest = min((stored[-1][0] if stored else 0) for stored in self._wrenches)
            if newest < time_ns and waiting[-1].time_ns - time_ns < WAIT * NS_PER_S:
                return
            pair = waiting.popleft()
            if self._estimator is None:
                self._measure(time_ns)
            else:
                self._update(pair, waiting[0].time_ns - time_ns)

    def _measure(self, time_ns: int) -> None:
        self._times.append(time_ns)
        # samples, from which the rate is measured
        slowest = 95.0  # Hz
        if len(self._times) == 40 and self._model is not None:
            rate = NS_PER_S / float(np.median(np.diff(self._times)))
            self._times.clear()
            self._slow = ""
            if rate < slowest:
                self._slow = f"joint_states have {rate:.0f} Hz, expected {slowest:g} Hz or more: "
                self._slow += "raise the rate of the driver"
                return
            self._estimator = HumanoidEstimator(self._model, self._config, rate)

    def _wrenches_at(self, time_ns: int, period_ns: int) -> Array:
        """Wrenches of the feet at a time: the mean of those around it, else the nearest.

        Args:
            time_ns: ns, of a sample.
            period_ns: ns, of the samples; readings within half of it are averaged, the nearest
                may be up to four of them or wrench_timeout away.

        Returns:
            (f, 6) N and N m of the ground on the feet, in the sensors' frames; NaN where there
            is none.
        """
        found = np.full((len(self._feet), 6), np.nan)
        reach = min(self.parameters.wrench_timeout * NS_PER_S, 4 * period_ns)
        for i, stored in enumerate(self._wrenches):
            near, nearest = list[Array](), reach + 1
            for t, wrench in reversed(stored):
                age = abs(t - time_ns)
                if 2 * age <= period_ns:
                    near.append(wrench)
                elif t < time_ns and (near or age > reach):
                    break
                elif not near and age < nearest:
                    found[i], nearest = wrench, age
            if near:
                found[i] = sum(near) / len(near)
        return found

    def _update(self, pair: Paired[JointSample], period_ns: int) -> None:
        estimator, joints = self._estimator, pair.joints
        if estimator is None:
            return
        R_imu = pair.imu.R_world_imu if pair.age_s <= WAIT else UNKNOWN_IMU.R_world_imu
        R = R_imu @ self._imu.poses(joints.position)[0][0].T
        wrenches = self._wrenches_at(pair.time_ns, period_ns)
        estimate = estimator.update(
            pair.time_ns / NS_PER_S, joints.position, R, wrenches
        )
        if estimate is None:
            return
        self._estimate, self._stamp_ns = estimate, joints.stamp_ns
        self._publish_com(estimate)
        if estimate.fall_warning != self._warns:
            self._warns = estimate.fall_warning
            self._warning.publish(Bool(data=self._warns))
            if self._warns:
                self.get_logger().warning(estimator.warned_of)
        if estimate.mode is not self._mode:
            self._mode = estimate.mode
            self._publish_diagnosis(True)
        if estimate.reason:
            self.log.warn(
                estimate.mode.name, f"{estimate.mode.name}: {estimate.reason}"
            )
        if estimator.closed and not self._jobs.busy:
            self._jobs.do(estimator.process, self._publish_diagnosis)

    # --- outputs -----------------------------------------------------------------------------
    @property
    def _frame(self) -> str:
        return self.parameters.frame_prefix + (
            self._model.root_link if self._model else ""
        )

    def _publish_com(self, estimate: Estimate) -> None:
        model, R = (
            self._model,
            self._estimator.orientation if self._estimator else np.eye(3),
        )
        mass = (model.mass if model else math.nan) + estimate.mass_correction
        state = unknown_state(estimate.reason or "no windows yet", mass)
        if estimate.mode is not Mode.UNKNOWN and np.isfinite(estimate.covariance).all():
            reason = "; ".join(filter(None, (estimate.reason, self.too_slow)))
            status = Status.DEGRADED if reason else Status.OK
            state = state._replace(
                status=status, reason=reason, position=estimate.com, gravity=-R[2]
            )
        self._com.publish(state, self._stamp_ns, self._frame)

    def _publish_diagnosis(self, new: bool | Exception) -> None:
        """In the executor, after windows were processed or the mode has changed."""
        estimate, estimator = self._estimate, self._estimator
        if isinstance(new, Exception):
            self.log.warn(
                "process", f"a window was dropped: {type(new).__name__}: {new}"
            )
        if new is not True or estimate is None or estimator is None:
            return
        stamp = ns_to_stamp(self._stamp_ns)
        with estimator.lock:
            msg = _diagnosis(estimate, estimator, stamp, self._frame)
            found = [f for f in estimator.diagnosis.verdict.findings if f.named]
            event = (
                estimator.diagnosis.events[-1] if estimator.diagnosis.events else None
            )
        self._diagnosis.publish(msg)
        R, external = estimator.orientation, None
        if (
            event is not None
            and event is not self._shown
            and event.kind is EventKind.PUSH
        ):
            external = np.append(event.impulse / event.duration, np.full(3, np.nan))
        self._shown = event
        self._markers.set_header(self._frame, stamp)
        markers, culprits = [], estimator.layout.culprits
        for finding in found:
            culprit = culprits[finding.culprit]
            if culprit.kind is Kind.PULL:
                external = finding.parameters
            if culprit.kind is Kind.PAYLOAD:
                at = estimator.point(culprit)
                markers.append(self._markers.sphere(culprit.name, at, 0.1, ORANGE))
        if external is not None:
            turned = np.concatenate((R.T @ external[:3], R.T @ external[3:]))
            wrench = WrenchStamped(wrench=cv.numpy_to_wrench(turned))
            wrench.header = msg.header
            self._wrench.publish(wrench)
        if np.isfinite(estimate.covariance).all():
            if external is not None:
                # m, for a force as large as the robot's weight
                arrow = 0.5 / estimator.layout.weight * turned[:3]
                markers.append(
                    self._markers.arrow("external", estimate.com, arrow, 0.03, RED)
                )
            cloud = self._markers.ellipsoid(
                "com", estimate.com, estimate.covariance, 3.0, GREEN
            )
            markers.append(cloud)
        self._markers.show(markers)
        loads = [
            f for f in found if f.lasting and culprits[f.culprit].kind is Kind.PAYLOAD
        ]
        carried = sorted(f.culprit for f in loads)
        if self.parameters.publish_corrected and carried != self._carried:
            self._carried = carried
            try:
                self._corrected.publish(String(data=estimator.corrected_urdf(loads)))
            except UrdfError as error:
                self.log.warn("corrected", f"no robot_description_corrected: {error}")

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: ERROR while waiting, WARN when a cause is named or frozen.

        Returns:
            Level, text and values: mode, verdict, number of windows, time of the last fall
            warning.
        """
        estimate, estimator = self._estimate, self._estimator
        if self.waiting or estimate is None or estimator is None:
            why = self.waiting or self._slow or "no samples yet"
            return Diagnosis(diagnostics.ERROR, why)
        verdict = estimator.diagnosis.verdict
        reasons = "; ".join(filter(None, (estimator.warned_of, estimate.reason)))
        level = diagnostics.OK
        if reasons or any(finding.named for finding in verdict.findings):
            level = diagnostics.WARN
        values: dict[str, object] = {
            "mode": estimate.mode.name,
            "verdict": verdict.text,
            "windows": estimator.diagnosis.sums.count,
            "last_fall_warning": estimator.warned_at,
        }
        return Diagnosis(level, reasons or verdict.text, values)


def _stamp(seconds: float) -> Time:
    """Time message of a time in s; 0 for a time that is not finite."""
    return ns_to_stamp(round(seconds * NS_PER_S) if math.isfinite(seconds) else 0)


def _culprit(finding: Finding, estimator: HumanoidEstimator) -> Culprit:
    culprit = estimator.layout.culprits[finding.culprit]
    return Culprit(
        kind=int(culprit.kind),
        name=culprit.name,
        probability=float(finding.probability),
        named=finding.named,
        lasting=finding.lasting,
        parts=list(culprit.parts),
        axes=cv.rotation_to_quaternion(estimator.axes(culprit)),
        tolerance=culprit.spike.tolist(),
        onset=_stamp(finding.onset),
        parameters=finding.parameters.tolist(),
        std=np.sqrt(np.maximum(np.diag(finding.covariance), 0.0)).tolist(),
    )


def _diagnosis(
    estimate: Estimate, estimator: HumanoidEstimator, stamp: Time, frame: str
) -> CentroidalDiagnosis:
    diagnosis = estimator.diagnosis
    verdict, chi2 = diagnosis.verdict, list(diagnosis.chi2)
    mean = float(np.mean(chi2)) if chi2 else math.nan
    # mean chi2 over its degrees of freedom
    msg = CentroidalDiagnosis(
        mode=int(estimate.mode),
        reason=estimate.reason,
        verdict=verdict.text,
        window_count=diagnosis.sums.count,
        excitation_ok=diagnosis.excited,
        culprits=[_culprit(finding, estimator) for finding in verdict.findings],
        hint=int(verdict.hint),
        covariance=estimate.covariance.ravel(),
        mass_correction=estimate.mass_correction,
        mass_std=estimate.mass_std,
        residual_chi2=mean,
        unexplained=mean > 2.0 or diagnosis.unexplained,
        dcm=estimate.dcm,
        margin=estimate.margin,
        fall_warning=estimate.fall_warning,
        header=Header(stamp=stamp, frame_id=frame),
        com_correction=cv.numpy_to_vector3(estimate.correction),
        impulse=cv.numpy_to_vector3(np.full(3, np.nan)),
    )
    if diagnosis.events:
        event = diagnosis.events[-1]
        msg.event, msg.event_start = int(event.kind), _stamp(event.start)
        msg.impulse = cv.numpy_to_vector3(event.impulse)
    return msg
