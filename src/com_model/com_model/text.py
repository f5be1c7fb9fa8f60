"""Names in messages: quoted, shortened, listed, and the nearest valid one for a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_LONGEST = 80  # characters of a name that a message shows, and that are searched for likeness
_MOST_CANDIDATES = 5000


def quote(name: str) -> str:
    """Quotes a name from a file for a message; control characters escaped, long names cut."""
    return repr(name if len(name) <= _LONGEST else name[:_LONGEST] + "...")


def listing(names: Iterable[str], limit: int = 8) -> str:
    """Joins names with commas and says how many were left out beyond the limit."""
    names = list(names)
    shown = ", ".join(repr(name)[1:-1][:_LONGEST] for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def closest(name: str, valid: Sequence[str], cutoff: float = 0.75) -> str | None:
    """Finds the valid name that looks most like a wrong one.

    Args:
        name: The wrong name.
        valid: Candidates.
        cutoff: Smallest likeness, 0 to 1 (difflib's ratio).

    Returns:
        The candidate, or None where none is like it.
    """
    if len(name) > _LONGEST:
        return None
    candidates = [v for v in valid[:_MOST_CANDIDATES] if len(v) <= _LONGEST]
    found = get_close_matches(name, candidates, n=1, cutoff=cutoff)
    return found[0] if found else None
