"""Text for people: names in messages (of com_model.exceptions), tables for terminals."""

from collections.abc import Iterable, Sequence

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
    "closest",
    "columns",
    "listing",
    "printable",
    "quote",
    "quote_path",
    "shorten",
]


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
