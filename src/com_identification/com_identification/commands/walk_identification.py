"""The part of identify for recordings of walking, without foot force sensors."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from com_bags import Bag, SensorReader, WalkLog, even_times, read_walk
from com_identification.commands.output import output_directory
from com_identification.commands.robot_inputs import (
    SLOW,
    RobotInputs,
    choose_topics,
    has_imu,
    without_imu,
)
from com_identification.exceptions import WalkError
from com_identification.health.changes import append
from com_identification.health.walks import walk_record
from com_identification.regression.postures import Posture
from com_identification.slow.identify import identify_slow
from com_identification.walking.combination import fuse, judge_walk, with_payload
from com_identification.walking.evidence import MassEvidence, Verdict
from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.log import walking_parts
from com_identification.walking.posterior import NAMES, result_files
from com_identification.walking.report import (
    evidence_lines,
    evidence_page,
    report_page,
    sections,
)
from com_identification.walking.unknowns import Scale, corrected_urdf
from com_model import Frame, RobotModel, UnknownNameError
from com_model.text import columns


def identify_walk(
    arguments: argparse.Namespace,
    robot: RobotInputs,
    standing: RobotInputs | None = None,
    postures: Sequence[Posture] = (),
    rested: Sequence[str] = (),
) -> int:
    """Reads recordings of walking, identifies, and writes the results.

    Resting postures on foot force sensors are used in the same regression.

    Args:
        arguments: of identify.
        robot: of the recordings of walking.
        standing: of those of resting; None: there are none.
        postures: resting ones.
        rested: files of the resting postures.

    Returns:
        The exit status; 1 where a required test failed.

    Raises:
        WalkError: the recordings cannot be used.
    """
    for name in ("settings", "marks", "marker_topic"):
        if standing is None and getattr(arguments, name):
            option = name.replace("_", "-")
            raise WalkError(
                f"--{option} is for resting postures: leave it out, or give --use rest"
            )

    def read(path: str) -> WalkLog:
        return read_log(path, arguments, robot)

    with output_directory(arguments.output, NAMES, arguments.force) as folder:
        whole = [read(path) for path in arguments.files]
        scale = Scale(arguments.mass, arguments.mass_std)
        result = evidence = None
        if arguments.use in SLOW:
            hung = [read(path) for path in arguments.hung]
            hangs = [arguments.use == "hang"] * len(whole) + [True] * len(hung)
            rope, logs = parse_rope(arguments.rope, robot.model), [*whole, *hung]
            known = robot.model, robot.config, scale, rope
            result = identify_slow(logs, hangs, *known)
        elif arguments.loaded or standing is not None:
            logs = [part for log in whole for part in walking_parts(log)]
            result = identify_walking(logs, robot.model, robot.config, scale)
        else:
            result, evidence = judge_walk(whole, robot.model, robot.config, scale)
        if result is None:
            return _write_evidence(
                folder, Path(arguments.output), cast(MassEvidence, evidence)
            )
        if arguments.loaded:
            logs = [
                part for path in arguments.loaded for part in walking_parts(read(path))
            ]
            loaded = identify_walking(logs, robot.model, robot.config)
            result = with_payload(result, loaded, arguments.payload, arguments.mass_std)
        if standing is not None:
            result = fuse(result, standing.feet, postures, standing.settings)
        files = result_files(result, report_page(result))
        for name, content in files.items():
            (folder / name).write_bytes(content)
    places = (f"wrote {Path(arguments.output) / name}" for name in files)
    verdict = [] if evidence is None else ["", *evidence_lines(evidence)]
    print("\n".join([report_text(result), *verdict, "", *places]))
    if arguments.record and result.accepted:
        bags = list(dict.fromkeys([*rested, *arguments.files, *arguments.loaded]))
        record = walk_record(result, bags, arguments.serial, "bag")
        print("\n".join(["", *append(arguments.record, record)]))
    return 0 if result.accepted else 1


def read_log(path: str, arguments: argparse.Namespace, robot: RobotInputs) -> WalkLog:
    """Reads a recording of joints and IMU, and prints what is noted on it.

    Args:
        path: of the file.
        arguments: of identify: topics, times.
        robot: of the recording.

    Raises:
        BagError: it cannot be read, or lacks a topic.
    """
    with Bag(path, robot.log_format) as bag:
        own = robot if has_imu(bag) or arguments.imu else without_imu(robot)
        topics = choose_topics(arguments, bag, own)
        received, link = arguments.time == "received", own.imu_link
        reader = SensorReader(bag, robot.model, (), topics, link, received)
        log = read_walk(reader)
        if arguments.time == "even":
            log = replace(log, time=even_times(log.time))
        print("\n".join(f"note: {note}" for note in reader.warnings()))
        return log.between(arguments.since, arguments.until)


def parse_rope(words: Sequence[str] | None, model: RobotModel) -> Frame | None:
    """Reads LINK X Y Z of --rope.

    Args:
        words: of the command line; None: the robot does not hang.
        model: the robot.

    Raises:
        WalkError: there is no such link, or a coordinate is no number.
    """
    if not words:
        return None
    link, *place = words
    try:
        model.link_index(link)
        return Frame("rope", link, tuple(float(value) for value in place))
    except (ValueError, UnknownNameError) as error:
        raise WalkError(
            f"--rope {' '.join(words)}: {error}. Expected LINK X Y Z in m"
        ) from None


def _write_evidence(folder: Path, output: Path, evidence: MassEvidence) -> int:
    """Writes and prints what recordings show that do not show all masses; returns the status."""
    files = {"report.html": evidence_page(evidence).encode()}
    if evidence.verdict is Verdict.CORRECTED:
        eta = evidence.unknowns.eta(evidence.z)
        files["corrected.urdf"] = corrected_urdf(evidence.unknowns.model, eta).encode()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    places = [f"wrote {output / name}" for name in files]
    print("\n".join([*evidence_lines(evidence), "", *places]))
    return 0 if evidence.confirmed else 1


def report_text(result: WalkResult) -> str:
    """Returns the report as plain text.

    Args:
        result: of the walk.
    """
    lines: list[str] = []
    for title, sentences, head, rows in sections(result):
        lines += ["", title, *(f"  {sentence}" for sentence in sentences)]
        lines += [columns(head, rows, len(head))] if rows else []
    return "\n".join(lines[1:])
