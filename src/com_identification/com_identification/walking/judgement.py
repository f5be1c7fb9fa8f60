"""Both estimates of a walk together: the detailed one counts where the robust one confirms it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.evidence import (
    Evidence,
    Verdict,
    assess_walk,
    trunk_values,
)
from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.log import walking_parts
from com_identification.walking.unknowns import Scale
from com_model import RobotConfig, RobotModel


class Judgement(NamedTuple):
    """What recordings say of a robot; one of both is there.

    Attributes:
        result: of all masses; None where it does not count.
        evidence: of mass and trunk, with the numbers of the result where it counts; None where
            the robust estimate cannot be made (legs with too few joints).
    """

    result: WalkResult | None
    evidence: Evidence | None


def judge_walk(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    scale: Scale | None = None,
) -> Judgement:
    """Identifies a robot from recordings, and judges its URDF.

    The detailed result (identify_walking) is the more accurate one, but accelerations that are
    late or noisy bias it unseen; it counts where mass and CoM of the trunk are those of
    assess_walk within 3 standard deviations.

    Args:
        logs: whole recordings, with or without IMU.
        model: as its URDF says.
        config: its feet, drives and the IMU's link.
        scale: the weighed mass.

    Raises:
        WalkError: the recordings cannot be used at all; says why and what would help.
    """
    result, cause = None, None
    if all(log.has_imu for log in logs):
        try:
            parts = [part for log in logs for part in walking_parts(log)]
            result = identify_walking(parts or logs, model, config, scale)
        except WalkError as error:
            cause = error
    try:
        evidence = assess_walk(logs, model, config, scale)
    except WalkError:
        if result is None:
            raise cause or WalkError("the recordings have no walk") from None
        return Judgement(result, None)
    if result is None or not result.accepted:
        return Judgement(None, evidence.noted(_why(result, cause)))
    own, slopes = trunk_values(evidence.unknowns, evidence.z)
    variance = np.diag(slopes @ evidence.covariance @ slopes.T)
    values, slopes = trunk_values(result.unknowns, result.z)
    std = np.sqrt(np.diag(slopes @ result.covariance @ slopes.T))
    off = float((np.abs(values - own) / np.sqrt(std**2 + variance)).max())
    # more than 3 standard deviations apart: the estimates disagree
    if off > 3.0:
        return Judgement(
            None,
            evidence.noted(
                f"the estimate of all masses differs from that of 5 Hz by {off:.1f} standard "
                "deviations: accelerations are noisy or late against torques, and it does not count"
            ),
        )
    urdf, _ = trunk_values(result.unknowns, result.unknowns.mean)
    # beyond two standard deviations the URDF is corrected
    far = bool((np.abs(values - urdf) > 2.0 * std).any())
    judged = replace(
        evidence,
        verdict=Verdict.CORRECTED if far else Verdict.CONFIRMED,
        unknowns=result.unknowns,
        z=result.z,
        covariance=result.covariance,
        mass=float(values[0]),
        mass_std=float(std[0]),
        com=values[1:],
        com_std=std[1:],
        reasons=("all masses were found, and agree with the robust estimate",),
    )
    return Judgement(result, judged)


def _why(result: WalkResult | None, cause: WalkError | None) -> str:
    """Why there is no result of all masses; "" where none was tried."""
    if result is not None:
        failed = [g for g in result.gates if g.required and not g.passed]
        texts = "; ".join(f"{gate.name}: {gate.text}" for gate in failed)
        return f"all masses cannot be found. {texts}"
    return "" if cause is None else f"all masses cannot be found: {cause}"
