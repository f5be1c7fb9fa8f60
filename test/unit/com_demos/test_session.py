"""A run waits, settles, records; and says why when it cannot."""

import io
import os
import signal
import time
from dataclasses import replace

import pytest
from rich.console import Console

from com_demos.demonstration import Times, record
from com_demos.exceptions import RunError
from com_demos.live import LiveView

pytestmark = pytest.mark.slow

QUICK = Times(record=0.4, settle=0.3, first_message=0.4, silence=0.3)


class Launch:
    """Stands in for com_demos.background.Background."""

    exit_code: int | None = None
    log = "last words"

    def tail(self, lines: int = 12) -> str:
        return self.log


class Listener:
    """Receives a sample at each poll that `talks` allows."""

    def __init__(self, talks=lambda poll: True) -> None:
        self.talks = talks
        self.polls = 0
        self.forgotten = 0
        self.received = 0
        self.ready = True
        self.ended = False
        self.begin = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.begin

    def poll(self) -> None:
        self.polls += 1
        if self.talks(self.polls):
            self.received += 1

    def start_over(self) -> None:
        self.forgotten, self.received = self.received, 0
        self.begin = time.monotonic()

    def rows(self) -> list[tuple[str, str]]:
        return [("received", f"{self.received}")]

    def problem(self, seconds: float) -> str:
        return f"{self.received} received in {seconds:.1f} s"


@pytest.fixture
def view() -> LiveView:
    return LiveView("box", 1.0, Console(file=io.StringIO()))


def test_what_arrives_while_settling_is_not_recorded(view: LiveView) -> None:
    listener = Listener(lambda poll: poll > 5)
    record(listener, Launch(), QUICK, view)
    assert listener.forgotten > 0
    assert listener.received == listener.polls - 5 - listener.forgotten
    assert listener.received > 5


def test_no_message_at_all(view: LiveView) -> None:
    with pytest.raises(
        RunError, match=r"^0 received in 0\.[4-9] s; the launch's log"
    ) as caught:
        record(Listener(lambda poll: False), Launch(), QUICK, view)
    assert str(caught.value).endswith(" s; the launch's log ends with:\nlast words")


def test_messages_that_stop(view: LiveView) -> None:
    with pytest.raises(RunError, match=r"^4 received in "):
        record(Listener(lambda poll: poll < 5), Launch(), QUICK, view)


def test_what_never_begins(view: LiveView) -> None:
    listener = Listener()
    listener.ready = False
    with pytest.raises(
        RunError, match=r"received in .* s; the launch's log ends with:\nlast words"
    ):
        record(listener, Launch(), replace(QUICK, ready=0.3), view)
    assert listener.forgotten == 0


def test_a_wait_shows_how_long_and_what_the_log_says(
    view: LiveView, monkeypatch
) -> None:
    listener, launch, shown = Listener(lambda poll: poll > 40), Launch(), []
    launch.log = (
        "[simulator] [WARN] [17.3] [simulator]: waits for ccgd_gait to answer the start"
    )
    listener.rows = lambda: [
        ("waiting", "for data") if listener.polls < 40 else ("data", "here")
    ]
    monkeypatch.setattr(view, "show", lambda rows, done: shown.append((rows, done)))
    record(listener, launch, replace(QUICK, first_message=60.0), view)
    log = ("log", "waits for ccgd_gait to answer the start")
    assert shown[0] == ([("waiting", "for data, 0 s"), log], None)
    assert shown[-1][0] == [("data", "here")]
    assert shown[-1][1] > 0.4


def test_launch_that_ends(view: LiveView) -> None:
    launch = Launch()
    launch.exit_code = 1
    with pytest.raises(
        RunError, match="the launch ended early, its log says:\nlast words"
    ):
        record(Listener(), launch, QUICK, view)


@pytest.mark.parametrize(
    ("log", "dead"),
    [
        ("[run_launch] sesc_publisher died with exit code 1", True),
        ("[run_launch] sway died by signal SIGSEGV", True),
        ("[run_launch] sway cannot be started: Permission denied", True),
        (
            "[ERROR] [sway-3]: process has died [pid 42, exit code 1, cmd '/bin/sway'].",
            True,
        ),
        ("[sway] [INFO] the wave died with time", False),
        ("[run_launch] sway has finished", False),
        ("[run_launch] robot_state_publisher skipped: package is not installed", False),
    ],
)
def test_node_that_died(view: LiveView, log: str, dead: bool) -> None:
    launch = Launch()
    launch.log = f"first words\n{log}\nlast words"
    if dead:
        with pytest.raises(
            RunError, match=r"a node died, the launch's log says:\nfirst words"
        ):
            record(Listener(), launch, QUICK, view)
    else:
        record(Listener(), launch, QUICK, view)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_waits_until_messages_are_processed(
    view: LiveView, number: int
) -> None:
    before = signal.getsignal(number)
    after_signal = []

    def talks(poll: int) -> bool:
        if poll == 3:
            os.kill(os.getpid(), number)
            time.sleep(0.01)
            after_signal.append(poll)
        return True

    with pytest.raises(KeyboardInterrupt):
        record(Listener(talks), Launch(), QUICK, view)
    assert after_signal == [3]
    assert signal.getsignal(number) == before


def test_run_that_ends_before_its_time(view: LiveView) -> None:
    listener = Listener(lambda poll: setattr(listener, "ended", poll > 60) or True)
    begin = time.monotonic()
    record(listener, Launch(), replace(QUICK, record=60.0), view)
    assert time.monotonic() - begin < 30.0
