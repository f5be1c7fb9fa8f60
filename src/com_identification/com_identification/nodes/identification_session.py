"""The identification of one robot: model, recorder, postures on disk, result."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rclpy.node import Node

from com_identification.capture.recorder import PostureRecorder
from com_identification.exceptions import IdentificationError, StoreError
from com_identification.feet.model_check import ModelCheck
from com_identification.nodes.identification_conversions import numpy_to_captured_posture
from com_identification.nodes.sensor_buffer import SensorBuffer
from com_identification.regression.identify import Identification
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_identification.store.store import PostureStore
from com_model import RobotConfig, RobotModel, Sesc, UnknownNameError
from com_model.dynamics.link_frames import LinkFrames
from com_msgs.msg import CapturedPosture
from com_ros.conversions import ns_to_stamp
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.parameters import (
    AssumedJoints,
    FramePrefix,
    JointTimeout,
    RobotParameters,
    declare,
    live_parameter,
    parameter,
)


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, AssumedJoints, FramePrefix):
    """Parameters of the node; those of IdentificationSettings besides, see declare_settings."""

    settings: str = parameter(
        "", "path of settings (YAML) of the identification; empty: only the parameters count"
    )
    storage_directory: str = parameter(
        "", "where postures are stored; it is made if missing. Empty: no posture can be captured"
    )
    storage_name: str = parameter("postures", "of the file of postures, without .jsonl")
    export_directory: str = parameter(
        "", "where corrected URDFs may be written; it must exist. Empty: nowhere"
    )
    auto_capture: bool = live_parameter(
        False, "capture each new posture in which the robot is stationary"
    )
    health_record: str = parameter(
        "",
        "record of the robot (file of SQLite or URL, see com_health) that results are added to and "
        "the robot is compared with; empty: none",
    )
    robot_serial: str = parameter("", "which of these robots it is, for the record")
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
    state_rate_hz: float = parameter(5.0, "1/s, rate of identification/state", (0.1, 100.0))
    check_rate_hz: float = parameter(
        2.0, "1/s, rate of identification/model_check and of the markers; 0: none", (0.0, 100.0)
    )
    com_tolerance: float = parameter(
        0.003, "m, error of the model's centre of mass above which it is reported", (0.0, 10.0)
    )
    mass_tolerance: float = parameter(
        0.02, "error of the model's mass, as a fraction, above which it is reported", (0.0, 10.0)
    )


def declare_settings(node: Node, path: str) -> IdentificationSettings:
    """Declares noise.force, capture.samples, ...; a parameter that is given overrides the file.

    Raises ConfigError or ParameterError where the file or a parameter is wrong.
    """
    base = IdentificationSettings.from_file(path) if path else IdentificationSettings()
    try:
        return declare(node, IdentificationSettings, defaults=base)
    except IdentificationError as error:
        raise ComRosError(f"parameters of the identification: {error}") from error


@dataclass(frozen=True)
class Result:
    """A result with the ids of the postures that led to it."""

    identification: Identification
    ids: tuple[int, ...]


@dataclass
class Session:
    """The identification of one robot; each robot description starts a new one."""

    model: RobotModel  # of the URDF
    config: RobotConfig  # the configuration of the robot
    settings: IdentificationSettings  # of the identification
    recorder: PostureRecorder  # finds postures of the stationary robot
    buffer: SensorBuffer  # gathers its readings
    check: ModelCheck  # compares the model with the feet
    frame: str  # root link with the prefix
    path: Path | None  # of the file of postures; None: postures are not stored
    result: Result | None = None  # the latest one
    problem: str = ""  # why the postures cannot be stored; empty: they can
    closed: bool = False
    opened: PostureStore | None = None  # the postures on disk
    _described: dict[int, CapturedPosture] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._builder = ObservationModel(
            self.model, self.config.feet, self.settings.noise, self.settings.fit.gravity
        )
        self.sesc = Sesc(self.model)
        self.rest = self.config.nominal_posture(self.model)

    # --- storage -----------------------------------------------------------------------------
    @property
    def store(self) -> PostureStore:
        """The postures on disk, opened if they were not; a StoreError says why not."""
        self.try_to_open()
        if self.opened is None:
            raise StoreError(self.problem)
        return self.opened

    def try_to_open(self) -> tuple[str, ...]:
        """Opens the file of postures, if it is not open; returns warnings about it."""
        if self.opened is not None:
            return ()
        if self.path is None:
            self.problem = "postures cannot be stored: set the parameter storage_directory"
            return ()
        try:
            self.opened = PostureStore(self.path, self.model, self.config.feet)
        except StoreError as error:
            self.problem = str(error)
            return ()
        self.problem = ""
        self.recorder.set_bias(self.opened.bias)
        return self.opened.warnings

    def close(self) -> None:
        """Closes the file of postures, as another session takes its place."""
        self.closed = True
        if self.opened is not None:
            self.opened.close()
            self.opened = None

    def drop_results(self) -> None:
        """Drops the descriptions of stored postures, and the result."""
        self._described.clear()
        self.result = None

    def stamp_ns(self, identity: int) -> int:
        """When a posture was captured; 0 where its file does not say."""
        return 0 if self.opened is None else self.opened.stamps.get(identity, 0)

    def select_postures(self, ids: Iterable[int]) -> dict[int, Posture]:
        """Postures by id, all where none is named; an IdentificationError says which there are."""
        postures = dict(self.store.postures)
        chosen = list(dict.fromkeys(ids))
        missing = [identity for identity in chosen if identity not in postures]
        if missing:
            valid = ", ".join(map(str, postures)) or "none"
            raise StoreError(f"no posture {missing[0]}: there are {valid}")
        if not postures:
            raise IdentificationError("no postures are stored: capture some first")
        return {identity: postures[identity] for identity in chosen} if chosen else postures

    # --- postures ----------------------------------------------------------------------------
    def describe(self, identity: int, posture: Posture) -> CapturedPosture:
        """A stored posture with the CoM by its feet, as a message; computed once."""
        if identity not in self._described:
            feet = [foot.frame for foot in self.config.feet]
            loaded, com = self._builder.contacts.loaded(posture.wrenches), self.sesc.com(posture.q)
            check = self.check.update(posture)
            msg = numpy_to_captured_posture(posture, feet, loaded, check, com)
            msg.id, msg.joint_names = identity, list(self.model.joint_names)
            msg.header.stamp = ns_to_stamp(self.stamp_ns(identity))
            msg.header.frame_id = self.frame
            self._described[identity] = msg
        return self._described[identity]

    def describe_one(self) -> None:
        """Describes one of the postures that were stored before, ahead of a request."""
        stored = self.opened.postures if self.opened is not None else {}
        identity = next((i for i in stored if i not in self._described), None)
        if identity is not None:
            self.describe(identity, stored[identity])


def make_session(
    model: RobotModel, config: RobotConfig, settings: IdentificationSettings, p: Parameters
) -> Session:
    """Makes the session of a model; ConfigError or ParameterError where something does not fit."""
    settings.check(model)
    feet = config.feet
    recorder = PostureRecorder(model, feet, settings)
    imu = _imu_frame(model, config, p) if settings.fit.use_imu else None
    path = Path(p.storage_directory) / f"{p.storage_name}.jsonl" if p.storage_directory else None
    return Session(
        model=model,
        config=config,
        settings=settings,
        recorder=recorder,
        buffer=SensorBuffer(recorder, len(feet), imu),
        check=ModelCheck(model, feet, settings, p.com_tolerance, p.mass_tolerance),
        frame=p.frame_prefix + model.root_link,
        path=path,
    )


def _imu_frame(model: RobotModel, config: RobotConfig, p: Parameters) -> LinkFrames:
    link = p.imu_link or config.imu_link or model.root_link
    try:
        frame = LinkFrames(model, [link])
    except UnknownNameError as error:
        raise ParameterError("imu_link", link, str(error)) from None
    frame.poses(np.zeros(model.n_joints))  # compiles
    return frame
