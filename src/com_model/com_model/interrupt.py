"""Ctrl-C ends a program of the suite without a traceback, also while its modules are imported.

com_*/nodes/__init__.py and com_*/commands/__init__.py import this before anything else; it imports
nothing that takes time. Once a node runs, com_ros.main.run handles Ctrl-C.
"""

import os
import sys
from types import TracebackType
from typing import Any

_report, _report_unraisable = sys.excepthook, sys.unraisablehook


def _end_if_interrupted(error: BaseException | None) -> None:
    """End with code 130 where an exception comes from Ctrl-C: rclpy makes an ImportError of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            os._exit(130)
        error = error.__cause__ or error.__context__


def _excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    _end_if_interrupted(error)
    _report(kind, error, trace)


def _unraisablehook(unraisable: Any) -> None:
    _end_if_interrupted(unraisable.exc_value)
    _report_unraisable(unraisable)


sys.excepthook, sys.unraisablehook = _excepthook, _unraisablehook
