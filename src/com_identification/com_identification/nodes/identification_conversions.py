"""Results of the identification as messages; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, those of a body in its own, SI units; unknown
values are NaN.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from std_msgs.msg import Header

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
    **rest: Any,
) -> msgs.CapturedPosture:
    """CapturedPosture message of a posture.

    Args:
        posture: its readings.
        feet: frames of the f feet.
        loaded: (f,) feet that carry load.
        check: comparison of the model with the feet.
        com: (3,) m, by the model, root axes.
        rest: header, names of the joints and id.
    """
    line = check.measured + ((com - check.measured) @ check.up) * check.up
    wrong = check.verdict is ModelVerdict.WRONG_WRENCH
    return msgs.CapturedPosture(
        label=posture.label,
        samples=posture.samples,
        feet=list(feet),
        joint_positions=cv.numpy_to_doubles(posture.q),
        joint_efforts=cv.numpy_to_doubles(posture.effort),
        up=cv.numpy_to_vector3(posture.up),
        in_contact=loaded.tolist(),
        wrenches=[cv.numpy_to_wrench(wrench) for wrench in posture.wrenches],
        mass=float(check.mass),
        com_line=cv.numpy_to_point(line),
        model_offset=cv.numpy_to_vector3(com - line),
        model_distance=float(np.linalg.norm(com - line)),
        problems=[check.reason] if wrong else [],
        **rest,
    )


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
    return msgs.ModelCheck(
        header=Header(stamp=stamp, frame_id=frame),
        verdict=int(values.verdict),
        reason=values.reason,
        model_projection=cv.numpy_to_point(values.projection),
        measured_projection=cv.numpy_to_point(values.measured),
        up=cv.numpy_to_vector3(values.up),
        difference=cv.numpy_to_vector3(values.difference),
        tilt_part=cv.numpy_to_vector3(values.tilt_part),
        model_part=cv.numpy_to_vector3(values.model_part),
        model_part_std=float(values.model_std),
        tilt=float(values.tilt),
        force_tilt=float(values.force_tilt),
        sloped=bool(values.sloped),
        mass=float(values.mass),
        mass_std=float(values.mass_std),
        model_mass=float(values.model_mass),
    )


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
    Result, trusted = msgs.IdentificationResult, trusted_bodies(found)
    return Result(
        status=Result.STATUS_DEGRADED if issues else Result.STATUS_OK,
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
        bodies=[_body(found, i, bool(known)) for i, known in enumerate(trusted)],
        sensor_errors=[
            msgs.SensorError(kind=kind, name=name, value=value, std=std)
            for kind, name, value, std in informed_errors(found)
        ],
        residual_mean=float(good.residual.mean),
        residual_rms=float(good.residual.rms),
        residual_max=float(good.residual.maximum),
        prior_residual_mean=float(good.prior_residual.mean),
        prior_residual_rms=float(good.prior_residual.rms),
        prior_residual_max=float(good.prior_residual.maximum),
        held_out_mean=float(good.held_out.mean),
        held_out_rms=float(good.held_out.rms),
        held_out_max=float(good.held_out.maximum),
    )


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
        known: dict[str, Any] = {"name": name, "trusted": name not in unknown}
        for key, z, stds in (
            ("", walk.z, std),
            ("prior_", unknowns.mean, unknowns.std),
        ):
            values, spread = unknowns.eta(z)[i], unknowns.eta(stds)[i]
            mass = float(np.exp(2.0 * values[0]))
            known |= {
                f"{key}mass": mass,
                f"{key}mass_std": float(2.0 * mass * spread[0]),
                f"{key}com": cv.numpy_to_point(values[7:]),
                f"{key}com_std": cv.numpy_to_vector3(spread[7:]),
            }
        msg.bodies.append(msgs.IdentifiedBody(**known))
    return msg


def numpy_to_walk_recording(advice: "Advice | None", **rest: Any) -> msgs.WalkRecording:
    """WalkRecording message with the advice of an analysis.

    Args:
        advice: of the analysis; None: the numbers are NaN.
        rest: what is known of the recording itself, by field.
    """
    if advice is None:
        nothing = cv.numpy_to_vector3(np.full(3, np.nan))
        return msgs.WalkRecording(
            com_std_same=math.nan, com_std=nothing, prior_com_std=nothing, **rest
        )
    return msgs.WalkRecording(
        com_std_same=float(advice.same),
        com_std=cv.numpy_to_vector3(advice.com_std),
        prior_com_std=cv.numpy_to_vector3(advice.prior_com_std),
        unknown=list(advice.unknown),
        motions=[name for name, _ in advice.motions],
        com_std_after=[std for _, std in advice.motions],
        n_improved=advice.improved,
        **rest,
    )


def _body(found: Identification, i: int, trusted: bool) -> msgs.IdentifiedBody:
    return msgs.IdentifiedBody(
        name=found.bodies[i],
        trusted=trusted,
        at_bound=found.bodies[i] in found.at_bound,
        mass=float(found.mass[i]),
        mass_std=float(found.mass_std[i]),
        com=cv.numpy_to_point(found.com[i]),
        com_std=cv.numpy_to_vector3(found.com_std[i]),
        prior_mass=float(found.prior_mass[i]),
        prior_mass_std=float(found.prior_mass_std[i]),
        prior_com=cv.numpy_to_point(found.prior_com[i]),
        prior_com_std=cv.numpy_to_vector3(found.prior_com_std[i]),
    )


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
    distance = float(np.mean(total.residual_before))
    return IdentifyTotalCom.Response(
        success=True,
        issues=list(total.reasons),
        mass=float(total.mass),
        mass_std=float(total.mass_std),
        model_mass=float(total.model_mass),
        used=int(total.postures),
        offset=cv.numpy_to_vector3(np.where(known, total.offset, np.nan)),
        offset_std=cv.numpy_to_vector3(np.where(known, total.offset_std, np.nan)),
        distance_mean=distance,
        distance_max=float(np.max(total.residual_before)),
        shifted_mean=float(np.mean(total.residual_after)),
        shifted_max=float(np.max(total.residual_after)),
        message=f"mass by the feet {total.mass:.4g} kg (URDF {total.model_mass:.4g} kg); the "
        f"URDF's centre of mass is {1e3 * distance:.2f} mm from the line by the feet on average",
    )
