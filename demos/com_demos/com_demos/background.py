"""A program in a ROS domain of its own, gone when we are done, and nodes that listen to it."""

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from std_msgs.msg import Header

from com_demos.live import Rows
from com_ros import lockstep, qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, stamp_to_ns

# What is sent to end it, and for how long (s) it is waited for each. The first is long enough for
# a launch program to end its own children the hard way.
STOPS = ((signal.SIGINT, 14.0), (signal.SIGTERM, 4.0), (signal.SIGKILL, 4.0))
_PR_SET_PDEATHSIG = 1
DOMAIN_IDS = range(
    1, 102
)  # the ports of higher ones are those that Linux gives to any program
_FIRST_PORT = 7410  # of a domain's first participant, 250 apart (DDS-RTPS 2.3, 9.6.1.1)
_taken: set[str] = set()  # domains of robots, and of this process's demos
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Background:
    """Runs a command as the leader of a process group of its own, its output in a log file.

    Use as a context manager. It must be entered from the main thread, for the command is killed
    with the thread that started it.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: str | Path,
        env: Mapping[str, str] | None = None,
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

    def interrupt(self) -> None:
        """Ask the command to end, and do not wait for it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGINT)

    def tail(self, lines: int = 12) -> str:
        """Return the last lines of the log."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - 16_384))
                text = log.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def _signal_and_wait(
    process: subprocess.Popen, number: signal.Signals, patience: float
) -> bool:
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


def other_domain_id() -> int:
    """Return a domain of a demo, never that of the environment: a robot may be there.

    What a demo commands must not reach it.
    """
    _taken.add(os.environ.get("ROS_DOMAIN_ID", "0"))
    among = [number for number in DOMAIN_IDS if str(number) not in _taken]
    chosen = free_domain_id(among) or among[0]
    _taken.add(str(chosen))
    return chosen


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


QUEUE = QoSProfile(depth=2000)  # reliable: a recording should miss nothing
FOR_EVER = Time(
    sec=2**31 - 1
)  # stamp of an answer after which the simulator need not wait again
AHEAD_NS = NS_PER_S
"""Simulated time by which a simulator in lockstep may be ahead of what was received, ns.

It bounds the queues, 2000 messages, at the 500 messages of each topic a second.
"""

PROBE_NS, PROBE_S = NS_PER_S // 20, 0.5
"""The same while the topic that shows whether the run is alive has not been received, ns, and the
pause between two such steps, s: its publisher may not know of this node yet, and what it publishes
meanwhile is lost.
"""


class ListeningNode(Node, ABC):
    """Processes messages in poll(), in place of an executor.

    That would take several times as much of the processor for messages at such rates. The times of
    receipt are the middleware's, so that it does not matter when poll() is called. A simulator in
    lockstep that waits for this node begins when its topics are connected, and is never further
    ahead than the queues can hold. The topic shows whether the run is alive.

    Attributes:
        ready: Whether what should be recorded has begun.
        ended: Whether all has ended before its time.
        follows: Whether it receives a topic of each sample of the simulation.
        recording: What was recorded.
    """

    follows = True
    ready = True
    ended = False
    recording: Any

    def __init__(self, name: str, topic: str) -> None:
        super().__init__(name, enable_rosout=False, start_parameter_services=False)
        self._topic = topic
        self._inputs: list[tuple[Subscription, Callable[[Any, dict], None]]] = []
        self._lockstep = self.create_publisher(Header, lockstep.TOPIC, qos.RESULT)
        self._connected = False
        self._alive = False  # the topic was received
        self._newest_ns = self._answered_ns = 0
        self._next_probe = 0.0  # s, time.monotonic()

    @property
    def received(self) -> int:
        """Number of messages so far that say something: of the recording's samples."""
        return len(self.recording.samples)

    @property
    @abstractmethod
    def elapsed(self) -> float:
        """How long what is to be recorded lasts, by its stamps, s."""

    @abstractmethod
    def rows(self) -> Rows:
        """Return what a view shows."""

    def start_over(self) -> None:
        """Forget what need not be recorded; here nothing."""

    def waiting_for(self, seconds: float) -> str:
        """Return what has not begun after a time, and why."""
        return f"nothing has begun after {seconds:.0f} s"

    def problem(self, seconds: float) -> str:
        """Return why nothing came, or was not ready, for a time."""
        if self.received and not self.ready:
            return self.waiting_for(seconds)
        further = "further " if self.received else ""
        return f"no {further}message on {self._topic} for {seconds:.0f} s"

    def poll(self) -> None:
        """Process whatever has arrived; to be called again and again."""
        for subscription, process in self._inputs:
            with subscription.handle:
                while taken := subscription.handle.take_message(
                    subscription.msg_type, False
                ):
                    self._alive |= subscription is self._inputs[0][0]
                    if header := getattr(taken[0], "header", None):
                        self._newest_ns = max(
                            self._newest_ns, stamp_to_ns(header.stamp)
                        )
                    process(*taken)
        self._answer()

    def _answer(self) -> None:
        """Tell a simulator in lockstep how far it may go on without this node."""
        if not self._connected:
            inputs = all(
                subscription.get_publisher_count() for subscription, _ in self._inputs
            )
            self._connected = inputs and self._lockstep.get_subscription_count() > 0
        now = time.monotonic()
        if not self._connected or (not self._alive and now < self._next_probe):
            return
        self._next_probe = now + PROBE_S
        until_ns = self._newest_ns + (AHEAD_NS if self._alive else PROBE_NS)
        if until_ns - self._answered_ns > AHEAD_NS // 4 or not self._alive:
            self._answered_ns = until_ns
            stamp = ns_to_stamp(until_ns) if self.follows else FOR_EVER
            self._lockstep.publish(Header(stamp=stamp, frame_id=self.get_name()))

    def release(self) -> None:
        """Let a simulator in lockstep go on: nothing is received from now on."""
        self._lockstep.publish(Header(stamp=FOR_EVER, frame_id=self.get_name()))

    def _listen(
        self,
        kind: type,
        topic: str,
        process: Callable[[Any, dict], None],
        profile: QoSProfile = QUEUE,
    ) -> None:
        subscription = self.create_subscription(kind, topic, lambda _: None, profile)
        self._inputs.append((subscription, process))


@contextmanager
def ros(domain_id: int | None = None) -> Iterator[None]:
    """Run ROS in this process, in a domain; None: that of the environment."""
    rclpy.init(
        args=[], domain_id=domain_id, signal_handler_options=SignalHandlerOptions.NO
    )
    try:
        yield
    finally:
        rclpy.try_shutdown()


@contextmanager
def launched(
    command: Sequence[str], log: Path, domain_id: int | None = None
) -> Iterator[Background]:
    """Run a launch in the background, and ROS in this process, in the same domain."""
    with ros(domain_id), Background(command, log, in_domain(domain_id)) as launch:
        yield launch


def in_domain(domain_id: int | None) -> dict[str, str]:
    """Return the environment of a program in a domain; None: in that of the environment."""
    return os.environ | ({} if domain_id is None else {"ROS_DOMAIN_ID": str(domain_id)})
