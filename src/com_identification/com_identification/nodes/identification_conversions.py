"""Results of the identification as messages; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, those of a body in its own, SI units; unknown
values are NaN.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray

from com_identification.feet.feet_reading import (
    ModelCheckResult,
    ModelVerdict,
    TiltedShape,
    TotalCom,
)
from com_identification.planning.planner import PlannedPosture
from com_identification.regression.postures import Posture
from com_identification.regression.priors import Evidence
from com_identification.regression.result import Identification, issues_of
from com_identification.report.comparison import informed_errors
from com_identification.store.results import trusted_bodies
from com_model import RobotModel
from com_model.arrays import Array
from com_model.dynamics.kinematics import link_pose
from com_msgs import msg as msgs
from com_msgs.srv import IdentifyTotalCom
from com_ros import conversions as cv

if TYPE_CHECKING:  # they load for a second
    from com_identification.walking.advice import Advice
    from com_identification.walking.identify import WalkResult


def numpy_to_captured_posture(
    posture: Posture,
    feet: Sequence[str],
    loaded: NDArray[np.bool_],
    check: ModelCheckResult,
    com: Array,
) -> msgs.CapturedPosture:
    """CapturedPosture message of a posture, without header, names of the joints and id.

    Args:
        posture: its readings.
        feet: frames of the f feet.
        loaded: (f,) feet that carry load.
        check: comparison of the model with the feet.
        com: (3,) m, by the model, root axes.
    """
    line = check.measured + ((com - check.measured) @ check.up) * check.up
    msg = msgs.CapturedPosture(
        label=posture.label, samples=posture.samples, feet=list(feet)
    )
    msg.joint_positions = cv.numpy_to_doubles(posture.q)
    msg.joint_efforts = cv.numpy_to_doubles(posture.effort)
    cv.numpy_to_vector3(posture.up, msg.up)
    msg.in_contact = loaded.tolist()
    msg.wrenches = [cv.numpy_to_wrench(wrench) for wrench in posture.wrenches]
    msg.mass = float(check.mass)
    cv.numpy_to_point(line, msg.com_line)
    cv.numpy_to_vector3(com - line, msg.model_offset)
    msg.model_distance = float(np.linalg.norm(com - line))
    msg.problems = [check.reason] if check.verdict is ModelVerdict.WRONG_WRENCH else []
    return msg


def numpy_to_proposed_posture(
    values: PlannedPosture, joint_names: Sequence[str]
) -> msgs.ProposedPosture:
    """ProposedPosture message of a planned posture.

    Args:
        values: The planned posture.
        joint_names: Of the n joints.
    """
    return msgs.ProposedPosture(
        joint_names=list(joint_names),
        joint_positions=cv.numpy_to_doubles(values.q),
        feet=list(values.feet),
        margin=float(values.margin),
        information_gain=float(values.gain),
    )


def numpy_to_model_check(
    values: ModelCheckResult, stamp: Time, frame: str
) -> msgs.ModelCheck:
    """ModelCheck message of a comparison.

    Args:
        values: The comparison.
        stamp: Of its newest reading.
        frame: Name of the root link, with its prefix.
    """
    msg = msgs.ModelCheck(verdict=int(values.verdict), reason=values.reason)
    msg.header.stamp, msg.header.frame_id = stamp, frame
    cv.numpy_to_point(values.projection, msg.model_projection)
    cv.numpy_to_point(values.measured, msg.measured_projection)
    for name in ("up", "difference", "tilt_part", "model_part"):
        cv.numpy_to_vector3(getattr(values, name), getattr(msg, name))
    msg.model_part_std = float(values.model_std)
    for name in ("tilt", "force_tilt", "mass", "mass_std", "model_mass"):
        setattr(msg, name, float(getattr(values, name)))
    msg.sloped = bool(values.sloped)
    return msg


def causes_to_evidence(
    causes: Iterable[msgs.Culprit], model: RobotModel, rest: Array
) -> Evidence:
    """Converts causes of a diagnosis: encoder biases, the IMU's tilt, and the trunk's CoM.

    The parameter of an encoder is by how much it reads too much; its negative, joint_offset,
    must be added to the reading. An IMU that is rotated by e reads the direction against gravity
    rotated by
    -e; root axes, where the robot is at rest.

    Args:
        causes: those that last, of a CentroidalDiagnosis.
        model: the robot.
        rest: (n,) rad or m.
    """
    errors, coms = (
        dict[tuple[str, str], tuple[float, float]](),
        dict[str, tuple[Array, Array]](),
    )
    for msg in causes:
        values, std = np.array(msg.parameters), np.array(msg.std)
        if msg.kind == msgs.Culprit.ENCODER_ZERO:
            known = zip(msg.parts, -values, std, strict=True)
            errors |= {
                ("joint_offset", joint): (mean, sigma) for joint, mean, sigma in known
            }
            continue
        axes = cv.quaternion_to_rotation(msg.axes)[:, : len(values)]
        if msg.kind == msgs.Culprit.IMU_TILT:
            axes = link_pose(model, rest, msg.parts[0])[0] @ axes
            known = zip("xyz", axes @ values, np.sqrt(axes**2 @ std**2), strict=True)
            # 1e-6 rad: the axis is one about which the IMU does not show tilt
            errors |= {("tilt", axis): (mean, s) for axis, mean, s in known if s > 1e-6}
        if msg.kind == msgs.Culprit.TRUNK_COM:
            mass = model.bodies.mass[model.bodies.names.index(msg.parts[0])]
            coms[msg.parts[0]] = axes @ values / mass, np.sqrt(axes**2 @ std**2) / mass
    return Evidence(errors, coms)


def no_result(reason: str) -> msgs.IdentificationResult:
    """IdentificationResult message before there is a result; all numbers are NaN.

    Args:
        reason: why there is none.
    """
    msg = msgs.IdentificationResult(
        status=msgs.IdentificationResult.STATUS_UNKNOWN, reason=reason
    )
    for name, kind in msgs.IdentificationResult.get_fields_and_field_types().items():
        if kind == "double":
            setattr(msg, name, math.nan)
    return msg


def numpy_to_identification_result(
    found: Identification, ids: Sequence[int]
) -> msgs.IdentificationResult:
    """IdentificationResult message of a result from postures, without header and robot.

    Args:
        found: the result.
        ids: of the postures that it was identified from.
    """
    issues, what, good = issues_of(found), found.identifiability, found.without_outliers
    msg = msgs.IdentificationResult(
        reason=" ".join(issues),
        postures=list(ids),
        total_mass=float(found.total_mass),
        total_mass_std=float(found.total_mass_std),
        n_parameters=what.unknowns,
        rank=what.rank,
        n_improved=what.informed,
        condition=float(what.condition),
        unidentifiable=list(what.lost),
        weakly_identifiable=list(what.weak),
        variance_factor=float(found.variance_factor),
        outliers=[ids[i] for i in found.outliers],
        at_bound=list(found.at_bound),
    )
    msg.status = msg.STATUS_DEGRADED if issues else msg.STATUS_OK
    for name in ("residual", "prior_residual", "held_out"):
        distances = getattr(good, name)
        for part, value in (("mean", "mean"), ("rms", "rms"), ("max", "maximum")):
            setattr(msg, f"{name}_{part}", float(getattr(distances, value)))
    trusted = trusted_bodies(found)
    msg.bodies = [_body(found, i, bool(trusted[i])) for i in range(len(found.bodies))]
    msg.sensor_errors = [
        msgs.SensorError(kind=kind, name=name, value=value, std=std)
        for kind, name, value, std in informed_errors(found)
    ]
    return msg


def numpy_to_walk_result(walk: "WalkResult") -> msgs.IdentificationResult:
    """IdentificationResult message of an accepted result from walking, without header and robot.

    Args:
        walk: the result.
    """
    msg, unknowns = no_result(""), walk.unknowns
    msg.reason = " ".join(gate.text for gate in walk.gates if not gate.passed)
    msg.status = msg.STATUS_DEGRADED if msg.reason else msg.STATUS_OK
    msg.total_mass, msg.total_mass_std = walk.total_mass
    msg.n_parameters, msg.rank = len(walk.z), walk.fit.dominated
    msg.n_improved, unknown = walk.advice.improved, walk.advice.unknown
    msg.weakly_identifiable = [f"{name} stays at the URDF" for name in unknown]
    std = np.sqrt(np.diag(walk.covariance))
    for i, name in enumerate(unknowns.body_names):
        body = msgs.IdentifiedBody(name=name, trusted=name not in unknown)
        for key, z, stds in (
            ("", walk.z, std),
            ("prior_", unknowns.mean, unknowns.std),
        ):
            values, spread = unknowns.eta(z)[i], unknowns.eta(stds)[i]
            mass = float(np.exp(2.0 * values[0]))
            setattr(body, f"{key}mass", mass)
            setattr(body, f"{key}mass_std", float(2.0 * mass * spread[0]))
            cv.numpy_to_point(values[7:], getattr(body, f"{key}com"))
            cv.numpy_to_vector3(spread[7:], getattr(body, f"{key}com_std"))
        msg.bodies.append(body)
    return msg


def numpy_to_walk_recording(advice: "Advice | None") -> msgs.WalkRecording:
    """WalkRecording message with the advice of an analysis.

    Args:
        advice: of the analysis; None: the numbers are NaN.
    """
    nothing = np.full(3, np.nan)
    msg = msgs.WalkRecording(
        com_std_same=math.nan if advice is None else float(advice.same)
    )
    cv.numpy_to_vector3(nothing if advice is None else advice.com_std, msg.com_std)
    cv.numpy_to_vector3(
        nothing if advice is None else advice.prior_com_std, msg.prior_com_std
    )
    if advice is not None:
        msg.unknown, msg.motions = (
            list(advice.unknown),
            [name for name, _ in advice.motions],
        )
        msg.com_std_after = [std for _, std in advice.motions]
        msg.n_improved = advice.improved
    return msg


def _body(found: Identification, i: int, trusted: bool) -> msgs.IdentifiedBody:
    name = found.bodies[i]
    msg = msgs.IdentifiedBody(
        name=name, trusted=trusted, at_bound=name in found.at_bound
    )
    for key in ("mass", "mass_std", "prior_mass", "prior_mass_std"):
        setattr(msg, key, float(getattr(found, key)[i]))
    for key in ("com", "prior_com"):
        cv.numpy_to_point(getattr(found, key)[i], getattr(msg, key))
        cv.numpy_to_vector3(getattr(found, f"{key}_std")[i], getattr(msg, f"{key}_std"))
    return msg


def numpy_to_tilted_shape(
    shape: TiltedShape, ids: Sequence[int]
) -> IdentifyTotalCom.Response:
    """Response of ~/identify_two_postures.

    Args:
        shape: that stood at several tilts.
        ids: of all postures that were given.
    """
    response, own = numpy_to_total(shape.total), [ids[i] for i in shape.postures]
    places = zip(own, 1e3 * shape.com, strict=True)
    text = ", ".join(f"{i}: ({x:.2f}, {y:.2f}, {z:.2f})" for i, (x, y, z) in places)
    response.message = (
        f"total CoM in the root's frame, mm, in posture {text}; "
        f"one shape, tilted by {np.degrees(shape.tilt):.1f} deg"
    )
    return response


def numpy_to_total(total: TotalCom) -> IdentifyTotalCom.Response:
    """Response with mass and offset of the whole robot.

    Args:
        total: by the feet.
    """
    known = np.isfinite(total.offset_std)
    response = IdentifyTotalCom.Response(success=True, issues=list(total.reasons))
    response.mass, response.mass_std = float(total.mass), float(total.mass_std)
    response.model_mass, response.used = float(total.model_mass), int(total.postures)
    cv.numpy_to_vector3(np.where(known, total.offset, np.nan), response.offset)
    cv.numpy_to_vector3(np.where(known, total.offset_std, np.nan), response.offset_std)
    before, after = total.residual_before, total.residual_after
    response.distance_mean, response.distance_max = (
        float(np.mean(before)),
        float(np.max(before)),
    )
    response.shifted_mean, response.shifted_max = (
        float(np.mean(after)),
        float(np.max(after)),
    )
    response.message = (
        f"mass by the feet {total.mass:.4g} kg (URDF {total.model_mass:.4g} kg); the URDF's centre "
        f"of mass is {1e3 * response.distance_mean:.2f} mm from the line by the feet on average"
    )
    return response
