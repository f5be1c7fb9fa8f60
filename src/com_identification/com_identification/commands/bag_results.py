"""Results of identify_bag: the report, the numbers, the corrected URDF, the postures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from com_bags.bag import Bag
from com_bags.roles import Roles
from com_identification.capture.bag_feed import Feed
from com_identification.capture.capture import PostureRecorder
from com_identification.commands.bag_robot import BagRobot
from com_identification.job import TotalCom
from com_identification.regression.identify import Identification
from com_identification.regression.postures import Posture
from com_identification.report.contents import Contents, TopicLine, compare_postures
from com_identification.report.report import report_page
from com_identification.store.document import to_document, write_yaml
from com_identification.store.export import Export, export_urdf
from com_identification.store.files import write_whole
from com_identification.store.store import PostureStore

URDF, RESULT, REPORT, POSTURES = "corrected.urdf", "result.yaml", "report.html", "postures.jsonl"
NAMES = (URDF, RESULT, POSTURES, REPORT)


def topic_lines(bag: Bag, robot: BagRobot, roles: Roles, feed: Feed | None) -> list[TopicLine]:
    """The topics that are read, and for what; without a feed the bag's own counts."""
    there = {topic.name: topic for topic in bag.topics()}
    pairs = [("joint states", roles.joint_states)]
    pairs += [
        (f"wrench of {foot.frame}", topic)
        for foot, topic in zip(robot.feet, roles.wrenches, strict=True)
    ]
    pairs += [("IMU", roles.imu)] if roles.imu is not None else []
    pairs += [("marks", roles.markers)] if roles.markers is not None else []
    counts = {name: topic.count for name, topic in there.items()}
    counts.update({} if feed is None else feed.messages)
    return [TopicLine(role, name, there[name].type_name, counts[name]) for role, name in pairs]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a recording gave.

    Attributes:
        robot: The robot.
        topics: That were read.
        feed: What came out of the bag, with its still intervals.
        recorder: That was fed.
        postures: That were used.
        found: The result.
        total: By the feet alone, of the postures that fit; None where none has their wrenches.
        findings: What the check of the wrenches found.
    """

    robot: BagRobot
    topics: Sequence[TopicLine]
    feed: Feed
    recorder: PostureRecorder
    postures: Sequence[Posture]
    found: Identification
    total: TotalCom | None
    findings: Sequence[str]


def write_results(folder: Path, outcome: Outcome) -> Contents:
    """Writes all files into a folder.

    Raises:
        OutputError: One cannot be written.
        StoreError: The postures cannot be written.
    """
    robot, found = outcome.robot, outcome.found
    export = export_urdf(robot.model.xml, robot.model, found, folder, URDF)
    with PostureStore(folder / POSTURES, robot.model, robot.feet) as store:
        for interval in outcome.feed.intervals:
            if interval.posture is not None:
                store.add(interval.posture, interval.t1_ns)
    contents = _contents(outcome, export)
    document = to_document(found, robot.model, robot.settings, outcome.postures, _extra(contents))
    write_yaml(folder / RESULT, document)
    write_whole(folder / REPORT, report_page(contents).encode())
    return contents


def _contents(outcome: Outcome, export: Export) -> Contents:
    robot, feed, recorder, found = outcome.robot, outcome.feed, outcome.recorder, outcome.found
    model, feet, settings = robot.model, robot.feet, robot.settings
    return Contents(
        robot=robot.name,
        inputs=robot.inputs,
        topics=outcome.topics,
        seconds=feed.seconds,
        first_ns=feed.first_ns or 0,
        notes=feed.notes,
        dropped=recorder.dropped,
        tally=recorder.tally,
        intervals=feed.intervals,
        findings=outcome.findings,
        model=model,
        feet=feet,
        found=found,
        prior_std=settings.priors(model).com_std,
        total=outcome.total,
        fits=compare_postures(model, feet, outcome.postures, found, settings.fit.gravity),
        changed=export.changed,
        kept=export.kept,
    )


def _extra(contents: Contents) -> dict[str, Any]:
    """What result.yaml says of the recording."""
    drop = contents.dropped
    return {
        "recording": {
            "inputs": dict(contents.inputs),
            "seconds": contents.seconds,
            "topics": [
                {"role": t.role, "name": t.name, "type": t.type_name, "messages": t.messages}
                for t in contents.topics
            ],
            "left_out": {
                "late": drop.late,
                "repeated": drop.repeated,
                "unusable": drop.unusable,
                "restarts": drop.restarts,
            },
            "notes": list(contents.notes),
            "seconds_by_cause": dict(contents.tally),
        },
        "wrench_check": list(contents.issues),
        "still_intervals": [
            {
                "start": contents.since_start(interval.t0_ns),
                "end": contents.since_start(interval.t1_ns),
                "label": interval.label,
                "used": interval.posture is not None,
                "reasons": list(interval.reasons),
            }
            for interval in contents.intervals
        ],
        "corrected_links": list(contents.changed),
        "uncorrected": list(contents.kept),
    }
