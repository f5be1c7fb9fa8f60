"""Walks of com_identification: recorded while the robot walks, analysed meanwhile, identified.

~/record_walk (std_srvs/SetBool) begins and ends a recording of joint_states and imu as received,
into bags walk_001, ... in the storage directory, a file each CHUNK s. The information of the
files so far and what to record next is published. ~/identify_walk is an action of JobServices.
~/check_up (std_srvs/Trigger) says why a robot leans or drifts that sways, or trots, in the newest
recording.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.subscription import Subscription
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header
from std_srvs.srv import SetBool, Trigger

from com_bags import append_messages
from com_identification import background
from com_identification.background import BackgroundJob, Fill, Task, WalkReader
from com_identification.exceptions import IdentificationError, StoreError
from com_identification.nodes.identification_conversions import numpy_to_walk_recording
from com_identification.nodes.identification_session import Parameters, Session
from com_msgs.msg import WalkRecording
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.jobs import DeferredService, Reply
from com_ros.qos import LATCHED, stream
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode

MAX_CHUNK = 100_000  # messages that wait to be written
CHUNK = 10.0  # s of a file: what a crash loses at most


class WalkServices:
    """Records, analyses and identifies walks on request.

    Args:
        node: that offers the service.
        session: returns the current session, or raises IdentificationError.
        on_found: called with an accepted WalkResult and its bags.
    """

    def __init__(
        self,
        node: RobotNode[Parameters],
        session: Callable[[], Session],
        on_found: Callable[[Any, Sequence[Path]], None],
    ) -> None:
        self._node, self._session, self._on_found = node, session, on_found
        self._files, self._jobs = node.background_jobs(), node.background_jobs()
        topic = "identification/walk_recording"
        self._publisher = node.create_publisher(WalkRecording, topic, LATCHED)
        kinds = {
            "joint_states": "sensor_msgs/msg/JointState",
            "imu": "sensor_msgs/msg/Imu",
        }
        self._types = {
            node.resolve_topic_name(topic): kind for topic, kind in kinds.items()
        }
        self._subscriptions: list[Subscription] = []  # while it records
        self._messages: list[tuple[str, int, bytes]] = []
        self._path = Path()  # of the newest recording
        self._begun_ns = self._chunk_ns = self._newest_ns = 0
        self._problem = self._unused = ""  # of the recording, of its analysis
        self._frame, self._published = "", 0.0
        self._job: BackgroundJob | None = None
        self._check: BackgroundJob | None = None
        self.restart()
        DeferredService(node, SetBool, "~/record_walk", self._on_request)
        DeferredService(node, Trigger, "~/check_up", self._on_check_up)

    def restart(self) -> None:
        """Ends the recording and drops its analysis, as another robot follows."""
        self._end()
        self._cancel()
        self._made: list[Path] = []  # bags of this robot
        self._waiting: list[Path] = []  # files to analyse
        self._found: tuple[Any, ...] = (None, None)  # information and advice
        self._analysed = 0.0
        self._publish()

    def close(self) -> None:
        """Writes the messages that are left, and ends the computations."""
        self._cancel()
        self._files.close()
        if self._messages:
            with suppress(OSError):
                append_messages(self._path, self._types, self._messages)

    def _cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()
        self._job = None
        if self._check is not None:
            self._check.cancel()

    def _clock_ns(self) -> int:
        """The node's time, which may be simulated; the time of recorded messages."""
        return int(self._node.get_clock().now().nanoseconds)

    # --- recording ---------------------------------------------------------------------------
    def _on_request(self, request: SetBool.Request, reply: Reply) -> None:
        if request.data:
            session = self._session()
            self._frame, path = session.frame, self._begin(self._folder(session))
            reply(SetBool.Response(success=True, message=f"recording into {path}"))
            return
        if not self._subscriptions:
            raise IdentificationError("nothing is being recorded")
        self._end()
        self._files.do(lambda: None, lambda _: reply(self._answer()))

    def _folder(self, session: Session) -> Path:
        """Folder of the recordings; refuses to begin while a walk is being recorded."""
        if self._subscriptions:
            raise IdentificationError("a walk is being recorded: end that first")
        if session.path is None:
            raise StoreError(
                "walks cannot be stored: set the parameter storage_directory"
            )
        return session.path.parent

    def _begin(self, folder: Path) -> Path:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made: {error.strerror}") from error
        number = 1
        while (path := folder / f"walk_{number:03d}").exists():
            number += 1
        self._path, self._problem, self._unused = path, "", ""
        self._begun_ns = self._chunk_ns = self._newest_ns = self._clock_ns()
        for name, kind in zip(self._types, (JointState, Imu), strict=True):
            keep, profile = partial(self._store, name), stream(EVERY_SAMPLE)
            made = self._node.create_subscription(kind, name, keep, profile, raw=True)
            self._subscriptions.append(made)
        self._publish()
        return path

    def _store(self, name: str, message: bytes) -> None:
        """Stores a serialized message."""
        self._newest_ns = self._clock_ns()
        self._messages.append((name, self._newest_ns, message))
        full = len(self._messages) >= MAX_CHUNK
        if full and self._files.busy:
            self._end()
            self._problem = "the disk is too slow for the recording: it was ended"
        elif full or not 0.0 <= self._newest_ns - self._chunk_ns < CHUNK * NS_PER_S:
            self._flush()

    def _flush(self) -> None:
        """Passes the stored messages to the thread that writes."""
        messages, self._messages, self._chunk_ns = self._messages, [], self._newest_ns
        if messages:
            self._files.do(
                partial(append_messages, self._path, self._types, messages),
                self._written,
            )

    def _written(self, file: Path | Exception) -> None:
        if isinstance(file, Exception):
            self._end()
            self._problem = (
                f"the recording cannot be written: {file}. Free space on the disk"
            )
        else:
            self._made += [file.parent] if file.parent not in self._made else []
            self._waiting.append(file)

    def _end(self) -> None:
        """Ends the recording; what is left of it is passed to the thread that writes."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        if self._subscriptions:
            self._flush()
        self._subscriptions = []

    # --- analysis ----------------------------------------------------------------------------
    def serve(self) -> None:
        """Ends recordings that take too long, and begins the analysis.

        Called by a timer.
        """
        seconds = (self._clock_ns() - self._begun_ns) / NS_PER_S
        if self._subscriptions and seconds >= self._node.parameters.walk_seconds:
            self._end()
            self._problem = f"ended after walk_seconds, {seconds:.0f} s"
        if self._job is None and self._waiting:
            files, self._waiting = self._waiting, []
            walker, before = self._walker(self._session()), self._found[0]
            task = partial(background.analyse_walk, walker, files, before)
            self._job = BackgroundJob(task)
            self._jobs.do(self._job.run, partial(self._use_analysis, self._job))
        # once a second
        if self._subscriptions and time.monotonic() - self._published > 1.0:
            self._publish()

    def _use_analysis(self, job: BackgroundJob, found: Any) -> None:
        if job is not self._job:
            return  # another robot has followed
        self._job, self._unused = None, str(found)
        if not isinstance(found, Exception):
            information, advice, more, self._unused = found
            self._found = information, advice or self._found[1]
            self._analysed += more
        self._publish()

    def _answer(self) -> SetBool.Response:
        self._publish()
        if self._path not in self._made:
            return SetBool.Response(
                message=self._problem or "neither joint_states nor imu came"
            )
        problem = self._problem or self._unused
        return SetBool.Response(
            success=True,
            message=f"{self._seconds:.0f} s in {self._path}. {problem}".rstrip(),
        )

    @property
    def _seconds(self) -> float:
        return (self._newest_ns - self._begun_ns) / NS_PER_S

    def _publish(self) -> None:
        self._published = time.monotonic()
        stamp = ns_to_stamp(self._clock_ns())
        msg = numpy_to_walk_recording(
            self._found[1],
            header=Header(stamp=stamp, frame_id=self._frame),
            recording=bool(self._subscriptions),
            problem=self._problem or self._unused,
            seconds=self._seconds,
            analysed=self._analysed,
            path=str(self._path) if self._begun_ns else "",
            max_seconds=self._node.parameters.walk_seconds,
        )
        self._publisher.publish(msg)

    # --- check-up ----------------------------------------------------------------------------
    def _on_check_up(self, _: Trigger.Request, reply: Reply) -> None:
        if self._check is not None:
            raise IdentificationError("a check-up is running: wait for its end")
        if self._subscriptions or self._files.busy:
            raise IdentificationError("end the recording first: record_walk false")
        if not self._made:
            raise IdentificationError(
                "nothing is recorded: let the robot sway on all feet for a minute (sway_tour) "
                "between record_walk true and false"
            )
        walker = self._walker(self._session())
        task = partial(background.check_up, walker, self._made[-1:])

        def answer(found: str | Exception) -> None:
            self._check = None
            success = not isinstance(found, Exception)
            reply(Trigger.Response(success=success, message=str(found)))

        self._check = BackgroundJob(task)
        self._jobs.do(self._check.run, answer)

    # --- identification ----------------------------------------------------------------------
    def begin_identification(self, session: Session, request: Any) -> tuple[Task, Fill]:
        """Makes the task of ~/identify_walk.

        Args:
            session: of the robot.
            request: the action's goal.

        Returns:
            The task, and the function that fills the action's result.

        Raises:
            IdentificationError: there is no such recording, or the mass is no mass.
        """
        folder = self._folder(session)
        bags = [folder / Path(name).name for name in request.recordings] or self._made
        for bag in bags:
            if not bag.is_dir():
                names = ", ".join(
                    sorted(path.name for path in folder.glob("walk_[0-9]*"))
                )
                raise IdentificationError(
                    f"no {bag.name!r}: there are {names or 'none'}"
                )
        if not bags:
            raise IdentificationError(
                "no walk is recorded: call record_walk, or name recordings"
            )
        if not (0.0 <= request.mass < 1e5 and 0.0 <= request.mass_std < 1e5):
            raise IdentificationError("mass, mass_std: expected kg, 0 or more")
        postures = (
            tuple(session.select_postures(()).values()) if request.postures else ()
        )

        def fill(value: Any, answer: Any) -> None:
            from com_identification.walking.report import summary  # loads for a second

            walk, answer.files = value
            answer.tests = [f"{gate.name}: {gate.text}" for gate in walk.gates]
            answer.success, answer.message = walk.accepted, summary(walk)
            if walk.accepted:  # else nothing is published from it
                session.walk = walk
                answer.result = session.result_message()
                self._on_found(walk, bags)

        walker, where = self._walker(session), folder / "walk_result"
        weighed, standing = (
            (request.mass, request.mass_std),
            (postures, session.settings),
        )
        task = partial(
            background.identify_walk, walker, tuple(bags), weighed, standing, where
        )
        return task, fill

    def _walker(self, session: Session) -> WalkReader:
        p, root = self._node.parameters, session.model.root_link
        return WalkReader(
            session.model, p.robot_config, p.imu_link or session.config.imu_link or root
        )
