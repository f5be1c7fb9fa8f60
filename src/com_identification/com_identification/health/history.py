"""The history of a robot as text, picture, table and model."""

import csv
import io
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure

from com_identification.exceptions import HealthError
from com_identification.health.changes import RecordComparison
from com_identification.health.records import Record, library
from com_model import html
from com_model.files import write_file
from com_model.plotting import plain_text, style_axes
from com_model.text import listing

_HEAD = ("robot", "serial", "taken", "source", "path")
COLUMNS = (*_HEAD, "quantity", "name", "component", "value", "std")


def history_text(
    records: Sequence[Record], steps: Sequence[RecordComparison], false_alarms: float
) -> str:
    """Returns the history of one robot as text.

    Args:
        records: of the robot, in order of time.
        steps: what history() returned.
        false_alarms: with which it was called.
    """
    first = records[0]
    of = f"{first.robot} {first.serial}".strip()
    lines = [f"{of}: {len(records)} identifications"]
    by_record = {id(step.new): step for step in steps}
    for record in records:
        mass, std = record.total_mass
        where = f"{record.source} {record.path}".strip()
        lines.append(f"{record.taken}  {mass:.3f} ± {std:.3f} kg  {where}")
        lines += [f"  warning: {issue}" for issue in record.issues]
        if id(record) in by_record:
            lines += [
                f"  {text}"
                for text in by_record[id(record)].lines() or ["no change found"]
            ]
    if steps:
        limits = steps[-1].detectable
        # a change of 3 cm of a CoM is found every second time
        seen = {name: limit for name, limit in limits.items() if limit < 0.03}
        least = [
            f"{name} {1e3 * v:.1f} mm"
            for name, v in sorted(seen.items(), key=lambda i: i[1])
        ]
        unseen = [name for name in limits if name not in seen]
        lines.append(
            f"false alarms: at most {100 * false_alarms:g} of 100 comparisons of an unchanged "
            f"robot. Found every second time: {listing(least, 12) or 'nothing'}"
        )
        if unseen:
            lines.append(
                f"hardly observable, so not known to be unchanged: {listing(unseen, 12)}"
            )
    return "\n".join(lines)


def history_figure(
    records: Sequence[Record], steps: Sequence[RecordComparison]
) -> Figure:
    """CoMs of the bodies that changed, then of the heaviest, and the mass; bars of two sigma.

    Args:
        records: Of the robot, in order of time.
        steps: What history() returned.
    """
    changed = [c.name for step in steps for c in step.changes if c.what == "com"]
    last = records[-1]
    heavy = [last.bodies[k] for k in np.argsort(-last.by_body[0], kind="stable")]
    # at most four bodies
    names = list(dict.fromkeys([*changed, *heavy]))[:4]
    figure = Figure(figsize=(9.0, 2.0 * (len(names) + 1)), layout="constrained")
    panels = figure.subplots(len(names) + 1, 1, sharex=True)
    for name, panel in zip(names, panels, strict=False):
        own = [(r, r.bodies.index(name)) for r in records if name in r.bodies]
        com, std = (
            1e3 * np.array([r.by_body[part][k] for r, k in own]) for part in (1, 3)
        )
        days = [datetime.fromisoformat(r.taken) for r, _ in own]
        for label, values, bars in zip(
            "xyz", (com - com[0]).T, 2.0 * std.T, strict=True
        ):
            panel.errorbar(days, values, bars, marker="o", capsize=3, label=label)
        panel.set_ylabel(f"{name}\nCoM moved (mm)")
    panels[0].legend(
        loc="upper left", ncols=3, title="change of the CoM, bars of two sigma"
    )
    masses = np.array([record.total_mass for record in records])
    days = [datetime.fromisoformat(record.taken) for record in records]
    panels[-1].errorbar(
        days, masses[:, 0], 2.0 * masses[:, 1], marker="o", capsize=3, color="k"
    )
    panels[-1].set_ylabel("mass of\nthe robot (kg)")
    title = f"{last.robot} {last.serial}".strip()
    figure.suptitle(plain_text(f"History of {title}; red: a change was found", 100))
    for step in steps:
        if step.changes:
            for panel in panels:
                panel.axvline(
                    datetime.fromisoformat(step.new.taken), color="r", alpha=0.3
                )
    for panel in panels:
        style_axes(panel)
    figure.autofmt_xdate()
    return figure


def history_page(
    records: Sequence[Record],
    steps: Sequence[RecordComparison],
    false_alarms: float,
    where: str,
) -> str:
    """Returns the history of one robot as an HTML page.

    Args:
        records: of the robot, in order of time.
        steps: what history() returned.
        false_alarms: with which it was called.
        where: path or URL of the record.
    """
    changes = steps[-1].lines() if steps else []
    name, serial = records[-1].robot, records[-1].serial
    export = shlex.join([where, "newest.urdf", "--name", name, "--serial", serial])
    return html.report(
        f"History of the centres of mass of {name} {serial}".strip(),
        f"At the last of {len(records)} identifications: {'; '.join(changes) or 'no change'}.",
        html.svg(history_figure(records, steps)),
        html.bullets(records[-1].issues, css="warning"),
        html.folded(
            "Every identification",
            html.bullets(history_text(records, steps, false_alarms).splitlines()[1:]),
        ),
        then=[
            "Inspect what has changed, then identify again. The newest corrected URDF: "
            f"`ros2 run com_identification com_health export {export}`",
            "How changes are found: docs/fleet.md",
        ],
        failed=bool(changes),
    )


def table_rows(records: Sequence[Record]) -> Iterator[tuple[Any, ...]]:
    """Yields all numbers of all records, one in each row, in SI units; see COLUMNS.

    Args:
        records: to list.
    """
    for r in records:
        head = tuple(getattr(r, name) for name in _HEAD)
        yield *head, "total_mass", "", "", *r.total_mass
        if r.mass_on_feet:
            yield *head, "mass_on_feet", "", "", *r.mass_on_feet
        mass, com, mass_std, com_std = r.by_body
        for k, body in enumerate(r.bodies):
            yield *head, "mass", body, "", float(mass[k]), float(mass_std[k])
            for i, axis in enumerate("xyz"):
                yield *head, "com", body, axis, float(com[k, i]), float(com_std[k, i])
        for kind, values in r.sensors.items():
            for name, (value, std, _) in values.items():
                yield *head, kind, name, "", value, std


def export(records: Sequence[Record], path: Path) -> None:
    """Writes records as a table (.csv, .parquet), or the last one as a model (.urdf, MJCF .xml).

    Args:
        records: to write.
        path: of the file; its suffix selects the format.

    Raises:
        HealthError: the suffix is another one, or a library is missing.
        OSError: the file cannot be written.
    """
    if path.suffix == ".csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *table_rows(records)])
        write_file(path, text.getvalue())
    elif path.suffix == ".parquet":
        columns = zip(*table_rows(records), strict=True)
        arrow = library("pyarrow")
        library("pyarrow.parquet").write_table(
            arrow.table(dict(zip(COLUMNS, map(list, columns), strict=True))), path
        )
    elif path.suffix == ".urdf":
        write_file(path, records[-1].corrected_urdf())
    elif path.suffix == ".xml":
        spec = library("mujoco").MjSpec.from_string(
            _floating(records[-1].corrected_urdf())
        )
        spec.compile()
        write_file(path, spec.to_xml())
    else:
        raise HealthError(
            f"{path.name}: expected a name with .csv, .parquet, .urdf or .xml (MJCF)"
        )


def _floating(urdf: str) -> str:
    """A URDF without shapes, which MuJoCo would have to find, on a floating joint."""
    root = ElementTree.fromstring(urdf)  # noqa: S314 (RobotModel has read it)
    children = {child.get("link") for child in root.iter("child")}
    base = next(
        link.get("name")
        for link in root.iter("link")
        if link.get("name") not in children
    )
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    world = ElementTree.SubElement(root, "link", name="com_health_world")
    joint = ElementTree.SubElement(root, "joint", name="floating_base", type="floating")
    ElementTree.SubElement(joint, "parent", link=str(world.get("name")))
    ElementTree.SubElement(joint, "child", link=str(base))
    return ElementTree.tostring(root, encoding="unicode")
