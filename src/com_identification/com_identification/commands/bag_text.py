"""What identify_bag prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from com_bags.bag import Topic
from com_identification.report.contents import Contents, TopicLine, residual_rows

_MM = 1000.0


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Aligns a table: the first columns that hold words left, the others right."""
    cells = [[_plain(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if i < words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def topics_text(topics: Sequence[Topic]) -> str:
    """The topics of a bag."""
    rows = [
        (t.name, t.type_name, "" if t.defined else "no definition in the bag", str(t.count))
        for t in topics
    ]
    return columns(("topic", "type", "", "messages"), rows, words=3)


def use_text(topics: Sequence[TopicLine]) -> str:
    """What is read for what."""
    rows = [(t.role, t.name, t.type_name, str(t.messages)) for t in topics]
    return columns(("role", "topic", "type", "messages"), rows, words=3)


def result_text(contents: Contents) -> str:
    """What was found."""
    found = contents.found
    refused = sum(1 for interval in contents.intervals if interval.posture is None)
    lines = [
        f"{len(contents.fits)} postures of {len(contents.intervals)} still intervals "
        f"({refused} refused) in {contents.seconds:.1f} s"
    ]
    lines += [f"note: {_plain(note)}" for note in (*contents.notes, *contents.issues)]
    rows = [
        (name, *(_number(_MM * v, 2) for v in (m.mean, m.rms, m.maximum)), str(m.count))
        for name, m in residual_rows(found)
    ]
    head = ("CoM against the feet (mm)", "mean", "rms", "largest", "postures")
    lines += ["", columns(head, rows), "", _links_text(contents), ""]
    what = found.identifiability
    lines.append(
        f"{what.rank} of {what.unknowns} combinations are determined, {what.informed} better than "
        f"by the URDF; {len(what.lost)} are not, {len(what.weak)} hardly: see the report"
    )
    if found.outliers:
        names = ", ".join(contents.fits[i].label for i in found.outliers)
        lines.append(f"outliers (they do not fit and count little or nothing): {_plain(names)}")
    if contents.total is not None:
        total = contents.total
        lines.append(
            f"by the feet the robot weighs {total.mass:.3f} +- {total.mass_std:.3f} kg, by "
            f"the URDF {total.model_mass:.3f} kg"
        )
    lines += [_plain(text) for text in contents.kept]
    return "\n".join(lines)


def _links_text(contents: Contents) -> str:
    found = contents.found
    rows = []
    for b, label in enumerate(contents.labels):
        if found.mass[b] > 0.0:
            change = _MM * (found.com[b] - found.prior_com[b])
            pairs = zip(change, _MM * found.com_std[b], strict=True)
            cells = [f"{_number(c, 2)} +- {_number(d, 2)}" for c, d in pairs]
            rows.append((label, _number(found.mass[b], 3), *cells))
    head = ("link", "kg", "change of c_x (mm)", "c_y", "c_z")
    return columns(head, rows)


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def _plain(text: str) -> str:
    """Replaces control characters, which move a terminal's cursor."""
    return "".join(c if c.isprintable() else "�" for c in text)
