"""Leads a robot through motions, step by step, with an operator or a hoist."""

import time
from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.client import Client
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from com_identification.exceptions import IdentificationError
from com_identification.planning.feasible import GuidedRobot
from com_model import RobotModel
from com_model.arrays import Array
from com_model.joint_path import JointPath
from com_ros import qos
from com_ros.conversions import NS_PER_S, numpy_to_joint_trajectory
from com_ros.exceptions import ComRosError
from com_ros.joint_input import JointSample
from com_ros.parameters import JointTimeout, RobotParameters, parameter
from com_ros.robot_node import RobotNode

TICK = 0.05  # s, in real time; in lockstep by the stamps of joint_states
TICK_NS = round(TICK * NS_PER_S)

Script = Generator[None, None, None]  # steps in sequence; yields while it waits


class TourError(IdentificationError):
    """A guided motion cannot continue; the message says why and how to fix it."""


@dataclass(frozen=True)
class GuidedParameters(RobotParameters, JointTimeout):
    """Parameters of a node that leads a robot through motions."""

    urdf_file: str = parameter(
        "",
        "path of the URDF, to find the meshes with which paths must not collide; empty: only "
        "meshes of installed packages",
    )
    automatic: bool = parameter(
        False,
        "continue automatically; false: wait for ~/next before each motion and capture",
    )
    hoist: str = parameter(
        "",
        "service (std_srvs/SetBool) that lifts the robot and puts it down, e.g. simulator/hoist; "
        "empty: the feet stay where they are",
    )
    hoist_time: float = parameter(
        3.0, "s, time that the hoist takes, up or down", (0.1, 600.0)
    )
    speed: float = parameter(
        0.3,
        "rad/s or m/s, maximum speed of any joint; see also velocity_fraction",
        (0.001, 5.0),
    )
    velocity_fraction: float = parameter(
        0.2, "fraction of the URDF's velocity limits, at most", (0.001, 1.0)
    )
    tracking_tolerance: float = parameter(
        0.15, "rad or m, by which a joint may miss its target", (0.001, 3.0)
    )
    margin: float = parameter(
        0.005,
        "m, margin of the URDF's CoM inside the support polygon on the way",
        (0.0, 1.0),
    )
    answer_timeout: float = parameter(120.0, "s to wait for an answer", (0.1, 3600.0))


P = TypeVar("P", bound=GuidedParameters)


class GuidedMotion(RobotNode[P]):
    """Moves a robot by a script, with an operator or a hoist.

    Subscribes joint_states; publishes joint_trajectory and ~/status; services ~/next and ~/stop;
    with the parameter hoist it calls that. The script ends, and says why, when joint_states time
    out or a joint misses its target; a moving robot then stops where it is on its path.
    `options` are those of RobotNode.

    Args:
        name: of the node.
        parameters: dataclass of its parameters.

    Attributes:
        finished: whether the script has ended.
    """

    def __init__(self, name: str, parameters: type[P], **options: Any) -> None:
        super().__init__(name, parameters, **options)
        p = self.parameters
        self._config = self.require_config()
        self._state: GuidedRobot | None = None
        self._q: Array | None = None
        self._time_ns = 0
        self._way: JointPath | None = None  # on which the robot moves
        self._since_ns = 0  # ns, when it began
        self._tick = 0  # number of the current TICK
        self._begun = False
        self._confirmed = False
        self.finished = False
        self._trajectory = self.create_publisher(
            JointTrajectory, "joint_trajectory", 10
        )
        self._status = self.create_publisher(String, "~/status", qos.LATCHED)
        self._hoist = self.create_client(SetBool, p.hoist) if p.hoist else None

    def begin_script(self) -> None:
        """Subscribes the robot's topics, and begins as soon as all that is needed is there."""
        self.follow_robot_description()
        self.follow_joint_states(self._on_joints)
        self.serve_trigger("~/next", self._on_next, needs_model=False)
        self.serve_trigger(
            "~/stop", lambda: self._end("stopped by ~/stop"), needs_model=False
        )
        self._script = self.script()
        self.lockstep.held = lambda: not self._begun and bool(self._unconnected())
        self.create_steady_timer(TICK, self._on_timer)

    @abstractmethod
    def script(self) -> Script:
        """Yields while it waits; what the robot does, step by step."""

    def use_model(self, model: RobotModel) -> None:
        """Prepares the motions of a model.

        Args:
            model: with the sole frames of the configuration.

        Raises:
            ComRosError: the robot moves.
        """
        if self._way is not None:
            raise ComRosError("the robot moves: a new description has to wait")
        p = self.parameters
        if p.urdf_file:
            model = replace(model, path=Path(p.urdf_file))
        feet, nominal = self._config.feet, self._config.nominal_posture(model)
        speeds = p.speed, p.velocity_fraction
        self._state, self._q = (
            GuidedRobot(model, feet, nominal, p.margin, *speeds),
            None,
        )

    # --- inputs ------------------------------------------------------------------------------
    def on_restart(self, jump_s: float) -> None:
        """Stops a moving robot, as the stamps that follow are those of another clock.

        Args:
            jump_s: s, from the old time line to the new.
        """
        if self._way is not None:
            self._end(
                f"the stamps of joint_states jumped by {jump_s:.3g} s: check the clocks"
            )

    def _on_joints(self, sample: JointSample) -> None:
        self._q, self._time_ns = sample.position, sample.time_ns
        # Between those of com_identification, so that an answer to one tick has come by the next.
        tick = (sample.time_ns + TICK_NS // 2) // TICK_NS
        if tick != self._tick and self.lockstep.awaited:
            self._tick = tick
            self._on_tick()

    def _on_timer(self) -> None:
        if not self.lockstep.awaited:
            self._on_tick()

    def on_joints_timeout(self, reason: str) -> None:
        """Logs that joint_states are stale; a moving robot is stopped by the next tick.

        Args:
            reason: in words.
        """
        self.get_logger().warning(reason)

    def _on_next(self) -> None:
        if self.finished or self.parameters.automatic:
            raise ComRosError("no confirmation is awaited")
        self._confirmed = True

    def _on_tick(self) -> None:
        if self.finished:
            return
        try:
            if self._way is not None:
                self._check_motion(self._way)
            next(self._script)
        except StopIteration:
            self._end("", well=True)
        except IdentificationError as stopped:
            self._end(str(stopped))

    def _check_motion(self, way: JointPath) -> None:
        if self.joint_watch.stale:
            raise TourError(
                f"no joint_states for {self.joint_watch.age_s:.2f} s: check its driver"
            )
        q, most = self._position(), self.parameters.tracking_tolerance
        if off := self._need().farthest(q, self._place_on(way, q), most):
            raise TourError(
                f"{off} its target: is it blocked, or is there no subscriber of joint_trajectory?"
            )

    def _target(self) -> Array:
        """Where the robot that moves should be now."""
        if self._way is None:
            return self._position()
        return self._way.sample((self._time_ns - self._since_ns) / NS_PER_S)[0]

    def _place_on(self, way: JointPath, q: Array) -> Array:
        """The place nearest to q of those where the joints may be now."""
        t = (self._time_ns - self._since_ns) / NS_PER_S
        # s, by which a robot may lag behind its path
        targets = [way.sample(t - late)[0] for late in np.linspace(0.0, 1.5, 5)]
        return np.clip(q, np.min(targets, axis=0), np.max(targets, axis=0))

    # --- for the script ------------------------------------------------------------------------
    def _begin(self) -> Generator[None, None, GuidedRobot]:
        """Waits for all that is needed, and until the robot stands as expected."""
        while missing := self._missing():
            if self.log.warn(missing[:12], f"waits for {missing}"):
                self._status.publish(String(data=f"waits for {missing}"))
            yield
        self._begun = True
        return self._need()

    def _missing(self) -> str:
        """What the script cannot begin without, and how to provide it; empty: nothing."""
        if self._state is None:
            return self.waiting or "robot_description"
        if self._q is None or self.joint_watch.stale:
            return "joint_states: start the robot's driver"
        return self._unconnected()

    def _unconnected(self) -> str:
        """What of the other nodes is missing, and how to provide it; empty: nothing."""
        if self._hoist is not None and not self._hoist.service_is_ready():
            return f"the service {self._hoist.srv_name}: start the hoist"
        if not self._trajectory.get_subscription_count():
            return f"a subscriber of {self._trajectory.topic_name}: start the robot's drivers"
        return ""

    def _move(self, ways: list[JointPath]) -> Script:
        state, most = self._need(), self.parameters.tracking_tolerance
        for way in ways:
            self._publish(way)
            yield from self._wait(way.end)
            state.target = way.q[-1]
        while state.farthest(self._position(), state.target, most):
            yield  # for as long as it may lag behind
        self._way = None

    def _carry(self, q: Array, what: str) -> Script:
        """Lifts the robot, moves it in the air, and puts it down.

        Args:
            q: (n,) rad or m, the posture in which it is put down.
            what: Of the posture, for the operator.
        """
        state = self._need()
        yield from self._confirm(f"to be lifted and go to {what}")
        yield from self._lift(True)
        yield from self._move(state.in_air(state.target, q))
        yield from self._lift(False)

    def _lift(self, up: bool) -> Script:
        """By the hoist, if there is one."""
        if self._hoist is not None:
            self._report("lifting the robot" if up else "putting the robot down")
            check((yield from self._ask(self._hoist, SetBool.Request(data=up))))
            yield from self._wait(self.parameters.hoist_time)

    def _ask(self, client: Client, request: Any) -> Generator[None, None, Any]:
        """The answer of a service; see _await."""
        return self._await(client.call_async(request), client.srv_name)

    def _await(self, future: Future, name: str) -> Generator[None, None, Any]:
        """Waits for a future; a TourError names the service or action that does not answer."""
        deadline = time.monotonic() + self.parameters.answer_timeout
        while not future.done():
            if time.monotonic() > deadline:
                future.cancel()
                raise TourError(
                    f"{name} did not answer within {self.parameters.answer_timeout:g} s: is its "
                    "node running?"
                )
            yield
        return future.result()

    def _confirm(self, what: str) -> Script:
        if self.parameters.automatic:
            return
        self._confirmed = False
        self._report(f"waits for {self.resolve_service_name('~/next')} {what}")
        while not self._confirmed:
            yield

    def _wait(self, seconds: float) -> Script:
        begin_ns = self._time_ns
        while (
            0 <= self._time_ns - begin_ns < seconds * NS_PER_S
        ):  # no longer when a clock jumps
            if self.joint_watch.age_s > self.parameters.answer_timeout:
                raise TourError("joint_states have timed out: check its driver")
            yield

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, way: JointPath) -> None:
        names, q = self._need().model.joint_names, self._position()[None]
        start = JointPath(np.zeros(1), q, np.zeros_like(q))
        self._way, self._since_ns = start.followed_by(way), self._time_ns
        self._trajectory.publish(
            numpy_to_joint_trajectory(names, way.time, way.q, way.qd, Time())
        )

    def _end(self, reason: str, *, well: bool = False) -> None:
        if self._way is not None:
            stop = self._place_on(self._way, self._position())[None]
            # it stops within 0.3 s
            self._publish(JointPath(np.array([0.3]), stop, np.zeros_like(stop)))
        self._way, self.finished = None, True
        if not well:
            self._report(f"the tour ends: {reason}")
            self.get_logger().error(f"the tour ends: {reason}")

    def _report(self, text: str) -> None:
        self.get_logger().info(text)
        self._status.publish(String(data=text))

    def _need(self) -> GuidedRobot:
        if self._state is None:
            raise TourError(self.waiting)
        return self._state

    def _position(self) -> Array:
        if self._q is None:
            raise TourError("no joint_states: check its driver")
        return self._q


def check(answer: Any) -> Any:
    """Checks the answer of a service or action.

    Args:
        answer: with the fields success and message.

    Returns:
        The answer.

    Raises:
        TourError: it is a refusal; says why.
    """
    if not answer.success:
        raise TourError(answer.message)
    return answer
