"""Ctrl-C while the modules of a node are still being imported ends it without a traceback.

com_*/nodes/__init__.py import this first; once it runs, com_ros.main.run handles Ctrl-C.
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
