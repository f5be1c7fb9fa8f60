"""Identifies a robot's centres of mass from static postures; live, or fed by `ros2 bag play`.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one starts a new session.
    joint_states (sensor_msgs/JointState): matched by name; efforts with fit.use_effort.
    imu (sensor_msgs/Imu): only with fit.use_imu; else the ground is horizontal.
    <foot>/wrench (geometry_msgs/WrenchStamped): the names are the configuration's.
    known_com (geometry_msgs/PointStamped): the whole robot's CoM by another source, in a link's
        frame; points received while the robot is stationary are part of its posture.
    diagnosis (com_msgs/CentroidalDiagnosis): causes that last, for ~/tare_wrench and
        ~/identify_links where the request asks for them.
    gait/state (com_msgs/WalkState): the CoM's offset by the stabiliser, for ~/identify_links where
        the request asks for it and there is no diagnosis.

Publishes:
    identification/state (com_msgs/IdentificationState): at state_rate_hz.
    identification/result (com_msgs/IdentificationResult, latched): with each new result.
    identification/model_check (com_msgs/ModelCheck): at check_rate_hz.
    identification/markers (visualization_msgs/MarkerArray): with it, if there is a subscriber.
    identification/walk_recording (com_msgs/WalkRecording, latched): with each part of a recorded
        walk that was analysed.
    /diagnostics.

Services: ~/capture_posture, ~/tare_wrench, ~/get_postures, ~/remove_posture, ~/reset, ~/save,
    ~/load, ~/export_urdf (posture_services); ~/record_walk, ~/check_up (walk_services);
    ~/identify_total_com, ~/identify_two_postures, ~/identify_links (job_services).

Actions: ~/identify_links, ~/propose_postures, ~/identify_walk (job_services).

Parameters: see identification_session.Parameters.

Time is that of the stamps, so that a recording may be played at any speed. Only the timeouts of
requests are in real time.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from geometry_msgs.msg import PointStamped, WrenchStamped
from sensor_msgs.msg import Imu

from com_identification.capture.recorder import CaptureStatus
from com_identification.exceptions import CaptureRefused, StoreError
from com_identification.feet.feet_reading import ModelCheckResult, ModelVerdict
from com_identification.nodes.health_watch import HealthWatch
from com_identification.nodes.identification_conversions import numpy_to_model_check
from com_identification.nodes.identification_session import (
    Parameters,
    SensorBuffer,
    Session,
    declare_settings,
)
from com_identification.nodes.job_services import JobServices
from com_identification.nodes.posture_services import PostureServices
from com_identification.nodes.walk_services import WalkServices
from com_model import RobotModel
from com_msgs import msg as msgs
from com_msgs.action import IdentifyWalk
from com_ros import diagnostics
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ParameterError
from com_ros.inputs import InputWatch
from com_ros.joint_input import JointSample
from com_ros.markers import MarkerOutput
from com_ros.qos import LATCHED, RESULT
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode

# s, between two blocks of readings, and two checks of pending requests
SERVE_PERIOD = 0.05
SERVE_PERIOD_NS = round(SERVE_PERIOD * NS_PER_S)


class ComIdentification(RobotNode[Parameters]):
    """Captures postures, records walks and identifies from both, by topics and services.

    Args:
        options: those of RobotNode.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "com_identification", Parameters, subject="identification", **options
        )
        p = self.parameters
        self._settings = declare_settings(self, p.settings)
        self._config = self.require_config("its feet and their force sensors")
        if not self._config.feet:
            raise ParameterError(
                "robot_config", p.robot_config, "give it feet with force sensors"
            )
        self._current: Session | None = None
        self._check: ModelCheckResult | None = None
        self._period = 0  # number of the current SERVE_PERIOD
        self._stream = InputWatch(p.end_of_stream)

        publisher = self.create_publisher
        self._state = publisher(
            msgs.IdentificationState, "identification/state", RESULT
        )
        self._result = publisher(
            msgs.IdentificationResult, "identification/result", LATCHED
        )
        self._checks = publisher(msgs.ModelCheck, "identification/model_check", RESULT)
        self._markers = MarkerOutput(self, "identification/markers", 3.0)
        self._health = HealthWatch(p.health_record, p.robot_serial, self.get_logger())
        self._jobs = JobServices(self, self._session, self._on_found)
        self._walks = WalkServices(self, self._session, self._on_walk)
        self._jobs.offer(
            self, IdentifyWalk, "identify_walk", self._walks.begin_identification
        )
        self._postures = PostureServices(
            self, self._session, self._reasons, self._publish_result
        )
        self.lockstep.held = lambda: self._jobs.busy
        self.follow_robot_description()
        self.follow_joint_states(
            self._on_joints, depth=EVERY_SAMPLE, with_problems=True
        )
        if self._settings.fit.use_imu:
            self._listen(Imu, "imu", SensorBuffer.add_imu)
        for index, foot in enumerate(self._config.feet):
            add = partial(SensorBuffer.add_wrench, foot=index)
            self._listen(WrenchStamped, foot.wrench_topic, add)
        self.subscribe(PointStamped, "known_com", self._on_known_com, EVERY_SAMPLE)
        self.subscribe(
            msgs.CentroidalDiagnosis, "diagnosis", self._on_diagnosis, EVERY_SAMPLE
        )
        self.subscribe(msgs.WalkState, "gait/state", self._on_walk_state)
        self.create_steady_timer(SERVE_PERIOD, self._on_serve)
        self.create_steady_timer(1.0 / p.state_rate_hz, self._on_state)
        if p.check_rate_hz > 0.0:
            self.create_steady_timer(1.0 / p.check_rate_hz, self._on_check)

    def use_model(self, model: RobotModel) -> None:
        """Starts a session with a new model.

        Args:
            model: with the sole frames of the configuration.

        Raises:
            ConfigError, ParameterError: it does not fit the configuration; see Session.
        """
        p = self.parameters
        if p.urdf_file:
            model = replace(model, path=Path(p.urdf_file))
        session = Session(model, self._config, self._settings, p)
        self._close_session()
        self._walks.restart()
        self._current = session
        self._open_store()
        self._health.start(session, p.com_tolerance, p.mass_tolerance)
        self._publish_result()

    def destroy_node(self) -> None:
        """Ends the computations and closes the file of postures."""
        self._close_session()
        self._walks.close()
        self._health.close()
        super().destroy_node()

    def _open_store(self) -> None:
        """Opens the file of postures; as long as that fails, logs why, throttled."""
        session = self._current
        if session is None or session.opened is not None:
            return
        try:
            store = session.store
            self.get_logger().info(f"{len(store.postures)} postures in {store.path}")
        except StoreError as error:
            self.log.warn("storage", f"no posture can be captured: {error}")

    def _close_session(self) -> None:
        self._jobs.cancel()
        if self._current is not None:
            self._current.close()

    # --- inputs ------------------------------------------------------------------------------
    def _on_joints(self, sample: JointSample) -> None:
        self._stream.received()
        if self._current is not None:
            self._current.buffer.add_joints(sample)
        period = sample.time_ns // SERVE_PERIOD_NS
        if period != self._period and self.lockstep.awaited:
            self._period = period
            self._serve_captures()

    def _listen(self, kind: type, topic: str, add: Callable[..., None]) -> None:
        """Adds the messages of a sensor to the session's buffer."""

        def on_message(msg: Any, time_ns: int) -> None:
            if self._current is not None:
                add(self._current.buffer, msg, time_ns)

        self.subscribe(kind, topic, on_message, EVERY_SAMPLE)

    def _on_known_com(self, msg: PointStamped, _: int) -> None:
        if self._current is not None and (problem := self._current.add_known_com(msg)):
            self.log.warn("known_com", f"a point of known_com is not used: {problem}")

    def _on_diagnosis(self, msg: msgs.CentroidalDiagnosis, _: int) -> None:
        if self._current is not None:
            self._current.causes = [cause for cause in msg.culprits if cause.lasting]

    def _on_walk_state(self, msg: msgs.WalkState, _: int) -> None:
        if self._current is not None and isfinite(msg.com_offset_std[0]):
            self._current.walk_state = msg

    def on_joints_timeout(self, reason: str) -> None:
        """Logs it as information, as the end of a played recording is no fault.

        Args:
            reason: in words.
        """
        self.get_logger().info(reason)

    # --- timers ------------------------------------------------------------------------------
    def _on_serve(self) -> None:
        """Serves pending requests; in lockstep captures are served by the stamps."""
        if not self.lockstep.awaited:
            self._serve_captures()
        self._jobs.serve()
        self._walks.serve()

    def _serve_captures(self) -> None:
        session = self._current
        if session is not None:
            session.buffer.hand_over()
            self._postures.store_finished(session, ended=self._stream.timed_out())
            session.describe_one()
        self._postures.serve()

    def _on_state(self) -> None:
        session = self._current
        msg = msgs.IdentificationState(
            reasons=self._reasons(), capturing=self._postures.waiting
        )
        msg.job, msg.progress, msg.step = self._jobs.state
        if session is not None:
            state = session.recorder.state(session.buffer.now_ns)
            msg.header.stamp = ns_to_stamp(session.buffer.newest_ns)
            msg.header.frame_id = session.frame
            msg.state = int(state.status)
            msg.reasons = list(dict.fromkeys((*msg.reasons, *state.reasons)))
            msg.seconds, msg.seconds_required = (
                state.seconds,
                session.recorder.options.collect_time,
            )
        if session is not None and session.opened is not None:
            postures = session.opened.postures
            msg.storage, msg.postures = str(session.opened.path), len(postures)
            if postures:
                msg.newest = max(postures)
                msg.newest_label = postures[msg.newest].label
        self._state.publish(msg)

    def _on_check(self) -> None:
        self._open_store()
        session = self._current
        if session is None:
            return
        now_ns = session.buffer.now_ns
        posture = session.recorder.latest(now_ns=now_ns)
        self._check = session.check.update(posture)
        self._health.update(posture)
        stamp = ns_to_stamp(session.buffer.newest_ns)
        self._checks.publish(numpy_to_model_check(self._check, stamp, session.frame))
        if self._markers.wanted:
            self._markers.set_header(session.frame, stamp)
            self._markers.show(session.markers(self._markers, self._check))

    def diagnose(self) -> Diagnosis:
        """Returns whether the model agrees with the feet, and whether postures can be captured."""
        session, check = self._current, self._check
        if session is None or check is None:
            return Diagnosis(diagnostics.WARN, self.waiting or "starting")
        level, text = _health(session, check)
        if level == diagnostics.OK and self._health.warning:
            level, text = diagnostics.WARN, self._health.warning
        offset_mm = 1e3 * float(abs(check.model_part @ check.model_part) ** 0.5)
        values: dict[str, object] = {
            "verdict": check.verdict.name,
            "reason": check.reason,
            "model_com_error_mm": offset_mm,
            "tilt_rad": check.tilt,
            "mass_on_feet_kg": check.mass,
            "model_mass_kg": check.model_mass,
            "state": session.recorder.state(session.buffer.now_ns).status.name,
            "postures": len(session.opened.postures)
            if session.opened is not None
            else 0,
            "dropped": str(session.recorder.dropped),
            "storage": str(session.path or ""),
            "record": self._health.warning,
        }
        return Diagnosis(level, text, values)

    # --- for the services --------------------------------------------------------------------
    def _session(self) -> Session:
        if self._current is None:
            raise CaptureRefused(self.waiting)
        return self._current

    def _reasons(self) -> list[str]:
        """Why nothing can be captured, beyond the recorder's reasons."""
        session = self._current
        if session is None:
            return [self.waiting]
        return [text for text in (session.problem, session.buffer.problem) if text]

    def _on_found(self) -> None:
        self._publish_result()
        self._health.add(self._session())

    def _on_walk(self, *found: Any) -> None:
        self._publish_result()
        self._health.add_walk(*found)

    def _publish_result(self) -> None:
        if self._current is not None:
            self._result.publish(self._current.result_message())


def _health(session: Session, check: ModelCheckResult) -> tuple[bytes, str]:
    state = session.recorder.state(session.buffer.now_ns)
    if session.problem or session.buffer.problem:
        return diagnostics.ERROR, session.problem or session.buffer.problem
    if state.status in (
        CaptureStatus.UNKNOWN,
        CaptureStatus.WAITING,
        CaptureStatus.REFUSED,
    ):
        return diagnostics.WARN, " ".join(state.reasons)
    if check.verdict is ModelVerdict.UNKNOWN:
        return diagnostics.OK, check.reason or "the robot moves"
    if check.verdict is ModelVerdict.CONSISTENT:
        return diagnostics.OK, "the model is consistent with the feet"
    return diagnostics.WARN, check.reason
