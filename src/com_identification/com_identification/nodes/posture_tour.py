"""An operator in software: leads a robot through postures and has its CoMs identified.

It asks com_identification for postures, leads the robot to each, has it captured, and at the end
has the links identified and the URDF written.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.

Publishes:
    joint_trajectory (trajectory_msgs/JointTrajectory): a whole way from rest to rest, to begin at
        once; when the tour stops on the way, the place where the joints then are.
    ~/status (std_msgs/String, latched): what it does, or what it waits for.

Calls com_identification's propose_postures, capture_posture, identify_links, export_urdf, and with
the parameter hoist a std_srvs/SetBool that lifts the robot.

Services (std_srvs/Trigger): ~/next goes on, unless `automatic`; ~/stop stops the robot and ends the
tour.

The feet stay where they are: com_identification must run with plan.keep_feet, or there must be a
hoist. At the start it waits until all that it needs is there and the robot stands in its nominal
posture. The tour stops, and says why, when joint_states fall silent, a joint misses its target, or
too many postures in a row fail.

Parameters: see posture_tour_parameters.Parameters.
"""

import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from com_identification.exceptions import IdentificationError
from com_identification.nodes.posture_tour_calls import Calls, TourError
from com_identification.nodes.posture_tour_parameters import Parameters
from com_identification.planning.planner import TourPaths
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.timed_way import TimedWay
from com_msgs.msg import ProposedPosture
from com_ros import qos
from com_ros.conversions import NS_PER_S
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.input_watch import InputWatch, sample_time_ns
from com_ros.joint_input import JointInput
from com_ros.main import run
from com_ros.parameters import declare
from com_ros.robot_description import RobotDescription
from com_ros.throttle import ThrottledLog

TICK = 0.05  # s
PATIENCE = 3.0  # s, after which a joint that is not at its target is called blocked
HALT = 0.3  # s, in which a robot that is stopped comes to rest

Script = Generator[None, None, None]
"""What is done one after the other: it yields while it waits."""


@dataclass
class _Robot:
    model: RobotModel
    joints: JointInput
    ways: TourPaths
    nominal: Array
    target: Array


class PostureTour(Node):
    """The node; see the module's text.

    Args:
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("posture_tour", **options)
        self._p = p = declare(self, Parameters)
        if not p.robot_config:
            raise ParameterError("robot_config", "", "give the path of the robot's configuration")
        self._config = RobotConfig.from_file(p.robot_config)
        self._log = ThrottledLog(self.get_logger())
        self._robot: _Robot | None = None
        self._q: Array | None = None
        self._time_ns = 0
        self._watch = InputWatch(p.joint_timeout)
        self._confirmed = False
        self._moving = False
        self.finished = False
        self._trajectory = self.create_publisher(JointTrajectory, "joint_trajectory", 10)
        self._status = self.create_publisher(String, "~/status", qos.LATCHED)
        self._calls = Calls(self, p.identification, p.answer_timeout)
        self._hoist = self.create_client(SetBool, p.hoist) if p.hoist else None
        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        self.create_subscription(JointState, "joint_states", self._on_joint_states, qos.stream())
        self.create_service(Trigger, "~/next", self._on_next)
        self.create_service(Trigger, "~/stop", self._on_stop)
        self._script = self._tour()
        self.create_timer(TICK, self._on_tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _use_model(self, model: RobotModel) -> None:
        if self._moving:
            raise ComRosError("the robot moves: a new description has to wait")
        p = self._p
        self._config.check(model)
        nominal = self._config.nominal_posture(model)
        try:
            ways = TourPaths(model, self._config.feet, nominal, p.margin, p.speed, p.velocity_share)
        except IdentificationError as error:
            raise ComRosError(str(error)) from error
        joints = JointInput(model.joint_names, p.joint_timeout)
        self._robot, self._q = _Robot(model, joints, ways, nominal, nominal), None

    # --- inputs ------------------------------------------------------------------------------
    def _on_joint_states(self, msg: JointState) -> None:
        if self._robot is None:
            return
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        sample = self._robot.joints.update(msg, time_ns)
        if sample is None:
            return
        if sample.error:
            self._log.warn("joint_states", sample.error)
            return
        self._watch.received()
        self._q, self._time_ns = sample.position, time_ns

    def _on_next(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self.finished or self._p.automatic:
            response.message = "nothing waits for it"
            return response
        self._confirmed = response.success = True
        return response

    def _on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = True
        self._end("stopped by ~/stop")
        return response

    def _on_tick(self) -> None:
        """Go on with the tour."""
        if self.finished:
            return
        try:
            if self._moving and self._watch.age_s > self._p.joint_timeout:
                silent = self._watch.age_s
                raise TourError(f"joint_states silent for {silent:.2f} s: check its driver")
            next(self._script)
        except StopIteration:
            self._end("", well=True)
        except TourError as stopped:
            self._end(str(stopped))

    # --- the tour ----------------------------------------------------------------------------
    def _tour(self) -> Script:
        robot = yield from self._begin()
        yield from self._confirm("to move to the nominal posture")
        yield from self._move([robot.ways.in_air(self._now(), robot.nominal)[0]])
        taken, failed = 0, 0
        while taken < self._p.count:
            wanted = min(self._p.batch, self._p.count - taken)
            self._say(f"asks for {wanted} postures")
            answer = yield from self._calls.propose(wanted)
            for posture in _check(answer).postures:
                problem = yield from self._visit(posture, taken + 1)
                taken, failed = (taken, failed + 1) if problem else (taken + 1, 0)
                if failed >= self._p.failures:
                    raise TourError(f"{failed} postures in a row failed, the last one: {problem}")
        yield from self._go(robot.nominal)
        self._say("identifies")
        found = _check((yield from self._calls.identify()))
        self._say(found.message)
        written = _check((yield from self._calls.export(self._p.export_name)))
        self._say(f"{taken} postures captured; {found.message}; {written.message}")

    def _begin(self) -> Generator[None, None, _Robot]:
        """Wait for all that is needed, and until the robot stands as it is expected to."""
        while lacking := self._lacking():
            kind, text = lacking
            if self._log.warn(kind, f"waits for {text}"):
                self._status.publish(String(data=f"waits for {text}"))
            yield
        return self._need()

    def _lacking(self) -> tuple[str, str] | None:
        """What the tour cannot begin without: its kind and how to provide it; None: nothing."""
        robot = self._robot
        if robot is None:
            return "robot", self._description.waiting or "robot_description"
        if self._q is None or self._watch.stale:
            return "joint_states", "joint_states: start the robot's driver"
        if not self._calls.ready:
            return "services", f"the services of {self._p.identification}: start it"
        if self._hoist is not None and not self._hoist.service_is_ready():
            return "hoist", f"the service {self._hoist.srv_name}: start the hoist"
        if not self._trajectory.get_subscription_count():
            topic = self._trajectory.topic_name
            return "listener", f"a listener to {topic}: start the robot's drivers"
        off = np.abs(self._q - robot.nominal)
        worst = int(np.argmax(off))
        if off[worst] <= self._p.start_tolerance:
            return None
        return "posture", (
            f"the nominal posture: joint {robot.model.joint_names[worst]!r} is {off[worst]:.2f} "
            "off; bring the robot there, standing on its feet"
        )

    def _visit(self, posture: ProposedPosture, number: int) -> Generator[None, None, str]:
        """Go to a posture and have it captured; return what went wrong."""
        robot = self._need()
        place = dict(zip(posture.joint_names, posture.joint_positions, strict=False))
        if set(place) != set(robot.model.joint_names):
            raise TourError("the proposed posture is of another robot: give both the same URDF")
        q = np.array([place[name] for name in robot.model.joint_names])
        problem = yield from self._go(q, f"posture {number} of {self._p.count}")
        if problem:
            self.get_logger().warning(f"posture {number} is left out: {problem}")
            return problem
        yield from self._wait(self._p.settle)
        yield from self._confirm("to capture it")
        answer = yield from self._calls.capture(f"tour {number}")
        self._say(answer.message)
        return "" if answer.success else answer.message

    def _go(self, q: Array, what: str = "the nominal posture") -> Generator[None, None, str]:
        robot = self._need()
        if self._hoist is not None:
            yield from self._confirm(f"to be lifted and go to {what}")
            yield from self._lift(True)
            yield from self._move(robot.ways.in_air(robot.target, q))
            yield from self._lift(False)
            return ""
        ways = robot.ways.standing(robot.target, q)
        if not ways:
            return (
                "no way there keeps the feet where they are: let com_identification plan with "
                "plan.keep_feet, or give a hoist"
            )
        yield from self._confirm(f"to go to {what}")
        yield from self._move(ways)
        return ""

    def _move(self, ways: list[TimedWay]) -> Script:
        """Send ways one after the other, and wait until the joints are there."""
        robot = self._need()
        for way in ways:
            self._publish(way)
            self._moving = True
            yield from self._wait(way.duration)
            self._moving = False
            robot.target = way.positions[-1]
        yield from self._arrive(robot)

    def _arrive(self, robot: _Robot) -> Script:
        """Wait until the joints are where they were sent; what is heard may be late."""
        end_ns = self._time_ns + int(PATIENCE * NS_PER_S)
        while True:
            off = np.abs(self._now() - robot.target)
            worst = int(np.argmax(off))
            if off[worst] <= self._p.tracking_tolerance:
                return
            if self._time_ns > end_ns:
                break
            yield from self._wait(TICK)
        raise TourError(
            f"joint {robot.model.joint_names[worst]!r} is {off[worst]:.2f} off its target: is it "
            "blocked, or does nobody listen to joint_trajectory?"
        )

    def _lift(self, up: bool) -> Script:
        assert self._hoist is not None  # noqa: S101 - the caller has looked
        self._say("is lifted" if up else "is put down")
        answer = yield from self._calls.ask(self._hoist, SetBool.Request(data=up))
        _check(answer)
        yield from self._wait(self._p.hoist_time)

    def _confirm(self, what: str) -> Script:
        if self._p.automatic:
            return
        self._confirmed = False
        self._say(f"waits for {self.resolve_service_name('~/next')} {what}")
        while not self._confirmed:
            yield

    def _wait(self, seconds: float) -> Script:
        """Wait by the clock of joint_states."""
        end_ns = self._time_ns + int(seconds * NS_PER_S)
        while self._time_ns < end_ns:
            if self._watch.age_s > self._p.answer_timeout:
                raise TourError("joint_states are silent: check its driver")
            yield

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, way: TimedWay) -> None:
        points = [
            JointTrajectoryPoint(
                positions=q.tolist(),
                velocities=v.tolist(),
                time_from_start=Duration(seconds=float(t)).to_msg(),
            )
            for t, q, v in zip(way.times, way.positions, way.velocities, strict=True)
        ]
        names = list(self._need().model.joint_names)
        self._trajectory.publish(JointTrajectory(joint_names=names, points=points))

    def _end(self, reason: str, *, well: bool = False) -> None:
        """End the tour; a robot on its way stays where it is."""
        if self._moving and self._q is not None:
            still = np.zeros((1, len(self._q)))
            self._publish(TimedWay(np.array([HALT]), self._q[None], still))
        self._moving, self.finished = False, True
        if not well:
            self._say(f"the tour ends: {reason}")
            self.get_logger().error(f"the tour ends: {reason}")

    def _say(self, text: str) -> None:
        self.get_logger().info(text)
        self._status.publish(String(data=text))

    def _need(self) -> _Robot:
        if self._robot is None:
            raise TourError(self._description.waiting)
        return self._robot

    def _now(self) -> Array:
        if self._q is None:
            raise TourError("no joint_states: check its driver")
        return self._q


def _check(answer: Any) -> Any:
    """A service's answer, if it succeeded."""
    if not answer.success:
        raise TourError(answer.message)
    return answer


def main() -> int:
    """Run the node."""
    return run(PostureTour)


if __name__ == "__main__":
    sys.exit(main())
