"""Results of identify: report, numbers, corrected URDF, postures, and the printed summary."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from com_bags import Table, Topic
from com_identification.commands.robot_inputs import RobotInputs
from com_identification.feet.feet_reading import find_tilted_shape
from com_identification.health.changes import append
from com_identification.health.records import Record, hash_files
from com_identification.regression.postures import Posture
from com_identification.regression.result import issues_of
from com_identification.report.comparison import body_labels, gain, residual_rows
from com_identification.report.report import Contents, TopicLine, report_page
from com_identification.settings import IdentificationSettings
from com_identification.store.results import (
    export_urdf,
    to_document,
    write_whole,
    write_yaml,
)
from com_identification.store.store import PostureStore
from com_model import Foot, RobotModel
from com_model.text import columns, printable

URDF, RESULT, REPORT, POSTURES = (
    "corrected.urdf",
    "result.yaml",
    "report.html",
    "postures.db",
)
NAMES = (URDF, RESULT, POSTURES, REPORT)


def write_results(folder: Path, robot: RobotInputs, contents: Contents) -> Contents:
    """Writes all files into a folder; returns the contents with what was exported.

    Args:
        folder: For the files.
        robot: Of the recording.
        contents: What was found.
    """
    found = contents.found
    captured = [(i.posture, i.t1_ns) for i in contents.intervals if i.posture]
    export = export_urdf(robot.model, found, folder, URDF)
    with PostureStore(folder / POSTURES, robot.model, robot.feet) as store:
        store.add_all(captured)
    contents = replace(contents, changed=export.changed, kept=export.unchanged)
    document = to_document(
        found, robot.model, robot.settings, [p for p, _ in captured], _extra(contents)
    )
    write_yaml(folder / RESULT, document)
    write_whole(folder / REPORT, report_page(contents).encode())
    return contents


def make_record(contents: Contents, serial: str, data_hash: str, path: str) -> Record:
    """Makes the record of a result.

    Args:
        contents: what was found.
        serial: serial number of the robot.
        data_hash: of the readings; see hash_files.
        path: of the recording.
    """
    total = contents.total
    return Record.from_identification(
        contents.found,
        contents.model,
        data_hash,
        contents.first_ns,
        serial,
        "bag",
        path,
        None if total is None else (total.mass, total.mass_std),
    )


def add_to_record(
    contents: Contents, files: Sequence[str], where: str, serial: str
) -> list[str]:
    """Adds the result to the record of the robot; returns what changed, in sentences.

    Args:
        contents: What was found.
        files: The recordings.
        where: Path or URL of the record.
        serial: Serial number of the robot.
    """
    data_hash = "".join(map(hash_files, files))
    return append(
        where, make_record(contents, serial, data_hash, contents.inputs["files"])
    )


def _extra(contents: Contents) -> dict[str, Any]:
    """The sections of result.yaml on the recording."""
    return {
        "recording": {
            "inputs": dict(contents.inputs),
            "seconds": contents.seconds,
            "used_seconds": contents.used_seconds,
            "topics": [
                {
                    "role": t.role,
                    "name": t.name,
                    "type": t.type_name,
                    "messages": t.messages,
                }
                for t in contents.topics
            ],
            "left_out": asdict(contents.dropped),
            "notes": list(contents.notes),
            "seconds_by_cause": dict(contents.tally),
        },
        "wrench_check": list(contents.issues),
        "stationary_intervals": [
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


_MM = 1000.0


def topics_text(topics: Sequence[Topic]) -> str:
    """Returns the topics of a bag as a table.

    Args:
        topics: of the bag.
    """
    rows = [
        (
            t.name,
            t.type_name,
            "" if t.defined else "no definition in the bag",
            str(t.count),
        )
        for t in topics
    ]
    return columns(("topic", "type", "", "messages"), rows, words=3)


def columns_text(table: Table) -> str:
    """Returns the columns of a table with their ranges.

    Args:
        table: of numbers.
    """
    ranges = {
        n: (np.nanmin(values), np.nanmax(values)) for n, values in table.columns.items()
    }
    rows = [
        (name, f"{least:.6g}", f"{most:.6g}") for name, (least, most) in ranges.items()
    ]
    return columns((f"column of {table.rows}", "least", "most"), rows)


def used_topics_text(topics: Sequence[TopicLine]) -> str:
    """Returns the topics that are read, by role.

    Args:
        topics: that are read.
    """
    rows = [(t.role, t.name, t.type_name, str(t.messages)) for t in topics]
    return columns(("role", "topic", "type", "messages"), rows, words=3)


def result_text(contents: Contents) -> str:
    """Returns the summary of the result, as printed.

    Args:
        contents: what was found.
    """
    found = contents.found
    refused = sum(1 for interval in contents.intervals if interval.posture is None)
    left_out = [
        i for i in contents.intervals if i.posture is None and i.label and i.reasons
    ]
    rows = [
        (name, *(_number(_MM * v, 2) for v in (m.mean, m.rms, m.maximum)), str(m.count))
        for name, m in residual_rows(found)
    ]
    head = ("CoM against the feet (mm)", "mean", "rms", "largest", "postures")
    what = found.identifiability
    lines = [
        gain(found),
        *(f"warning: {printable(issue)}" for issue in issues_of(found)),
        f"{len(contents.fits)} postures of {len(contents.intervals)} stationary "
        f"intervals ({refused} refused); {contents.used_seconds:.1f} of {contents.seconds:.1f} s "
        "are used",
        *(f"note: {printable(note)}" for note in (*contents.notes, *contents.issues)),
        # at most five lines
        *(f"left out: {printable(f'{i.label}: {i.reasons[0]}')}" for i in left_out[:5]),
        *("", columns(head, rows), "", _links_text(contents), ""),
        f"{what.rank} of {what.unknowns} combinations are determined, {what.informed} better than "
        f"by the URDF; {len(what.lost)} are not, {len(what.weak)} hardly: see the report",
    ]
    if found.outliers:
        names = ", ".join(contents.fits[i].label for i in found.outliers)
        lines.append(
            f"outliers (inconsistent with the others, with little or no weight): {printable(names)}"
        )
    if contents.total is not None:
        total = contents.total
        lines.append(
            f"mass by the feet {total.mass:.3f} ± {total.mass_std:.3f} kg, by the URDF "
            f"{total.model_mass:.3f} kg"
        )
    return "\n".join([*lines, *map(printable, contents.kept)])


def _links_text(contents: Contents) -> str:
    found = contents.found
    rows = []
    for b, label in enumerate(body_labels(contents.model, found.bodies)):
        if found.mass[b] > 0.0:
            change = _MM * (found.com[b] - found.prior_com[b])
            pairs = zip(change, _MM * found.com_std[b], strict=True)
            cells = [f"{_number(c, 2)} ± {_number(d, 2)}" for c, d in pairs]
            rows.append((label, _number(found.mass[b], 3), *cells))
    return columns(("link", "kg", "change of c_x (mm)", "c_y", "c_z"), rows)


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def two_postures_text(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings,
) -> str:
    """Returns the total CoM by one shape at several tilts, lines of text.

    Args:
        model: the robot.
        feet: its feet.
        postures: their readings.
        settings: of the identification.

    Raises:
        PostureError: as find_tilted_shape.
    """
    found = find_tilted_shape(model, feet, postures, settings)
    total = found.total
    pairs = zip(found.postures, 1e3 * found.com, strict=True)
    rows = [(postures[i].label, *(f"{value:.2f}" for value in com)) for i, com in pairs]
    parts = zip("xyz", 1e3 * total.offset, 1e3 * total.offset_std, strict=True)
    offset = ", ".join(f"{axis} {value:.2f} ± {std:.2f}" for axis, value, std in parts)
    return "\n".join(
        (
            columns(
                ("posture: total CoM in the root's frame (mm)", "x", "y", "z"), rows
            ),
            f"less that of the URDF (mm): {offset}; the tilt is {np.degrees(found.tilt):.1f} deg",
            f"mass by the feet {total.mass:.3f} ± {total.mass_std:.3f} kg, by the URDF "
            f"{total.model_mass:.3f} kg",
            *(f"warning: {reason}" for reason in total.reasons),
        )
    )
