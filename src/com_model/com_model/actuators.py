"""What drives lose between motor and joint, as priors by joint and class of drive.

  tau = tau_joint + B ddq + C s + v dq + mu |tau| s + b,     s = the smoothed sign of dq

with tau the torque that the drive reports. mu is stored on the motor's side: it multiplies the
reported torque, not that at the joint (mu = mu_load / (1 + mu_load) where the joint is driven).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatch
from types import MappingProxyType

from com_model.parameters import parameter

DRIVES = ("unknown", "quasi-direct", "linkage", "harmonic")
"""Classes of drives; linkage: also belts, as of the calves of a Go2; harmonic: the gear."""
COMMON_GAIN, LEG_GAIN = 0.05, 0.03
"""Standard deviations of torque gains, relative: common to all drives, and between legs. Motion
shows neither of them; they are part of the standard deviations of masses and CoMs."""


@dataclass(frozen=True)
class ActuatorModel:
    """The drive of a joint; each quantity has its mean and standard deviation.

    None: as is usual for its class and size.

    Attributes:
        drive: class, one of DRIVES; None: by the place of the joint.
        rotor_inertia: kg m^2, of rotor and gear, reflected to the joint.
        rotor_inertia_std: kg m^2.
        coulomb: N m, friction that depends on nothing but the direction.
        coulomb_std: N m.
        viscous: N m s/rad.
        viscous_std: N m s/rad.
        load_friction: mu, 1, on the motor's side.
        load_friction_std: 1.
        torque_bias_std: N m, of a bias about 0.
    """

    drive: str | None = parameter(None, "class", choices=DRIVES)
    rotor_inertia: float | None = None
    rotor_inertia_std: float | None = None
    coulomb: float | None = None
    coulomb_std: float | None = None
    viscous: float | None = None
    viscous_std: float | None = None
    load_friction: float | None = None
    load_friction_std: float | None = None
    torque_bias_std: float | None = None

    def filled(self, size: float, drive: str) -> "ActuatorModel":
        """Returns the model with what it lacks as is usual for a drive.

        Args:
            size: N m, rms torque of the drive while the robot walks; a Go2's hip has 8.
            drive: class where the model has none, one of DRIVES.
        """
        drive = self.drive or drive
        names = [item.name for item in fields(self)][1:]
        usual = (size * value for value in _USUAL[drive])
        values = dict(zip(_SIZED, usual, strict=True))
        values |= dict(zip(_MU, _LOAD[drive], strict=True))
        own = {name: getattr(self, name) for name in names}
        return ActuatorModel(
            drive, **values | {k: v for k, v in own.items() if v is not None}
        )


STANDARD_DEVIATIONS = tuple(
    item.name for item in fields(ActuatorModel) if item.name.endswith("_std")
)
_SIZED = (
    *("rotor_inertia", "rotor_inertia_std", "coulomb", "coulomb_std"),
    *("viscous", "viscous_std", "torque_bias_std"),
)
_MU = ("load_friction", "load_friction_std")
# _SIZED over the drive's size. Quasi-direct and linkage: of a Go2 in swing and stance
# (docs/real_data.md); harmonic: efficiencies of 65 to 80 % in catalogues
_USUAL: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "unknown": (0.00125, 0.00125, 0.06, 0.06, 0.006, 0.006, 0.04),
        "quasi-direct": (0.0008, 0.0008, 0.04, 0.05, 0.004, 0.005, 0.02),
        "linkage": (0.0009, 0.0009, 0.04, 0.05, 0.004, 0.005, 0.015),
        "harmonic": (0.003, 0.003, 0.1, 0.1, 0.01, 0.01, 0.02),
    }
)
_LOAD: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "unknown": (0.1, 0.1),
        "quasi-direct": (0.1, 0.1),
        "linkage": (0.2, 0.15),
        "harmonic": (0.25, 0.15),
    }
)


@dataclass(frozen=True)
class Actuators:
    """The drives of a robot.

    Attributes:
        default: of joints that are not named.
        joints: by the name of a joint, or a pattern of names as in a shell (`*_calf_joint`).
    """

    default: ActuatorModel = ActuatorModel()
    joints: Mapping[str, ActuatorModel] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def of(self, joint: str) -> ActuatorModel:
        """Returns what the configuration has of a joint: its own entry, a pattern's, the default.

        Args:
            joint: its name.
        """
        fits = [own for name, own in self.joints.items() if fnmatch(joint, name)]
        return self.joints.get(joint, fits[0] if fits else self.default)


def guess_drives(legs: Sequence[Sequence[int]], points: bool, count: int) -> list[str]:
    """Guesses the classes of the drives by their places.

    The knees of legs with three joints and point feet are driven through linkages or belts, their
    other joints directly; of other joints nothing is known.

    Args:
        legs: indices of the joints of each leg, from the root to the foot.
        points: whether the feet are points.
        count: number of joints.

    Returns:
        For each joint one of DRIVES.
    """
    result = [DRIVES[0]] * count
    for own in legs:
        if points and len(own) == 3:
            for joint, drive in zip(
                own, (DRIVES[1], DRIVES[1], DRIVES[2]), strict=True
            ):
                result[joint] = drive
    return result
