"""Text for people: names in messages (of com_model.exceptions), tables for terminals."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from com_model.exceptions import (
    MAX_MESSAGE,
    closest,
    listing,
    quote,
    quote_path,
    shorten,
)

__all__ = [
    "MAX_MESSAGE",
    "Facts",
    "Shown",
    "closest",
    "columns",
    "listing",
    "printable",
    "quote",
    "quote_path",
    "shorten",
    "signed_mm",
]


class Facts(NamedTuple):
    """What an object shows of itself.

    Attributes:
        line: The object in a few words.
        head: Titles of the columns of a table, the first of words, the others of numbers.
        rows: Cells of each row.
    """

    line: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


class Shown(ABC):
    """Base of objects that print themselves: as a line, in a notebook with a table."""

    @abstractmethod
    def facts(self) -> Facts:
        """Returns what is shown."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.facts().line}>"

    def _repr_html_(self) -> str:
        """Notebooks call this."""
        line, head, rows = self.facts()
        cells = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
        cells += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        table = "".join(f"<tr>{row}</tr>" for row in cells) if rows else ""
        return (
            f"<p>{escape(type(self).__name__)} {escape(line)}</p><table>{table}</table>"
        )


def signed_mm(vector: Iterable[float]) -> tuple[str, ...]:
    """Writes lengths as millimetres with their sign, one cell each.

    Args:
        vector: m.
    """
    return tuple(f"{1e3 * float(v):+.1f}" for v in vector)


def printable(text: str) -> str:
    """Replaces control characters, which move a terminal's cursor."""
    return "".join(c if c.isprintable() else "�" for c in text)


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Aligns a table.

    Args:
        head: Titles of the columns.
        rows: Cells of each row.
        words: How many of the first columns are aligned left; the others are aligned right.

    Returns:
        Lines of text.
    """
    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if i < words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
