"""An operator in software: moves a robot through postures and has its CoMs identified.

It asks com_identification for postures, moves the robot to each, has it captured, and at the end
has the links identified and the URDF written.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.

Publishes:
    joint_trajectory (trajectory_msgs/JointTrajectory): a whole motion from rest to rest, to start
        at once; when the tour stops on the way, the present positions.
    ~/status (std_msgs/String, latched): what it does, or what it waits for.

Calls com_identification's propose_postures, capture_posture, identify_links, export_urdf, and with
the parameter hoist a std_srvs/SetBool that lifts the robot.

Services (std_srvs/Trigger): ~/next goes on, unless `automatic`; ~/stop stops the robot and ends the
tour.

The feet stay where they are: com_identification must run with plan.keep_feet, or there must be a
hoist. It starts when all that it needs is there and the robot stands in its nominal
posture. The tour stops, and says why, when joint_states time out, a joint misses its target, or
too many postures in a row fail.

Parameters: see Parameters.
"""

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.client import Client
from std_msgs.msg import String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from com_identification.planning.feasible import Tour
from com_model import RobotModel
from com_model.arrays import Array
from com_model.joint_path import JointPath
from com_msgs.msg import ProposedPosture
from com_msgs.srv import CapturePosture, ExportUrdf, IdentifyLinks, ProposePostures
from com_ros import qos
from com_ros.conversions import NS_PER_S, numpy_to_joint_trajectory
from com_ros.exceptions import ComRosError
from com_ros.joint_input import JointInput, JointSample
from com_ros.main import run
from com_ros.parameters import JointTimeout, RobotParameters, parameter
from com_ros.robot_node import RobotNode

TICK = 0.05  # s, in real time; in lockstep by the stamps of joint_states
TICK_NS = round(TICK * NS_PER_S)
ARRIVAL_TIMEOUT = 3.0  # s, after which a joint that is not at its target is blocked
STOP_TIME = 0.3  # s, in which a robot stops

SERVICES = {
    "propose_postures": ProposePostures,
    "capture_posture": CapturePosture,
    "identify_links": IdentifyLinks,
    "export_urdf": ExportUrdf,
}

Script = Generator[None, None, None]  # what is done one after the other: it yields while it waits


class TourError(Exception):
    """The tour cannot go on; the message says why and how to fix it."""


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout):
    """Parameters of the node."""

    identification: str = parameter("com_identification", "name of the identification node")
    automatic: bool = parameter(
        False, "continue automatically; false: wait for ~/next before each motion and capture"
    )
    hoist: str = parameter(
        "",
        "service (std_srvs/SetBool) that lifts the robot and puts it down, e.g. simulator/hoist; "
        "empty: the feet stay where they are",
    )
    hoist_time: float = parameter(3.0, "s, time that the hoist takes, up or down", (0.1, 600.0))
    count: int = parameter(30, "postures to capture", (1, 1000))
    batch: int = parameter(
        10, "postures to ask for at a time; the next batch allows for their information", (1, 1000)
    )
    speed: float = parameter(
        0.3, "rad/s or m/s, maximum speed of any joint; see also velocity_fraction", (0.001, 5.0)
    )
    velocity_fraction: float = parameter(
        0.2, "fraction of the URDF's velocity limits, at most", (0.001, 1.0)
    )
    settle: float = parameter(1.0, "s between an arrival and the capture", (0.0, 60.0))
    start_tolerance: float = parameter(
        0.15, "rad or m, from the nominal posture, at which the tour may begin", (0.001, 3.0)
    )
    tracking_tolerance: float = parameter(
        0.15, "rad or m, by which a joint may miss its target", (0.001, 3.0)
    )
    margin: float = parameter(
        0.005, "m, margin of the URDF's CoM inside the support polygon on the way", (0.0, 1.0)
    )
    failures: int = parameter(5, "postures in a row that may fail before the tour ends", (1, 1000))
    answer_timeout: float = parameter(120.0, "s to wait for an answer", (0.1, 3600.0))
    export_name: str = parameter("", "name of the URDF to write; empty: chosen by the node")


class PostureTour(RobotNode[Parameters]):
    """The node; see the module's text. Its options are those of RobotNode."""

    def __init__(self, **options: Any) -> None:
        super().__init__("posture_tour", Parameters, **options)
        p = self.parameters
        self._config = self.require_config()
        self._state: Tour | None = None
        self._q: Array | None = None
        self._time_ns = 0
        self._tick = 0  # number of the present TICK
        self._begun = False
        self._confirmed = False
        self._moving = False
        self.finished = False
        self._trajectory = self.create_publisher(JointTrajectory, "joint_trajectory", 10)
        self._status = self.create_publisher(String, "~/status", qos.LATCHED)
        self._identification = {
            name: self.create_client(kind, f"{p.identification}/{name}")
            for name, kind in SERVICES.items()
        }
        self._hoist = self.create_client(SetBool, p.hoist) if p.hoist else None
        self.follow_robot_description()
        self.follow_joint_states(self._on_joints)
        self.serve_trigger("~/next", self._on_next, needs_model=False)
        self.serve_trigger("~/stop", self._on_stop, needs_model=False)
        self._script = self._tour()
        self.lockstep.held = lambda: not self._begun and bool(self._unconnected())
        self.create_steady_timer(TICK, self._on_timer)

    def use_model(self, model: RobotModel) -> None:
        """Prepare the motions of a model; refused while the robot moves."""
        if self._moving:
            raise ComRosError("the robot moves: a new description has to wait")
        p = self.parameters
        feet, nominal = self._config.feet, self._config.nominal_posture(model)
        tour = Tour(model, feet, nominal, p.margin, p.speed, p.velocity_fraction)
        self.joints = JointInput(model.joint_names, p.joint_timeout)
        self._state, self._q = tour, None

    # --- inputs ------------------------------------------------------------------------------
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
        """A robot that moves is stopped by the next tick; waiting for joint_states is reported."""
        self.get_logger().warning(reason)

    def _on_next(self) -> str:
        if self.finished or self.parameters.automatic:
            raise ComRosError("no confirmation is awaited")
        self._confirmed = True
        return ""

    def _on_stop(self) -> str:
        self._end("stopped by ~/stop")
        return ""

    def _on_tick(self) -> None:
        if self.finished:
            return
        try:
            if self._moving and self.joint_watch.stale:
                age = self.joint_watch.age_s
                raise TourError(f"no joint_states for {age:.2f} s: check its driver")
            next(self._script)
        except StopIteration:
            self._end("", well=True)
        except TourError as stopped:
            self._end(str(stopped))

    # --- the tour ----------------------------------------------------------------------------
    def _tour(self) -> Script:
        state = yield from self._begin()
        yield from self._confirm("to move to the nominal posture")
        yield from self._move([state.in_air(self._position(), state.nominal)[0]])
        captured, failed = 0, 0
        while captured < self.parameters.count:
            wanted = min(self.parameters.batch, self.parameters.count - captured)
            self._report(f"requesting {wanted} postures")
            answer = yield from self._call("propose_postures", count=wanted)
            for posture in _check(answer).postures:
                problem = yield from self._visit(posture, captured + 1)
                captured, failed = (captured, failed + 1) if problem else (captured + 1, 0)
                if failed >= self.parameters.failures:
                    raise TourError(f"{failed} postures in a row failed, the last one: {problem}")
        yield from self._go(state.nominal)
        self._report("identifying")
        found = _check((yield from self._call("identify_links")))
        self._report(found.message)
        name = self.parameters.export_name
        written = _check((yield from self._call("export_urdf", name=name, overwrite=True)))
        self._report(f"{captured} postures captured; {found.message}; {written.message}")

    def _begin(self) -> Generator[None, None, Tour]:
        """Wait for all that is needed, and until the robot stands as it is expected to."""
        while missing := self._missing():
            if self.log.warn(missing[:12], f"waits for {missing}"):
                self._status.publish(String(data=f"waits for {missing}"))
            yield
        self._begun = True
        return self._need()

    def _missing(self) -> str:
        """What the tour cannot begin without, and how to provide it; empty: nothing."""
        state = self._state
        if state is None:
            return self.waiting or "robot_description"
        if self._q is None or self.joint_watch.stale:
            return "joint_states: start the robot's driver"
        if unconnected := self._unconnected():
            return unconnected
        off = state.farthest(self._q, state.nominal, self.parameters.start_tolerance)
        fix = "bring the robot there, standing on its feet"
        return f"the nominal posture: {off}; {fix}" if off else ""

    def _unconnected(self) -> str:
        """What of the other nodes is missing, and how to provide it; empty: nothing."""
        if not all(client.service_is_ready() for client in self._identification.values()):
            return f"the services of {self.parameters.identification}: start it"
        if self._hoist is not None and not self._hoist.service_is_ready():
            return f"the service {self._hoist.srv_name}: start the hoist"
        if not self._trajectory.get_subscription_count():
            return f"a subscriber of {self._trajectory.topic_name}: start the robot's drivers"
        return ""

    def _visit(self, posture: ProposedPosture, number: int) -> Generator[None, None, str]:
        state = self._need()
        place = dict(zip(posture.joint_names, posture.joint_positions, strict=False))
        if set(place) != set(state.model.joint_names):
            raise TourError("the proposed posture is for another robot: use one URDF for both")
        q = np.array([place[name] for name in state.model.joint_names])
        problem = yield from self._go(q, f"posture {number} of {self.parameters.count}")
        if problem:
            self.get_logger().warning(f"posture {number} is left out: {problem}")
            return problem
        yield from self._wait(self.parameters.settle)
        yield from self._confirm("to capture it")
        answer = yield from self._call("capture_posture", label=f"tour {number}")
        count = self.parameters.count
        self._report(f"{number} of {count} captured" if answer.success else answer.message)
        return "" if answer.success else answer.message

    def _go(self, q: Array, what: str = "the nominal posture") -> Generator[None, None, str]:
        state = self._need()
        if self._hoist is not None:
            yield from self._confirm(f"to be lifted and go to {what}")
            yield from self._lift(self._hoist, True)
            yield from self._move(state.in_air(state.target, q))
            yield from self._lift(self._hoist, False)
            return ""
        ways = state.standing(q)
        if not ways:
            return (
                "no path there keeps the feet where they are: let com_identification plan with "
                "plan.keep_feet, or give a hoist"
            )
        yield from self._confirm(f"to go to {what}")
        yield from self._move(ways)
        return ""

    def _move(self, ways: list[JointPath]) -> Script:
        state = self._need()
        for way in ways:
            self._publish(way)
            self._moving = True
            yield from self._wait(way.end)
            self._moving = False
            state.target = way.q[-1]
        yield from self._arrive(state)

    def _arrive(self, state: Tour) -> Script:
        """Wait until the joints are where they were sent; joint_states may be late."""
        end_ns = self._time_ns + int(ARRIVAL_TIMEOUT * NS_PER_S)
        most = self.parameters.tracking_tolerance
        while off := state.farthest(self._position(), state.target, most):
            if self._time_ns > end_ns:
                fix = "is it blocked, or is there no subscriber of joint_trajectory?"
                raise TourError(f"{off} its target: {fix}")
            yield from self._wait(TICK)

    def _lift(self, hoist: Client, up: bool) -> Script:
        self._report("lifting the robot" if up else "putting the robot down")
        _check((yield from self._ask(hoist, SetBool.Request(data=up))))
        yield from self._wait(self.parameters.hoist_time)

    def _call(self, service: str, /, **fields: Any) -> Generator[None, None, Any]:
        return self._ask(self._identification[service], SERVICES[service].Request(**fields))

    def _ask(self, client: Client, request: Any) -> Generator[None, None, Any]:
        future, timeout = client.call_async(request), self.parameters.answer_timeout
        deadline = time.monotonic() + timeout
        while not future.done():
            if time.monotonic() > deadline:
                client.remove_pending_request(future)
                raise TourError(
                    f"{client.srv_name} did not answer within {timeout:g} s: is its node running?"
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
        end_ns = self._time_ns + int(seconds * NS_PER_S)
        while self._time_ns < end_ns:
            if self.joint_watch.age_s > self.parameters.answer_timeout:
                raise TourError("joint_states have timed out: check its driver")
            yield

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, way: JointPath) -> None:
        names = self._need().model.joint_names
        self._trajectory.publish(numpy_to_joint_trajectory(names, way.time, way.q, way.qd, Time()))

    def _end(self, reason: str, *, well: bool = False) -> None:
        if self._moving and self._q is not None:
            zero = np.zeros((1, len(self._q)))
            self._publish(JointPath(np.array([STOP_TIME]), self._q[None], zero))
        self._moving, self.finished = False, True
        if not well:
            self._report(f"the tour ends: {reason}")
            self.get_logger().error(f"the tour ends: {reason}")

    def _report(self, text: str) -> None:
        self.get_logger().info(text)
        self._status.publish(String(data=text))

    def _need(self) -> Tour:
        if self._state is None:
            raise TourError(self.waiting)
        return self._state

    def _position(self) -> Array:
        if self._q is None:
            raise TourError("no joint_states: check its driver")
        return self._q


def _check(answer: Any) -> Any:
    if not answer.success:
        raise TourError(answer.message)
    return answer


def main() -> int:
    """Run the node."""
    return run(PostureTour)
