"""The steps of identify: read the files, check the readings, identify, write the results."""

import argparse
import sys
from pathlib import Path

from com_bags import Bag, TableError, is_table, read_table
from com_identification import exceptions
from com_identification.capture.mapping_guess import guess_mapping
from com_identification.commands import bag_inputs, bag_results, robot_inputs
from com_identification.commands import output as output_files
from com_identification.commands.rest_identification import (
    Refusal,
    helpful_postures,
    identify_recording,
    require_postures,
    usable_postures,
)
from com_identification.commands.robot_inputs import RobotInputs
from com_model.exceptions import ComModelError, ConfigError

_STATUS = {
    1: (Refusal, exceptions.PostureError, exceptions.WalkError),
    3: (exceptions.HealthError, exceptions.OutputError, exceptions.StoreError),
}
"""Exit statuses of errors; 2 of all others."""


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; errors are printed to standard error.

    Args:
        arguments: of identify.

    Returns:
        The exit status.
    """
    try:
        if arguments.list_topics:
            for path in arguments.files:
                print(_contents_text(path))
            return 0
        robot = robot_inputs.load_robot(arguments)
        if arguments.guess:
            tables = [path for path in arguments.files if is_table(path)]
            if not tables:
                raise TableError(
                    "is not a table: only tables have a mapping", arguments.files[0]
                )
            print(guess_mapping(read_table(tables[0]), robot.model, robot.feet), end="")
            return 0
        if not bag_inputs.is_walk(arguments, robot):
            if arguments.since is not None or arguments.until is not None:
                raise ConfigError(
                    "are for walking: give the times of postures by --marks",
                    "--from, --to",
                )
            return _run(arguments, robot)
        walker = robot_inputs.walk_inputs(robot)
        if arguments.dry_run:
            return _run(arguments, walker)
        from com_identification.commands.walk_identification import (
            identify_walk,
        )  # loads numba

        if arguments.use != bag_inputs.BOTH:
            known = bag_inputs.walk_evidence(robot, arguments)
            return identify_walk(arguments, walker, robot if known else None, known)
        resting, walking = bag_inputs.split_files(arguments, robot)
        own = {**vars(arguments), "files": resting, "use_diagnosis": False}
        recording = bag_inputs.read_files(robot, argparse.Namespace(**own))
        postures = usable_postures(robot, recording, arguments.ignore_wrench_check)[1]
        postures += bag_inputs.walk_evidence(robot, arguments)
        arguments.files = walking
        return identify_walk(arguments, walker, robot, postures, resting)
    except (Refusal, ComModelError) as error:
        print(f"identify: error: {error}", file=sys.stderr)
        return next((n for n, kinds in _STATUS.items() if isinstance(error, kinds)), 2)


def _contents_text(path: str) -> str:
    """The topics of a bag, or the columns of a table."""
    if is_table(path):
        table = read_table(path)
        text, notes = bag_results.columns_text(table), list(table.notes)
    else:
        with Bag(path) as bag:
            text, notes = bag_results.topics_text(bag.topics()), bag.notes
    return "\n".join([text, *(f"note: {note}" for note in notes)])


def _run(arguments: argparse.Namespace, robot: RobotInputs) -> int:
    if arguments.dry_run:
        tables = [] if bag_inputs.is_walk(arguments, robot) else arguments.files
        tables = [path for path in tables if is_table(path)]
        for path in (path for path in arguments.files if path not in tables):
            with Bag(path, robot.log_format) as bag:
                topics = robot_inputs.choose_topics(arguments, bag, robot)
                lines = bag_inputs.topic_lines(bag, robot, topics, None)
                notes = (f"note: {note}" for note in bag.notes)
                print("\n".join([bag_results.used_topics_text(lines), *notes]))
        arguments.files = tables
        if arguments.files:
            print(
                bag_results.used_topics_text(
                    bag_inputs.read_files(robot, arguments).topics
                )
            )
        return 0
    if arguments.method == "two-postures":
        recording = bag_inputs.read_files(robot, arguments)
        postures = require_postures(recording.intervals, recording)
        print(
            bag_results.two_postures_text(
                robot.model, robot.feet, postures, robot.settings
            )
        )
        return 0
    output, names = Path(arguments.output), bag_results.NAMES
    with output_files.output_directory(output, names, arguments.force) as folder:
        recording = bag_inputs.read_files(robot, arguments)
        contents = identify_recording(robot, recording, arguments.ignore_wrench_check)
        contents = bag_results.write_results(folder, robot, contents)
    print(bag_results.result_text(contents))
    if contents.found.redundancy:
        used = [each.posture for each in contents.intervals if each.posture is not None]
        print("\n".join(helpful_postures(robot, used)))
    print("\n".join(["", *(f"wrote {output / name}" for name in names)]))
    if arguments.record:
        to = arguments.record, arguments.serial
        print(
            "\n".join(["", *bag_results.add_to_record(contents, arguments.files, *to)])
        )
    return 0
