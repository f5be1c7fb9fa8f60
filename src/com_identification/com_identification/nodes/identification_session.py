"""The identification of one robot: model, recorder, postures on disk, result."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from geometry_msgs.msg import PointStamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import Imu
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from com_identification.capture.com_evidence import walk_posture
from com_identification.capture.recorder import PostureRecorder
from com_identification.exceptions import IdentificationError, StoreError
from com_identification.feet.feet_reading import ModelCheck, ModelCheckResult
from com_identification.nodes import identification_conversions as conversions
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.regression.priors import Evidence
from com_identification.regression.result import Identification
from com_identification.settings import IdentificationSettings
from com_identification.store.store import SUFFIX, PostureStore
from com_model import ConfigError, RobotConfig, RobotModel, Sesc, UnknownNameError
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_model.robot_config import wrench_signs
from com_model.text import listing
from com_msgs.msg import CapturedPosture, Culprit, IdentificationResult, WalkState
from com_ros.conversions import (
    NS_PER_S,
    ns_to_stamp,
    point_to_numpy,
    stamp_to_ns,
    wrench_to_numpy,
)
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.inputs import imu_to_values
from com_ros.joint_input import JointSample
from com_ros.markers import BLUE, RED, MarkerMaker
from com_ros.parameters import (
    AssumedJoints,
    FramePrefix,
    JointTimeout,
    RobotParameters,
    declare,
    live_parameter,
    parameter,
)

if TYPE_CHECKING:  # they load for a second
    from com_identification.walking.identify import WalkResult


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, AssumedJoints, FramePrefix):
    """Parameters of com_identification, in addition to those of IdentificationSettings."""

    settings: str = parameter(
        "",
        "path of settings (YAML) of the identification; empty: only the parameters count",
    )
    urdf_file: str = parameter(
        "",
        "path of the URDF, to find the meshes with which proposed postures must not collide; "
        "empty: only meshes of installed packages",
    )
    storage_directory: str = parameter(
        "", "folder for postures, created if missing; empty: no posture can be captured"
    )
    storage_name: str = parameter("postures", "name of the posture file, without .db")
    export_directory: str = parameter(
        "", "existing folder for corrected URDFs; empty: none can be written"
    )
    walk_seconds: float = parameter(
        600.0, "s after which record_walk ends a recording of walking", (10.0, 86400.0)
    )
    auto_capture: bool = live_parameter(
        False, "capture each new posture in which the robot is stationary"
    )
    health_record: str = parameter(
        "",
        "record of the robot (SQLite file or URL, see com_health) that results are added to and "
        "the robot is compared with; empty: none",
    )
    robot_serial: str = parameter("", "serial number of the robot, for the record")
    end_of_stream: float = parameter(
        2.0,
        "s of real time without any reading, after which a recording has ended: with auto_capture "
        "the readings of the last posture are used",
        (0.1, 3600.0),
    )
    capture_timeout: float = live_parameter(
        30.0, "s of real time to wait until the robot is stationary", (0.1, 3600.0)
    )
    imu_link: str = parameter(
        "", "link that carries the IMU; empty: robot_config's, else the root link"
    )
    state_rate_hz: float = parameter(
        5.0, "1/s, rate of identification/state", (0.1, 100.0)
    )
    check_rate_hz: float = parameter(
        2.0,
        "1/s, rate of identification/model_check and of the markers; 0: none",
        (0.0, 100.0),
    )
    com_tolerance: float = parameter(
        0.003,
        "m, error of the model's centre of mass above which it is reported",
        (0.0, 10.0),
    )
    mass_tolerance: float = parameter(
        0.02,
        "error of the model's mass, as a fraction, above which it is reported",
        (0.0, 10.0),
    )


def declare_settings(node: Node, path: str) -> IdentificationSettings:
    """Declares noise.force, capture.settle_time, ...; a given parameter overrides the file.

    Args:
        node: whose parameters they are.
        path: of a YAML file; empty: the defaults.

    Raises:
        ConfigError: the file is wrong.
        ParameterError: a parameter is wrong; ComRosError where only their combination is.
    """
    base = IdentificationSettings.from_file(path) if path else IdentificationSettings()
    try:
        return declare(node, IdentificationSettings, defaults=base)
    except ConfigError as error:
        raise ComRosError(f"parameters of the node: {error}") from error


class SensorBuffer:
    """Readings that were not handed to the recorder yet.

    A message costs a few appends; the arithmetic is done once for all of a block.

    Args:
        recorder: of postures.
        feet: their number.
        imu: frame of the IMU's link; None: no IMU is used.

    Attributes:
        q: (n,) rad or m, newest joint positions; None before the first.
        problem: what is wrong with the newest joint_states; else empty.
    """

    def __init__(
        self, recorder: PostureRecorder, feet: int, imu: LinkFrames | None
    ) -> None:
        self._recorder, self._imu = recorder, imu
        # stamps and values: of the joints, of each foot, of the direction against gravity
        self._streams: list[list[tuple[int, Array]]] = [[] for _ in range(feet + 2)]
        self._newest = [0] * (feet + 2)
        self._received_at = time.monotonic()
        self.q: Array | None = None
        self.problem = ""

    @property
    def newest_ns(self) -> int:
        """Stamp of the newest joint_states; 0: none yet."""
        return self._newest[0]

    @property
    def now_ns(self) -> int | None:
        """The newest stamp and the real time since then, ns; None before the first reading.

        Each reading sets it, so that streams of a recording that is played slowly do not time out.
        """
        newest = max(self._newest)
        waited_ns = int((time.monotonic() - self._received_at) * NS_PER_S)
        return newest + waited_ns if newest else None

    def add_joints(self, sample: JointSample) -> None:
        """Adds joint states, or stores their error as `problem`.

        Args:
            sample: of all joints.
        """
        self.problem = sample.error
        if sample.error:
            return
        self.q = sample.position
        self._add(0, sample.time_ns, np.concatenate((sample.position, sample.effort)))

    def add_wrench(self, msg: WrenchStamped, time_ns: int, foot: int) -> None:
        """Adds a reading of a foot's sensor, as read.

        Args:
            msg: the message.
            time_ns: ns, its stamp.
            foot: its index.
        """
        self._add(1 + foot, time_ns, wrench_to_numpy(msg.wrench))

    def add_imu(self, msg: Imu, time_ns: int) -> None:
        """Adds the direction against gravity in the axes of the IMU.

        Without orientation it is that of the acceleration, which is right for a stationary
        robot.

        Args:
            msg: the message.
            time_ns: ns, its stamp.
        """
        values = imu_to_values(msg)
        up = values.R_world_imu[2]
        if not np.isfinite(up).all():
            with np.errstate(invalid="ignore"):  # NaN where it is 0 or not known
                up = values.specific_force / np.linalg.norm(values.specific_force)
        self._add(-1, time_ns, up)

    def hand_over(self) -> None:
        """Adds all readings to the recorder, and clears the buffer."""
        if any(self._streams):
            self._received_at = time.monotonic()
        for i, stream in enumerate(self._streams):
            if not stream:
                continue
            times, values = (np.array(column) for column in zip(*stream, strict=True))
            stream.clear()
            if i == 0:
                self._recorder.add_joints(times, *np.hsplit(values, 2))
            elif i < len(self._streams) - 1:
                self._recorder.add_wrenches(i - 1, times, values)
            elif self._imu is not None and self.q is not None:
                R_root_imu = self._imu.poses(self.q)[0][0]
                self._recorder.add_up(times, values @ R_root_imu.T)

    def _add(self, index: int, time_ns: int, values: Array) -> None:
        self._newest[index] = time_ns
        if len(self._streams[index]) < 100_000:
            self._streams[index].append((time_ns, values))


@dataclass(frozen=True)
class Result:
    """A result from postures.

    Attributes:
        identification: the result.
        ids: of the postures that it was identified from.
    """

    identification: Identification
    ids: tuple[int, ...]


class Session:
    """The identification of one robot; each robot description starts a new one.

    Args:
        model: of the robot.
        config: its feet and IMU.
        settings: of the identification.
        p: parameters of the node.

    Attributes:
        recorder: finds postures of the stationary robot.
        buffer: collects its readings.
        check: compares the model with the feet.
        frame: root link with the prefix.
        path: of the file of postures; None: postures are not stored.
        result: the latest one from postures alone.
        walk: the latest one from walking; None: `result` is newer.
        problem: why the postures cannot be stored; empty: they can.
        opened: the postures on disk.
        causes: those that last, by the last message of a diagnosis; None: there was none.
        walk_state: the last message of gait/state; None: there was none.

    Raises:
        ConfigError: the settings do not fit the robot.
        ParameterError: imu_link is no link of the robot.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        settings: IdentificationSettings,
        p: Parameters,
    ) -> None:
        settings.check(model)
        feet, noise, gravity = config.feet, settings.noise, settings.fit.gravity
        self.model, self.config, self.settings = model, config, settings
        self.recorder = PostureRecorder(model, feet, settings)
        imu: LinkFrames | None = None
        if settings.fit.use_imu:
            link = p.imu_link or config.imu_link or model.root_link
            try:
                imu = LinkFrames(model, [link])
            except UnknownNameError as error:
                raise ParameterError("imu_link", link, str(error)) from None
            imu.poses(np.zeros(model.n_joints))  # compiles
        self.buffer = SensorBuffer(self.recorder, len(feet), imu)
        self.check = ModelCheck(
            model, feet, settings, p.com_tolerance, p.mass_tolerance
        )
        self.frame, self._prefix = p.frame_prefix + model.root_link, p.frame_prefix
        folder = p.storage_directory
        self.path = Path(folder) / f"{p.storage_name}{SUFFIX}" if folder else None
        self.result: Result | None = None
        self.walk: WalkResult | None = None
        self.problem, self.closed = "", False
        self.causes: list[Culprit] | None = None
        self.walk_state: WalkState | None = None
        self.opened: PostureStore | None = None
        self._described: dict[int, CapturedPosture] = {}
        self.observations = ObservationModel(model, feet, noise, gravity)
        self.sesc, self._frames = Sesc(model), LinkFrames(model, model.bodies.names)
        self.rest = config.nominal_posture(model)

    def add_known_com(self, msg: PointStamped) -> str:
        """Adds a position of the CoM by another source.

        Args:
            msg: without stamp: now; without frame: of the root link.

        Returns:
            Why it is not used; empty: it is.
        """
        link = msg.header.frame_id.removeprefix(self._prefix) or self.model.root_link
        if link not in self.model.link_names:
            return f"its frame_id {link!r} is no link; there are {listing(self.model.link_names)}"
        self.recorder.known_com.add(
            np.array([stamp_to_ns(msg.header.stamp) or self.buffer.newest_ns]),
            link,
            point_to_numpy(msg.point)[None],
        )
        return ""

    def evidence(self) -> tuple[Evidence | None, dict[int, Posture]]:
        """Returns estimates of the diagnosis, or else of the stabiliser as posture 0.

        Returns:
            Evidence of the diagnosis, or None; and the stabiliser's posture by its id, if any.

        Raises:
            IdentificationError: there is neither.
        """
        if self.causes is not None:
            return conversions.causes_to_evidence(
                self.causes, self.model, self.rest
            ), {}
        known = (
            self.model,
            self.config.feet,
            self.rest,
            self.settings.sensors,
            self.walk_state,
        )
        if self.walk_state is None or (posture := walk_posture(*known)) is None:
            raise IdentificationError(
                "there is no message on the topic diagnosis, and no CoM offset on gait/state: let "
                "the robot walk with humanoid_com_estimator, or ccgd_gait with stabiliser:=true"
            )
        return None, {0: posture}

    def diagnosed_zeros(self) -> dict[int, Array]:
        """Returns the wrench biases of feet that the diagnosis has estimated.

        Returns:
            (6,) N and N m, as read, by the index of the foot.
        """
        signs, frames = (
            wrench_signs(self.config.feet),
            [foot.frame for foot in self.config.feet],
        )
        zeros = [c for c in self.causes or () if c.kind == Culprit.WRENCH_ZERO]
        found = {frames.index(c.parts[0]): np.array(c.parameters) for c in zeros}
        return {foot: signs[foot, 0] * zero for foot, zero in found.items()}

    # --- storage -----------------------------------------------------------------------------
    @property
    def store(self) -> PostureStore:
        """The postures on disk, opened if they were not.

        Raises:
            StoreError: They cannot be opened; why is also stored as `problem`.
        """
        if self.opened is None:
            try:
                if self.path is None:
                    raise StoreError(
                        "postures cannot be stored: set the parameter storage_directory"
                    )
                self.opened = PostureStore(self.path, self.model, self.config.feet)
            except StoreError as error:
                self.problem = str(error)
                raise
            self.problem = ""
            self.recorder.set_bias(self.opened.bias)
        return self.opened

    def close(self) -> None:
        """Closes the file of postures, as another session takes its place."""
        self.closed = True
        if self.opened is not None:
            self.opened.close()
            self.opened = None

    def drop_results(self) -> None:
        """Drops the descriptions of stored postures, and the result."""
        self._described.clear()
        self.result = self.walk = None

    def stamp_ns(self, identity: int) -> int:
        """Returns when a posture was captured, ns; 0: not known.

        Args:
            identity: of the posture.
        """
        return 0 if self.opened is None else self.opened.stamps.get(identity, 0)

    def select_postures(self, ids: Iterable[int]) -> dict[int, Posture]:
        """Returns stored postures by id.

        Args:
            ids: of the postures; none: all.

        Raises:
            StoreError: an id does not exist (lists those that do), or the store cannot be
                opened.
            IdentificationError: no postures are stored.
        """
        postures = dict(self.store.postures)
        chosen = list(dict.fromkeys(ids))
        missing = [identity for identity in chosen if identity not in postures]
        if missing:
            valid = ", ".join(map(str, postures)) or "none"
            raise StoreError(f"no posture {missing[0]}: there are {valid}")
        if not postures:
            raise IdentificationError("no postures are stored: capture some first")
        return (
            {identity: postures[identity] for identity in chosen}
            if chosen
            else postures
        )

    # --- what is published ----------------------------------------------------------------------
    def result_message(self) -> IdentificationResult:
        """The latest result as a message, with the stamp of its newest posture."""
        if self.walk is not None:
            msg = conversions.numpy_to_walk_result(self.walk)
        elif self.result is None:
            msg = conversions.no_result(
                "nothing is identified yet: capture postures and call identify_links"
            )
        else:
            ids = self.result.ids
            msg = conversions.numpy_to_identification_result(
                self.result.identification, ids
            )
            msg.header.stamp = ns_to_stamp(max(map(self.stamp_ns, ids), default=0))
        msg.header.frame_id = self.frame
        msg.robot, msg.model_mass = self.model.name, self.model.mass
        return msg

    def markers(self, maker: MarkerMaker, check: ModelCheckResult) -> list[Marker]:
        """The model's CoM, the line by the feet, and the bodies' CoMs before and after.

        Args:
            maker: Makes markers with one header.
            check: The newest comparison with the feet.
        """
        q = self.buffer.q
        if q is None:
            return []
        markers = [maker.sphere("model_com", self.sesc.com(q), 0.03, RED)]
        if np.isfinite(check.measured).all():
            # a line of 1 m
            ends = [check.measured, check.measured + check.up]
            markers.append(maker.line("measured_com_line", ends, 0.004, BLUE))
            markers.append(
                maker.disc("measured_projection", ends[0], check.up, 0.04, BLUE)
            )
        if self.result is None:
            return markers
        found, (R, p) = self.result.identification, self._frames.poses(q)
        massive = [i for i in range(len(found.bodies)) if found.mass[i] > 0.0]
        before = np.array([p[i] + R[i] @ found.prior_com[i] for i in massive])
        grey, green = (0.5, 0.5, 0.5, 0.8), (0.1, 0.7, 0.25, 0.6)
        markers.append(maker.balls("com_before", before, 0.012, grey))
        for i in massive:
            spread: Array = R[i] @ np.diag(found.com_std[i] ** 2) @ R[i].T
            place, name = p[i] + R[i] @ found.com[i], f"com_after/{found.bodies[i]}"
            # ellipsoids of two standard deviations
            markers.append(maker.ellipsoid(name, place, spread, 2.0, green))
        return markers

    # --- postures ----------------------------------------------------------------------------
    def describe(self, identity: int, posture: Posture) -> CapturedPosture:
        """Returns a stored posture with the CoM by its feet as a message; computed once.

        Args:
            identity: of the posture.
            posture: its readings.
        """
        if identity not in self._described:
            feet = [foot.frame for foot in self.config.feet]
            loaded = self.observations.contacts.loaded(posture.wrenches)
            com = self.sesc.com(posture.q)
            check = self.check.update(posture)
            stamp = ns_to_stamp(self.stamp_ns(identity))
            self._described[identity] = conversions.numpy_to_captured_posture(
                posture,
                feet,
                loaded,
                check,
                com,
                id=identity,
                joint_names=list(self.model.joint_names),
                header=Header(stamp=stamp, frame_id=self.frame),
            )
        return self._described[identity]

    def describe_one(self) -> None:
        """Computes the description of one of the stored postures, ahead of a request."""
        stored = self.opened.postures if self.opened is not None else {}
        identity = next((i for i in stored if i not in self._described), None)
        if identity is not None:
            self.describe(identity, stored[identity])
