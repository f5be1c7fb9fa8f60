"""Events that act on a robot, its loads and its sensors, by name and time.

Events are joined by "+". With "@6" one begins 6 s after the start, with "@6-9" it ends at 9 s,
and without "@" it waits for Simulation.begin.
- forwards_0.2 (m/s of the whole robot, in 0.1 s), left_100N (for 0.2 s): a push at the root
body; left_20N@6-12, left_20N_left_hand@6-inf: a pull; also backwards, right; axes of the world,
and of the robot at its start
- payload_4kg_left_hand: a link carries a point mass at its origin, and drops it at the end
- fx_10N_l_sole, ty_0.5Nm_l_sole: bias of a foot's force sensor in x, y, z of the wrench it reads
- tilt_x_0.7deg: of the IMU's orientation about an axis of its link
- encoder_0.4deg_knee: bias of a joint's encoder, and of its servo

left_hand and right_hand are the ends of the configuration's joint groups left_arm and right_arm.
Biases and tilts grow within GROWTH.
"""

import re
from dataclasses import dataclass, replace

import numpy as np

from com_model import RobotConfig
from com_model.arrays import Array
from com_model.text import listing
from com_simulation.exceptions import WorldError
from com_simulation.physics.sensors import SAME_TIME
from com_simulation.physics.true_errors import Payload, offset
from com_simulation.physics.world_builder import World

SENSED = "ENCODER_ZERO", "WRENCH_ZERO", "IMU_TILT"  # kinds that act on sensors only
GROWTH = 0.3  # s
PUSHES = {"forwards": (1, 0), "backwards": (-1, 0), "left": (0, 1), "right": (0, -1)}
WRENCH, TILTS = ("fx", "fy", "fz", "tx", "ty", "tz"), ("tilt_x", "tilt_y", "tilt_z")
UNITS = dict.fromkeys(PUSHES, "N") | dict(
    zip(WRENCH, ("N", "N", "N", "Nm", "Nm", "Nm"), strict=True)
)
UNITS |= dict.fromkeys(("encoder", *TILTS), "deg") | {"payload": "kg"}
NUMBER = r"(-?[0-9]*\.?[0-9]+)"
TIMES = rf"(?:@{NUMBER}(?:-([0-9.]+|inf))?)?"
NAME = re.compile(rf"([a-z]+|tilt_[xyz])_{NUMBER}([A-Za-z]*)(?:_([^@]+))?{TIMES}")


@dataclass(frozen=True, eq=False)
class Event:
    """A temporary action on a body, a foot's sensor, the IMU or a joint.

    Attributes:
        name: as given.
        kind: of com_msgs/Culprit: PAYLOAD, PULL, WRENCH_ZERO, IMU_TILT, ENCODER_ZERO; or UNKNOWN
            for a push.
        index: of the body, foot or joint; 0 for the IMU.
        vector: (4,) kg and m in the body's frame for PAYLOAD; (3,) N, world, for PULL and
            UNKNOWN; (6,) N, N m for WRENCH_ZERO; (3,) rad for IMU_TILT; (1,) rad for
            ENCODER_ZERO.
        part: the body's first link, a sole, the IMU's link or a joint.
        begin: s; inf: not known yet.
        duration: s.
    """

    name: str
    kind: str
    index: int
    vector: Array
    part: str
    begin: float
    duration: float = np.inf

    def strength(self, time: float) -> float:
        """Fraction of the event that acts, 0 to 1; sensor errors grow and fade within GROWTH.

        Args:
            time: s, simulated.
        """
        since = time - self.begin + SAME_TIME
        if self.kind not in SENSED:
            return float(0.0 <= since < self.duration)
        grown, faded = np.clip(
            np.array([since, since - self.duration]) / GROWTH, 0.0, 1.0
        )
        return float(grown - faded)


def payload_event(payload: Payload, world: World) -> Event:
    """A payload as an event.

    Args:
        payload: mass, position and time.
        world: the robot that carries it.

    Raises:
        WorldError: its position is not three finite numbers.
    """
    bodies, link = (
        world.robot.bodies,
        world.robot.link_index(payload.link or world.robot.root_link),
    )
    body, at = int(bodies.body_of_link[link]), offset(payload.position, "payload")
    place = bodies.p_body_link[link] + bodies.R_body_link[link] @ at
    vector = np.append(payload.mass, place)
    return Event("payload", "PAYLOAD", body, vector, bodies.names[body], payload.time)


def find_events(
    names: str, world: World, config: RobotConfig | None = None
) -> tuple[Event, ...]:
    """Parses the names of events; see the module's docstring.

    Args:
        names: joined by "+"; empty: none.
        world: the robot on which they act.
        config: names the hands; None: links can be named only.

    Returns:
        The events in the given order.

    Raises:
        WorldError: a name is not one of these, or of no part of the robot.
    """
    return tuple(
        _find_event(name, world, config) for name in filter(None, names.split("+"))
    )


def _find_event(name: str, world: World, config: RobotConfig | None) -> Event:
    found = NAME.fullmatch(name)
    kind, size, unit, part, start, end = found.groups() if found else [""] * 6
    if unit != UNITS.get(kind) and (unit or kind not in PUSHES):
        raise WorldError(
            f"event {name!r}: give {', '.join(PUSHES)} and m/s or N, as left_0.15@6, left_20N@6-9, "
            "payload_4kg_left_hand@5-12, fx_10N_SOLE@8, ty_1Nm_SOLE@8, tilt_x_0.7deg@8, "
            "encoder_0.4deg_JOINT@8, or another number"
        )
    robot, value, begin = world.robot, float(size), float(start or np.inf)
    duration = float(end) - begin if end else np.inf
    hands = (
        {f"{side}_hand": robot.bodies.names[b] for side, b in config.hands(robot)}
        if config
        else {}
    )
    valid, part = [*robot.link_names, *hands], part or robot.root_link
    if kind in WRENCH:
        what, vector = "WRENCH_ZERO", value * np.eye(6)[WRENCH.index(kind)]
        valid = [foot.frame for foot in world.feet]
    elif kind == "encoder":
        what, vector, valid = (
            "ENCODER_ZERO",
            np.radians([value]),
            list(robot.joint_names),
        )
    elif kind in TILTS:
        what, vector = "IMU_TILT", np.radians(value) * np.eye(3)[TILTS.index(kind)]
        valid = [part := world.imu_link]
    elif kind in PUSHES:
        what, duration = (
            ("PULL", duration) if end else ("UNKNOWN", 0.2 if unit else 0.1)
        )
        force = value if unit else value * robot.mass / duration
        vector = force * np.array([*PUSHES[kind], 0.0])
    if part not in valid or not duration > 0.0:
        problem = (
            f"{part} is none of {listing(valid)}"
            if duration > 0.0
            else "it ends before it begins"
        )
        raise WorldError(f"event {name!r}: {problem}")
    if kind != "payload" and kind not in PUSHES:
        return Event(name, what, valid.index(part), vector, part, begin, duration)
    load = payload_event(
        Payload(value if kind == "payload" else 0.0, link=hands.get(part, part)), world
    )
    load = replace(load, name=name, begin=begin, duration=duration)
    return load if kind == "payload" else replace(load, kind=what, vector=vector)
