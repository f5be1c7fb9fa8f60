"""Long computations in a process of their own, beside the callbacks of a node.

A thread would delay the callbacks, because the computations are many small steps in Python. A
process can also be ended at any moment, which is how it is cancelled; it writes nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol

from com_identification.exceptions import IdentificationError
from com_model.exceptions import ComModelError

_NICENESS = 5  # nodes that follow sensors go first


class Task(Protocol):
    """A computation; it is sent to the other process, and its result is sent back."""

    def __call__(self, progress: Callable[[float, str], None]) -> Any:
        """Computes; raises IdentificationError or ComModelError where it cannot."""


@dataclass(frozen=True)
class Outcome:
    """How a computation ended.

    Attributes:
        value: What the task returned; None where it did not come to an end.
        problem: Why not and how to fix it; empty where it did.
        trace: Of an unexpected error.
        cancelled: Whether it was cancelled.
    """

    value: Any = None
    problem: str = ""
    trace: str = ""
    cancelled: bool = False


class BackgroundJob:
    """Runs a task; ask for its progress and its outcome now and then.

    Args:
        task: What to compute.

    Attributes:
        progress: 0 to 1.
        step: The present step.
    """

    def __init__(self, task: Task) -> None:
        self.progress, self.step = 0.0, "starting"
        self._task = task
        self._outcome: Outcome | None = None
        self._cancelled = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        # Starting takes as long as the other process needs to load its libraries.
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    @property
    def outcome(self) -> Outcome | None:
        """None while it runs."""
        return self._outcome

    def cancel(self) -> None:
        """Ends it, whatever it does."""
        with self._lock:
            self._cancelled.set()
            if self._process is not None:
                self._process.kill()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Waits for the end, at most for a time in s."""
        self._thread.join(timeout)
        return self._outcome

    def _supervise(self) -> None:
        try:
            self._outcome = self._run()
        except Exception as error:
            self._outcome = Outcome(
                problem=f"no process could be started: {error}", trace=traceback.format_exc()
            )

    def _run(self) -> Outcome:
        """Starts the process and follows it to its end.

        Not by multiprocessing: a child of that prints a traceback when its parent is killed while
        it starts, and it runs the parent's main module again.
        """
        own, other = Pipe()
        script = f"from {__name__} import work; work({other.fileno()})"
        # Ctrl-C goes to all processes of a terminal; this one is ended by cancel() only.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            pass_fds=[other.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        other.close()
        with own:
            with self._lock:
                self._process = process
                if self._cancelled.is_set():
                    process.kill()
            outcome = self._follow(own)
            process.wait()
        if self._cancelled.is_set():
            return Outcome(problem="cancelled", cancelled=True)
        return outcome or Outcome(
            problem=f"the computation ended with code {process.returncode} before it was done: "
            "look for a lack of memory"
        )

    def _follow(self, connection: Connection) -> Outcome | None:
        with suppress(EOFError, OSError):
            connection.send(self._task)
            while True:
                message = connection.recv()
                if isinstance(message, Outcome):
                    return message
                self.progress, self.step = message
        return None


def work(descriptor: int) -> None:
    """Runs in the other process; it ends without a word when its parent does.

    Args:
        descriptor: Of its end of the pipe, by which the task comes.
    """
    connection = Connection(descriptor)
    with _end_with_parent():
        task = connection.recv()
    threading.Thread(target=_watch, args=(connection,), daemon=True).start()
    os.nice(_NICENESS)

    def send(message: object) -> None:
        with _end_with_parent():
            connection.send(message)

    try:
        outcome = Outcome(task(lambda fraction, step: send((float(fraction), step))))
    except (IdentificationError, ComModelError) as error:
        outcome = Outcome(problem=str(error))
    except Exception as error:
        outcome = Outcome(problem=f"a bug: {error!r}", trace=traceback.format_exc())
    send(outcome)


def _watch(connection: Connection) -> None:
    with _end_with_parent():
        connection.recv()  # nothing else is sent: this is the end of the parent


@contextmanager
def _end_with_parent() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        os._exit(1)
