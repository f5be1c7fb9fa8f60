"""State messages of robots: joints and IMU in one message of the maker's own type.

Unitree's robots publish no joint_states, but LowState: numbered motors and an IMU. Where a bag has
such a topic, joint states and readings of the IMU are made of it. Which motor is which joint
depends on the robot, and is known by the names of the URDF's joints. The spacing of times is that
of the robot's own clock, which begins with the recorder's. Tables whose columns have the names of
the message's fields, as programs write them that make tables of bags, are read alike.

Sources: Unitree's message definitions and the joint indices of its SDK's documentation
(unitree_ros2, unitree_sdk2).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from com_bags.channels import IMU, JOINT_STATE, Channel, Conversion
from com_bags.column_names import find_time, rises
from com_bags.exceptions import TopicError
from com_bags.tables import Table
from com_model.text import listing

_MOTORS_ONLY = (
    "it reports motors of ankles and waist in place of joints (mode_pr is 1). Record with mode_pr "
    "0, in which the robot computes the angles of the joints"
)


@dataclass(frozen=True)
class StateType:
    """A type of state messages: where its numbers are.

    Attributes:
        definitions: Definitions of its types, for bags without any, by name; empty: bags of this
            type always have them.
        position: rad or m, of the motors; {} stands for their numbers.
        velocity: rad/s or m/s.
        effort: N m or N.
        orientation: Quaternion of the IMU, of which w is the first number.
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
        type_names: Of its state messages.
        joints: Names of the URDF's joints in the order of the motors; "": none.
        imu_link: Link in whose axes the IMU reports; "": the root's.
    """

    name: str
    type_names: tuple[str, ...]
    joints: tuple[str, ...]
    imu_link: str = ""

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of its format for people who name it: unitree-go2, for example."""
        return tuple(f"unitree-{each.lower()}" for each in self.name.split(" or "))


def _joints(words: str) -> tuple[str, ...]:
    """Names of joints from their words; - stands for no joint."""
    return tuple("" if word == "-" else f"{word}_joint" for word in words.split())


_GO, _HG = "unitree_go/msg/LowState", "unitree_hg/msg/LowState"
_GO1 = "unitree_legged_msgs/msg/LowState"  # of ROS 1, and of a port to ROS 2
_GO1_ROS2 = "ros2_unitree_legged_msgs/msg/LowState"
_CAMEL_CASE = StateType(
    {},
    position="motorState[{}].q",
    velocity="motorState[{}].dq",
    effort="motorState[{}].tauEst",
    orientation="imu.quaternion",
    angular_velocity="imu.gyroscope",
    acceleration="imu.accelerometer",
)
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
        _GO1: _CAMEL_CASE,
        _GO1_ROS2: _CAMEL_CASE,
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
        "Go2 or Go1",
        (_GO, _GO1, _GO1_ROS2),
        _joints(
            "FR_hip FR_thigh FR_calf FL_hip FL_thigh FL_calf "
            "RR_hip RR_thigh RR_calf RL_hip RL_thigh RL_calf"
        ),
    ),
    StateRobot(
        "H1",
        (_GO,),
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
        (_HG,),
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
        (_HG,),
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


def state_robot(
    type_name: str, names: Collection[str], topic: str, wanted: str = ""
) -> StateRobot:
    """Finds the robot whose motors a type of state messages numbers.

    Args:
        type_name: Type of the state messages, of STATE_TYPES.
        names: Joints and links of the URDF. A joint that is fixed there still has its link.
        topic: Of the state messages, for errors.
        wanted: Name of the robot, as the user says; "": it is found.

    Returns:
        That one, or the one that shares most names with the URDF.

    Raises:
        TopicError: No known robot shares any, or two share as many, and differ in an order.
    """
    there = set(names)
    known = [robot for robot in STATE_ROBOTS if type_name in robot.type_names]
    chosen = [robot for robot in known if wanted in robot.formats]
    if wanted and not chosen:
        valid = listing([each for robot in known for each in robot.formats])
        raise TopicError(
            f"--format {wanted}: {type_name} is of other robots; valid: {valid}",
            topic,
            "joint states",
        )
    known = chosen or known

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
            "its motors have numbers, and of no robot known here the joints are the URDF's. "
            f"Known are {expected}. The URDF has {listing(sorted(names), 6)}: is it the URDF of "
            "this robot?",
            topic,
            "joint states",
        )
    return best


def state_conversions(
    type_name: str, topic: str, names: Collection[str], wanted: str = ""
) -> list[Conversion]:
    """Joint states and IMU readings of the state messages of a topic.

    Args:
        type_name: Type of the state messages, of STATE_TYPES.
        topic: Their topic; the messages that are made have the same.
        names: Joints and links of the URDF.
        wanted: Name of the format, as the user says; "": the robot is found by the names.

    Raises:
        TopicError: See state_robot.
    """
    state, robot = STATE_TYPES[type_name], state_robot(type_name, names, topic, wanted)
    slots = [i for i, name in enumerate(robot.joints) if name]
    joints = tuple(robot.joints[i] for i in slots)
    numbers = ",".join(map(str, slots))
    motors = {
        field: (Channel(path.format(numbers)),)
        for field, path in (
            ("position", state.position),
            ("velocity", state.velocity),
            ("effort", state.effort),
        )
    }
    readings = {
        "orientation": (Channel(f"{state.orientation}[1,2,3,0]"),),
        "angular_velocity": (Channel(state.angular_velocity),),
        "linear_acceleration": (Channel(state.acceleration),),
    }
    # ticks are ms
    clock = Channel(state.tick, (1e-3,))
    zero = (state.motors_only, _MOTORS_ONLY) if state.motors_only else None
    frame = robot.imu_link
    return [
        Conversion(topic, topic, JOINT_STATE, motors, joints, "", clock, zero),
        Conversion(topic, topic, IMU, readings, (), frame, clock),
    ]


def state_table(
    table: Table, names: Collection[str], wanted: str = ""
) -> dict[str, Any] | None:
    """The mapping of a table whose columns are the fields of state messages.

    Names may be /lowstate/motor_state[0]/q, motor_state.0.q, motorState_0_q and the like.

    Args:
        table: Of any robot.
        names: Joints and links of the URDF.
        wanted: Name of the format, as the user says; "": the robot is found by the names.

    Returns:
        Content of a mapping file; None: its columns are no such fields.

    Raises:
        TopicError: They are those of another robot, or of motors in place of joints.
    """
    columns = {_plain(name): name for name in table.columns}
    found: list[tuple[tuple[int, bool], dict[str, Any]]] = []
    refused: TopicError | None = None
    for type_name, state in STATE_TYPES.items():
        first = _plain(state.position.format(0))
        ending = next((name for name in columns if name.endswith(first)), None)
        if ending is None:
            continue
        before = ending.removesuffix(first)
        try:
            robot = state_robot(type_name, names, table.source, wanted)
        except TopicError as error:
            refused = error
            continue
        own = {
            plain.removeprefix(before): name
            for plain, name in columns.items()
            if plain.startswith(before)
        }
        mapping = _state_mapping(state, robot, own, table)
        if mapping is not None:
            joints = len({*robot.joints} & {*names})
            found.append(((joints, "imu" in mapping), mapping))
    if not found and refused is not None:
        raise refused
    return max(found, key=lambda each: each[0])[1] if found else None


def _state_mapping(
    state: StateType,
    robot: StateRobot,
    columns: Mapping[str, str],
    table: Table,
) -> dict[str, Any] | None:
    """A mapping of columns by their plain names; None without positions or a time."""

    def named(paths: Collection[str]) -> list[str]:
        found = [columns.get(_plain(path), "") for path in paths]
        return found if all(found) else []

    def values(path: str, count: int) -> list[str]:
        return named([f"{path}[{i}]" for i in range(count)])

    mode = columns.get(_plain(state.motors_only)) if state.motors_only else None
    if mode and np.nanmax(table.columns[mode]) != 0.0:
        raise TopicError(_MOTORS_ONLY, table.source, "joint states")
    motors = [(i, name) for i, name in enumerate(robot.joints) if name]
    motors = [each for each in motors if named([state.position.format(each[0])])]
    tick = columns.get(_plain(state.tick))
    time: Any = find_time(table)
    if tick and rises(table, tick):
        time = {"column": tick, "unit": "ms"}
    if not motors or time is None:
        return None
    joints: dict[str, Any] = {"names": [name for _, name in motors]}
    for key, path in (
        ("position", state.position),
        ("velocity", state.velocity),
        ("effort", state.effort),
    ):
        joints[key] = named([path.format(i) for i, _ in motors])
    imu: dict[str, Any] = {
        "gyro": values(state.angular_velocity, 3),
        "acceleration": values(state.acceleration, 3),
        "orientation": values(state.orientation, 4),
        "order": "wxyz",
    }
    mapping = {"time": time, "joints": joints}
    if imu["gyro"] and imu["acceleration"]:
        mapping["imu"] = imu
    return {key: {k: v for k, v in part.items() if v} for key, part in mapping.items()}


def _plain(path: str) -> str:
    """A path's letters and digits, however its parts are joined: motorstate0q."""
    return re.sub(r"[^a-z0-9]", "", path.lower())
