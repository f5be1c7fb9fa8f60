"""One clean main() for every node: `def main(): return run(SescPublisher)`.

Exit codes: 0 after SIGINT, SIGTERM or a shutdown from outside; 1 when the node cannot work with
what it was given (one line says why and what to give); a bug ends with its traceback.
"""

import gc
import signal
import sys
from collections.abc import Callable

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node

from com_model.exceptions import ComModelError
from com_ros.exceptions import ComRosError
from com_ros.executor import EventsSpinner

CONFIGURATION_ERRORS = (ComRosError, ComModelError)


def run(
    make_node: Callable[[], Node],
    args: list[str] | None = None,
    make_executor: Callable[[], Executor | EventsSpinner] = SingleThreadedExecutor,
) -> int:
    """Start ROS, make the node, spin it until it is told to stop, and clean up.

    Args:
        make_node: the node's class, or a function that makes it.
        args: command line; that of the process when None.
        make_executor: what spins the node; com_ros.executor.make_fast_executor for high rates.

    Returns:
        The exit code of the process.
    """
    node: Node | None = None
    executor: Executor | EventsSpinner | None = None
    try:
        rclpy.init(args=args)
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        settle_memory()
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except CONFIGURATION_ERRORS as error:
        get_logger(getattr(make_node, "__name__", "node")).fatal(str(error))
        return 1
    except Exception:
        if rclpy.ok():
            raise
        # ROS was shut down by a signal while the node was still being made or in a callback.
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not break the clean-up
        _clean_up(node, executor)
    return 0


def settle_memory() -> None:
    """Take what lives until the end out of the garbage collector's sight.

    A full collection over the loaded libraries takes tens of milliseconds, too long for a node
    that follows sensors; after this it only sees what was made since.
    """
    gc.collect()
    gc.freeze()


def _clean_up(node: Node | None, executor: Executor | EventsSpinner | None) -> None:
    if executor is not None:
        executor.shutdown(timeout_sec=1.0)
    if node is not None:
        node.destroy_node()
    try:
        rclpy.try_shutdown()
    except RuntimeError:  # a signal's handler was quicker, between the look and the shutdown
        if rclpy.ok():
            raise
    sys.stdout.flush()
