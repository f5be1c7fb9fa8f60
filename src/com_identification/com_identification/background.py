"""The long computations of a live identification, in a process separate from the node.

A thread would delay the callbacks, because the computations are many small steps in Python. A
process can also be ended at any time, which is how it is cancelled; it writes nothing.
"""

import os
import resource
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from com_identification.exceptions import IdentificationError
from com_identification.planning.planner import PlannedPosture, PosturePlanner
from com_identification.regression.identify import identify
from com_identification.regression.postures import Posture
from com_identification.regression.priors import Evidence
from com_identification.regression.result import Identification, Progress
from com_identification.settings import IdentificationSettings
from com_identification.store.results import write_whole
from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.exceptions import ComModelError

if TYPE_CHECKING:  # their import takes as long as all others
    from com_bags import WalkLog
    from com_identification.walking.advice import Advice
    from com_identification.walking.identify import WalkResult


Task = Callable[[Progress], Any]
"""A computation, which is sent to the other process, and its result back; it may raise
ComModelError."""


Fill = Callable[[Any, Any], None]
"""Puts what a task returned into an action's result."""


class BackgroundJob:
    """A task that runs in another process, which a thread follows: see com_ros.jobs.

    Args:
        task: the computation; it and its result are pickled.

    Attributes:
        progress: fraction of the time that is over, 0 to 1.
        step: the current step in words, with the remaining time.
    """

    def __init__(self, task: Task) -> None:
        self.progress, self.step = 0.0, "starting"
        self._task, self._cancelled = task, False
        self._process: subprocess.Popen[bytes] | None = None

    def cancel(self) -> None:
        """Ends the computation at once, also one that has not begun."""
        self._cancelled = True
        if self._process is not None:  # else run() looks after it has set it
            self._process.kill()

    def run(self) -> Any:
        """Starts the process and follows it to its end.

        Not by multiprocessing: a child of that prints a traceback when its parent is killed while
        it starts, and it runs the parent's main module again. Starting takes as long as the other
        process needs to load its libraries.

        Returns:
            What the task returned.

        Raises:
            IdentificationError: it did not finish; says why and how to fix it.
            RuntimeError: a bug of the task, whose traceback is on stderr.
        """
        (own, other), found = Pipe(), None
        script = f"from {__name__} import work; work({other.fileno()})"
        path = os.pathsep.join(filter(None, sys.path))
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", script],
                pass_fds=[other.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C in a terminal does not reach it
            )
        except OSError as error:
            raise IdentificationError(
                f"no process could be started: {error}"
            ) from error
        other.close()
        with own:
            self._process = process
            if self._cancelled:
                process.kill()
            with suppress(EOFError, OSError):
                own.send(self._task)
                while (message := own.recv()) is not None:
                    self.progress, self.step = message
                found = own.recv()
            process.wait()
        if self._cancelled:
            raise IdentificationError("cancelled")
        if found is None:
            raise IdentificationError(
                f"the computation ended with code {process.returncode} before it was done: "
                "look for a lack of memory"
            )
        if isinstance(found, Exception):
            raise found
        return found


def work(descriptor: int) -> None:
    """Runs a task in the other process; exits silently when the parent process ends.

    Args:
        descriptor: file descriptor of the pipe to the parent process.
    """
    connection = Connection(descriptor)
    with _end_with_parent():
        task = connection.recv()
    threading.Thread(target=_watch, args=(connection,), daemon=True).start()
    # nodes that follow sensors go first; no message is received here
    os.nice(5)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))

    def send(message: object) -> None:
        with _end_with_parent():
            connection.send(message)

    started = time.monotonic()

    def report(fraction: float, step: str) -> None:
        left = time_left(fraction, time.monotonic() - started)
        send((float(fraction), step + left))

    try:
        found = task(report)
    except ComModelError as error:
        found = IdentificationError(str(error))
    except Exception as error:
        found = RuntimeError(f"a bug: {error!r}")
        traceback.print_exc()
    send(None)  # no more progress
    send(found)


def _watch(connection: Connection) -> None:
    with _end_with_parent():
        connection.recv()  # nothing else is sent: the parent has ended


@contextmanager
def _end_with_parent() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        os._exit(1)


def time_left(fraction: float, elapsed: float) -> str:
    """Returns the remaining time in words; empty where it cannot be estimated.

    Args:
        fraction: 0 to 1, of the time that is over.
        elapsed: s, since the start.
    """
    # before 5 % are done, no remaining time is estimated
    if not 0.05 <= fraction < 1.0:
        return ""
    left = 5 * round(elapsed * (1.0 - fraction) / fraction / 5.0)
    return f", about {left} s left" if left else ""


def identify_links(
    model: RobotModel,
    feet: Sequence[Foot],
    rest: Array,
    settings: IdentificationSettings,
    postures: Sequence[Posture],
    evidence: Evidence | None,
    progress: Progress,
) -> tuple[Identification, tuple[PlannedPosture, ...]]:
    """Identifies all links; with redundant postures also proposes one that would help.

    Args:
        model: the robot, n joints.
        feet: its feet.
        rest: (n,) rad or m, a posture without self-collision.
        settings: of the identification.
        postures: readings.
        evidence: estimates of another method; None: none.
        progress: called with the fraction done, 0 to 1, and the step in words.

    Returns:
        The result, and at most one proposed posture.
    """
    found = identify(
        model, feet, postures, settings, progress=progress, evidence=evidence
    )
    if not found.redundancy:
        return found, ()

    def report(fraction: float, step: str) -> None:
        progress(1.0, f"finding a posture that would help: {step}")

    # 60 candidates suffice for the single posture of a hint
    plan = replace(settings.plan, candidates=min(60, settings.plan.candidates))
    few = replace(settings, plan=plan)
    try:
        return found, propose_postures(model, feet, rest, few, postures, 1, report)
    except IdentificationError:
        return found, ()  # the problem is reported without a hint


def propose_postures(
    model: RobotModel,
    feet: Sequence[Foot],
    rest: Array,
    settings: IdentificationSettings,
    postures: Sequence[Posture],
    count: int,
    progress: Progress,
) -> tuple[PlannedPosture, ...]:
    """Proposes postures in addition to those captured.

    Args:
        model: the robot, n joints.
        feet: its feet.
        rest: (n,) rad or m, a posture without self-collision.
        settings: of the identification.
        postures: those that were captured.
        count: how many to propose.
        progress: called with the fraction done, 0 to 1, and the step in words.
    """
    planner = PosturePlanner(model, feet, rest, settings)
    return planner.propose(count, postures, progress=progress)


@dataclass(frozen=True)
class WalkReader:
    """Reads bags with joint states and one IMU of a robot.

    Attributes:
        model: the robot.
        config_path: of its configuration.
        imu_link: the configuration's, or another.
    """

    model: RobotModel
    config_path: str
    imu_link: str

    @property
    def config(self) -> RobotConfig:
        """Its configuration, with imu_link."""
        return replace(RobotConfig.from_file(self.config_path), imu_link=self.imu_link)

    def read(self, path: Path) -> "WalkLog":
        """Reads a bag.

        Args:
            path: of the bag.

        Raises:
            BagError: something is missing; says what.
        """
        from com_bags import Bag, SensorReader, TopicRequest, find_topics, read_walk

        with Bag(path) as bag:
            topics = find_topics(bag.topics(), (), TopicRequest(), True, str(path))
            return read_walk(SensorReader(bag, self.model, (), topics, self.imu_link))


def analyse_walk(
    walker: WalkReader,
    files: Sequence[Path],
    information: Array | None,
    progress: Progress,
) -> "tuple[Array | None, Advice | None, float, str]":
    """Adds parts of a recording to the information of the parts before.

    Args:
        walker: reads the bags.
        files: parts of a recording.
        information: (P, P) of the parts before; None: there are none.
        progress: called before each part with the fraction done, 0 to 1, and the step in words.

    Returns:
        The information (P, P), the advice of the newest usable part, the duration of the usable
        parts, s, and why others were not usable ("": all were).
    """
    from com_identification.walking.advice import analyse

    advice, seconds, problem = None, 0.0, ""
    for number, path in enumerate(files):
        progress(number / len(files), f"analysing part {number + 1} of {len(files)}")
        try:
            log = walker.read(path)
            information, advice = analyse(log, walker.model, walker.config, information)
            seconds += float(log.time[-1] - log.time[0])
        except ComModelError as error:
            problem = str(error)
    return information, advice, seconds, problem


def identify_walk(
    walker: WalkReader,
    bags: Sequence[Path],
    weighed: tuple[float, float],
    standing: tuple[Sequence[Posture], IdentificationSettings],
    folder: Path,
    progress: Progress,
) -> "tuple[WalkResult, list[str]]":
    """Identifies from bags of walking and resting postures, and writes the result files.

    Args:
        walker: reads the bags.
        bags: recordings of walking.
        weighed: kg, mass of the robot and its standard deviation; 0: not weighed, or the usual
            standard deviation.
        standing: resting postures, and the settings for them.
        folder: where the files are written.
        progress: called with the fraction done, 0 to 1, and the step in words.

    Returns:
        The result, without the information of its rows, which is large; and the paths of the
        files.
    """
    from com_identification.walking.combination import fuse
    from com_identification.walking.identify import identify_walking
    from com_identification.walking.log import walking_parts
    from com_identification.walking.posterior import NAMES, result_files
    from com_identification.walking.report import report_page
    from com_identification.walking.unknowns import Scale

    progress(0.1, "reading the recordings")
    logs = [part for bag in bags for part in walking_parts(walker.read(bag))]
    progress(0.3, "identifying from walking")
    scale = Scale(weighed[0] or None, weighed[1] or Scale.std)
    result = identify_walking(logs, walker.model, walker.config, scale)
    if standing[0]:
        progress(0.8, f"with {len(standing[0])} resting postures")
        result = fuse(result, walker.config.feet, *standing)
    folder.mkdir(exist_ok=True)
    files = result_files(result, report_page(result))
    for name in NAMES:
        (folder / name).unlink(missing_ok=True)
    paths = [write_whole(folder / name, content) for name, content in files.items()]
    small = replace(result.fit, information=result.fit.information[:0])
    return replace(result, fit=small), list(map(str, paths))


def check_up(walker: WalkReader, bags: Sequence[Path], progress: Progress) -> str:
    """Finds why a robot leans or drifts.

    Args:
        walker: reads the bags.
        bags: recordings of swaying on all feet, or of a trotting quadruped.
        progress: called with the fraction done, 0 to 1, and the step in words.

    Returns:
        The answer in a sentence, and the probabilities of all causes.

    Raises:
        ComModelError: the recordings cannot be read or used; says why.
    """
    from com_identification.slow import checkup

    progress(0.1, "reading the recordings")
    logs = [walker.read(bag) for bag in bags]
    progress(0.3, "comparing causes")
    found = checkup.check_up(logs, walker.model, walker.config)
    causes = [f"{each.text} {100.0 * each.probability:.1f} %" for each in found.causes]
    return f"{found.text}. All causes: {', '.join(causes)}, none {100.0 * found.none:.1f} %"
