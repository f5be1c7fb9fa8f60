"""What a URDF does not say of a robot: feet, sensors, joint groups, posture, servos, encoders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from com_model.arrays import Array, freeze
from com_model.exceptions import ConfigError, UnknownNameError
from com_model.model import RobotModel
from com_model.strict_yaml import Section, read_yaml

SIDES = ("left", "right", "center")
ENDS = ("front", "hind")


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot and its force sensor.

    Attributes:
        frame: Name of the sole frame, a link: origin on the sole, z out of the ground. Of a point
            foot, a frame fixed to its ball.
        side: left, right or center; "" where the file does not say.
        corners: (k, 2) m, corners of the sole in the frame's x and y; (0, 2) for a point foot.
        radius: m, of a point foot's ball; 0 where there is none.
        wrench_topic: Topic of its force and torque.
        wrench_frame: The link whose frame those are in.
        wrench_sign: 1 where it is the force of the ground on the robot, -1 of the robot on it.
        end: front or hind, of a robot on four legs; "" where the file does not say.
        center: (3,) m, center of a point foot's ball in the frame.
    """

    frame: str
    side: str
    corners: Array
    radius: float
    wrench_topic: str
    wrench_frame: str
    wrench_sign: int
    end: str = ""
    center: Array = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True)
class ServoGains:
    """Position servo of a joint; None where the file does not say.

    Attributes:
        stiffness: N m/rad or N/m.
        damping: N m s/rad or N s/m.
        armature: kg m^2 or kg, inertia of rotor and gear as felt at the joint.
        effort: N m or N, the most that it gives.
    """

    stiffness: float | None = None
    damping: float | None = None
    armature: float | None = None
    effort: float | None = None


@dataclass(frozen=True)
class Servo:
    """Gains for all joints, and those that differ for some."""

    default: ServoGains
    joints: Mapping[str, ServoGains]

    def gains(self, joint: str) -> ServoGains | None:
        """Gives a joint's gains, the default filled in; None where nothing is known."""
        gains = self.joints.get(joint, self.default)
        return None if gains == ServoGains() else gains


@dataclass(frozen=True)
class RobotConfig:
    """The configuration of a robot.

    Attributes:
        name: Name of the robot.
        urdf: Path of its URDF, or None.
        root_link: Name of the URDF's root, or None.
        feet: The feet, in the order of the file.
        imu_link: The link that carries the IMU, or None.
        joint_groups: Joints by the name of the group.
        posture: Nominal positions, rad or m; joints without one are at 0.
        servo: Gains of the position servos.
        encoder_counts_per_degree: Or None.
        encoder_signs: 1 or -1 by joint.
        source: Where it came from, for messages.
    """

    name: str
    urdf: Path | None
    root_link: str | None
    feet: tuple[Foot, ...]
    imu_link: str | None
    joint_groups: Mapping[str, tuple[str, ...]]
    posture: Mapping[str, float]
    servo: Servo
    encoder_counts_per_degree: float | None
    encoder_signs: Mapping[str, int]
    source: str = "robot configuration"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> RobotConfig:
        """Reads a YAML file; its urdf is relative to the file.

        Raises:
            ConfigError: The file or a key in it is wrong; names the key and what it expects.
        """
        return _config(Section(read_yaml(path), str(path)), Path(path).resolve().parent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RobotConfig:
        """Reads a mapping of the same shape; its urdf is relative to the working directory.

        Raises:
            ConfigError: As from_file.
        """
        return _config(Section(data, "robot configuration"), Path.cwd())

    def check(self, model: RobotModel) -> None:
        """Checks that every link and joint that it names is the model's.

        Raises:
            ConfigError: One is not; lists those that there are.
        """
        if self.root_link not in (None, model.root_link):
            problem = f"the URDF's root is {model.root_link!r}, not {self.root_link!r}"
            raise ConfigError(problem, self.source, "root_link")
        links = {"imu.link": self.imu_link} | {
            f"feet.{foot.frame}{key}": name
            for foot in self.feet
            for key, name in (("", foot.frame), (".wrench.frame", foot.wrench_frame))
        }
        joints = {
            f"{key}.{name}": name
            for key, names in (
                *((f"joint_groups.{group}", names) for group, names in self.joint_groups.items()),
                ("posture", self.posture),
                ("servo.joints", self.servo.joints),
                ("encoder.signs", self.encoder_signs),
            )
            for name in names
        }
        for key, link in links.items():
            if link is not None and link not in model.link_names:
                raise self._unknown("link", link, model.link_names, key)
        for key, joint in joints.items():
            if joint not in model.joint_names:
                raise self._unknown("moving joint", joint, model.joint_names, key)

    def nominal_posture(self, model: RobotModel) -> Array:
        """Gives the nominal posture as joint positions (n,), clipped into the limits."""
        q = np.zeros(model.n_joints)
        for joint, position in self.posture.items():
            q[model.joint_index(joint)] = position
        return np.clip(q, model.lower, model.upper)

    def _unknown(self, kind: str, name: str, valid: tuple[str, ...], key: str) -> ConfigError:
        return ConfigError(str(UnknownNameError(kind, name, valid)), self.source, key)


def _config(top: Section, folder: Path) -> RobotConfig:
    urdf = top.text("urdf", None)
    imu, encoder = top.section("imu"), top.section("encoder")
    groups, posture = top.section("joint_groups"), top.section("posture")
    signs, feet = encoder.section("signs"), top.section("feet")
    name = top.text("name", None)
    if name is None:
        raise top.error("is missing: give the name of the robot", "name")
    config = RobotConfig(
        name=name,
        urdf=None if urdf is None else (folder / urdf).resolve(),
        root_link=top.text("root_link", None),
        feet=tuple(_foot(feet.section(frame), frame) for frame in feet.entries()),
        imu_link=imu.text("link", None),
        joint_groups=MappingProxyType({key: groups.names(key) for key in groups.entries()}),
        posture=MappingProxyType({key: posture.number(key, 0.0) for key in posture.entries()}),
        servo=_servo(top.section("servo")),
        encoder_counts_per_degree=encoder.number("counts_per_degree", None, least=1e-9),
        encoder_signs=MappingProxyType({key: signs.sign(key, 1) for key in signs.entries()}),
        source=top.source,
    )
    for section in (top, imu, encoder):
        section.finish()
    return config


def _foot(section: Section, frame: str) -> Foot:
    wrench = section.section("wrench")
    corners = section.rows("corners", 2)
    foot = Foot(
        frame=frame,
        side=section.text("side", "", SIDES),
        corners=np.array(corners, dtype=float).reshape(-1, 2),
        radius=section.number("radius", 0.0, least=0.0),
        wrench_topic=wrench.text("topic", f"{frame}/wrench"),
        wrench_frame=wrench.text("frame", frame),
        wrench_sign=wrench.sign("sign", 1),
        end=section.text("end", "", ENDS),
        center=np.array(section.vector("center", (0.0, 0.0, 0.0))),
    )
    if corners and foot.radius:
        raise section.error("give corners (a flat sole) or radius (a point foot), not both")
    if foot.center.any() and not foot.radius:
        raise section.error("give the radius of the ball that has this center", "center")
    section.finish()
    wrench.finish()
    return foot


def _servo(section: Section) -> Servo:
    joints = section.section("joints")
    default = _gains(section.section("default"), ServoGains())
    gains = {name: _gains(joints.section(name), default) for name in joints.entries()}
    section.finish()
    return Servo(default, MappingProxyType(gains))


def _gains(section: Section, default: ServoGains) -> ServoGains:
    gains = {key: section.number(key, value, least=0.0) for key, value in asdict(default).items()}
    section.finish()
    return ServoGains(**gains)
