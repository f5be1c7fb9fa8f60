"""Processes of a launch: started together, their output prefixed, stopped without orphans."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
PATIENCE = 5.0  # s between one stop signal and the next, as with ROS
POLL = 0.1  # s
LONGEST_LINE = 65536  # bytes that are kept back until a line ends
PR_SET_PDEATHSIG = 1


@dataclass
class _Child:
    label: str
    process: subprocess.Popen[bytes]
    pending: bytes = b""
    stop_signals: list[signal.Signals] = field(default_factory=list)

    def expects(self, code: int) -> bool:
        """Whether an exit code is what a process that was asked to stop may give."""
        asked = [s for s in self.stop_signals if s != signal.SIGKILL]
        return code == 0 or any(code in (-s, 128 + s) for s in asked)


class Supervisor:
    """Starts processes and looks after them until all have ended.

    Each process leads a process group of its own, so that Ctrl-C reaches it only through here,
    once; it dies with this process, however that ends.
    """

    def __init__(self, output: IO[bytes], patience: float = PATIENCE) -> None:
        self.output = output
        self.patience = patience
        self.children: list[_Child] = []
        self.selector = selectors.DefaultSelector()
        self.requests = 0  # signals received
        self.stage = 0  # stop signals sent
        self.deadline = 0.0
        self.failed = False

    @property
    def stopping(self) -> bool:
        """Whether an end has been asked for."""
        return self.requests > 0

    def request_stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Begin to stop, or stop harder; a signal handler."""
        self.requests += 1

    def start(self, label: str, command: list[str]) -> None:
        """Start a process; one that cannot be started counts as one that died."""
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={"PYTHONUNBUFFERED": "1", **os.environ},
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),  # safe: this program has one thread
            )
        except OSError as error:
            self.failed = True
            self.say(f"{label} cannot be started: {error.strerror}")
            return
        child = _Child(label, process)
        os.set_blocking(self._pipe(child).fileno(), False)
        self.selector.register(self._pipe(child), selectors.EVENT_READ, child)
        self.children.append(child)

    def run(self) -> int:
        """Look after the processes until the last has ended; return 1 if one of them failed."""
        try:
            while self.children:
                self._wait()
                self._reap()
                self._escalate()
        finally:
            self._kill_rest()
        return 1 if self.failed else 0

    def say(self, message: str) -> None:
        """Print a line of this program's own."""
        self._print("run_launch", message.encode())

    # --- the loop's parts ----------------------------------------------------------------------
    def _wait(self) -> None:
        """Pass on output for a while."""
        if not self.selector.get_map():
            time.sleep(POLL)
        for key, _ in self.selector.select(POLL):
            if not self._read(key.data):
                self.selector.unregister(key.fileobj)

    def _read(self, child: _Child) -> bool:
        """Pass on what a process has written; False if there is nothing (more)."""
        try:
            data = os.read(self._pipe(child).fileno(), LONGEST_LINE)
        except BlockingIOError:
            return False
        *lines, child.pending = (child.pending + data).split(b"\n")
        if child.pending and (not data or len(child.pending) >= LONGEST_LINE):
            lines.append(child.pending)
            child.pending = b""
        for line in lines:
            self._print(child.label, line)
        return bool(data)

    def _reap(self) -> None:
        for child in list(self.children):
            code = child.process.poll()
            if code is None:
                continue
            self.children.remove(child)
            _signal_group(child, signal.SIGKILL)  # what it may have started itself
            while self._read(child):
                pass
            with contextlib.suppress(KeyError):
                self.selector.unregister(self._pipe(child))
            self._pipe(child).close()
            self._report(child, code)

    def _report(self, child: _Child, code: int) -> None:
        if child.expects(code):
            if not self.stopping:
                self.say(f"{child.label} has finished")
            return
        self.failed = True
        if signal.SIGKILL in child.stop_signals:
            self.say(f"{child.label} did not stop when asked to and was killed")
        elif code < 0:
            self.say(f"{child.label} died by signal {signal.Signals(-code).name}")
        else:
            self.say(f"{child.label} died with exit code {code}")

    def _escalate(self) -> None:
        """Send the next stop signal when it was asked for or the last one did not help."""
        late = self.stage > 0 and time.monotonic() > self.deadline
        if self.stage == len(STOP_SIGNALS) or not (self.requests > self.stage or late):
            return
        number = STOP_SIGNALS[self.stage]
        self.stage += 1
        self.deadline = time.monotonic() + self.patience
        for child in self.children:
            child.stop_signals.append(number)
            _signal_group(child, number)

    def _kill_rest(self) -> None:
        for child in self.children:
            _signal_group(child, signal.SIGKILL)
            child.process.wait()

    def _print(self, label: str, line: bytes) -> None:
        try:
            self.output.write(
                b"[" + label.encode() + b"] " + line.rstrip(b"\r") + b"\n"
            )
            self.output.flush()
        except BrokenPipeError:  # nobody reads any more: stop, silently
            self.output = open(os.devnull, "wb")  # noqa: SIM115
            self.request_stop()

    @staticmethod
    def _pipe(child: _Child) -> IO[bytes]:
        assert child.process.stdout is not None  # noqa: S101  (start() asks for a pipe)
        return child.process.stdout


def _signal_group(child: _Child, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.process.pid, number)


def _die_with(parent: int) -> Callable[[], None] | None:
    """What a child does before it becomes a node: ask the kernel to be killed with its parent."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the question
            os._exit(1)

    return ask
