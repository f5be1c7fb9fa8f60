"""Messages of the identification <-> numpy; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, SI units; what is not known is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray

from com_identification.feet.model_check import ModelCheckResult, Verdict
from com_identification.planning.planner import PlannedPosture
from com_msgs.msg import CapturedPosture, ModelCheck, ProposedPosture
from com_ros.conversions import (
    Array,
    doubles_to_numpy,
    numpy_to_doubles,
    numpy_to_point,
    numpy_to_vector3,
    numpy_to_wrench,
    point_to_numpy,
    vector3_to_numpy,
    wrench_to_numpy,
)
from com_ros.exceptions import ConversionError

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CapturedValues:
    """A CapturedPosture message as arrays.

    Attributes:
        id: in the store; 0: not stored.
        label: a name.
        samples: readings behind the means.
        joint_names: n names.
        q: (n,) rad or m.
        effort: (n,) N m or N.
        up: (3,) unit vector against gravity.
        feet: f sole frames.
        in_contact: (f,) which feet carry load.
        wrenches: (f, 6) N and N m, as read.
        mass: kg that the feet carry.
        com_line: (3,) m, a point of the line of gravity through the CoM, by the feet.
        model_offset: (3,) m, the model's CoM less com_line.
        problems: sentences.
    """

    id: int
    label: str
    samples: int
    joint_names: tuple[str, ...]
    q: Array
    effort: Array
    up: Array
    feet: tuple[str, ...]
    in_contact: Flags
    wrenches: Array
    mass: float
    com_line: Array
    model_offset: Array
    problems: tuple[str, ...] = ()


def captured_posture_to_numpy(msg: CapturedPosture) -> CapturedValues:
    """Values of a CapturedPosture message.

    Raises:
        ConversionError: when its arrays are not as long as its names.
    """
    n, f = len(msg.joint_names), len(msg.feet)
    if not len(msg.joint_positions) == len(msg.joint_efforts) == n:
        raise ConversionError(
            f"captured posture: {len(msg.joint_positions)} positions and {len(msg.joint_efforts)} "
            f"efforts for {n} joints; expected as many of each"
        )
    if not len(msg.in_contact) == len(msg.wrenches) == f:
        raise ConversionError(
            f"captured posture: {len(msg.in_contact)} contacts and {len(msg.wrenches)} "
            f"wrenches for {f} feet; expected as many of each"
        )
    return CapturedValues(
        id=msg.id,
        label=msg.label,
        samples=msg.samples,
        joint_names=tuple(msg.joint_names),
        q=doubles_to_numpy(msg.joint_positions),
        effort=doubles_to_numpy(msg.joint_efforts),
        up=vector3_to_numpy(msg.up),
        feet=tuple(msg.feet),
        in_contact=np.array(msg.in_contact, dtype=np.bool_),
        wrenches=np.array([wrench_to_numpy(w) for w in msg.wrenches]).reshape(-1, 6),
        mass=msg.mass,
        com_line=point_to_numpy(msg.com_line),
        model_offset=vector3_to_numpy(msg.model_offset),
        problems=tuple(msg.problems),
    )


def numpy_to_captured_posture(values: CapturedValues, stamp: Time, frame: str) -> CapturedPosture:
    """CapturedPosture message of values; the distance is the length of the offset."""
    msg = CapturedPosture(id=values.id, label=values.label, samples=values.samples)
    msg.header.stamp, msg.header.frame_id = stamp, frame
    msg.joint_names = list(values.joint_names)
    msg.joint_positions = numpy_to_doubles(values.q)
    msg.joint_efforts = numpy_to_doubles(values.effort)
    numpy_to_vector3(values.up, msg.up)
    msg.feet = list(values.feet)
    msg.in_contact = values.in_contact.tolist()
    msg.wrenches = [numpy_to_wrench(wrench) for wrench in values.wrenches]
    msg.mass = float(values.mass)
    numpy_to_point(values.com_line, msg.com_line)
    numpy_to_vector3(values.model_offset, msg.model_offset)
    msg.model_distance = float(np.linalg.norm(values.model_offset))
    msg.problems = list(values.problems)
    return msg


@dataclass(frozen=True, eq=False)
class PlannedValues:
    """A ProposedPosture message as arrays.

    Attributes:
        joint_names: n names.
        q: (n,) rad or m.
        feet: sole frames that stand.
        margin: m, of the CoM inside their polygon.
        gain: nats.
    """

    joint_names: tuple[str, ...]
    q: Array
    feet: tuple[str, ...]
    margin: float
    gain: float


def proposed_posture_to_numpy(msg: ProposedPosture) -> PlannedValues:
    """Values of a ProposedPosture message.

    Raises:
        ConversionError: when there is not one position for each joint.
    """
    if len(msg.joint_positions) != len(msg.joint_names):
        raise ConversionError(
            f"proposed posture: {len(msg.joint_positions)} positions for {len(msg.joint_names)} "
            "joints; expected as many of each"
        )
    names, q = tuple(msg.joint_names), doubles_to_numpy(msg.joint_positions)
    return PlannedValues(names, q, tuple(msg.feet), msg.margin, msg.information_gain)


def numpy_to_proposed_posture(
    values: PlannedPosture, joint_names: Sequence[str]
) -> ProposedPosture:
    """ProposedPosture message of values."""
    return ProposedPosture(
        joint_names=list(joint_names),
        joint_positions=numpy_to_doubles(values.q),
        feet=list(values.feet),
        margin=float(values.margin),
        information_gain=float(values.gain),
    )


def model_check_to_numpy(msg: ModelCheck) -> ModelCheckResult:
    """Values of a ModelCheck message."""
    return ModelCheckResult(
        verdict=Verdict(msg.verdict),
        reason=msg.reason,
        up=vector3_to_numpy(msg.up),
        projection=point_to_numpy(msg.model_projection),
        measured=point_to_numpy(msg.measured_projection),
        difference=vector3_to_numpy(msg.difference),
        tilt_part=vector3_to_numpy(msg.tilt_part),
        model_part=vector3_to_numpy(msg.model_part),
        model_std=msg.model_part_std,
        tilt=msg.tilt,
        force_tilt=msg.force_tilt,
        sloped=msg.sloped,
        mass=msg.mass,
        mass_std=msg.mass_std,
        model_mass=msg.model_mass,
    )


def numpy_to_model_check(values: ModelCheckResult, stamp: Time, frame: str) -> ModelCheck:
    """ModelCheck message of values."""
    msg = ModelCheck(verdict=int(values.verdict), reason=values.reason)
    msg.header.stamp, msg.header.frame_id = stamp, frame
    numpy_to_vector3(values.up, msg.up)
    numpy_to_point(values.projection, msg.model_projection)
    numpy_to_point(values.measured, msg.measured_projection)
    numpy_to_vector3(values.difference, msg.difference)
    numpy_to_vector3(values.tilt_part, msg.tilt_part)
    numpy_to_vector3(values.model_part, msg.model_part)
    msg.model_part_std = float(values.model_std)
    msg.tilt = float(values.tilt)
    msg.force_tilt = float(values.force_tilt)
    msg.sloped = bool(values.sloped)
    msg.mass = float(values.mass)
    msg.mass_std = float(values.mass_std)
    msg.model_mass = float(values.model_mass)
    return msg
