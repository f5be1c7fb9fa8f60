"""Ctrl-C ends a program of the suite without a traceback, also while its modules are imported.

com_*/nodes/__init__.py and com_*/commands/__init__.py import this; once a node runs,
com_ros.main.run handles Ctrl-C.
"""

import os
import sys
from types import TracebackType

_report = sys.excepthook


def _excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):  # rclpy makes an ImportError of it
            os._exit(130)
        cause = cause.__cause__ or cause.__context__
    _report(kind, error, trace)


sys.excepthook = _excepthook
