"""The nodes that benchmarks/faults.py tries: what each does when it works, and when it is wrong."""

# ruff: noqa: D101, D102 - Case says what the classes and methods are

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from fault_cases import Fault, faults
from fault_lab import Lab, RobotUnderTest, SimulatedRobot
from fault_robots import ArmSwinger, LogRobot, StillRobot
from fault_targets import command_faults
from rclpy.action import ActionServer
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from com_identification.nodes.posture_tour import SERVICES
from com_model.robots import find_robot
from com_model.status import TRUSTED, Status
from com_msgs.action import ProposePostures
from com_msgs.msg import (
    BalanceState,
    CenterOfMass,
    CentroidalDiagnosis,
    GaitPhase,
    IdentificationState,
    MotionState,
    ProposedPosture,
    TrunkCom,
    WalkGoal,
    WalkState,
)
from com_msgs.srv import CapturePosture, TipAngles
from com_ros import qos
from com_ros.conversions import stamp_to_ns

SHARE = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
COM_TOLERANCE = 0.005  # m, of a CoM that is said to be known
TRUNK_TOLERANCE = 0.003  # m
# s, of the inputs: a machine on which other programs run delays messages by the default of 0.2 s
TIMEOUTS = dict.fromkeys(("joint_timeout", "imu_timeout", "wrench_timeout"), 0.4)


class Case:
    """A node under test; the methods tell what it does when it works.

    Attributes:
        package, node: Of its program.
        outputs: Topics that are looked at.
        recovery_limit: s, until it works again.
        can_idle: Whether it can be asked to do nothing.
        is_script: Whether it must be started again for that.
        words: Arguments of its program.
    """

    package = "com_control"
    node = ""
    can_idle = False
    is_script = False
    words: tuple[str, ...] = ()
    outputs: ClassVar[dict[str, type]] = {}
    robot_name = "hoap2"
    recovery_limit = 5.0

    def robot(self) -> RobotUnderTest:
        """The robot that it works on."""
        return SimulatedRobot(self.robot_name, 0.005)

    def parameters(self, folder: Path) -> dict[str, Any]:
        """Of the node."""
        files = find_robot(self.robot_name)
        return {
            "robot_description": Path(files.urdf).read_text(),
            "robot_config": str(files.config),
            **TIMEOUTS,
        }

    def faults(self) -> list[Fault]:
        """What its drivers do."""
        return faults()

    def prepare(self, lab: Lab) -> None:
        """Make what else the node needs."""

    def works(self, lab: Lab) -> bool:
        """Whether the node does its work; here, whether it reports on /diagnostics."""
        lab.diagnosed = 0
        return lab.run(2.0, lambda: lab.diagnosed > 0)

    def activate(self, lab: Lab) -> None:
        """Ask for work, if it must be asked."""

    def deactivate(self, lab: Lab) -> None:
        """Ask for none."""

    def is_idle(self, lab: Lab) -> bool:
        """Whether it does none."""
        return not self.works(lab)

    def begin(self, lab: Lab, fault: Fault) -> None:
        """Called before a fault."""

    def false_claim(self, lab: Lab, fault: Fault, topic: str, msg: Any) -> str:
        """What a message claims although it is wrong; empty: nothing."""
        return ""

    def after(self, lab: Lab, fault: Fault) -> str:
        """What the node claims wrongly at the end of a fault; empty: nothing."""
        return ""


class SescPublisher(Case):
    package, node = "com_estimation", "sesc_publisher"
    outputs: ClassVar[dict[str, type]] = {"com": CenterOfMass}

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {"use_imu": True}

    def works(self, lab: Lab) -> bool:
        com = lab.outputs.get("com")
        return com is not None and com.status == CenterOfMass.STATUS_OK

    def false_claim(self, lab: Lab, fault: Fault, topic: str, msg: Any) -> str:
        return wrong_com(lab, msg)


class TrunkEstimator(Case):
    package, node = "com_estimation", "trunk_estimator"
    outputs: ClassVar[dict[str, type]] = {"trunk_com": TrunkCom}
    robot_name = "scalf2"

    def robot(self) -> RobotUnderTest:
        return LogRobot(self.robot_name)

    def works(self, lab: Lab) -> bool:
        msg = lab.outputs.get("trunk_com")
        return msg is not None and msg.status in {Status.ESTIMATING, *TRUSTED}

    def false_claim(self, lab: Lab, fault: Fault, topic: str, msg: Any) -> str:
        if msg.status not in TRUSTED:
            return ""
        com = np.array([msg.position.x, msg.position.y, msg.position.z])
        std = np.sqrt(np.diag(np.array(msg.covariance).reshape(3, 3)))
        error = np.abs(com - lab.robot.truth.com)
        wrong = error > np.maximum(TRUNK_TOLERANCE, 4.0 * std)
        if not wrong.any():
            return ""
        return f"{Status(msg.status).name} with errors of {(1e3 * error).round(2).tolist()} mm"


class HumanoidComEstimator(Case):
    """Nothing is wrong with the robot: whatever is named is named wrongly."""

    package, node = "com_estimation", "humanoid_com_estimator"
    outputs: ClassVar[dict[str, type]] = {
        "com_corrected": CenterOfMass,
        "diagnosis": CentroidalDiagnosis,
    }

    def robot(self) -> RobotUnderTest:
        self._robot = ArmSwinger(self.robot_name, 0.005)
        self._robot.reset()
        return self._robot

    def works(self, lab: Lab) -> bool:
        com = lab.outputs.get("com_corrected")
        return com is not None and com.status == CenterOfMass.STATUS_OK

    def false_claim(self, lab: Lab, fault: Fault, topic: str, msg: Any) -> str:
        if topic == "diagnosis":
            named = [culprit.name for culprit in msg.culprits if culprit.named]
            return f"names {', '.join(named)}" if named else ""
        # A stamp of the past belongs to the posture of then, unless the fault is the stamp.
        then = self._robot.past.get(stamp_to_ns(msg.header.stamp))
        return wrong_com(lab, msg) and wrong_com(lab, msg, then)


class ComIdentification(Case):
    """Active: a posture is being captured."""

    can_idle = True
    package, node = "com_identification", "com_identification"
    outputs: ClassVar[dict[str, type]] = {"identification/state": IdentificationState}

    def parameters(self, folder: Path) -> dict[str, Any]:
        store = folder / "postures"
        store.mkdir(exist_ok=True)
        own = {
            "storage_directory": str(store),
            "fit.use_imu": True,
            "capture.collect_time": 0.3,
        }
        return super().parameters(folder) | own

    def works(self, lab: Lab) -> bool:
        return "identification/state" in lab.outputs and self._capture(lab) is not None

    def is_idle(self, lab: Lab) -> bool:
        return True

    def _capture(self, lab: Lab) -> Any:
        request = CapturePosture.Request(timeout=2.0)
        answer = lab.call(
            CapturePosture, "com_identification/capture_posture", request, 4.0
        )
        return answer if answer is not None and answer.success else None

    def begin(self, lab: Lab, fault: Fault) -> None:
        client = lab.node.create_client(
            CapturePosture, "com_identification/capture_posture"
        )
        self._pending = (client, client.call_async(CapturePosture.Request(timeout=1.0)))

    def after(self, lab: Lab, fault: Fault) -> str:
        client, future = self._pending
        lab.run(2.0, future.done)
        lab.node.destroy_client(client)
        answer = future.result() if future.done() else None
        if answer is None or not answer.success or not fault.visible:
            return ""
        error = np.abs(
            np.array(answer.posture.joint_positions) - lab.robot.truth.position
        ).max()
        return "" if error < 0.01 else f"captured a posture that is {error:.3g} rad off"


class ComBalancer(Case):
    can_idle = True
    node = "com_balancer"
    outputs: ClassVar[dict[str, type]] = {"balance/state": BalanceState}

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {"demonstration": "sway", "rate_hz": 200.0}

    def works(self, lab: Lab) -> bool:
        msg = lab.outputs.get("balance/state")
        return msg is not None and msg.state == BalanceState.BALANCING

    def activate(self, lab: Lab) -> None:
        lab.trigger("com_balancer/start")

    def deactivate(self, lab: Lab) -> None:
        lab.trigger("com_balancer/stop")

    def after(self, lab: Lab, fault: Fault) -> str:
        return still_moves(self, lab, fault)


class TrotGait(Case):
    can_idle = True
    node = "trot_gait"
    outputs: ClassVar[dict[str, type]] = {"gait/stance": GaitPhase}
    robot_name = "a1"

    def robot(self) -> RobotUnderTest:
        return SimulatedRobot(self.robot_name, 0.005)

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {"feedback": True}

    def works(self, lab: Lab) -> bool:
        msg = lab.outputs.get("gait/stance")
        return msg is not None and msg.state == GaitPhase.TROTTING

    def activate(self, lab: Lab) -> None:
        lab.trigger("trot_gait/start")

    def deactivate(self, lab: Lab) -> None:
        lab.trigger("trot_gait/stop")

    def after(self, lab: Lab, fault: Fault) -> str:
        return still_moves(self, lab, fault)


class CcgdGait(Case):
    can_idle = True
    node = "ccgd_gait"
    recovery_limit = 15.0
    outputs: ClassVar[dict[str, type]] = {"gait/state": WalkState}

    def works(self, lab: Lab) -> bool:
        msg = lab.outputs.get("gait/state")
        return msg is not None and msg.state == WalkState.WALKING

    def activate(self, lab: Lab) -> None:
        """Walk on the spot; the robot is put to its start first."""
        lab.run(self.recovery_limit, lambda: not self._stops(lab))
        state = lab.outputs.get("gait/state")
        if state is not None and state.state in (WalkState.UNKNOWN, WalkState.READY,
                                                 WalkState.REFUSED, WalkState.FALLEN):  # fmt: skip
            self._set_up(lab)
            if not hasattr(self, "_goal"):
                self._goal = lab.node.create_publisher(WalkGoal, "gait/footsteps", 10)
            lab.run(0.3, lambda: self._goal.get_subscription_count() > 0)
            self._goal.publish(WalkGoal(steps=[20], step_length=[0.0]))
            lab.run(8.0, lambda: self.works(lab))

    def _set_up(self, lab: Lab) -> None:
        lab.restart_robot()
        lab.run(0.5)

    def _stops(self, lab: Lab) -> bool:
        msg = lab.outputs.get("gait/state")
        return msg is not None and msg.state == WalkState.STOPPING

    def deactivate(self, lab: Lab) -> None:
        lab.trigger("ccgd_gait/stop")

    def after(self, lab: Lab, fault: Fault) -> str:
        return still_moves(self, lab, fault)


class StabilisedGait(CcgdGait):
    """The same with feedback of wrenches and imu."""

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {"stabiliser": True}

    def _set_up(self, lab: Lab) -> None:
        """Only where it lies: to one that feeds back all sensors jump."""
        if lab.robot.fallen:
            super()._set_up(lab)


class MotionPlayer(Case):
    can_idle = True
    node = "motion_player"
    outputs: ClassVar[dict[str, type]] = {"motion/state": MotionState}

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {
            "motion_layout": str(SHARE / "config" / "motion" / "hoap2.yaml"),
            "motion_directory": str(SHARE / "motions"),
            "motion": "hoap2_squat_and_wave.csv",
        }

    def works(self, lab: Lab) -> bool:
        msg = lab.outputs.get("motion/state")
        return msg is not None and msg.state in (
            MotionState.APPROACHING,
            MotionState.PLAYING,
        )

    def activate(self, lab: Lab) -> None:
        lab.restart_robot()
        lab.run(0.2)
        lab.trigger(f"{self.node}/play")

    def deactivate(self, lab: Lab) -> None:
        lab.trigger(f"{self.node}/stop")

    def after(self, lab: Lab, fault: Fault) -> str:
        return still_moves(self, lab, fault)


class SwayTour(MotionPlayer):
    """Plays what it has planned; a motion_player otherwise."""

    node = "sway_tour"

    def parameters(self, folder: Path) -> dict[str, Any]:
        return Case.parameters(self, folder)


class GuidedCase(Case):
    """A script that moves the robot; when it has ended, it is started again."""

    package = "com_identification"
    can_idle = is_script = True
    recovery_limit = 60.0
    own: ClassVar[dict[str, Any]] = {}

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {"automatic": True, **self.own}

    def prepare(self, lab: Lab) -> None:
        self._said = ""
        lab.node.create_subscription(
            String, f"{self.node}/status", self._on_status, qos.LATCHED
        )

    def _on_status(self, msg: String) -> None:
        self._said = msg.data

    @property
    def _ended(self) -> bool:
        return self._said.startswith(("the tour ends", "(deg)"))

    def works(self, lab: Lab) -> bool:
        lab.diagnosed = 0
        lab.run(2.0, lambda: lab.diagnosed > 0)
        return bool(lab.diagnosed and self._said) and not (
            self._ended or self._said.startswith("waits for")
        )

    def activate(self, lab: Lab) -> None:
        if self._ended:
            self._start(lab)

    def deactivate(self, lab: Lab) -> None:
        lab.parameters["automatic"] = False
        self._start(lab)

    def _start(self, lab: Lab) -> None:
        lab.restart_robot()
        lab.restart_node()
        self._said = ""
        lab.run(20.0, lambda: bool(self._said) and not self._ended)


class PostureTour(GuidedCase):
    """Moves the robot's arms, as a played identification asks."""

    node = "posture_tour"
    own: ClassVar[dict[str, Any]] = {"count": 1000, "settle": 0.2, "speed": 1.0}

    def prepare(self, lab: Lab) -> None:
        super().prepare(lab)
        model, config = lab.robot.model, lab.robot.config
        q, names = config.nominal_posture(model), list(model.joint_names)
        arms = [names.index(f"{side}ARM_JOINT1") for side in "RL"]

        def propose(goal: Any) -> Any:
            response = ProposePostures.Result(success=True)
            for i in range(goal.request.count):
                place = q.copy()
                place[arms] += 0.5 if i % 2 else -0.5
                response.postures.append(
                    ProposedPosture(joint_names=names, joint_positions=place.tolist())
                )
            goal.succeed()
            return response

        def agree(_: Any, response: Any) -> Any:
            response.success = True
            return response

        for name, kind in SERVICES.items():
            lab.node.create_service(kind, f"com_identification/{name}", agree)
        name = "com_identification/propose_postures"
        ActionServer(lab.node, ProposePostures, name, propose)


class TipRamp(GuidedCase):
    """Lets the robot lean until it would tip over."""

    node = "tip_ramp"
    own: ClassVar[dict[str, Any]] = {
        "protocol": str(SHARE / "config" / "posture_protocol" / "hoap2.yaml"),
        "tests": ["leg5 Back, arms_lowered", "leg5 Front, arms_lowered"],
    }


class PostureProtocol(Case):
    """Answers, whatever the drivers do."""

    package, node = "com_identification", "posture_protocol_server"

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {"protocol": TipRamp.own["protocol"]}

    def works(self, lab: Lab) -> bool:
        answer = lab.call(TipAngles, "posture_protocol/tip_angles", TipAngles.Request())
        return answer is not None and answer.success


class Sway(Case):
    """Moves a simulated robot; it listens to nothing but the description."""

    package, node = "com_simulation", "sway"

    def works(self, lab: Lab) -> bool:
        lab.commanded = 0
        return lab.run(2.0, lambda: lab.commanded > 0)


class Viewer(Case):
    """Draws into a recording, as no browser looks."""

    package, node = "com_viewer", "com_viewer"
    words = ("live",)

    def parameters(self, folder: Path) -> dict[str, Any]:
        record = {"record": str(folder / "page.html"), "rate_hz": 5.0}
        return super().parameters(folder) | record


class Simulator(Case):
    """Given commands that no robot can follow; its sensors must stay finite."""

    package, node = "com_simulation", "simulator"
    outputs: ClassVar[dict[str, type]] = {"joint_states": JointState}

    def robot(self) -> RobotUnderTest:
        return StillRobot(self.robot_name, 0.005)

    def faults(self) -> list[Fault]:
        return command_faults()

    def prepare(self, lab: Lab) -> None:
        lab.add_publisher("trajectory", JointTrajectory, "joint_trajectory")
        lab.add_publisher("targets", Float64MultiArray, "joint_commands")

    def parameters(self, folder: Path) -> dict[str, Any]:
        return super().parameters(folder) | {"publish_rate_hz": 200.0}

    def works(self, lab: Lab) -> bool:
        before = lab.outputs.pop("joint_states", None)
        return before is not None and bool(np.isfinite(before.position).all())

    def false_claim(self, lab: Lab, fault: Fault, topic: str, msg: Any) -> str:
        return (
            ""
            if np.isfinite(msg.position).all()
            else "publishes positions that are not finite"
        )


# those that take longest first: two run at a time
CASES = (
    TipRamp,
    PostureTour,
    CcgdGait,
    Viewer,
    ComIdentification,
    HumanoidComEstimator,
    TrotGait,
    ComBalancer,
    TrunkEstimator,
    Sway,
    MotionPlayer,
    PostureProtocol,
    SescPublisher,
    Simulator,
)
# those that move a robot, by name
MOVING: dict[str, type[Case]] = {
    "com_balancer": ComBalancer,
    "ccgd_gait": CcgdGait,
    "ccgd_gait, stabiliser": StabilisedGait,
    "trot_gait": TrotGait,
    "motion_player": MotionPlayer,
    "sway_tour": SwayTour,
    "posture_tour": PostureTour,
    "tip_ramp": TipRamp,
    "sway": Sway,
}


def wrong_com(lab: Lab, msg: CenterOfMass, truth: np.ndarray | None = None) -> str:
    """Whether a CoM that is said to be known is not: DEGRADED is about something else."""
    if msg.status == CenterOfMass.STATUS_UNKNOWN:
        return ""
    com = np.array([msg.position.x, msg.position.y, msg.position.z])
    error = np.linalg.norm(com - (lab.robot.truth.com if truth is None else truth))
    status = "OK" if msg.status == CenterOfMass.STATUS_OK else "DEGRADED"
    return (
        ""
        if error < COM_TOLERANCE
        else f"{status} with an error of {1e3 * error:.3g} mm"
    )


def still_moves(case: Case, lab: Lab, fault: Fault) -> str:
    """Whether a robot whose joints do not follow is still being moved."""
    if fault.name != "frozen joints" or not case.works(lab):
        return ""
    return "goes on although no joint follows"
