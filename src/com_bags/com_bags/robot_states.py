"""State messages of robots: joints and IMU in one message of the maker's own type.

Unitree's robots publish no joint_states, but LowState: numbered motors and an IMU. Where a bag has
such a topic, it stands for joint states and IMU. Which motor is which joint depends on the robot,
and is known by the names of the URDF's joints. The spacing of times is that of the robot's own
clock, which begins with the recorder's.

Sources: Unitree's message definitions and the joint indices of its SDK's documentation
(unitree_ros2, unitree_sdk2).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import get_types_from_msg

from com_bags.decoding import IMU, JOINT_STATE, Batch, message_types
from com_bags.exceptions import DefinitionError, TopicError
from com_bags.message_layout import Types, read_numbers
from com_model.arrays import Array, Indices
from com_model.text import listing

ROLES = (JOINT_STATE, IMU)
"""Types of messages that a state message stands for."""

_MS = 1_000_000  # ns
_MOST_APART_NS = 1_000_000_000  # of the robot's clock and the recorder's, in one run
_UNKNOWN = 9  # numbers of a covariance, all zero: not known


@dataclass(frozen=True)
class StateType:
    """A type of state messages: where its numbers are.

    Attributes:
        definitions: Definitions of its types, for bags without any; by name.
        position: rad or m, of the motors; {} stands for their numbers.
        velocity: rad/s or m/s.
        effort: N m or N.
        orientation: Quaternion w, x, y, z of the IMU.
        angular_velocity: rad/s, IMU axes.
        acceleration: Specific force, m/s^2, IMU axes.
        tick: ms, of the robot's clock.
        motors_only: Number that is not 0 where it reports motors in place of joints; "": none.
    """

    definitions: Mapping[str, str]
    position: str = "motor_state[{}].q"
    velocity: str = "motor_state[{}].dq"
    effort: str = "motor_state[{}].tau_est"
    orientation: str = "imu_state.quaternion"
    angular_velocity: str = "imu_state.gyroscope"
    acceleration: str = "imu_state.accelerometer"
    tick: str = "tick"
    motors_only: str = ""


@dataclass(frozen=True)
class StateRobot:
    """Which motor is which joint.

    Attributes:
        name: Of the robot, for people.
        type_name: Of its state messages.
        joints: Names of the URDF's joints in the order of the motors; "": none.
        imu_link: Link in whose axes the IMU reports; "": the root's.
    """

    name: str
    type_name: str
    joints: tuple[str, ...]
    imu_link: str = ""


def _joints(words: str) -> tuple[str, ...]:
    """Names of joints from their words; - stands for no joint."""
    return tuple("" if word == "-" else f"{word}_joint" for word in words.split())


_GO, _HG = "unitree_go/msg/LowState", "unitree_hg/msg/LowState"
_IMU = """float32[4] quaternion
float32[3] gyroscope
float32[3] accelerometer
float32[3] rpy
"""
STATE_TYPES: Mapping[str, StateType] = MappingProxyType(
    {
        _GO: StateType(
            {
                _GO: """uint8[2] head
uint8 level_flag
uint8 frame_reserve
uint32[2] sn
uint32[2] version
uint16 bandwidth
IMUState imu_state
MotorState[20] motor_state
BmsState bms_state
int16[4] foot_force
int16[4] foot_force_est
uint32 tick
""",
                "unitree_go/msg/IMUState": _IMU + "int8 temperature",
                "unitree_go/msg/MotorState": """uint8 mode
float32 q
float32 dq
float32 ddq
float32 tau_est
float32 q_raw
float32 dq_raw
float32 ddq_raw
int8 temperature
uint32 lost
uint32[2] reserve
""",
                "unitree_go/msg/BmsState": """uint8 version_high
uint8 version_low
uint8 status
uint8 soc
int32 current
uint16 cycle
int8[2] bq_ntc
int8[2] mcu_ntc
uint16[15] cell_vol
""",
            }
        ),
        _HG: StateType(
            {
                _HG: """uint32[2] version
uint8 mode_pr
uint8 mode_machine
uint32 tick
IMUState imu_state
MotorState[35] motor_state
""",
                "unitree_hg/msg/IMUState": _IMU + "int16 temperature",
                "unitree_hg/msg/MotorState": """uint8 mode
float32 q
float32 dq
float32 ddq
float32 tau_est
int16[2] temperature
float32 vol
uint32[2] sensor
uint32 motorstate
uint32[4] reserve
""",
            },
            motors_only="mode_pr",
        ),
    }
)
"""Known types of state messages. Definitions end with the last field that is needed."""

_ARMS = " ".join(
    f"{side}_{part}"
    for side in ("left", "right")
    for part in (
        "shoulder_pitch",
        "shoulder_roll",
        "shoulder_yaw",
        "elbow",
        "wrist_roll",
        "wrist_pitch",
        "wrist_yaw",
    )
)


def _legs(*parts: str) -> str:
    return " ".join(f"{side}_{part}" for side in ("left", "right") for part in parts)


STATE_ROBOTS = (
    StateRobot(
        "Go2",
        _GO,
        _joints(
            "FR_hip FR_thigh FR_calf FL_hip FL_thigh FL_calf "
            "RR_hip RR_thigh RR_calf RL_hip RL_thigh RL_calf"
        ),
    ),
    StateRobot(
        "H1",
        _GO,
        _joints(
            "right_hip_roll right_hip_pitch right_knee left_hip_roll left_hip_pitch left_knee "
            "torso left_hip_yaw right_hip_yaw - left_ankle right_ankle "
            "right_shoulder_pitch right_shoulder_roll right_shoulder_yaw right_elbow "
            "left_shoulder_pitch left_shoulder_roll left_shoulder_yaw left_elbow"
        ),
        "torso_link",
    ),
    StateRobot(
        "G1",
        _HG,
        _joints(
            _legs(
                "hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"
            )
            + f" waist_yaw waist_roll waist_pitch {_ARMS}"
        ),
        "pelvis",
    ),
    StateRobot(
        "H1-2",
        _HG,
        _joints(
            _legs(
                "hip_yaw", "hip_pitch", "hip_roll", "knee", "ankle_pitch", "ankle_roll"
            )
            + f" torso {_ARMS}"
        ),
        "torso_link",
    ),
)
"""Known robots. Of a G1 with 23 joints the motors have the same numbers, six are not there."""


def stands_for(type_name: str) -> set[str]:
    """Types of messages that one of a type can be used as: its own, and what it stands for.

    Args:
        type_name: Any type.
    """
    return {type_name, *(ROLES if type_name in STATE_TYPES else ())}


def state_robot(type_name: str, names: Collection[str], topic: str) -> StateRobot:
    """Finds the robot whose motors a type of state messages numbers.

    Args:
        type_name: Type of the state messages, of STATE_TYPES.
        names: Joints and links of the URDF. A joint that is fixed there still has its link.
        topic: Of the state messages, for errors.

    Returns:
        The one that shares most names with the URDF.

    Raises:
        TopicError: No known robot shares any, or two share as many, and differ in an order.
    """
    there = set(names)
    known = [robot for robot in STATE_ROBOTS if robot.type_name == type_name]

    def shared(robot: StateRobot) -> int:
        links = {name.replace("_joint", "_link") for name in robot.joints}
        return len(there.intersection(robot.joints)) + len(there & links)

    best = max(known, key=shared)
    same = [robot for robot in known if shared(robot) == shared(best)]
    order = [robot.joints.index for robot in same]
    moving = there.intersection(best.joints) - {""}
    if moving and any(
        order[0](name) != each(name) for each in order for name in moving
    ):
        raise TopicError(
            f"the URDF may be that of {listing([robot.name for robot in same])}, whose motors have "
            "other orders: use the URDF of the whole robot, with arms and waist, fixed or not",
            topic,
            "joint states",
        )
    if not moving:
        expected = "; ".join(
            f"{robot.name}: {listing([name for name in robot.joints if name], 3)}"
            for robot in known
        )
        raise TopicError(
            f"its motors have numbers, and of no robot known here the joints are the URDF's. "
            f"Known are {expected}. The URDF has {listing(sorted(names), 6)}: is it the "
            "URDF of this robot?",
            topic,
            "joint states",
        )
    return best


class StateDecoder:
    """Decodes state messages as if they were joint states or IMU messages.

    Args:
        connection: Of the topic, with the definition of its type where the bag has one.
        role: JOINT_STATE or IMU.
        names: Joints and links of the URDF.
        imu_links: Links on the body that carries the IMU, by the configuration.

    Attributes:
        errors: Messages that cannot be decoded, by reason.

    Raises:
        TopicError: No known robot has these joints.
        DefinitionError: The bag's definition of the type cannot be read.
    """

    def __init__(
        self,
        connection: Connection,
        role: str,
        names: Collection[str],
        imu_links: Collection[str] = (),
    ) -> None:
        self._topic, self._name, self._role = connection.topic, connection.msgtype, role
        state = STATE_TYPES[self._name]
        robot = state_robot(self._name, names, self._topic)
        slots = [i for i, name in enumerate(robot.joints) if name]
        self._joints = tuple(robot.joints[i] for i in slots)
        # A reader warns of readings that say that they are in the axes of another link.
        self._frame = "" if robot.imu_link in ("", *imu_links) else robot.imu_link
        numbers = ",".join(map(str, slots))
        self._paths = {"tick": state.tick}
        if state.motors_only:
            self._paths["motors_only"] = state.motors_only
        if role == JOINT_STATE:
            self._paths |= {
                "position": state.position.format(numbers),
                "velocity": state.velocity.format(numbers),
                "effort": state.effort.format(numbers),
            }
        else:
            self._paths |= {
                "orientation": state.orientation,
                "angular_velocity": state.angular_velocity,
                "linear_acceleration": state.acceleration,
            }
        self._types = _types(connection, state)
        self._begin_ns: int | None = (
            None  # time of recording when the robot's clock was 0
        )
        self.errors: Counter[str] = Counter()

    def decode(self, payloads: Sequence[bytes], received: Sequence[int]) -> list[Batch]:
        """Decodes a block; messages that cannot be decoded are counted in `errors`.

        Args:
            payloads: Messages as the bag has them.
            received: ns, when each was recorded.

        Returns:
            Batches as of messages of the role. Stamps are 0 where the robot's clock stands at 0.

        Raises:
            TopicError: They report motors in place of joints.
        """
        found, problems = read_numbers(self._types, self._name, payloads, self._paths)
        self.errors.update(problems)
        ticks = np.zeros(len(payloads), dtype=np.int64)
        for rows, numbers in found:
            ticks[rows] = numbers["tick"][:, 0]
        stamps = self._stamps(ticks, received)
        return [self._batch(rows, stamps[rows], numbers) for rows, numbers in found]

    def _stamps(self, ticks: Indices, received: Sequence[int]) -> Indices:
        """Times (N,) ns on the recorder's clock, with the spacing of the robot's ticks (N,) ms.

        Where the two differ by more than a second, as after a restart, ticks count from there.
        """
        stamps = np.zeros(len(ticks), dtype=np.int64)
        if not ticks.any():
            return stamps
        for i, (tick, now) in enumerate(zip(ticks.tolist(), received, strict=True)):
            if (
                self._begin_ns is None
                or abs(self._begin_ns + tick * _MS - now) > _MOST_APART_NS
            ):
                self._begin_ns = now - tick * _MS
            stamps[i] = self._begin_ns + tick * _MS
        return stamps

    def _batch(
        self, rows: Indices, stamps: Indices, numbers: dict[str, Array]
    ) -> Batch:
        numbers.pop("tick")
        if numbers.pop("motors_only", np.zeros(1)).any():
            raise TopicError(
                "it reports motors of ankles and waist in place of joints (mode_pr is 1). Record "
                "with mode_pr 0, in which the robot computes the angles of the joints",
                self._topic,
                "joint states",
            )
        if self._role == JOINT_STATE:
            return Batch(rows, stamps, "", self._joints, numbers)
        numbers["orientation"] = numbers["orientation"][:, [1, 2, 3, 0]]
        unknown = np.zeros((len(rows), _UNKNOWN))
        numbers |= {f"{field}_covariance": unknown for field in tuple(numbers)}
        return Batch(rows, stamps, self._frame, (), numbers)


def _types(connection: Connection, state: StateType) -> Types:
    """Definitions of a state message: the bag's own, or those known here."""
    if connection.msgdef.format != MessageDefinitionFormat.NONE:
        try:
            return message_types(connection)
        except Exception as error:  # the parser raises many types
            problem = f"its definition in the bag cannot be read: {str(error)[:160]}"
            raise DefinitionError(problem, connection.msgtype) from error
    types: dict = {}
    for name, text in state.definitions.items():
        types.update(get_types_from_msg(text, name))
    return types
