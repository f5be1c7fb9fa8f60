"""What the demo scripts share: the command that starts a launch file, an end that is clean."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from com_demos.ros_domain import free_domain_id
from com_model.exceptions import ComModelError
from com_simulation.exceptions import ComSimulationError, RunError


def launch_words(file: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that starts a launch file: ros2 launch, or run_launch without ROS.

    Args:
        file: of com_bringup.
        arguments: name:=value each.
    """
    ros = shutil.which("ros2") and importlib.util.find_spec("ros2launch")
    start = ["ros2", "launch"] if ros else ["run_launch"]
    return [*start, "com_bringup", file, *arguments]


def own_domain() -> str:
    """Return the ROS_DOMAIN_ID of the run: that of the environment, else a free one."""
    return os.environ.setdefault("ROS_DOMAIN_ID", str(free_domain_id() or 0))


def outcome(act: Callable[[], None]) -> int:
    """Act; return 0, 1 for a failed run, 2 for a wrong command, 130 for Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        act()
    except (ComSimulationError, ComModelError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunError) else 2
    except KeyboardInterrupt:
        print("demo: interrupted, everything is stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM as Ctrl-C: everything that was started is stopped on the way out."""
    raise KeyboardInterrupt
