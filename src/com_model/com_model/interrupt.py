"""Ctrl-C ends a program of the suite without a traceback, also while its modules are imported.

com_*/nodes/__init__.py and com_*/commands/__init__.py import this before anything else; it imports
nothing that takes time. Once a node runs, com_ros.main.run handles Ctrl-C.
"""

import os
import sys
from types import TracebackType
from typing import Any

_report = sys.excepthook


# Defaults keep what the hook below needs: when the interpreter ends, a module's names become None.
def _end_if_interrupted(error: BaseException | None, end: Any = os._exit) -> None:
    """End with code 130 where an exception comes from Ctrl-C: rclpy makes an ImportError of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            end(130)
        error = error.__cause__ or error.__context__


def _excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    _end_if_interrupted(error)
    _report(kind, error, trace)


def _unraisablehook(
    unraisable: Any, check: Any = _end_if_interrupted, report: Any = sys.unraisablehook
) -> None:
    check(unraisable.exc_value)
    report(unraisable)


sys.excepthook, sys.unraisablehook = _excepthook, _unraisablehook
