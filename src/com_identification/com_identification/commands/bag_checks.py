"""Whether a recording's postures can be true and tell enough; if not, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from com_identification.capture.capture_options import StillInterval
from com_identification.commands.bag_robot import BagRobot
from com_identification.exceptions import IdentificationError
from com_identification.feet.wrench_check import WrenchFault, WrenchIssue, diagnose
from com_identification.planning.planner import PosturePlanner
from com_identification.regression.postures import Posture
from com_model.exceptions import ComModelError

_PROPOSED = 3
_SHOWN_REASONS = 5
_SAMPLE = 60  # postures, of which one that no fault explains takes a tenth of a second
_FATAL = (WrenchFault.SIGN, WrenchFault.AXES, WrenchFault.SWAPPED, WrenchFault.UNIT)
_SHARES = {WrenchFault.SWAPPED: 0.3}  # of the postures; feet that are loaded alike do not show it


class Refusal(Exception):  # noqa: N818 (a refusal, not a fault)
    """The recording tells too little, or its readings cannot be true."""


def require_postures(
    intervals: Sequence[StillInterval], tally: Mapping[str, float], seconds: float
) -> list[Posture]:
    """Gives the postures of a recording, each with a label.

    Raises:
        Refusal: There are none; says why.
    """
    postures = [interval.posture for interval in intervals if interval.posture is not None]
    if postures:
        return postures
    reasons: dict[str, int] = {}
    for interval in intervals:
        for reason in interval.reasons:
            reasons[reason] = reasons.get(reason, 0) + 1
    lines = [f"no still posture in {seconds:.1f} s of joint states."]
    often = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN_REASONS]
    lines += [f"  {count} still intervals refused: {reason}" for reason, count in often]
    where = sorted(tally.items(), key=lambda item: (-item[1], item[0]))
    lines += [f"  {lost:.1f} s: {cause}" for cause, lost in where if lost > 0.0]
    lines.append(
        "Let the robot stand still for a second or two in each posture; thresholds are in the "
        "section capture of --settings; --marks says where the postures are"
    )
    raise Refusal("\n".join(lines))


@dataclass(frozen=True)
class WrenchCheck:
    """What the check of the wrenches found.

    Attributes:
        lines: Sentences with the number of postures.
        fatal: Those that are so common and so bad that a result would be wrong.
        odd: Why a posture is left out, by its index: in it the feet do not carry the robot alone,
            or it was pulled, while they do in most others.
    """

    lines: tuple[str, ...]
    fatal: tuple[str, ...]
    odd: Mapping[int, str]


def check_wrenches(robot: BagRobot, postures: Sequence[Posture]) -> WrenchCheck:
    """Looks for wrong signs, axes, units and weights.

    A posture in which something else carries the robot says nothing about such faults: shares are
    of the others. Of many postures some are looked at first, and all only where most are good.
    """
    step = max(1, -(-len(postures) // _SAMPLE))
    sample = _check(robot, postures[::step])
    if step == 1 or sample.fatal or (sample.lines and not sample.odd):
        return sample
    return _check(robot, postures)


def _check(robot: BagRobot, postures: Sequence[Posture]) -> WrenchCheck:
    found: dict[tuple[WrenchFault, tuple[str, ...]], list[WrenchIssue]] = {}
    odd: dict[int, str] = {}
    for index, posture in enumerate(postures):
        for finding in _findings(robot, posture):
            found.setdefault((finding.fault, finding.feet), []).append(finding)
            if finding.other_force:
                odd[index] = f"Something else carried or pulled the robot. {finding.text}"
    judged = len(postures) - len(odd)
    lines, fatal = [], []
    for (fault, _), findings in sorted(found.items()):
        text = f"{findings[0].text} (in {len(findings)} of {len(postures)} postures)"
        lines.append(text)
        share = _SHARES.get(fault, 0.5)
        if fault in _FATAL and len(findings) >= share * judged:
            fatal.append(text)
    return WrenchCheck(tuple(lines), tuple(fatal), odd if len(odd) <= judged else {})


def without(intervals: Sequence[StillInterval], odd: Mapping[int, str]) -> list[StillInterval]:
    """The intervals, those of odd postures with the reason in place of the posture."""
    result, index = [], -1
    for interval in intervals:
        index += interval.posture is not None
        if interval.posture is not None and index in odd:
            interval = replace(interval, posture=None, reasons=(odd[index],))
        result.append(interval)
    return result


def helpful_postures(robot: BagRobot, postures: Sequence[Posture]) -> list[str]:
    """Says in which postures to record too; empty where none can be proposed."""
    if robot.config is None:
        return ["Give --config, and postures that would help are proposed"]
    settings, model = robot.settings, robot.model
    rest = robot.config.nominal_posture(model)
    try:
        planner = PosturePlanner(
            model, robot.feet, rest, settings.priors(model), settings.options(), settings.plan
        )
        planned = planner.propose(_PROPOSED, postures, settings.capture.samples)
    except (IdentificationError, ComModelError) as error:
        return [f"No posture can be proposed: {error}"]
    lines = ["These postures would help most (rad or m):"]
    for i, plan in enumerate(planned, start=1):
        moved = np.flatnonzero(np.abs(plan.q - rest) > 1e-3)
        joints = ", ".join(f"{model.joint_names[j]} {plan.q[j]:.3f}" for j in moved)
        lines.append(f"  {i}. on {', '.join(plan.feet)}: {joints}")
    lines.append("  Joints that are not listed stay as in the nominal posture.")
    return lines


def _findings(robot: BagRobot, posture: Posture) -> tuple[WrenchIssue, ...]:
    if not len(posture.wrenches) or not np.isfinite(posture.wrenches).any():
        return ()
    settings = robot.settings
    return diagnose(robot.model, robot.feet, posture, settings.noise, gravity=settings.fit.gravity)
