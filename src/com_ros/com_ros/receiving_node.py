"""A node's inputs: subscriptions, the checks of their messages, the parameters about them."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from geometry_msgs.msg import Twist, WrenchStamped
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState

from com_model import Foot, RobotModel
from com_ros import diagnostics, qos
from com_ros.conversions import stamp_to_ns
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
from com_ros.joint_input import JointInput, JointSample
from com_ros.lockstep import LockstepAnswers
from com_ros.parameters import RobotParameters, declare
from com_ros.raw_messages import Reader
from com_ros.serving_node import ServingNode
from com_ros.stream import Backlog, RateLimit, Stream

P = TypeVar("P", bound=RobotParameters)

# messages of a stream that may wait while a node is busy: 0.5 s at 1 kHz
EVERY_SAMPLE = 500
# messages that a simulator publishes for each sample
SENSORS = Imu, WrenchStamped, JointState


class ReceivingNode(ServingNode, Generic[P]):
    """Receives joint_states, imu, wrenches and cmd_vel; drops what cannot be, with the reason.

    Args:
        name: of the node.
        parameters: frozen dataclass of the node's parameters; see com_ros.parameters.
        **options: of rclpy's Node.

    Attributes:
        parameters: current values.
        joints: converts joint_states, one for each model; None before the first.
        joint_watch: measures how long ago usable joint_states were received.
        meter: rate and latency of the node's results.
        lockstep: answers to a simulator that waits for this node.
    """

    def __init__(self, name: str, parameters: type[P], **options: Any) -> None:
        super().__init__(name, **options)
        self.parameters: P = declare(self, parameters, self._change_parameters)
        self.joints: JointInput | None = None
        self._bounded_model: RobotModel | None = None
        self._backlogs: list[Backlog] = []
        self._bounds = InputBounds(self.parameters.input_limits)
        self._bounded: JointInput | None = None
        # by the name of the parameter that says when a value is stale
        self._inputs: list[tuple[str, ImuInput | WrenchInputs | InputWatch]] = []
        self.joint_watch = InputWatch(self._timeout("joint_timeout"))
        self._inputs.append(("joint_timeout", self.joint_watch))
        self.meter = diagnostics.RateMeter()
        self.lockstep = LockstepAnswers(self)
        self._joint_states: Stream | None = None
        self._flush: Callable[[], None] = lambda: None
        self._on_sample: Callable[[JointSample], None] = lambda _: None
        self._handles_problems = False
        self._rate = RateLimit(self._sample_rate)
        self._simulated_time = self.get_parameter("use_sim_time").value

    # --- to be overridden ------------------------------------------------------------------------
    @property
    def waiting(self) -> str:
        """What is missing for a model, and how to fix it; empty when there is a model."""
        return ""

    def on_restart(self, jump_s: float) -> None:
        """Called when the stamps of joint_states have moved to another time line for good.

        Args:
            jump_s: s, from the old time line to the new; 0 where stamps were zero before.
        """

    def apply_parameters(self, new: P) -> None:
        """Applies changed live parameters; to be overridden.

        Args:
            new: the new values; self.parameters still has the old ones.

        Raises:
            ComModelError, ValueError: they are refused; the text is the reason.
        """

    # --- inputs ----------------------------------------------------------------------------------
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

    # --- inside ----------------------------------------------------------------------------------
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

    def _set_bounds(self, parameters: P) -> None:
        limits = parameters.input_limits
        self._bounds, self._bounded = InputBounds(limits, self._bounded_model), None

    def _change_parameters(self, new: P) -> None:
        self.apply_parameters(new)
        self._set_bounds(new)
        self.parameters = new
        self._rate.set(self._sample_rate)
        for name, inputs in self._inputs:
            inputs.timeout_s = self._timeout(name)
        if self.joints is not None:
            self.joints.timeout_s = self.joint_watch.timeout_s
