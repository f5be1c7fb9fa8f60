"""An operator in software: moves a robot through postures and has its CoMs identified.

It asks com_identification for postures, moves the robot to each, has it captured, and at the end
has the links identified and the URDF written.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.

Publishes:
    joint_trajectory (trajectory_msgs/JointTrajectory): a whole motion from rest to rest, to start
        immediately; when the tour stops on the way, the current positions.
    ~/status (std_msgs/String, latched): what it does, or what it waits for.

Calls com_identification's action propose_postures, its services capture_posture, identify_links and
export_urdf, and with the parameter hoist a std_srvs/SetBool that lifts the robot.

Services (std_srvs/Trigger): ~/next confirms a step, unless `automatic`; ~/stop stops the robot and
ends the tour.

The feet stay where they are: com_identification must run with plan.keep_feet, or there must be a
hoist. It starts when all inputs and services are there and the robot stands in its nominal
posture. The tour stops, and says why, when joint_states time out, a joint misses its target, or
too many postures in a row fail.

Parameters: see Parameters.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.action import ActionClient

from com_identification.nodes import guided_motion
from com_identification.nodes.guided_motion import (
    GuidedMotion,
    GuidedParameters,
    Script,
    TourError,
)
from com_model.arrays import Array
from com_msgs.action import ProposePostures
from com_msgs.msg import ProposedPosture
from com_msgs.srv import CapturePosture, ExportUrdf, IdentifyLinks
from com_ros.parameters import parameter

SERVICES = {
    "capture_posture": CapturePosture,
    "identify_links": IdentifyLinks,
    "export_urdf": ExportUrdf,
}


@dataclass(frozen=True)
class Parameters(GuidedParameters):
    """Parameters of the node."""

    identification: str = parameter(
        "com_identification", "name of the identification node"
    )
    count: int = parameter(30, "postures to capture", (1, 1000))
    batch: int = parameter(
        10,
        "postures to ask for at a time; the next batch allows for their information",
        (1, 1000),
    )
    settle: float = parameter(1.0, "s between an arrival and the capture", (0.0, 60.0))
    start_tolerance: float = parameter(
        0.15,
        "rad or m, from the nominal posture, at which the tour may begin",
        (0.001, 3.0),
    )
    failures: int = parameter(
        5,
        "postures in a row that may fail before the tour ends; if half are captured, it identifies",
        (1, 1000),
    )
    export_name: str = parameter(
        "", "name of the URDF to write; empty: chosen by the node"
    )


class PostureTour(GuidedMotion[Parameters]):
    """Moves a robot through proposed postures and has its links identified.

    Args:
        options: those of RobotNode.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("posture_tour", Parameters, **options)
        p = self.parameters
        self._identification = {
            name: self.create_client(kind, f"{p.identification}/{name}")
            for name, kind in SERVICES.items()
        }
        self._proposals = f"{p.identification}/propose_postures"
        self._planner = ActionClient(self, ProposePostures, self._proposals)
        self.begin_script()

    # --- the tour ----------------------------------------------------------------------------
    def script(self) -> Script:
        """Moves to postures and has them captured, then has the links identified and exported."""
        state = yield from self._begin()
        yield from self._confirm("to move to the nominal posture")
        yield from self._move([state.in_air(self._position(), state.nominal)[0]])
        captured, failed, count = 0, 0, self.parameters.count
        while captured < count:
            wanted = min(self.parameters.batch, count - captured)
            self._report(f"requesting {wanted} postures")
            for posture in (yield from self._propose(wanted)):
                problem = yield from self._visit(posture, captured + 1)
                captured, failed = (
                    (captured, failed + 1) if problem else (captured + 1, 0)
                )
                if failed >= self.parameters.failures:
                    text = f"{failed} postures in a row failed, the last one: {problem}"
                    if 2 * captured < count:
                        raise TourError(text)
                    self.get_logger().warning(
                        f"identifying from {captured} postures: {text}"
                    )
                    count = captured
                    break
        yield from self._go(state.nominal)
        self._report("identifying")
        found = guided_motion.check((yield from self._call("identify_links")))
        self._report(found.message)
        name = self.parameters.export_name
        written = guided_motion.check(
            (yield from self._call("export_urdf", name=name, overwrite=True))
        )
        self._report(
            f"{captured} postures captured; {found.message}; {written.message}"
        )

    def _missing(self) -> str:
        """What the tour cannot begin without, and how to provide it; empty: nothing."""
        if (missing := super()._missing()) or self._q is None:
            return missing
        state = self._need()
        off = state.farthest(self._q, state.nominal, self.parameters.start_tolerance)
        fix = "bring the robot there, standing on its feet"
        return f"the nominal posture: {off}; {fix}" if off else ""

    def _unconnected(self) -> str:
        """What of the other nodes is missing, and how to provide it; empty: nothing."""
        services = [c.service_is_ready() for c in self._identification.values()]
        if not (all(services) and self._planner.server_is_ready()):
            return f"the services of {self.parameters.identification}: start it"
        return super()._unconnected()

    def _propose(self, count: int) -> Generator[None, None, list[ProposedPosture]]:
        """Requests the most informative postures, `count` of them."""
        goal, name = ProposePostures.Goal(count=count), self._proposals
        handle = yield from self._await(self._planner.send_goal_async(goal), name)
        answer = yield from self._await(handle.get_result_async(), name)
        return list(guided_motion.check(answer.result).postures)

    def _visit(
        self, posture: ProposedPosture, number: int
    ) -> Generator[None, None, str]:
        state = self._need()
        place = dict(zip(posture.joint_names, posture.joint_positions, strict=False))
        if set(place) != set(state.model.joint_names):
            raise TourError(
                "the proposed posture is for another robot: use one URDF for both"
            )
        q = np.array([place[name] for name in state.model.joint_names])
        problem = yield from self._go(q, f"posture {number} of {self.parameters.count}")
        if problem:
            self.get_logger().warning(f"posture {number} is left out: {problem}")
            return problem
        yield from self._wait(self.parameters.settle)
        yield from self._confirm("to capture it")
        answer = yield from self._call("capture_posture", label=f"tour {number}")
        self._report(
            f"{number} of {self.parameters.count} captured"
            if answer.success
            else answer.message
        )
        return "" if answer.success else answer.message

    def _go(
        self, q: Array, what: str = "the nominal posture"
    ) -> Generator[None, None, str]:
        state = self._need()
        if self._hoist is not None:
            yield from self._carry(q, what)
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

    def _call(self, service: str, /, **fields: Any) -> Generator[None, None, Any]:
        return self._ask(
            self._identification[service], SERVICES[service].Request(**fields)
        )
