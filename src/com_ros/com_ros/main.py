"""One clean main() for every node: `def main(): return run(SescPublisher)`.

Exit codes: 0 after SIGINT, SIGTERM or a shutdown from outside, when the callback that runs has
ended; 1 when the node cannot work with what it was given (one line says why and what to give); a
bug ends with its traceback.

rclpy's own executors build a wait set of everything in a node for every message: 0.3 ms for a
node with the parameter services and a few topics. Its EventsExecutor is woken by the middleware
instead, and halves the processor time of a node at 1 kHz (benchmarks/README.md). It is
experimental: releases that lack it get the default executor.
"""

import ctypes
import gc
import inspect
import logging
import resource
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.task import Future

from com_model.exceptions import ComModelError


class EventsSpinner:
    """rclpy's EventsExecutor, spun in pieces of 1 s.

    Its endless spin() neither sleeps nor delivers. Raises ImportError where this rclpy has no
    EventsExecutor.

    Args:
        context: rclpy's context; None: the default one.
    """

    def __init__(self, context: Context | None = None) -> None:
        from rclpy.experimental.events_executor import EventsExecutor

        self._executor = EventsExecutor(context=context)
        self._nodes: list[Node] = []

    def add_node(self, node: Node) -> bool:
        """Adds a node whose callbacks are served.

        Args:
            node: not served by another executor.

        Returns:
            Whether it was added.
        """
        self._nodes.append(node)
        return self._executor.add_node(node)

    def remove_node(self, node: Node) -> None:
        """Removes a node: its callbacks are no longer served.

        Args:
            node: one that was added.
        """
        self._nodes.remove(node)
        self._executor.remove_node(node)

    def spin(self) -> None:
        """Serves callbacks until ROS is shut down, then raises ExternalShutdownException.

        A message for which the middleware has no memory is dropped.
        """
        while all(node.context.ok() for node in self._nodes):
            try:
                self._executor.spin_until_future_complete(Future(), timeout_sec=1.0)
            except MemoryError:
                for node in self._nodes:
                    node.get_logger().error(
                        "a message was dropped: it is too long",
                        throttle_duration_sec=5.0,
                    )
                    self._executor.remove_node(node)
                    self._executor.add_node(node)  # looks for what came meanwhile

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Serves one callback, if one becomes ready within the time.

        Args:
            timeout_sec: s; None: wait without limit.
        """
        self._executor.spin_once(timeout_sec)

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stops serving callbacks.

        Args:
            timeout_sec: s, that callbacks in progress get to end; None: without limit.

        Returns:
            Whether they ended within that time.
        """
        return self._executor.shutdown(timeout_sec)


def make_fast_executor(context: Context | None = None) -> Executor | EventsSpinner:
    """Creates the fastest executor that this rclpy has.

    Args:
        context: rclpy's context; None: the default one.
    """
    try:
        return EventsSpinner(context)
    except ImportError:
        return SingleThreadedExecutor(context=context)


def run(
    make_node: Callable[[], Node],
    args: list[str] | None = None,
    make_executor: Callable[[], Executor | EventsSpinner] = make_fast_executor,
) -> int:
    """Starts ROS, creates the node, spins it until it is asked to stop, and cleans up.

    With -h or --help among the arguments it prints the docstring of the node's module instead.

    Args:
        make_node: creates the node; usually its class.
        args: of the command line; None: those of the process.
        make_executor: creates the executor that spins the node.

    Returns:
        The exit code of the process: 0 after a signal or a shutdown, 1 after an error of the suite
        (ComModelError), whose message is logged.
    """
    if {"-h", "--help"} & set(sys.argv[1:] if args is None else args):
        usage = "ros2 run PACKAGE NODE [--ros-args -p PARAMETER:=VALUE ... -r TOPIC:=OTHER ...]"
        print(f"usage: {usage}\n\n{inspect.getdoc(sys.modules[make_node.__module__])}")
        return 0
    node: Node | None = None
    executor: Executor | EventsSpinner | None = None
    spinning = False

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        """Ends what runs, but not in the middle of an import.

        Args:
            number: of the signal.
            frame: where it came.
        """
        if (
            spinning and number == signal.SIGINT
        ):  # ROS, shut down by rclpy's handler, ends it
            return
        if _is_importing(frame):
            # an interrupt that came during an import is tried again
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGALRM):
        signal.signal(number, on_interrupt)
    _quicken_start()
    share_arena()
    try:
        rclpy.init(args=args)
        _pass_on_log()
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        settle_memory()
        limit_memory()
        spinning = True
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except ComModelError as error:
        if not rclpy.ok():  # a signal came while the node was being made
            return 0
        get_logger(getattr(make_node, "__name__", "node")).fatal(str(error))
        return 1
    except Exception:
        if rclpy.ok():
            raise
        # ROS was shut down by a signal while the node was still being made or in a callback.
    finally:
        for number in (
            signal.SIGINT,
            signal.SIGALRM,
        ):  # a second signal must not break the clean-up
            signal.signal(number, signal.SIG_IGN)
        _clean_up(node, executor)
    return 0


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: perhaps by machine code, which an exception aborts.

    The first kernel that uses BLAS makes numba import SciPy's linear algebra.
    """
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _quicken_start() -> None:
    """Shortens the start: no garbage collection of libraries, no check for SciPy by numba."""
    gc.freeze()
    linalg: Any = import_module("numba.np.linalg") if "numba" in sys.modules else None
    if hasattr(linalg, "ensure_blas"):  # which other releases may not have
        look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        import_module("numba.np.arraymath")  # its check for SciPy's BLAS takes 0.2 s
        linalg.ensure_blas = look


def _pass_on_log() -> None:
    """Forwards the log of com_model, which does not depend on ROS, to ROS."""
    handler = logging.Handler()
    handler.emit = lambda record: get_logger(record.name).info(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("com_model")
    log.setLevel(logging.INFO)
    log.addHandler(handler)


def settle_memory() -> None:
    """Excludes all objects that exist now from garbage collection.

    A full collection over the loaded libraries takes tens of milliseconds, too long for a node
    that follows sensors; afterwards a collection only visits what was created since.
    """
    gc.collect()
    gc.freeze()


def share_arena() -> None:
    """Makes the threads to come share one arena of glibc's allocator.

    With many of them, a request that fills the limit of memory empties those of the middleware's
    threads, too, a page at a time: it takes 20 s to fail, not 1.5 s, and the threads that find no
    memory meanwhile end the process.
    """
    arena_max = -8  # M_ARENA_MAX of malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have none
        mallopt(arena_max, 1)


def limit_memory() -> None:
    """Limits the process's memory to what it has now and 1 GiB.

    The middleware makes an array as long as a request says before it looks for the items: for a
    few bytes it would take all memory, at 1.3 s of a processor for each GiB in which the node
    does nothing else. Beyond the limit it makes none, and the message is dropped.
    """
    # what getrusage says may be that of the process that started this one
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    used = pages * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = used + 2**30
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _clean_up(node: Node | None, executor: Executor | EventsSpinner | None) -> None:
    if executor is not None:
        executor.shutdown(timeout_sec=1.0)
    if node is not None:
        node.destroy_node()
    try:
        rclpy.try_shutdown()
    except (
        RuntimeError
    ):  # a signal's handler shut down ROS between the check and this call
        if rclpy.ok():
            raise
    sys.stdout.flush()
