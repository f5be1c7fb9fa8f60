"""What a URDF does not say of a robot: feet, sensors, joint groups, posture, servos, encoders."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from com_model.actuators import ActuatorModel, Actuators, guess_drives
from com_model.arrays import Array, FrozenArrays
from com_model.exceptions import ConfigError, UnknownNameError, UrdfError
from com_model.model import Frame, RobotModel
from com_model.strict_yaml import Section, read_yaml

KINDS = ("humanoid", "quadruped", "other")
SIDES = ("left", "right", "center")
ENDS = ("front", "hind")
T = TypeVar("T", "ServoGains", ActuatorModel)


@dataclass(frozen=True, eq=False)
class Foot(FrozenArrays):
    """A foot and its force sensor.

    Attributes:
        frame: Name of the sole frame: origin on the sole, z out of the ground, x forwards. Of a
            point foot, a frame fixed to its ball. A link of the URDF, or mounted on one.
        side: left, right or center; "" where the file does not say.
        corners: (k, 2) m, corners of the sole in the frame's x and y; (0, 2) for a point foot.
        radius: m, of a point foot's ball; 0 where there is none.
        wrench_topic: Topic of its force and torque.
        wrench_frame: The link whose frame those are in.
        wrench_sign: 1: the force of the ground on the robot, -1: of the robot on it.
        end: front or hind, of a robot on four legs; "" where the file does not say.
        center: (3,) m, center of a point foot's ball in the frame.
        mount: Where the URDF has no link for the frame: how it is fixed to one.
    """

    frame: str
    side: str = ""
    corners: Array = field(default_factory=lambda: np.zeros((0, 2)))
    radius: float = 0.0
    wrench_topic: str = ""
    wrench_frame: str = ""
    wrench_sign: int = 1
    end: str = ""
    center: Array = field(default_factory=lambda: np.zeros(3))
    mount: Frame | None = None

    @property
    def points(self) -> Array:
        """Corners (k, 3) m of a flat sole, or the center (1, 3) of a ball, in the frame."""
        flat = np.pad(self.corners, ((0, 0), (0, 1)))
        return flat if len(flat) else self.center[None]


@dataclass(frozen=True)
class ServoGains:
    """Position servo of a joint; None where the file does not say.

    Attributes:
        stiffness: N m/rad or N/m.
        damping: N m s/rad or N s/m.
        armature: kg m^2 or kg, inertia of rotor and gear, reflected to the joint.
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

    def armature(self, joints: Sequence[str]) -> Array:
        """Reflected inertias of joints, kg m^2 or kg; 0 where nothing is known."""
        gains = [self.gains(joint) for joint in joints]
        return np.array([(g.armature or 0.0) if g else 0.0 for g in gains])


@dataclass(frozen=True)
class WalkingSizes:
    """What suits a robot that walks on two legs; None where the file does not say.

    Attributes:
        step_width: m, distance of the feet's frames across the walk.
        step_length: m, by which each foot passes the other.
        step_height: m, of the swing foot.
        step_time: s, of a step with one foot in the air.
        com_height: m, of the CoM over the soles.
    """

    step_width: float | None = None
    step_length: float | None = None
    step_height: float | None = None
    step_time: float | None = None
    com_height: float | None = None


@dataclass(frozen=True)
class TrotSizes:
    """What suits a robot that trots; None where the file does not say.

    Attributes:
        frequency: 1/s, periods of the gait.
        step_height: m, of the swing feet.
        body_height: m, of the hips over the ground.
    """

    frequency: float | None = None
    step_height: float | None = None
    body_height: float | None = None


@dataclass(frozen=True)
class RobotConfig:
    """The configuration of a robot.

    Attributes:
        name: Of the robot.
        urdf: Path of its URDF, or None.
        root_link: Name of the URDF's root, or None.
        feet: The feet, in the order of the file.
        imu_link: The link that carries the IMU, or None.
        joint_groups: Joints by the name of the group.
        posture: Nominal positions, rad or m; joints without one are at 0.
        servo: Gains of the position servos.
        encoder_counts_per_degree: Counts of the encoders per degree; None where not known.
        encoder_signs: 1 or -1 by joint.
        kind: humanoid, quadruped or other; None where the file does not say.
        trunk: The link that carries legs, arms and head, or None.
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
    kind: str | None = None
    trunk: str | None = None
    walking: WalkingSizes = WalkingSizes()
    trot: TrotSizes = TrotSizes()
    actuators: Actuators = field(default_factory=Actuators)
    source: str = "robot configuration"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "RobotConfig":
        """Reads a YAML file, its urdf relative to it; a ConfigError names the wrong key."""
        return config_of(
            Section(read_yaml(path), str(path)), Path(path).resolve().parent
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "RobotConfig":
        """Reads a mapping of the same shape, its urdf relative to the working directory."""
        return config_of(Section(data, "robot configuration"), Path.cwd())

    def attach(self, model: RobotModel) -> RobotModel:
        """Gives the model with the sole frames that its URDF does not have.

        All that works with the feet needs this model; of a model that has them it is the same.
        A ConfigError names a link or joint that is not the model's, and lists those that are.
        """
        mounts = [foot.mount for foot in self.feet if foot.mount]
        for mount in mounts:
            if mount.link not in model.link_names:
                key = f"feet.{mount.name}.link"
                raise self._unknown("link", mount.link, model.link_names, key)
        if mounts:
            try:
                model = model.with_frames(mounts)
            except (UrdfError, UnknownNameError) as error:
                raise ConfigError(str(error), self.source, "feet") from None
        self._check_names(model)
        return model

    def _check_names(self, model: RobotModel) -> None:
        if self.root_link not in (None, model.root_link):
            problem = f"the URDF's root is {model.root_link!r}, not {self.root_link!r}"
            raise ConfigError(problem, self.source, "root_link")
        links = {"imu.link": self.imu_link, "trunk": self.trunk} | {
            f"feet.{foot.frame}{key}": name
            for foot in self.feet
            for key, name in (("", foot.frame), (".wrench.frame", foot.wrench_frame))
        }
        joints = {
            f"{key}.{name}": name
            for key, names in (
                *(
                    (f"joint_groups.{group}", names)
                    for group, names in self.joint_groups.items()
                ),
                ("posture", self.posture),
                ("servo.joints", self.servo.joints),
                ("encoder.signs", self.encoder_signs),
            )
            for name in names
        }
        joints |= {
            f"actuators.joints.{name}": name
            for name in self.actuators.joints
            if not any(fnmatch(joint, name) for joint in model.joint_names)
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

    def rotors(self, joints: Sequence[str]) -> Array:
        """Returns reflected inertias (n,) kg m^2 or kg of the drives of joints; 0: unknown.

        Those of the actuators, else the armatures of the servos.

        Args:
            joints: their names.
        """
        own = [self.actuators.of(joint).rotor_inertia for joint in joints]
        servos = self.servo.armature(joints)
        return np.array(
            [s if o is None else o for o, s in zip(own, servos, strict=True)]
        )

    def drives(
        self, joints: Sequence[str], legs: Sequence[Sequence[int]], sizes: Array
    ) -> list[ActuatorModel]:
        """Returns the drives of joints: this configuration's, else what is usual for their class.

        A rotor is the configuration's, else the armature of its servo to 30 %.

        Args:
            joints: names of all n joints.
            legs: indices of the joints of each leg, from the root to the foot.
            sizes: (n,) N m or N, see ActuatorModel.filled.
        """
        points = not any(len(foot.corners) for foot in self.feet)
        guesses = guess_drives(legs, points, len(joints))
        result = []
        for j, armature in enumerate(self.servo.armature(joints)):
            own = self.actuators.of(joints[j])
            if own.rotor_inertia is None and armature > 0.0:
                rotor = {"rotor_inertia": armature, "rotor_inertia_std": 0.3 * armature}
                own = replace(own, **rotor)
            result.append(own.filled(float(sizes[j]), guesses[j]))
        return result

    def with_wrench_topics(self, pattern: str) -> "RobotConfig":
        """Returns the configuration with other topics of the feet's wrenches.

        Args:
            pattern: of the new topics, with the old one for {}.
        """
        feet = [
            replace(foot, wrench_topic=pattern.format(foot.wrench_topic))
            for foot in self.feet
        ]
        return replace(self, feet=tuple(feet))

    def hands(self, model: RobotModel) -> list[tuple[str, int]]:
        """Sides and bodies at the ends of the joint groups left_arm and right_arm, if given."""
        ends = (
            (side, self.joint_groups.get(f"{side}_arm")) for side in ("left", "right")
        )
        return [
            (side, model.bodies.joint_names.index(arm[-1])) for side, arm in ends if arm
        ]

    def _unknown(
        self, kind: str, name: str, valid: tuple[str, ...], key: str
    ) -> ConfigError:
        return ConfigError(str(UnknownNameError(kind, name, valid)), self.source, key)


def config_of(top: Section, folder: Path) -> RobotConfig:
    """Reads a whole configuration.

    Args:
        top: Its top section.
        folder: The urdf is relative to it.

    Returns:
        The configuration.

    Raises:
        ConfigError: A key is missing, unknown or has a wrong value.
    """
    urdf = top.text("urdf", None)
    imu, encoder = top.section("imu"), top.section("encoder")
    groups, posture = top.section("joint_groups"), top.section("posture")
    signs, feet = encoder.section("signs"), top.section("feet")
    name = top.text("name", None)
    if name is None:
        raise top.error("is missing: give the name of the robot", "name")
    config = RobotConfig(
        name=name,
        kind=top.text("kind", None, KINDS),
        trunk=top.text("trunk", None),
        urdf=None if urdf is None else (folder / urdf).resolve(),
        root_link=top.text("root_link", None),
        feet=tuple(_foot(feet.section(frame), frame) for frame in feet.entries()),
        imu_link=imu.text("link", None),
        joint_groups=MappingProxyType(
            {key: groups.names(key) for key in groups.entries()}
        ),
        posture=MappingProxyType(
            {key: posture.number(key, 0.0) for key in posture.entries()}
        ),
        servo=Servo(*_of_joints(top.section("servo"), ServoGains())),
        encoder_counts_per_degree=encoder.number("counts_per_degree", None, least=1e-9),
        encoder_signs=MappingProxyType(
            {key: signs.sign(key, 1) for key in signs.entries()}
        ),
        walking=top.section("walking").options(WalkingSizes()),
        trot=top.section("trot").options(TrotSizes()),
        actuators=Actuators(*_of_joints(top.section("actuators"), ActuatorModel())),
        source=top.source,
    )
    for section in (top, imu, encoder):
        section.finish()
    return config


def _foot(section: Section, frame: str) -> Foot:
    wrench = section.section("wrench")
    link = section.text("link", None)
    xyz, rpy = (section.vector(key, (0.0, 0.0, 0.0)) for key in ("xyz", "rpy"))
    corners = section.rows("corners", 2)
    length, width = (0.5 * value for value in section.vector("size", (0.0, 0.0)))
    if length or width:
        if corners:
            raise section.error("give corners or size, not both", "size")
        if min(length, width) <= 0.0:
            raise section.error("expected length and width, both more than 0", "size")
        corners = [
            [length, width],
            [length, -width],
            [-length, -width],
            [-length, width],
        ]
    foot = Foot(
        frame=frame,
        side=section.text("side", "", SIDES),
        corners=np.array(corners, dtype=float).reshape(-1, 2),
        radius=section.number("radius", 0.0, least=0.0),
        wrench_topic=wrench.text("topic", f"{frame}/wrench"),
        wrench_frame=wrench.text("frame", link or frame),
        wrench_sign=wrench.sign("sign", 1),
        end=section.text("end", "", ENDS),
        center=np.array(section.vector("center", (0.0, 0.0, 0.0))),
        mount=None if link is None else Frame(frame, link, xyz, rpy),
    )
    if link is None and np.any([xyz, rpy]):
        raise section.error("give the link that xyz and rpy are measured in", "link")
    if corners and foot.radius:
        problem = (
            "give corners or size (a flat sole) or radius (a point foot), not both"
        )
        raise section.error(problem)
    if foot.center.any() and not foot.radius:
        raise section.error(
            "give the radius of the ball that has this center", "center"
        )
    section.finish()
    wrench.finish()
    return foot


def _of_joints(section: Section, usual: T) -> tuple[T, Mapping[str, T]]:
    """Reads what holds for all joints, by default as usual, and for those that differ."""
    joints = section.section("joints")
    default = section.section("default").options(usual)
    own = {name: joints.section(name).options(default) for name in joints.entries()}
    section.finish()
    return default, MappingProxyType(own)


def wrench_signs(feet: Sequence[Foot]) -> Array:
    """Signs (f, 1) of the sensors of f feet: 1 reads the ground on the foot, -1 the reverse."""
    return np.array([float(foot.wrench_sign) for foot in feet]).reshape(-1, 1)


def ground_wrenches(readings: ArrayLike, feet: Sequence[Foot]) -> Array:
    """Wrenches (..., f, 6), or forces, of the ground on f feet from raw readings, or back."""
    return np.asarray(wrench_signs(feet) * np.asarray(readings, dtype=np.float64))
