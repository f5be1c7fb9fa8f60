"""Faults of a robot's drivers: what benchmarks/faults.py does to the messages that a node receives.

A fault changes the messages of an instant, a list of (topic, message), before they are sent.
Topics are "joints", "imu" and "wrench0", "wrench1", ... in the order of the configuration's feet.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from builtin_interfaces.msg import Time

Batch = list[tuple[str, Any]]
NS = 1_000_000_000
HOUR_NS = 3600 * NS

SENSORS = {
    "joints": ("joint", "encoder"),
    "imu": ("imu", "gyro", "acceleromet", "upside down"),
    "wrench": ("wrench", "force", "f/t"),
}
"""Words of reasons that name a sensor, by the word in the names of its faults."""


@dataclass
class Progress:
    """How far a fault has come.

    Attributes:
        tick: Instants since it began.
        seed: Joint that is hit, among other choices.
        memory: What the fault remembers from instant to instant.
    """

    tick: int = 0
    seed: int = 0
    memory: dict[str, Any] = field(default_factory=dict)


Change = Callable[[Batch, Progress], Batch]
Edit = Callable[[Any, Progress], None]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: Of it, kind first: "value joints.position nan".
        change: Of the messages of an instant.
        seconds: That it lasts.
        shift_s: By which the clock stays off from then on.
        visible: Whether a node can tell that it is one. Nobody can who is given plausible numbers.
        description: Sent on robot_description at its beginning; None: nothing.
        parameters: Whether absurd parameters are set at its beginning.
    """

    name: str
    change: Change
    seconds: float = 0.3
    shift_s: float = 0.0
    visible: bool = True
    description: str | None = None
    parameters: bool = False

    def is_wrong_reason(self, reason: str) -> bool:
        """Whether a reason names other sensors only than those that fail.

        Args:
            reason: That a node gives; one without a sensor is not wrong.
        """
        failing = {kind for kind in SENSORS if kind in self.name}
        named = {
            kind
            for kind, words in SENSORS.items()
            if any(word in reason.lower() for word in words)
        }
        return bool(failing and named) and not failing & named


def unchanged(batch: Batch, _: Progress) -> Batch:
    """No change."""
    return batch


def edited(topic: str, edit: Edit) -> Change:
    """A change of each message of a topic ("wrench": of all wrenches)."""

    def change(batch: Batch, progress: Progress) -> Batch:
        result = []
        for name, msg in batch:
            if name.startswith(topic):
                msg = copy.deepcopy(msg)
                edit(msg, progress)
            result.append((name, msg))
        return result

    return change


def faults() -> list[Fault]:
    """All of them, in a fixed order."""
    groups = (
        _values(),
        _imu(),
        _wrenches(),
        _sizes(),
        _stamps(),
        _order(),
        _silence(),
        _rest(),
    )
    return [fault for group in groups for fault in group]


# --- values ------------------------------------------------------------------------------------
def _values() -> list[Fault]:
    result = []
    for name in ("position", "velocity", "effort"):
        for value in (math.nan, math.inf, 1e300, -1e300, 1e6):
            change = edited("joints", _one(name, value))
            result.append(Fault(f"value joints.{name} {value:g}", change))
        result.append(
            Fault(f"value joints.{name} all 1e300", edited("joints", _all(name, 1e300)))
        )
    return [
        *result,
        Fault(
            "value joints.position slip 2 pi", edited("joints", _slip(2.0 * math.pi))
        ),
        Fault(
            "value joints.position once 1e300",
            _once(edited("joints", _one("position", 1e300))),
        ),
        Fault(
            "value joints.effort once 1e300",
            _once(edited("joints", _one("effort", 1e300))),
        ),
    ]


def _one(name: str, value: float) -> Edit:
    def edit(msg: Any, progress: Progress) -> None:
        numbers = getattr(msg, name)
        if len(numbers):
            numbers[progress.seed % len(numbers)] = value

    return edit


def _all(name: str, value: float) -> Edit:
    return lambda msg, _: setattr(msg, name, [value] * len(getattr(msg, name)))


def _slip(angle: float) -> Edit:
    def edit(msg: Any, progress: Progress) -> None:
        msg.position[progress.seed % len(msg.position)] += angle

    return edit


def _once(change: Change) -> Change:
    return lambda batch, progress: batch if progress.tick else change(batch, progress)


def _imu() -> list[Fault]:
    result = []
    for name, axis in (("angular_velocity", "x"), ("linear_acceleration", "z")):
        for value in (math.nan, math.inf, 1e300, 1e160, 1e6):
            change = edited("imu", _component(name, axis, value))
            result.append(Fault(f"value imu.{name} {value:g}", change))

    def upside_down(msg: Any, _: Progress) -> None:
        q = msg.orientation
        # turned by 180 degrees about its own x
        q.x, q.y, q.z, q.w = q.w, -q.z, q.y, -q.x
        for vector in (msg.linear_acceleration, msg.angular_velocity):
            vector.y, vector.z = -vector.y, -vector.z

    def unknown(msg: Any, _: Progress) -> None:
        msg.orientation_covariance[0] = -1.0

    def scaled(factor: float) -> Edit:
        def edit(msg: Any, _: Progress) -> None:
            for name in "xyzw":
                setattr(msg.orientation, name, factor * getattr(msg.orientation, name))

        return edit

    return [
        *result,
        Fault("value imu.orientation zero", edited("imu", scaled(0.0))),
        Fault("value imu.orientation nan", edited("imu", scaled(math.nan))),
        Fault("value imu.orientation norm 3", edited("imu", scaled(3.0))),
        Fault("value imu upside down", edited("imu", upside_down), 0.5),
        Fault("value imu without orientation", edited("imu", unknown), 0.5),
    ]


def _component(name: str, axis: str, value: float) -> Edit:
    return lambda msg, _: setattr(getattr(msg, name), axis, value)


def _wrenches() -> list[Fault]:
    def force(value: float) -> Edit:
        return lambda msg, _: setattr(msg.wrench.force, "z", value)

    def torque(value: float) -> Edit:
        return lambda msg, _: setattr(msg.wrench.torque, "x", value)

    def opposite(msg: Any, _: Progress) -> None:
        for vector in (msg.wrench.force, msg.wrench.torque):
            vector.x, vector.y, vector.z = -vector.x, -vector.y, -vector.z

    def swapped(batch: Batch, _: Progress) -> Batch:
        names = {"wrench0": "wrench1", "wrench1": "wrench0"}
        return [(names.get(name, name), msg) for name, msg in batch]

    return [
        *(
            Fault(f"value wrench.force {value:g}", edited("wrench0", force(value)))
            for value in (math.nan, math.inf, 1e300, 1e6, 0.0)
        ),
        Fault("value wrench.torque 1e300", edited("wrench0", torque(1e300))),
        Fault("value wrench sign", edited("wrench", opposite)),
        Fault("value wrenches swapped", swapped, visible=False),
    ]


# --- names and lengths -------------------------------------------------------------------------
def _sizes() -> list[Fault]:
    def cut(msg: Any, name: str, count: int) -> None:
        setattr(msg, name, list(getattr(msg, name))[:count])

    def nothing(msg: Any, _: Progress) -> None:
        for name in ("name", "position", "velocity", "effort"):
            cut(msg, name, 0)

    def missing(msg: Any, _: Progress) -> None:
        for name in ("name", "position", "velocity", "effort"):
            cut(msg, name, -1)

    def doubled(msg: Any, _: Progress) -> None:
        msg.name = [msg.name[0], *msg.name[:-1]]

    def renamed(msg: Any, _: Progress) -> None:
        msg.name = ["no_such_joint", *msg.name[1:]]

    def strangers(count: int, name: str) -> Edit:
        def edit(msg: Any, _: Progress) -> None:
            msg.name = [*msg.name, *(f"{name}{i}" for i in range(count))]
            for field_name in ("position", "velocity", "effort"):
                setattr(msg, field_name, [*getattr(msg, field_name), *([0.0] * count)])

        return edit

    def edits() -> Sequence[tuple[str, Edit]]:
        return (
            ("nothing at all", nothing),
            ("one joint missing", missing),
            ("a name twice", doubled),
            ("a joint renamed", renamed),
            ("positions empty", lambda msg, _: cut(msg, "position", 0)),
            ("one position too few", lambda msg, _: cut(msg, "position", -1)),
            ("velocities empty", lambda msg, _: cut(msg, "velocity", 0)),
            ("one velocity too few", lambda msg, _: cut(msg, "velocity", -1)),
            ("efforts empty", lambda msg, _: cut(msg, "effort", 0)),
            ("one effort too few", lambda msg, _: cut(msg, "effort", -1)),
            ("3000 strangers", strangers(3000, "stranger_")),
            ("a name of 100 kB", strangers(1, "x" * 100_000)),
        )

    harmless = (
        "3000 strangers",
        "a name of 100 kB",
        "velocities empty",
        "efforts empty",
    )
    return [
        Fault(
            f"size joints: {name}", edited("joints", edit), visible=name not in harmless
        )
        for name, edit in edits()
    ]


# --- stamps and order --------------------------------------------------------------------------
def shifted(stamp: Time, by_ns: int) -> Time:
    """A stamp some time later, within what a stamp can be."""
    total = min(
        max(stamp.sec * NS + stamp.nanosec + by_ns, -(2**31) * NS), (2**31 - 1) * NS
    )
    return Time(sec=total // NS, nanosec=total % NS)


def _stamped(make: Callable[[Time], Time]) -> Change:
    def edit(msg: Any, _: Progress) -> None:
        msg.header.stamp = make(msg.header.stamp)

    return edited("", edit)


def _stamps() -> list[Fault]:
    def frozen(batch: Batch, progress: Progress) -> Batch:
        stamp = progress.memory.setdefault("stamp", batch[0][1].header.stamp)
        return _stamped(lambda _: stamp)(batch, progress)

    def later(seconds: float) -> Change:
        return _stamped(lambda stamp: shifted(stamp, round(seconds * NS)))

    return [
        Fault("stamp 0", _stamped(lambda _: Time())),
        Fault("stamp negative", _stamped(lambda _: Time(sec=-(2**31)))),
        Fault(
            "stamp of 2038",
            _stamped(lambda _: Time(sec=2**31 - 1, nanosec=999_999_999)),
        ),
        Fault(
            "stamp nanosec 4e9", _stamped(lambda s: Time(sec=s.sec, nanosec=2**32 - 1))
        ),
        *(
            Fault(f"stamp once {s:+d} s", _once(later(s)))
            for s in (9, 3600, -1, -20, -3600)
        ),
        Fault("stamp +1 h for a while", later(3600.0)),
        Fault("stamp -20 s for a while", later(-20.0)),
        Fault("stamp stands still", frozen),
        Fault("stamp joints 0.5 s late", edited("joints", _late)),
        Fault("clock +20 s for good", unchanged, shift_s=20.0),
        Fault("clock -20 s for good", unchanged, shift_s=-20.0),
    ]


def _late(msg: Any, _: Progress) -> None:
    msg.header.stamp = shifted(msg.header.stamp, -NS // 2)


def _order() -> list[Fault]:
    def held(batch: Batch, progress: Progress, count: int) -> Batch | None:
        kept = progress.memory.setdefault("kept", [])
        kept.append(batch)
        if len(kept) < count:
            return None
        progress.memory["kept"] = []
        return [item for some in reversed(kept) for item in some]

    return [
        Fault("order twice", lambda b, _: [*b, *b], visible=False),
        Fault(
            "order reversed in pairs", lambda b, p: held(b, p, 2) or [], visible=False
        ),
        Fault(
            "order reversed in tens", lambda b, p: held(b, p, 10) or [], visible=False
        ),
        Fault("order imu first", lambda b, _: b[::-1], visible=False),
        Fault("flood of 20", lambda b, _: b * 20, visible=False),
    ]


# --- silence and the rest ----------------------------------------------------------------------
def _without(topic: str) -> Change:
    return lambda batch, _: [item for item in batch if not item[0].startswith(topic)]


def _silence() -> list[Fault]:
    def every(n: int) -> Change:
        return lambda batch, progress: [] if progress.tick % n else batch

    return [
        Fault("silence joints", _without("joints"), 1.0),
        Fault("silence imu", _without("imu"), 1.0),
        Fault("silence of a wrench", _without("wrench0"), 1.0),
        Fault("silence", _without(""), 1.0),
        Fault("silence joints 3 s", _without("joints"), 3.0),
        Fault("every second message lost", every(2), 0.5, visible=False),
        Fault("one message of forty", every(40), 1.0, visible=False),
    ]


def _rest() -> list[Fault]:
    def frozen(batch: Batch, progress: Progress) -> Batch:
        joints = next(msg for name, msg in batch if name == "joints")
        position = progress.memory.setdefault("position", list(joints.position))

        def edit(msg: Any, _: Progress) -> None:
            msg.position, msg.velocity = position, [0.0] * len(position)

        return edited("joints", edit)(batch, progress)

    def frame(msg: Any, _: Progress) -> None:
        msg.header.frame_id = "no_such_frame" * 50

    entities = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">'
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    massless = (
        '<robot name="r"><link name="a"><inertial><mass value="nan"/></inertial></link>'
    )
    descriptions = (
        ("empty", ""),
        ("no XML", "%" * 1000),
        ("entities", f'{entities}]><robot name="&i;"/>'),
        ("mass nan", f"{massless}</robot>"),
        ("cut off", '<robot name="r"><link name="a"'),
    )
    return [
        Fault("frozen joints", frozen, 1.5),
        Fault("frame unknown", edited("", frame), visible=False),
        *(
            Fault(f"description {name}", unchanged, description=text, visible=False)
            for name, text in descriptions
        ),
        Fault("parameters absurd", unchanged, parameters=True, visible=False),
    ]
