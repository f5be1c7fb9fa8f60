"""A program in the background, in a ROS domain of its own, that is gone when we are done."""

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# What is sent to end it, and for how long (s) it is waited for each. The first is long enough for
# a launch program to end its own children the hard way.
STOPS = ((signal.SIGINT, 14.0), (signal.SIGTERM, 4.0), (signal.SIGKILL, 4.0))
_PR_SET_PDEATHSIG = 1
DOMAIN_IDS = range(1, 102)  # the ports of higher ones are those that Linux gives to any program
_FIRST_PORT = 7410  # of a domain's first participant, 250 apart (DDS-RTPS 2.3, 9.6.1.1)
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Background:
    """Runs a command as the leader of a process group of its own, its output in a log file.

    Use as a context manager. It must be entered from the main thread, for the command is killed
    with the thread that started it.
    """

    def __init__(
        self, command: Sequence[str], log: str | Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.command = list(command)
        self.log = Path(log)
        self.env = dict(os.environ if env is None else env)
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> "Background":
        # An ignored SIGINT is inherited, a handled one is not: the child must be able to get it.
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.env,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, None while it runs."""
        return None if self._process is None else self._process.poll()

    def stop(self, stops: Sequence[tuple[signal.Signals, float]] = STOPS) -> None:
        """End the command and what is left of its process group, asking nicely first.

        A KeyboardInterrupt meanwhile makes it ask harder at once.
        """
        process = self._process
        if process is None:
            return
        for number, patience in stops:
            with contextlib.suppress(KeyboardInterrupt):
                if not _alive(process) or _signal_and_wait(process, number, patience):
                    break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1.0)

    def tail(self, lines: int = 12) -> str:
        """Return the last lines of the log."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - 16_384))
                text = log.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def _signal_and_wait(process: subprocess.Popen, number: signal.Signals, patience: float) -> bool:
    """Send a signal to the group; return whether all of it has ended in time."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    deadline = time.monotonic() + patience
    while _alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _alive(process: subprocess.Popen) -> bool:
    """Return whether the command or anything in its process group still runs."""
    process.poll()  # reaps it: a zombie would count as alive
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _die_with_parent() -> None:
    """Ask the kernel, in the child, to be killed when the thread that made it ends."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def free_domain_id(among: Sequence[int] = DOMAIN_IDS) -> int | None:
    """Return a random domain whose first port nobody has; None if there is none."""
    for domain_id in random.sample(among, len(among)):
        with contextlib.suppress(OSError), reserved(domain_id):
            return domain_id
    return None


def reserved(domain_id: int) -> socket.socket:
    """Take the first port of a domain, so that nobody else finds the domain free; else OSError.

    Participants of the domain then have the ports after it.
    """
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        taken.bind(("", _FIRST_PORT + 250 * domain_id))
    except OSError:
        taken.close()
        raise
    return taken
