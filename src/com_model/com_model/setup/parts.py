"""What is found of a robot in its URDF, for its configuration: limbs, soles, posture ..."""

from dataclasses import dataclass
from typing import NamedTuple

from com_model.arrays import Array
from com_model.model import RobotModel

HUMANOID, QUADRUPED, OTHER = "humanoid", "quadruped", "other"


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg: its moving bodies from the first one of its own to the foot.

    Attributes:
        name: left_leg, right_leg; left_front_leg ... of a quadruped.
        side: left, right or center.
        end: front or hind of a quadruped, else "".
        bodies: Of the chain to the foot.
        others: Bodies beyond the foot's, such as toes.
    """

    name: str
    side: str
    end: str
    bodies: tuple[int, ...]
    others: tuple[int, ...] = ()

    @property
    def foot(self) -> int:
        """The body that stands on the ground."""
        return self.bodies[-1]


@dataclass(frozen=True, eq=False)
class Limbs:
    """The limbs of a robot.

    Attributes:
        kind: HUMANOID (two legs), QUADRUPED (four) or OTHER.
        trunk: The body that carries the arms of a humanoid; else that from which the legs start.
        hips: The body from which the legs start.
        legs: Left before right, front before hind.
        R_root_robot: (3, 3) rotation from the robot's axes to the root link's.
        groups: Independent joints by the name of their group.
        height: m, of the robot in its neutral posture.
        issues: What looks wrong, for people.
    """

    kind: str
    trunk: int
    hips: int
    legs: tuple[Leg, ...]
    R_root_robot: Array
    groups: dict[str, tuple[str, ...]]
    height: float
    issues: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Sole:
    """The sole of a foot; a point foot has a radius and no corners.

    Attributes:
        link: The link in whose frame R and p are.
        R: (3, 3) R_link_sole: z out of the ground, x forwards.
        p: (3,) m, origin of the sole frame, below the ankle; of a point foot the ball's centre.
        corners: (k, 2) m, in the sole frame, counter-clockwise; (0, 2) of a point foot.
        radius: m, of the ball.
        own_link: A link of the URDF whose frame is on the sole or in the ball's centre, or "".
        R_body: (3, 3) orientation of the sole frame in its moving body.
        p_body: (3,) m, its origin there.
        issues: What people should look at.
    """

    link: str
    R: Array
    p: Array
    corners: Array
    radius: float
    own_link: str
    R_body: Array
    p_body: Array
    issues: tuple[str, ...] = ()

    @property
    def flat(self) -> bool:
        """Whether it is a flat sole."""
        return len(self.corners) > 0


@dataclass(frozen=True, eq=False)
class Standing:
    """A standing posture, in the robot's axes; positions are from the origin of the root link.

    Attributes:
        q: (n,) rad or m.
        R: (B, 3, 3) orientations of the moving bodies.
        p: (B, 3) m, their origins.
        com: (3,) m.
        ground: m, height of the soles.
        bend: rad, of the knees at most.
        lower: m, by which it may be lowered until a joint of a leg meets its limit.
        issues: What could not be reached.
    """

    q: Array
    R: Array
    p: Array
    com: Array
    ground: float
    bend: float
    lower: float
    issues: tuple[str, ...]


class Gains(NamedTuple):
    """Servo gains per joint.

    Attributes:
        stiffness: (n,) N m/rad; N/m of a prismatic joint.
        damping: (n,) N m s/rad; N s/m.
        armature: (n,) kg m^2; kg.
    """

    stiffness: Array
    damping: Array
    armature: Array


class Sensor(NamedTuple):
    """Where a sensor is.

    Attributes:
        link: The link that carries it, or "".
        issue: Why that is unsure; "" where it is sure.
    """

    link: str
    issue: str


@dataclass(frozen=True, eq=False)
class FootSetup:
    """A foot as the configuration has it.

    Attributes:
        name: Of its sole frame: a link, or a frame that is added to `sole.link`.
        leg: Its leg.
        sole: Its sole, pose in sole.link.
        wrench: Where its force sensor is.
        points: (k, 3) m, where it touches the ground in the standing posture, robot's axes.
    """

    name: str
    leg: Leg
    sole: Sole
    wrench: Sensor
    points: Array


@dataclass(frozen=True, eq=False)
class RobotSetup:
    """What was found of a robot.

    Attributes:
        name: Of the robot, fit for a file.
        urdf: Its file name, or "".
        model: The robot.
        limbs: Legs, arms, trunk.
        trunk_link: The heaviest link of the trunk.
        feet: In the order of the legs.
        standing: The standing posture.
        imu: Where the IMU is.
        gains: Of the servos.
        gait: Sizes of steps, "walking" or "trot" by its kind, or nothing.
        margin: m, of the CoM inside the support polygon in the standing posture.
        issues: What a person should look at, by the key of the configuration.
    """

    name: str
    urdf: str
    model: RobotModel
    limbs: Limbs
    trunk_link: str
    feet: tuple[FootSetup, ...]
    standing: Standing
    imu: Sensor
    gains: Gains
    gait: dict[str, dict[str, float]]
    margin: float
    issues: tuple[tuple[str, str], ...]
