"""What is wrong with the input of an estimator, and how much that matters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """What follows from a problem."""

    NOTE = 1  # worth saying; the estimate is not worse for it
    DEGRADE = 2  # the estimate goes on, with less to go by
    HOLD = 3  # the sample must not reach the estimator


@dataclass(frozen=True)
class Problem:
    """Something wrong with the input.

    Attributes:
        severity: What follows from it.
        text: What is wrong and how to fix it.
    """

    severity: Severity
    text: str


def worst(problems: Iterable[Problem]) -> Severity | None:
    """The gravest severity; None without problems."""
    return max((problem.severity for problem in problems), default=None)


def reason(problems: Iterable[Problem]) -> str:
    """All problems in words, the gravest first."""
    ordered = sorted(problems, key=lambda problem: -problem.severity)
    return "; ".join(dict.fromkeys(problem.text for problem in ordered))
