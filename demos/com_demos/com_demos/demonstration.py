"""What the demos share: their options, the launch that they listen to, their figures and end.

Each starts the launch file that ships, nodes as processes of their own; shows live what arrives;
ends automatically; prints its figures as JSON on its last line, which goes to a file, too.
"""

import argparse
import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from com_demos.background import (
    Background,
    ListeningNode,
    in_domain,
    launched,
    other_domain_id,
    ros,
)
from com_demos.exceptions import RunError
from com_demos.live import WAITING, LiveView
from com_model import (
    ComModelError,
    ConfigError,
    RobotConfig,
    RobotFiles,
    RobotModel,
    find_robot,
)
from com_model.html import UNKNOWN, bullets, image, report, table

POLL_S = 0.02
REFRESH_S = 0.25
# What tools/run_launch and ros2 launch print of a node that ended by an error.
DEAD_NODE = re.compile(
    r"^\[run_launch\] \S+ (died|cannot be started)|: process has died ", re.M
)
LOG_PREFIX = re.compile(r"^(\[[^]]*\]:? ?)*")  # of a node's line in the log


@dataclass(frozen=True)
class Times:
    """How long the parts of a run last at most, s; a first start compiles kernels."""

    record: float  # of data, by its stamps
    # from the first message on, not recorded: further programs start
    settle: float = 0.0
    first_message: float = 600.0
    silence: float = 600.0  # longest pause between messages
    # from the first message on, until what is to be recorded has begun
    ready: float = 600.0


def record(
    monitor: ListeningNode,
    launch: Background,
    times: Times,
    view: LiveView,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """Listen to a launch until the data of a run has arrived, or all has ended before its time.

    As soon as what is to be recorded begins, meanwhile is called.

    Raises RunError where no data came, it stopped coming, or the launch ended, KeyboardInterrupt
    where SIGINT or SIGTERM arrived.
    """

    def problem(seconds: float) -> RunError:
        text = monitor.problem(seconds)
        return RunError(f"{text}; the launch's log ends with:\n{launch.tail()}")

    def listen(
        done: Callable[[float], bool], timeout: float, recording: bool = False
    ) -> None:
        """Listen until done(seconds), while something arrives within timeout (s)."""
        begin = last = now = time.monotonic()
        while not done(now - begin):
            count, refresh = monitor.received, now + REFRESH_S
            while now < refresh:
                monitor.poll()
                if interrupts:
                    raise KeyboardInterrupt
                time.sleep(POLL_S)
                now = time.monotonic()
            last = now if monitor.received > count else last
            rows = monitor.rows()
            if rows[0][0] == WAITING:
                log = LOG_PREFIX.sub("", launch.tail(lines=1))
                rows = [(WAITING, f"{rows[0][1]}, {now - begin:.0f} s"), ("log", log)]
            view.show(rows, monitor.elapsed if recording else None)
            if launch.exit_code is not None:
                raise RunError(
                    f"the launch ended early, its log says:\n{launch.tail()}"
                )
            if DEAD_NODE.search(launch.tail(lines=500)):
                raise RunError(f"a node died, the launch's log says:\n{launch.tail()}")
            if now - last > timeout:
                raise problem(now - last)

    def settled(seconds: float) -> bool:
        if not monitor.ready and seconds > times.ready:
            raise problem(seconds)
        return monitor.ready and seconds >= times.settle

    with view, deferred_interrupts() as interrupts:
        listen(lambda _: monitor.received > 0, times.first_message)
        listen(settled, times.silence)
        monitor.start_over()
        meanwhile()
        listen(
            lambda _: monitor.ended or monitor.elapsed >= times.record,
            times.silence,
            True,
        )


@contextmanager
def deferred_interrupts() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM, for exceptions must not be raised inside the middleware."""
    arrived: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [
        signal.signal(n, lambda number, _: arrived.append(number)) for n in numbers
    ]
    try:
        yield arrived
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


Monitor = TypeVar("Monitor", bound=ListeningNode)


class DemoParser(argparse.ArgumentParser):
    """The options that all demos have: --robot, --config, --output, for simulated time --speed.

    Of the description the first paragraph counts; robot and speed, simulated over wall time, are
    defaults, None: without that option.
    """

    def __init__(
        self, name: str, description: str, robot: str, robots: str, speed: float | None
    ) -> None:
        super().__init__(prog=name, description=description.partition("\n\n")[0])
        text = f"a name ({robots}, ...) or the path of a URDF"
        self.add_argument("--robot", default=robot, help=text)
        text = "its configuration; default: the one beside the URDF, or the suite's of its name"
        self.add_argument("--config", help=text)
        text = "folder for what it writes"
        self.add_argument("--output", type=Path, default=Path("out"), help=text)
        text = "show it in the browser; stay: until Ctrl-C (default: %(default)s)"
        self.add_argument(
            "--view", choices=("off", "on", "stay"), default="off", help=text
        )
        if speed is not None:
            self.add_number("--speed", speed, (0.05, 10), "simulated over wall time")

    def add_number(
        self,
        name: str,
        default: float,
        bounds: tuple[float, float],
        text: str,
        why: str = "",
    ) -> None:
        """Add an option that takes a number of the default's type between two bounds."""
        low, high = bounds

        def number(word: str) -> float:
            value = type(default)(word)
            if not low <= value <= high:
                self.error(f"{name} {value:g}: give {low:g} to {high:g}{why}")
            return value

        self.add_argument(name, type=number, default=default, help=text)


def find_configured_robot(
    options: argparse.Namespace, needed: str
) -> tuple[RobotFiles, Path]:
    """Find the robot of a command line and its configuration.

    Raises UnknownRobotError where there is none of that name, ConfigError, which says what is
    needed of it, where it has no configuration.
    """
    robot = find_robot(options.robot, options.config)
    if robot.config is None:
        raise ConfigError(f"{robot.name} has none; one is needed, with {needed}")
    return robot, robot.config


def with_fitting_config(
    robot: RobotFiles, model: RobotModel
) -> tuple[RobotFiles, RobotConfig | None]:
    """Read the configuration of a robot's name, unless it is about another robot."""
    if robot.config is None:
        return robot, None
    config = RobotConfig.from_file(robot.config)
    try:
        config.attach(model)
    except ComModelError as error:
        print(f"{robot.name}: not the robot of that name, so it has no feet: {error}")
        return replace(robot, config=None), None
    return robot, config


def launch_words(file: str, robot: RobotFiles, **arguments: object) -> list[str]:
    """Return the command that starts a launch file: ros2 launch, or run_launch without ROS."""
    ros = shutil.which("ros2") and importlib.util.find_spec("ros2launch")
    start = ["ros2", "launch"] if ros else ["run_launch"]
    arguments = {
        "urdf": robot.urdf,
        "config": robot.config or "",
        "rviz": "false",
        **arguments,
    }
    return [
        *start,
        "com_bringup",
        file,
        *(f"{name}:={arguments[name]}" for name in arguments),
    ]


def lockstep_arguments(speed: float, *nodes: str) -> dict[str, object]:
    """Return the launch arguments of a simulation that waits for nodes: each run is the same.

    Simulated time goes `speed` times as fast as real time at most.
    """
    return {
        "lockstep": "true",
        "lockstep_nodes": list(nodes),
        "use_sim_time": "true",
        "input_timeout": 60.0,
        "real_time_factor": speed,
    }


def listen(
    command: Sequence[str],
    make_monitor: Callable[[], Monitor],
    times: Times,
    what: str,
    options: argparse.Namespace,
    meanwhile: Callable[[], object] = lambda: None,
) -> Monitor:
    """Start a launch, show and record what arrives, stop it; return the node with its recording.

    What is shown begins with the robot's name and a colon. As soon as the recording begins,
    meanwhile is called. RunError: no data came, or it stopped coming.
    """
    domain = os.environ["ROS_DOMAIN_ID"] = str(other_domain_id())
    options.output.mkdir(parents=True, exist_ok=True)
    log = options.output / "launch.log"
    print(f"{what}; ROS_DOMAIN_ID {domain}, log {log}", flush=True)
    with launched([*command, *viewer_arguments(options)], log) as launch:
        return _follow(launch, make_monitor, times, what, options, meanwhile)


@dataclass(frozen=True)
class AheadLaunch:
    """A launch that runs in a domain of its own, before anybody listens to it.

    Attributes:
        launch: its programs.
        domain_id: of the domain.
        viewer: command that starts a viewer in it.
    """

    launch: Background
    domain_id: int
    viewer: Sequence[str]

    @classmethod
    @contextmanager
    def start(
        cls, command: Sequence[str], robot: RobotFiles, log: Path
    ) -> Iterator["AheadLaunch"]:
        """Start a launch with a robot, after which others go first; it is stopped in the end."""
        domain_id = other_domain_id()
        only = {"simulation": "false", "sesc": "false", "state_publisher": "false"}
        viewer = launch_words("robot.launch.xml", robot, use_sim_time="true", **only)
        command = ["nice", *command]
        with Background(command, log, in_domain(domain_id)) as launch:
            yield cls(launch, domain_id, viewer)

    def listen(
        self,
        make_monitor: Callable[[], Monitor],
        times: Times,
        what: str,
        options: argparse.Namespace,
    ) -> Monitor:
        """Show and record what arrives from now on, as the function listen; ask it to end."""
        print(
            f"{what}; ROS_DOMAIN_ID {self.domain_id}, log {self.launch.log}", flush=True
        )
        with ExitStack() as stack:
            if arguments := viewer_arguments(options):
                log, command = options.output / "viewer.log", [*self.viewer, *arguments]
                stack.enter_context(launched(command, log, self.domain_id))
            else:
                stack.enter_context(ros(self.domain_id))
            monitor = _follow(self.launch, make_monitor, times, what, options)
            self.launch.interrupt()
            return monitor


def viewer_arguments(options: argparse.Namespace) -> list[str]:
    """Return the arguments of a launch that start the viewer where it is wanted; say where."""
    if options.view == "off":
        return []
    if importlib.util.find_spec("viser") is None:
        print("no viewer: install viser>=1.1,<1.2 (pip), or say --view off", flush=True)
        return []
    port = next(port for port in range(8080, 8180) if _is_free(port))
    token = secrets.token_urlsafe(16)
    print(f"viewer: http://127.0.0.1:{port}/?token={token}", flush=True)
    return ["viewer:=true", f"viewer_port:={port}", f"viewer_token:={token}"]


def _follow(
    launch: Background,
    make_monitor: Callable[[], Monitor],
    times: Times,
    what: str,
    options: argparse.Namespace,
    meanwhile: Callable[[], object] = lambda: None,
) -> Monitor:
    """Show and record what a launch publishes; return the node with its recording."""
    monitor = make_monitor()
    title = what.partition(":")[0]
    view = LiveView(title, times.record, Console())
    record(monitor, launch, times, view, meanwhile)
    if options.view == "stay":
        print("the viewer stays until Ctrl-C", flush=True)
        monitor.release()
        with suppress(KeyboardInterrupt):
            while launch.exit_code is None:
                time.sleep(0.2)
    return monitor


def _is_free(port: int) -> bool:
    with socket.socket() as taken, suppress(OSError):
        # As servers do: a launch that has just ended had the port, and a page waits for the next.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        return True
    return False


LABELS = {
    "messages": ("messages on com", ""),
    "truths_matched": ("samples compared with the simulator's truth", ""),
    "p50_ms": ("latency from joint_states to com, median", "ms"),
    "p99_ms": ("the same, 99 % of messages below", "ms"),
    "rank": ("combinations of masses and CoMs that the postures determine", ""),
    "captured": ("postures captured", ""),
    "postures": ("other postures, in which the CoM is compared", ""),
    "com_std_mm": ("standard deviation of the corrected CoM", "mm"),
}
"""What figures of demos are, and their units, where their names do not say it."""

UNITS = ("mm", "ms", "kg", "hz", "deg", "percent", "m", "s")
"""Units that a figure's name may end with."""

SPELT = {
    "com": "CoM",
    "rms": "RMS",
    "hz": "Hz",
    "percent": "%",
    "urdf": "URDF",
    "zmp": "ZMP",
}


def label(name: str) -> tuple[str, str]:
    """Return what a figure of a demo is in words, and its unit: com_error_mm -> CoM error, mm."""
    if name in LABELS:
        return LABELS[name]
    words = name.split("_")
    unit = words.pop() if len(words) > 1 and words[-1] in UNITS else ""
    return " ".join(SPELT.get(word, word) for word in words), SPELT.get(unit, unit)


def finish(
    figures: Mapping[str, object],
    path: Path,
    check: Callable[[], None],
    verdict: str,
    then: str,
    title: str,
) -> None:
    """Write a page with what a run has shown; print its verdict and its figures as one JSON line.

    Args:
        figures: Of the run; those that end with .png are pictures.
        path: Of the JSON file; the page is beside it.
        check: Raises RunError where the run has failed, which the page's first sentence says, too.
        verdict: The first sentence of the page otherwise; {names} of figures are filled in.
        then: What to do next; `commands` stand in backticks.
        title: Of the page, in words.
    """
    taken, page = os.environ.get("COM_SETUP_S", ""), path.with_suffix(".html")
    problem: RunError | None = None
    try:
        check()
        verdict = verdict.format_map(figures)
    except RunError as error:
        problem, verdict = error, f"Failed: {error}."
    pictures = {
        k: Path(v)
        for k, v in figures.items()
        if isinstance(v, str) and v[-4:] == ".png"
    }
    texts = {
        k: v for k, v in figures.items() if isinstance(v, str) and k not in pictures
    }
    numbers = [
        (words, UNKNOWN if value is None else _shown(value), unit)
        for name, value in figures.items()
        if not isinstance(value, str)
        for words, unit in [label(name)]
    ]
    shown = [
        image(path.read_bytes(), label(name)[0]) for name, path in pictures.items()
    ]
    shown.append(table(("figure", "value", "unit"), numbers, words=1))
    # Sentences and long names of files would make the column of the numbers as wide.
    shown.append(bullets(f"{label(name)[0]}: {text}" for name, text in texts.items()))
    page.write_text(report(title, verdict, *shown, then=[then], failed=bool(problem)))
    print(verdict)
    print(f"report: {page}\nnext: {then.replace('`', '')}")
    written = {
        **figures,
        "report": str(page),
        "setup_s": float(taken) if taken else None,
    }
    path.write_text(json.dumps(written) + "\n")
    print(json.dumps(written))
    if problem:
        raise problem


def _shown(value: object) -> object:
    """Return a value as a page shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return float(f"{value:.4g}") if isinstance(value, float) else value


def run_demo(
    show: Callable[[argparse.Namespace], None],
    command_line: Callable[[], DemoParser],
    words: Sequence[str] | None = None,
) -> int:
    """Show; return 0, 2 for a failed run or a wrong command, 130 for Ctrl-C or SIGTERM."""
    options = command_line().parse_args(words)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # what was started is stopped
    try:
        show(options)
    except (ComModelError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("demo: interrupted, everything is stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0
