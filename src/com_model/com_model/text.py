"""Names in messages: quoted, shortened, listed, the nearest valid one for a wrong one; tables."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MAX_MESSAGE = 500  # characters of an error
_LONGEST = (
    80  # characters of a name that a message shows, and that are searched for likeness
)
_LONGEST_QUOTED = 120  # with what escapes add
_END = 150  # characters of a shortened message that are its end: how to fix it
_MOST_CANDIDATES = 5000


def shorten(text: str) -> str:
    """Shortens an error to MAX_MESSAGE characters; its beginning and its end stay."""
    if len(text) <= MAX_MESSAGE:
        return text
    return f"{text[: MAX_MESSAGE - _END - 5]} ... {text[-_END:]}"


def quote(name: str) -> str:
    """Quotes a name from a file for a message; control characters escaped, long names cut."""
    shown = repr(name if len(name) <= _LONGEST else name[:_LONGEST] + "...")
    return (
        shown
        if len(shown) <= _LONGEST_QUOTED
        else f"{shown[:_LONGEST_QUOTED]}...{shown[0]}"
    )


def quote_path(path: str) -> str:
    """Quotes a path for a message; of a long one the end, which has the file's name."""
    return quote(path if len(path) <= _LONGEST else "..." + path[3 - _LONGEST :])


def listing(names: Iterable[str], limit: int = 8) -> str:
    """Joins names with commas and says how many were left out beyond the limit."""
    names = list(names)
    shown = ", ".join(repr(name)[1:-1][:_LONGEST] for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def closest(name: str, valid: Sequence[str], cutoff: float = 0.75) -> str | None:
    """Finds the valid name most like a wrong one, or None; cutoff is difflib's ratio, 0 to 1."""
    if len(name) > _LONGEST:
        return None
    candidates = [v for v in valid[:_MOST_CANDIDATES] if len(v) <= _LONGEST]
    found = get_close_matches(name, candidates, n=1, cutoff=cutoff)
    return found[0] if found else None


def printable(text: str) -> str:
    """Replaces control characters, which move a terminal's cursor."""
    return "".join(c if c.isprintable() else "�" for c in text)


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Aligns a table: the first `words` columns left, the others right."""
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
