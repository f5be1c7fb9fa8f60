"""The base of the suite's nodes: a node file shows its topics and one call into the maths.

    @dataclass(frozen=True)
    class Parameters(RobotParameters, JointTimeout, WrenchTimeout):
        gain: float = live_parameter(4.0, "1/s, feedback gain", (0.0, 100.0))

    class MyNode(RobotNode[Parameters]):
        def __init__(self, **options):
            super().__init__("my_node", Parameters, **options)      # self.parameters, self.log
            self._config = self.require_config("its feet")            # its configuration
            self._output = self.create_publisher(CenterOfMass, "com", qos.RESULT)
            self.follow_robot_description()                          # calls use_model
            self.follow_joint_states(self._on_joints)                # calls it with a JointSample
            self._wrenches = self.follow_wrenches(self._config.feet) # what is current at a time
            self._imu = self.follow_imu()
            self.subscribe(TrunkCom, "trunk_com", self._on_com)      # (msg, time_ns); best effort
            self.serve_trigger("~/start", self._start)               # returns or raises the text
            self.create_steady_timer(0.1, self._on_display)
            self._jobs = self.background_jobs()                      # .do(work, then), com_ros.jobs

        def use_model(self, model):        # each new model, with the configuration's sole frames;
                                           # raise to keep the one before
            self._gait = Gait(model)

        def on_joints_timeout(self, reason): ...   # once, when joint_states become stale
        def on_restart(self, jump_s): ...          # the stamps of joint_states have jumped for good
        def watch(self): ...                       # several times a second, also without input
        def apply_parameters(self, new): ...       # live parameters; raise to refuse them
        def diagnose(self) -> Diagnosis: ...       # once a second, for /diagnostics

In setup.cfg: my_node = my_package.nodes.my_node:MyNode.main

What the base does: the robot description from the parameter or the latched topic, a new one swaps
the model; joint_states by name, each defect named, stale ones reported; one throttled warning for
each thing that is missing; rate and latency in /diagnostics; live parameters checked, applied and
refused with the reason: joint_timeout, wrench_timeout, imu_timeout and cmd_vel_timeout to the
inputs, rate_hz to the samples of joint_states, the others by apply_parameters. An exception in a
callback is a bug that is reported with its traceback, and ends no node: the message is dropped, the
request refused, the timer called again. A timer that raises an error of the suite ends the node,
which cannot work with what it has.

Every stamped message goes through com_ros.stream first: a node that is too slow uses the newest
one, stamps that jump are held back (com_ros.stream), bytes that are no message and numbers that
cannot be are dropped (com_ros.input_limits); each is counted and reported on /diagnostics, with how
to fix it.

One clock policy: a sample's time is its stamp, or the node's clock at receipt where the stamp is
zero; values are combined by these times, so that a replayed bag gives the same result. Only the
absence of messages is measured in real time, by timers on a steady clock.
"""

import math
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from geometry_msgs.msg import Twist, WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.service import Service
from rclpy.timer import Timer
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger

from com_model import Foot, RobotConfig, RobotModel
from com_model.checks.config_check import config_warnings
from com_model.exceptions import ComModelError
from com_ros import diagnostics, qos
from com_ros.conversions import stamp_to_ns
from com_ros.diagnostics import Diagnosis, ThrottledLog
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.input_limits import InputBounds
from com_ros.inputs import (
    ImuInput,
    ImuPairing,
    InputWatch,
    Paired,
    VelocityInput,
    WrenchInputs,
    imu_to_values,
)
from com_ros.jobs import BackgroundJobs
from com_ros.joint_input import JointInput, JointSample
from com_ros.lockstep import LockstepAnswers
from com_ros.main import run
from com_ros.parameters import AssumedJoints, RobotParameters, declare
from com_ros.raw_messages import Reader
from com_ros.robot_description import RobotDescription
from com_ros.services import answering
from com_ros.stream import Backlog, Faults, RateLimit, Stream

P = TypeVar("P", bound=RobotParameters)

# messages of a stream that may wait while a node is busy: 0.5 s at 1 kHz
EVERY_SAMPLE = 500
# messages that a simulator publishes for each sample
SENSORS = Imu, WrenchStamped, JointState


class RobotNode(Node, Generic[P]):
    """Base class of nodes that work on one robot: model, inputs, parameters, diagnostics.

    The module's docstring shows a subclass. `options` are passed to rclpy's Node.

    Args:
        name: of the node.
        parameters: frozen dataclass of the node's parameters; see com_ros.parameters.
        subject: what the node's status on /diagnostics is about; empty: the node's name.

    Attributes:
        parameters: current values.
        config: the robot's configuration, its feet with the topics of foot_forces where the
            parameter `wrenches` is "estimated"; None where robot_config is not given.
        log: for throttled warnings.
        description: where the model comes from.
        joints: converts joint_states, one for each model; None before the first.
        joint_watch: measures how long ago usable joint_states were received.
        faults: what was dropped of the inputs.
        meter: rate and latency of the node's results.
        lockstep: answers to a simulator that waits for this node.
    """

    def __init__(
        self, name: str, parameters: type[P], *, subject: str = "", **options: Any
    ) -> None:
        super().__init__(name, **options)
        self.parameters: P = declare(self, parameters, self._change_parameters)
        if isinstance(self.parameters, AssumedJoints):
            self.parameters.assumed()  # what cannot be used ends the node now, not with a model
        path = self.parameters.robot_config
        self.config = RobotConfig.from_file(path) if path else None
        source = getattr(self.parameters, "wrenches", "measured")
        if self.config is not None and source == "estimated":
            self.config = self.config.with_wrench_topics("{}_estimate")
        self.log = ThrottledLog(self.get_logger())
        self.faults = Faults(self.log)
        self.joints: JointInput | None = None
        self._backlogs: list[Backlog] = []
        self._threads: list[BackgroundJobs] = []
        self._bounds = InputBounds(self.parameters.input_limits)
        self._bounded: JointInput | None = None
        # by the name of the parameter that says when a value is stale
        self._inputs: list[tuple[str, ImuInput | WrenchInputs | InputWatch]] = []
        self.joint_watch = InputWatch(self._timeout("joint_timeout"))
        self._inputs.append(("joint_timeout", self.joint_watch))
        self.meter = diagnostics.RateMeter()
        self.lockstep = LockstepAnswers(self)
        self.description = RobotDescription(
            self, self._use_model, self.log, self._guarded
        )
        self._joint_states: Stream | None = None
        self._flush: Callable[[], None] = lambda: None
        self._on_sample: Callable[[JointSample], None] = lambda _: None
        self._handles_problems = False
        self._rate = RateLimit(self._sample_rate)
        self._simulated_time = self.get_parameter("use_sim_time").value
        self._diagnostics = diagnostics.Diagnostics(self, subject or name)
        period_s = min(self.joint_watch.timeout_s / 4.0, 0.25)
        self.create_steady_timer(period_s, self._on_watch)
        self.create_steady_timer(1.0, self._on_diagnostics)

    # --- to be overridden ----------------------------------------------------------------------
    @classmethod
    def main(cls) -> int:
        """Runs the node until it is stopped; the entry point of its executable.

        Returns:
            The exit code of the process, see com_ros.main.run.
        """
        return run(cls)

    def use_model(self, model: RobotModel) -> None:
        """Creates what depends on the model; called with each new one, to be overridden.

        Args:
            model: with the sole frames of the configuration attached.

        Raises:
            ComModelError: the model cannot be used; the one before stays in use.
        """

    def assumed_joints(self, model: RobotModel) -> dict[str, float]:
        """Positions, rad or m, of joints that joint_states may lack; to be overridden.

        Args:
            model: the robot.
        """
        p = self.parameters
        return p.assumed() if isinstance(p, AssumedJoints) else {}

    def on_joints_timeout(self, reason: str) -> None:
        """Called once each time that joint_states become stale; logs the reason.

        Args:
            reason: which topic, since when, and how to fix it.
        """
        self.get_logger().error(reason)

    def on_restart(self, jump_s: float) -> None:
        """Called when the stamps of joint_states have moved to another time line for good.

        Args:
            jump_s: s, from the old time line to the new; 0 where stamps were zero before.
        """

    def watch(self) -> None:
        """Called several times a second by a timer on a steady clock, also without input."""

    def apply_parameters(self, new: P) -> None:
        """Applies changed live parameters; to be overridden.

        Args:
            new: the new values; self.parameters still has the old ones.

        Raises:
            ComModelError, ValueError: they are refused; the text is the reason.
        """

    def diagnose(self) -> Diagnosis:
        """Returns the status for /diagnostics; the base class adds rate, latency and robot name."""
        waiting = self.waiting
        return Diagnosis(
            diagnostics.ERROR if waiting else diagnostics.OK, waiting or "running"
        )

    # --- the robot -----------------------------------------------------------------------------
    @property
    def waiting(self) -> str:
        """What is missing for a model, and how to fix it; empty when there is a model."""
        return self.description.waiting

    @property
    def robot_name(self) -> str:
        """Name of the robot on /diagnostics; empty without a model."""
        return "" if self.description.model is None else self.description.model.name

    def follow_robot_description(self) -> None:
        """Loads the parameter robot_description, if given, and subscribes its topic."""
        self.description.follow(self.parameters.robot_description)

    def require_config(self, needs: str = "its feet") -> RobotConfig:
        """Returns the robot's configuration.

        Args:
            needs: what of it the node needs, for the error's text.

        Raises:
            ParameterError: robot_config is not given.
        """
        if self.config is None:
            fix = f"give the path of the robot's configuration (YAML), with {needs}"
            raise ParameterError("robot_config", "", fix)
        return self.config

    # --- inputs --------------------------------------------------------------------------------
    def follow_joint_states(
        self,
        on_sample: Callable[[JointSample], None],
        *,
        depth: int = 1,
        with_problems: bool = False,
    ) -> None:
        """Subscribes joint_states; `self.joints` sorts them by name.

        With a parameter rate_hz, samples that arrive more often by their stamps are left out.
        A sample whose `error` is set, or that arrives without a model, causes a warning and does
        not count as received, so that unusable joint_states time out.

        Args:
            on_sample: called with each sample that is due.
            depth: number of messages that may wait while the node is busy.
            with_problems: on_sample gets samples with an `error` too, and they count as
                received.
        """
        self._on_sample, self._handles_problems = on_sample, with_problems
        on_jump, use = (self._restart, self.joint_watch.extend), self._on_joint_states
        self._joint_states = self._subscribe(
            JointState, "joint_states", use, depth, *on_jump
        )

    def follow_joints_with_imu(
        self,
        use: Callable[[list[Paired[JointSample]]], None],
        timeout_s: float,
        wait_s: float,
        on_problem: Callable[[JointSample], None] | None = None,
    ) -> None:
        """Subscribes joint_states and imu, and pairs those of the same instants.

        Args:
            use: called with the samples that need not wait any longer, in order; the list may be
                empty. When joint_states time out, also with those that still wait.
            timeout_s: s, largest time between a joint sample and its reading of the IMU.
            wait_s: s of sample time that a joint sample waits at most.
            on_problem: called with samples that have an `error`, which then count as received.
        """
        pairing = ImuPairing[JointSample](timeout_s, wait_s)
        self.follow_joint_states(
            lambda sample: (
                on_problem(sample)
                if on_problem and sample.error
                else use(pairing.add_joints(sample.time_ns, sample))
            ),
            depth=EVERY_SAMPLE,
            with_problems=on_problem is not None,
        )
        self.subscribe(
            Imu,
            "imu",
            lambda msg, time_ns: use(pairing.add_imu(time_ns, imu_to_values(msg))),
            EVERY_SAMPLE,
        )
        self._flush = lambda: use(pairing.flush())

    def follow_wrenches(
        self,
        feet: Sequence[Foot],
        depth: int = 1,
        *,
        listens: bool = True,
        timeout: str = "wrench_timeout",
    ) -> WrenchInputs:
        """Subscribes the wrench topics of some feet.

        Args:
            feet: of the configuration.
            depth: number of messages of each foot that may wait while the node is busy.
            listens: false: nothing is subscribed.
            timeout: parameter that says when a wrench is stale.

        Returns:
            The wrenches, in the order of the feet.
        """
        inputs = WrenchInputs(feet, self._timeout(timeout))
        self._inputs.append((timeout, inputs))
        for index, foot in enumerate(feet if listens else ()):
            self.subscribe(
                WrenchStamped, foot.wrench_topic, partial(inputs.update, index), depth
            )
        return inputs

    def follow_imu(self, *, listens: bool = True, **texts: str) -> ImuInput:
        """Subscribes imu.

        Args:
            listens: false: nothing is subscribed.
            **texts: for the messages, see ImuInput.

        Returns:
            The readings; the parameter imu_timeout says when one is stale.
        """
        imu = ImuInput(self._timeout("imu_timeout"), **texts)
        self._inputs.append(("imu_timeout", imu))
        if listens:
            self.subscribe(Imu, "imu", imu.update)
        return imu

    def follow_velocity(self) -> VelocityInput:
        """Subscribes cmd_vel.

        Returns:
            The velocity; the parameter cmd_vel_timeout says when it is stale.
        """
        velocity = VelocityInput(self._timeout("cmd_vel_timeout"), self.faults)
        self._inputs.append(("cmd_vel_timeout", velocity))
        self.subscribe_with(Twist, "cmd_vel", velocity.receive, qos.stream(1))
        return velocity

    def subscribe(
        self,
        kind: type,
        topic: str,
        callback: Callable[[Any, int], None],
        depth: int = 1,
    ) -> None:
        """Subscribes stamped messages with best effort, through the checks of com_ros.stream.

        Args:
            kind: type of the messages.
            topic: its name.
            callback: called with each accepted message and its time, ns.
            depth: number of messages that may wait while the node is busy.
        """
        self._subscribe(kind, topic, callback, depth)

    def subscribe_with(
        self,
        kind: type,
        topic: str,
        callback: Callable[[Any], None],
        profile: QoSProfile,
    ) -> None:
        """Subscribes with another quality of service, without the checks of com_ros.stream.

        Args:
            kind: type of the messages.
            topic: its name.
            callback: called with each message; an exception drops the message.
            profile: quality of service.
        """
        self.create_subscription(kind, topic, self._guarded(callback), profile)

    @property
    def too_slow(self) -> str:
        """For which topic the node is too slow now, and how to fix it; empty for none."""
        for backlog in self._backlogs:  # a loop: it runs with each sample
            if backlog.problem:
                return backlog.problem
        return ""

    # --- services and timers -------------------------------------------------------------------
    def serve_trigger(
        self,
        name: str,
        action: Callable[[], Any],
        done: str = "",
        *,
        needs_model: bool = True,
    ) -> None:
        """Offers a std_srvs/Trigger service.

        Args:
            name: of the service.
            action: called for each request; returns the message of the response, or None for
                `done`, or raises why not (a ComModelError).
            done: message of the response to a request that was met.
            needs_model: refuse while there is no model.
        """

        def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            if needs_model and self.waiting:
                raise ComRosError(self.waiting)
            response.success, response.message = True, action() or done
            return response

        self.create_service(Trigger, name, answer)

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Any, **options: Any
    ) -> Service:
        """Offers a service, as rclpy's method of this name; no request ends the node.

        Args:
            srv_type: type of the service.
            srv_name: its name.
            callback: of a request and a response; an exception becomes a refusal, and one that is
                no ComModelError is reported as a bug.
            **options: of rclpy's method.
        """
        report = partial(self._report_bug, f"a request of {srv_name} was refused")
        answer = answering(srv_type, callback, report)
        return super().create_service(srv_type, srv_name, answer, **options)

    def create_timer(
        self, timer_period_sec: float, callback: Any, *rest: Any, **options: Any
    ) -> Timer:
        """Creates a timer, as rclpy's method of this name; no exception ends the node.

        Args:
            timer_period_sec: s.
            callback: its exceptions are ignored once the node or ROS has been shut down.
            *rest: of rclpy's method.
            **options: of rclpy's method.
        """

        def on_timer() -> None:
            try:
                callback()
            except InvalidHandle:
                pass  # the node was destroyed when the timer was due
            except ComModelError:  # it cannot work with what it has
                if self.context.ok():
                    raise
            except Exception as error:
                self._report_bug("a timer failed", error)

        return super().create_timer(timer_period_sec, on_timer, *rest, **options)

    def create_steady_timer(
        self, period_s: float, callback: Callable[[], None]
    ) -> Timer:
        """Creates a timer in real time, which keeps running when simulated time stops.

        Args:
            period_s: s.
            callback: its exceptions are ignored once the node or ROS has been shut down.
        """
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        return self.create_timer(period_s, callback, clock=clock)

    def background_jobs(self) -> BackgroundJobs:
        """Makes a thread for long computations, which ends with the node."""
        self._threads.append(BackgroundJobs(self))
        return self._threads[-1]

    def destroy_node(self) -> None:
        """Waits for the computation that runs in each thread, then destroys the node."""
        for jobs in self._threads:
            jobs.close()
        super().destroy_node()

    # --- inside --------------------------------------------------------------------------------
    def _subscribe(
        self,
        kind: type,
        topic: str,
        callback: Callable[[Any, int], None],
        depth: int,
        *on_jump: Callable[..., None],
    ) -> Stream:
        stream = Stream(
            self,
            self.resolve_topic_name(topic),
            callback,
            None
            if kind is JointState
            else lambda msg, name: self._bounds.problem(msg, name),
            self.faults,
            *on_jump,
        )
        sensor = topic if kind in SENSORS else ""
        read, deliver = Reader(kind), self._guarded(stream.update, sensor)

        def receive(data: Any) -> None:
            try:
                msg = read(data) if type(data) is bytes else data
            except Exception as error:
                problem = f"bytes on {stream.topic} are no {kind.__name__}: {error}"
                self.faults.add("undecodable", stream.topic, problem)
            else:
                deliver(msg)

        backlog = Backlog(self, kind, topic, depth, receive)
        if sensor:
            self.lockstep.sensors.append(backlog.subscription)
        self._backlogs.append(backlog)
        return stream

    def _use_model(self, model: RobotModel) -> None:
        if self.config is not None:
            model = self.config.attach(model)
            for warning in config_warnings(model, self.config):
                self.get_logger().warning(warning)
        assumed = self.assumed_joints(model)
        timeout_s = self._timeout("joint_timeout")
        joints = JointInput(model.joint_names, timeout_s, assumed)
        self.use_model(model)
        self.joints = joints
        self._set_bounds(self.parameters, model)

    def _set_bounds(self, parameters: P, model: RobotModel | None) -> None:
        self._bounds, self._bounded = InputBounds(parameters.input_limits, model), None

    def _restart(self, jump_s: float) -> None:
        self._rate.restart()
        if self.joints is not None and not jump_s:
            self.joints.restart()
        self.on_restart(jump_s)

    def _timeout(self, name: str) -> float:
        """A timeout by the name of its parameter, s."""
        return float(getattr(self.parameters, name, 1.0))

    @property
    def _sample_rate(self) -> float:
        """Highest rate of samples of joint_states, 1/s."""
        return float(getattr(self.parameters, "rate_hz", math.inf))

    def _change_parameters(self, new: P) -> None:
        self.apply_parameters(new)
        self._set_bounds(new, self.description.model)
        self.parameters = new
        self._rate.set(self._sample_rate)
        for name, inputs in self._inputs:
            inputs.timeout_s = self._timeout(name)
        if self.joints is not None:
            self.joints.timeout_s = self.joint_watch.timeout_s

    def _on_joint_states(self, msg: JointState, time_ns: int) -> None:
        sample = self._sample(msg, time_ns)
        if sample is None:
            return
        if sample.error and not self._handles_problems:
            if self.joints is not None:
                self.log.warn("joint_states", sample.error)
            return
        self.joint_watch.received()
        if self._rate.due(time_ns):
            self._on_sample(sample)
            # Without a simulated clock the system's time: reading it takes a tenth as long.
            now_ns = (
                self.get_clock().now().nanoseconds
                if self._simulated_time
                else time.time_ns()
            )
            self.meter.add(now_ns - time_ns)

    def _sample(self, msg: JointState, time_ns: int) -> JointSample | None:
        joints = self.joints
        if joints is None:
            return JointSample.unknown(
                0, self.waiting, time_ns, stamp_to_ns(msg.header.stamp)
            )
        if joints is not self._bounded:
            joints.set_bounds(self._bounds)
            self._bounded = joints
        count = joints.implausible
        sample = joints.update(msg, time_ns)
        if joints.implausible > count and sample is not None:
            self.faults.add(
                "implausible", "joint_states", sample.error or sample.warnings[-1]
            )
        slow = self.too_slow
        if slow and sample is not None:
            sample = sample._replace(warnings=(*sample.warnings, slow))
        return sample

    def _on_watch(self) -> None:
        self.description.warn_while_waiting()
        if self._joint_states is not None:
            self._watch_joints(self._joint_states.topic)
        self.watch()
        if self._joint_states is not None:
            self.lockstep.watch(self.joints is not None)

    def _watch_joints(self, topic: str) -> None:
        watch = self.joint_watch
        if watch.timed_out():
            age = f"none for {watch.age_s:.2f} s"
            self._flush()
            self.on_joints_timeout(f"{topic} timed out, {age}: check its driver")
        elif watch.stale and not watch.ever_received:
            self.log.warn(
                "joint_states",
                f"no joint_states yet on {topic}: start the robot's driver or its "
                "joint_state_broadcaster, or remap the topic",
            )

    def _on_diagnostics(self) -> None:
        self._simulated_time = self.get_parameter("use_sim_time").value
        found, name = self.diagnose(), self.robot_name
        values = {
            **self.meter.read(time.monotonic_ns()),
            **found.values,
            **self.faults.counts,
        }
        values["skipped"] = sum(backlog.skipped for backlog in self._backlogs)
        if name:
            values["model"] = name
        level, text = found.level, found.text
        for fault in (self.too_slow, self.faults.pop_recent()):
            if fault and fault not in text:
                level, text = max(level, diagnostics.WARN), f"{text}; {fault}"
        self._diagnostics.publish(level, text, values, name)

    def _report_bug(self, what: str, error: Exception) -> None:
        """Logs and counts an exception that is being handled, unless ROS was shut down."""
        if not self.context.ok():
            return
        self.faults.counts["failed"] += 1
        if self.log.warn(what, f"{what}: {type(error).__name__}: {error}"):
            self.get_logger().error(traceback.format_exc())

    def _guarded(
        self, callback: Callable[..., None], sensor: str = ""
    ) -> Callable[..., None]:
        """A callback whose exceptions drop the message.

        With a sensor's topic a simulator that waits gets its answer after it.
        """

        def guarded(msg: Any, *more: Any) -> None:
            try:
                callback(msg, *more)
            except Exception as error:
                self._report_bug(f"a {type(msg).__name__} was dropped", error)
            if sensor and self.lockstep.awaited:
                self.lockstep.received(sensor, stamp_to_ns(msg.header.stamp))

        return guarded
