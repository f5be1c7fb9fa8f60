"""The steps of identify_bag."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from com_bags.bag import Bag
from com_bags.exceptions import BagError
from com_bags.roles import Roles, Wishes
from com_identification.capture.bag_feed import Feed
from com_identification.capture.capture_options import StillInterval
from com_identification.commands.bag_checks import (
    Refusal,
    check_wrenches,
    helpful_postures,
    require_postures,
    without,
)
from com_identification.commands.bag_reading import (
    ReadOptions,
    choose_topics,
    progress_bar,
    read_postures,
)
from com_identification.commands.bag_results import NAMES, Outcome, topic_lines, write_results
from com_identification.commands.bag_robot import BagRobot, load_robot
from com_identification.commands.bag_text import result_text, topics_text, use_text
from com_identification.commands.output_directory import OutputDirectory
from com_identification.exceptions import (
    IdentificationError,
    OutputError,
    PostureError,
    RankError,
    StoreError,
)
from com_identification.job import TotalCom, identify_links, identify_total
from com_identification.regression.identify import Identification
from com_identification.regression.postures import Posture
from com_model.exceptions import ComModelError

_TELLS_TOO_LITTLE, _UNREADABLE, _UNWRITABLE = 1, 2, 3


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and gives its exit status; errors go to standard error."""
    try:
        with Bag(arguments.bag) as bag:
            if arguments.list_topics:
                print("\n".join([topics_text(bag.topics()), *(f"note: {n}" for n in bag.notes)]))
                return 0
            robot = load_robot(arguments)
            return _run(arguments, bag, robot)
    except (OutputError, StoreError) as error:
        return _fail(error, _UNWRITABLE)
    except (Refusal, RankError, PostureError) as error:
        return _fail(error, _TELLS_TOO_LITTLE)
    except (BagError, ComModelError, IdentificationError) as error:
        return _fail(error, _UNREADABLE)


def _fail(error: Exception, status: int) -> int:
    print(f"identify_bag: error: {error}", file=sys.stderr)
    return status


def _run(arguments: argparse.Namespace, bag: Bag, robot: BagRobot) -> int:
    wrenches = dict(wish.split("=", 1) for wish in arguments.wrench)
    wishes = Wishes(arguments.joint_states, arguments.imu, wrenches, arguments.marker_topic)
    marks = None if arguments.marks is None else Path(arguments.marks)
    options = ReadOptions(wishes, marks, arguments.time == "received")
    roles = choose_topics(bag, robot, options)
    if arguments.dry_run:
        print(use_text(topic_lines(bag, robot, roles, None)))
        for note in bag.notes:
            print(f"note: {note}")
        return 0
    with OutputDirectory(arguments.out, NAMES, arguments.force) as out:
        outcome = _identify(bag, robot, roles, options, arguments.ignore_wrench_check)
        contents = write_results(out.staging, outcome)
        places = out.publish()
    print(result_text(contents))
    print("\n".join(["", *(f"wrote {place}" for place in places)]))
    return 0


def _identify(
    bag: Bag, robot: BagRobot, roles: Roles, options: ReadOptions, trust: bool
) -> Outcome:
    """Reads and identifies.

    Raises:
        Refusal: The recording tells too little, or its wrenches cannot be true and are not to be
            trusted all the same.
    """
    feed, recorder = read_postures(bag, robot, roles, options)
    feed.intervals = [_labelled(interval, feed) for interval in feed.intervals]
    postures = require_postures(feed.intervals, recorder.tally, feed.seconds)
    check = check_wrenches(robot, postures)
    if check.fatal and not trust:
        fix = "Mend the configuration, or go on with --ignore-wrench-check"
        raise Refusal("\n".join(["the wrenches cannot be the robot's:", *check.fatal, fix]))
    if not trust:
        feed.intervals = without(feed.intervals, check.odd)
        postures = require_postures(feed.intervals, recorder.tally, feed.seconds)
    found = _solve(robot, postures)
    fitting = [posture for i, posture in enumerate(postures) if i not in found.outliers]
    return Outcome(
        robot=robot,
        topics=topic_lines(bag, robot, roles, feed),
        feed=feed,
        recorder=recorder,
        postures=postures,
        found=found,
        total=_total(robot, fitting),
        findings=check.lines,
    )


def _labelled(interval: StillInterval, feed: Feed) -> StillInterval:
    """Names a posture by its mark, or by its time."""
    if interval.posture is None:
        return interval
    since = (interval.t0_ns - (feed.first_ns or 0)) / 1e9
    label = interval.label or interval.posture.label or f"{since:.2f} s"
    return replace(interval, posture=replace(interval.posture, label=label))


def _solve(robot: BagRobot, postures: Sequence[Posture]) -> Identification:
    """Runs the same computation as the node.

    Raises:
        Refusal: The postures are too alike; says which would help.
    """
    with progress_bar("identifying") as progress:
        task = progress.add_task("identifying", total=100)
        try:
            return identify_links(
                robot.model,
                robot.feet,
                postures,
                robot.settings,
                lambda share, _: progress.update(task, completed=round(100.0 * share)),
            )
        except RankError as error:
            raise Refusal("\n".join([str(error), *helpful_postures(robot, postures)])) from error


def _total(robot: BagRobot, postures: Sequence[Posture]) -> TotalCom | None:
    try:
        return identify_total(robot.model, robot.feet, postures, robot.settings)
    except IdentificationError:
        return None
