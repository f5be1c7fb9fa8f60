"""Long computations in a process of their own, beside the callbacks of a node.

A thread would delay the callbacks, because the computations are many small steps in Python. A
process can also be ended at any moment, which is how it is cancelled; it writes nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
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
        self._process: multiprocessing.process.BaseProcess | None = None
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
            if self._process is not None and self._process.is_alive():
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
        context = multiprocessing.get_context("spawn")  # a fork would copy the middleware's locks
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(sender, self._task), daemon=True)
        # Ctrl-C goes to all processes of a terminal; this one is ended by cancel() only.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        process.start()
        sender.close()
        with self._lock:
            self._process = process
            if self._cancelled.is_set():
                process.kill()
        outcome = self._listen(receiver)
        process.join()
        if self._cancelled.is_set():
            return Outcome(problem="cancelled", cancelled=True)
        return outcome or Outcome(
            problem=f"the computation ended with code {process.exitcode} before it was done: "
            "look for a lack of memory"
        )

    def _listen(self, receiver: Connection) -> Outcome | None:
        with suppress(EOFError):
            while True:
                message = receiver.recv()
                if isinstance(message, Outcome):
                    return message
                self.progress, self.step = message
        return None


def _work(sender: Connection, task: Task) -> None:
    """Runs in the other process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(_NICENESS)
    try:
        outcome = Outcome(task(lambda fraction, step: sender.send((float(fraction), step))))
    except (IdentificationError, ComModelError) as error:
        outcome = Outcome(problem=str(error))
    except Exception as error:
        outcome = Outcome(problem=f"a bug: {error!r}", trace=traceback.format_exc())
    sender.send(outcome)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
