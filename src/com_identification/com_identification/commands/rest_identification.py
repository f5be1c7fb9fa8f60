"""The part of identify for postures of a stationary robot."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from com_identification import exceptions
from com_identification.capture.detector import StationaryInterval
from com_identification.commands.output import progress_bar
from com_identification.commands.robot_inputs import RobotInputs
from com_identification.feet.feet_reading import identify_total
from com_identification.feet.wrench_check import WrenchFault, WrenchIssue, diagnose
from com_identification.regression.identify import identify
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.report.comparison import compare_postures
from com_identification.report.report import Contents, Recording
from com_model.exceptions import ComModelError

_FATAL = (WrenchFault.SIGN, WrenchFault.AXES, WrenchFault.SWAPPED, WrenchFault.UNIT)
_FRACTIONS = {
    WrenchFault.SWAPPED: 0.3
}  # of the postures; equally loaded feet do not show it


def identify_recording(
    robot: RobotInputs, recording: Recording, trust: bool
) -> Contents:
    """Checks the readings and identifies.

    Args:
        robot: of the recording.
        recording: its readings.
        trust: whether wrenches that seem wrong are used.

    Raises:
        Refusal: there are no postures, or the wrenches cannot be true.
    """
    total = None
    intervals, postures, check = usable_postures(robot, recording, trust)
    with progress_bar("identifying") as progress:
        task = progress.add_task("identifying", total=100)
        found = identify(
            robot.model,
            robot.feet,
            postures,
            robot.settings,
            progress=lambda fraction, _: progress.update(
                task, completed=round(100.0 * fraction)
            ),
        )
    fitting = [posture for i, posture in enumerate(postures) if i not in found.outliers]
    with suppress(exceptions.IdentificationError):
        total = identify_total(robot.model, robot.feet, fitting, robot.settings)
    return Contents(
        **{**vars(recording), "intervals": intervals},
        robot=robot.config.name,
        inputs=robot.paths,
        issues=check.lines,
        model=robot.model,
        feet=robot.feet,
        found=found,
        total=total,
        fits=compare_postures(
            robot.model, robot.feet, postures, found, robot.settings.fit.gravity
        ),
    )


def usable_postures(
    robot: RobotInputs, recording: Recording, trust: bool
) -> tuple[list[StationaryInterval], list[Posture], "WrenchCheck"]:
    """Returns the postures whose readings can be the robot's.

    Args:
        robot: of the recording.
        recording: its readings.
        trust: whether wrenches that seem wrong are used.

    Returns:
        All intervals, those that are not used without posture; the postures; issues of the
        wrenches.

    Raises:
        Refusal: there are no postures, or the wrenches cannot be true.
    """
    intervals = list(recording.intervals)
    postures = require_postures(intervals, recording)
    check = _check_wrenches(robot, postures)
    if check.fatal and not trust:
        raise Refusal(
            "\n".join(
                [
                    "the wrenches cannot be the robot's:",
                    *check.fatal,
                    "Correct the configuration, or continue with --ignore-wrench-check",
                ]
            )
        )
    if not trust:
        for i, each in enumerate(intervals):
            if each.posture is not None and each.posture in check.inconsistent:
                reasons, label = (check.inconsistent[each.posture],), each.posture.label
                intervals[i] = replace(each, posture=None, reasons=reasons, label=label)
        postures = require_postures(intervals, recording)
    return intervals, postures, check


class Refusal(Exception):  # noqa: N818 (a refusal, not a fault)
    """The recording contains too little, or its readings cannot be true."""


def require_postures(
    intervals: Sequence[StationaryInterval], recording: Recording
) -> list[Posture]:
    """Returns the postures of a recording.

    Args:
        intervals: stationary intervals of the recording.
        recording: its readings.

    Raises:
        Refusal: there are none; says why.
    """
    postures = [
        interval.posture for interval in intervals if interval.posture is not None
    ]
    if postures:
        return postures
    reasons = Counter(reason for interval in intervals for reason in interval.reasons)
    often, where = (
        sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        for counts in (reasons, recording.tally)
    )
    lines = [
        f"no stationary posture in {recording.seconds:.1f} s of joint states.",
        *(f"  {count} stationary intervals refused: {why}" for why, count in often[:5]),
        *(f"  {lost:.1f} s: {cause}" for cause, lost in where if lost > 0.0),
        "Let the robot be stationary for a second or two in each posture; thresholds are in the "
        "section capture of --settings; --marks says where the postures are; --slow-motion uses "
        "slow motion, too; --use walk identifies from joint efforts and IMU while the robot walks",
    ]
    raise Refusal("\n".join(lines))


@dataclass(frozen=True)
class WrenchCheck:
    """Issues of the wrenches of all postures.

    Attributes:
        lines: sentences, with the number of postures.
        fatal: those that are so common and so bad that a result would be wrong.
        inconsistent: why a posture is left out: something else than the feet carries or
            pulls the robot in it, unlike in most others.
    """

    lines: tuple[str, ...]
    fatal: tuple[str, ...]
    inconsistent: Mapping[Posture, str]


def _check_wrenches(robot: RobotInputs, postures: Sequence[Posture]) -> WrenchCheck:
    """Looks for wrong signs, axes, units and weights.

    A posture in which something else carries the robot shows nothing about such faults and is not
    counted. Of many postures some are checked first, and all only where most are good.
    """
    # a posture that no fault explains takes 0.1 s: 60 at first
    step = max(1, -(-len(postures) // 60))
    sample = _check(robot, postures[::step])
    if step == 1 or sample.fatal or (sample.lines and not sample.inconsistent):
        return sample
    return _check(robot, postures)


def _check(robot: RobotInputs, postures: Sequence[Posture]) -> WrenchCheck:
    found: dict[tuple[WrenchFault, tuple[str, ...]], list[WrenchIssue]] = {}
    inconsistent: dict[Posture, str] = {}
    off_sole: dict[Posture, str] = {}
    settings = robot.settings
    sensors = settings.noise, settings.fit.gravity
    observations = ObservationModel(robot.model, robot.feet, *sensors)
    for posture in postures:
        if not np.isfinite(posture.wrenches).any():
            continue
        for issue in diagnose(observations, posture):
            found.setdefault((issue.fault, issue.feet), []).append(issue)
            if issue.other_force:
                inconsistent[posture] = (
                    f"Something else carried or pulled the robot. {issue.text}"
                )
            elif issue.off_sole:
                off_sole[posture] = issue.text
    judged = len(postures) - len(inconsistent)
    lines, fatal = [], []
    for (fault, _), issues in sorted(found.items()):
        text = f"{issues[0].text} (in {len(issues)} of {len(postures)} postures)"
        lines.append(text)
        fraction = _FRACTIONS.get(fault, 0.5)
        if fault in _FATAL and len(issues) >= fraction * judged:
            fatal.append(text)
    if (
        2 * len(off_sole) <= judged
    ):  # else the soles are larger than the configuration says
        inconsistent = off_sole | inconsistent
    most = 2 * len(inconsistent) > len(postures)
    return WrenchCheck(tuple(lines), tuple(fatal), {} if most else inconsistent)


def helpful_postures(robot: RobotInputs, postures: Sequence[Posture]) -> list[str]:
    """Returns lines that propose further postures to record.

    Args:
        robot: of the recording.
        postures: those that were used.
    """
    from com_identification.planning.planner import (
        PosturePlanner,
    )  # loads compiled kernels

    settings, model = robot.settings, robot.model
    rest = robot.config.nominal_posture(model)
    try:
        planner = PosturePlanner(model, robot.feet, rest, settings)
        planned = planner.propose(3, postures)
    except ComModelError as error:
        return [f"No posture can be proposed: {error}"]
    lines = ["These postures would help most (rad or m):"]
    for i, plan in enumerate(planned, start=1):
        moved = np.flatnonzero(np.abs(plan.q - rest) > 1e-3)
        joints = ", ".join(f"{model.joint_names[j]} {plan.q[j]:.3f}" for j in moved)
        lines.append(f"  {i}. on {', '.join(plan.feet)}: {joints}")
    lines.append("  Joints that are not listed stay as in the nominal posture.")
    return lines
