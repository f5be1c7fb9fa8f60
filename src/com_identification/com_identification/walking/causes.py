"""Which cause explains what the readings of a robot leave over: posterior over causes, in words.

One linear Gaussian system in the unknowns z, with the tolerances of a factory L_0 L_0^T as priors.
A cause h widens its own prior to L L^T. With H the information of the rows, b = L^T g their
gradient,

  ln p(data | h) = 1/2 b^T A^-1 b - 1/2 ln det A,   A = 1 + L^T H L

and of causes of which there is one for each joint, the mean over the joints. A cause is named from
a posterior of 0.9 on, also against each single other one: the mean over twelve joints would make
the one that explains as much twelve times less probable. "Nothing is wrong" cannot be named, a
small cause is always possible: the answer is the bound of what all causes together may move the CoM
by.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from com_identification.walking.kernels import IMU
from com_identification.walking.unknowns import PARAMETERS, Unknowns
from com_model import RobotModel
from com_model.arrays import Array, Indices

GAIN = 0.025  # factory tolerance of a gain
# what a cause may be: rad, of an angle; of a gain; N, of a pull
OFF_ANGLE, OFF_GAIN, OFF_PULL = np.deg2rad(2.0), 0.20, 10.0

ADVICE = {
    frozenset(
        {"encoder zero", "IMU tilt"}
    ): "lay a spirit level on the IMU's link (0.1 degrees)",
    frozenset({"encoder zero", "floor slope"}): "turn the robot round and sway again",
    frozenset({"IMU tilt", "floor slope"}): "turn the robot round and sway again",
    frozenset(
        {"IMU tilt", "outside pull"}
    ): "lay a spirit level on the IMU's link (0.1 degrees)",
    frozenset(
        {"torso CoM", "outside pull"}
    ): "turn the robot round and record it again",
    frozenset({"payload", "outside pull"}): "weigh the robot",
    frozenset({"payload", "torque scale"}): "weigh the robot",
}
"""The cheapest measurement that separates two causes: what changes the sign of one of them, or is
not in the null space of both."""

Choices = dict[str, list[Array]]
"""What each cause adds to the prior: V (Z, k) of V V^T; one for each joint that may have it."""


@dataclass(frozen=True)
class Cause:
    """A possible cause.

    Attributes:
        kind: payload, torso CoM, encoder zero, torque scale, IMU tilt, floor slope, outside pull.
        joint: of causes that one joint has, the most probable one; "" for others.
        probability: posterior.
        size: most probable size in words.
        alone: posterior against the single other cause, of one joint, that explains most.
    """

    kind: str
    joint: str
    probability: float
    size: str
    alone: float = 1.0

    @property
    def text(self) -> str:
        """The cause in words."""
        place = f" of {self.joint}" if self.joint else ""
        return f"{self.kind}{place} ({self.size})"


@dataclass(frozen=True, eq=False)
class CheckUp:
    """Result of a check-up.

    Attributes:
        causes: the most probable first.
        none: posterior of no cause.
        bound: m, by which no cause moves the CoM of the whole robot by more, 95 %.
        further: what to do where no measurement separates two causes by itself.
    """

    causes: tuple[Cause, ...]
    none: float
    bound: float
    further: str

    @property
    def named(self) -> Cause | None:
        """The cause, where one is named."""
        first = self.causes[0]
        return first if min(first.probability, first.alone) >= 0.9 else None

    @property
    def healthy(self) -> bool:
        """Whether no cause is more probable than none."""
        return self.none > self.causes[0].probability

    @property
    def text(self) -> str:
        """The answer in a sentence, with what to do next."""
        first, second = self.causes[:2]
        if self.named:
            return f"{first.text}, {100.0 * first.probability:.0f} %"
        if self.healthy:
            return f"healthy: no cause moves the CoM by more than {1e3 * self.bound:.0f} mm (95 %)"
        if second.probability < 0.05 and first.alone >= 0.9:
            return (
                f"cannot tell {first.text} from nothing: no cause moves the CoM by more than "
                f"{1e3 * self.bound:.0f} mm (95 %); {self.further}"
            )
        advice = ADVICE.get(frozenset({first.kind, second.kind}), self.further)
        return f"cannot tell {first.text} from {second.text}: {advice}"


@dataclass(frozen=True, eq=False)
class Evidence:
    """What recordings say about changes of the unknowns from a factory's values.

    Attributes:
        H: (Z, Z) information.
        g: (Z,) its gradient at no change.
        factory: (Z, k) factor of the prior's covariance.
    """

    H: Array
    g: Array
    factory: Array

    def weighed(self, slope: Array, change: float) -> "Evidence":
        """Returns the evidence with a weighed mass, of scales that are right within 0.2 %.

        Args:
            slope: (Z,) derivative of ln(mass).
            change: ln of the weighed mass over that of the model.
        """
        precision = 0.002**-2.0
        return replace(
            self,
            H=self.H + precision * np.outer(slope, slope),
            g=self.g + precision * change * slope,
        )

    def of(self, V: Array) -> tuple[float, Array]:
        """Returns the log of p(data | cause), and the most probable change (Z,) of the unknowns.

        Args:
            V: (Z, k) what the cause adds to the prior.
        """
        L = np.hstack([self.factory, V])
        A, b = np.eye(L.shape[1]) + L.T @ self.H @ L, L.T @ self.g
        w = np.linalg.solve(A, b)
        return float(0.5 * b @ w - 0.5 * np.linalg.slogdet(A)[1]), L @ w

    def bound(self, V: Array, J: Array) -> float:
        """Returns by how much J times the change of the unknowns may be off, 95 %.

        Args:
            V: (Z, k) what may be wrong.
            J: (2, Z).
        """
        L, moved = np.hstack([self.factory, V]), J @ self.of(V)[1]
        K = J @ L
        C = K @ np.linalg.solve(np.eye(L.shape[1]) + L.T @ self.H @ L, K.T)
        # 1.96 standard deviations: 95 %
        spread = 1.96 * np.sqrt(np.linalg.eigvalsh(C)[-1])
        return float(np.linalg.norm(moved) + spread)


def compare(
    evidence: Evidence,
    choices: Choices,
    joints: dict[str, list[str]],
    describe: Callable[[str, Array, Array], str],
) -> tuple[tuple[Cause, ...], float]:
    """Finds the posterior of each cause.

    Args:
        evidence: of the recordings.
        choices: the causes.
        joints: names of the joints of the choices, of each kind whose joint is named.
        describe: makes the size in words, of kind, choice and most probable change.

    Returns:
        The causes, the most probable first, and the posterior of none.
    """
    none, _ = evidence.of(np.empty((len(evidence.g), 0)))
    odds, best_odds, sizes = [], [], []
    for kind, own in choices.items():
        found = [evidence.of(V) for V in own]
        values = np.array([value for value, _ in found]) - none
        best = int(values.argmax())
        odds.append(float(np.logaddexp.reduce(values) - np.log(len(values))))
        best_odds.append(float(values[best]))
        joint = joints[kind][best] if kind in joints else ""
        sizes.append((kind, joint, describe(kind, own[best], found[best][1])))
    total = np.logaddexp.reduce([0.0, *odds])
    causes = []
    for k, (kind, joint, size) in enumerate(sizes):
        rival = max(best_odds[:k] + best_odds[k + 1 :])
        alone = float(np.exp(odds[k] - np.logaddexp(odds[k], rival)))
        causes.append(Cause(kind, joint, float(np.exp(odds[k] - total)), size, alone))
    causes.sort(key=lambda cause: -cause.probability)
    return tuple(causes), float(np.exp(-total))


def factory_std(u: Unknowns) -> Array:
    """Returns standard deviations (Z,) of the unknowns of a robot within a factory's tolerances.

    Args:
        u: the unknowns; what no factory's tolerance is known of stays as it is.
    """
    std, used = u.std.copy(), u.bodies
    torso = np.arange(len(used))[used] == int(np.argmax(u.model.bodies.mass))
    inertial = std[: PARAMETERS * len(torso)].reshape(-1, PARAMETERS)
    # 2 % of each mass
    inertial[:, 0] = 0.02 / 2.0
    # m, of the torso's CoM and of a link's
    inertial[:, 7:] = np.where(torso, 0.005, 0.003)[:, None]
    std[u.joint_slice("gain")] = GAIN
    # encoder biases, and the mounting of the IMU
    std[u.joint_slice("encoder_zero")], std[-IMU + 3 :] = np.deg2rad([0.25, 0.4])
    return std


def wide(size: int, values: dict[int, float]) -> Array:
    """Returns a choice V (size, k) in which k unknowns are wide.

    Args:
        size: Z.
        values: standard deviations by index.
    """
    V = np.zeros((size, len(values)))
    V[list(values), range(len(values))] = list(values.values())
    return V


def wrong_gain(u: Unknowns, size: int, joint: int) -> Array:
    """Returns V (size, 1) of a torque that is read 1 times too large.

    Args:
        u: the unknowns, the first of z.
        size: Z.
        joint: its index.
    """
    V = np.zeros((size, 1))
    V[u.joint_slice("gain"), 0] = u.gain_directions[joint]
    return V


def unknown_sides(u: Unknowns, size: int) -> list[Array]:
    """Returns V (size, 1) of drives whose load friction may be of either side.

    Load friction mu of the motor's torque or of the joint's: which one is not known, and read as
    the other one it is a gain of 1 + mu^2.

    Args:
        u: the unknowns, the first of z.
        size: Z.
    """
    mu = u.mean[u.joint_slice("load_friction")]
    return [mu[j] ** 2 * wrong_gain(u, size, int(j)) for j in np.flatnonzero(mu > 0.1)]


def robot_causes(u: Unknowns, size: int, joints: Indices) -> Choices:
    """Returns the causes that are in the robot and its sensors.

    Args:
        u: the unknowns, the first of z.
        size: Z.
        joints: indices of those that may have a cause.
    """
    heaviest = int(np.argmax(u.model.bodies.mass))
    torso, zero = (
        PARAMETERS * int(u.bodies[:heaviest].sum()),
        u.joint_slice("encoder_zero").start,
    )
    # a payload of 24 % of the torso's mass, m of the torso's CoM
    com = {torso + 7 + k: value for k, value in enumerate((0.020, 0.020, 0.030))}
    mounting = len(u.mean) - 3
    return {
        "payload": [wide(size, {torso: 0.24 / 2.0, **com})],
        "torso CoM": [wide(size, {torso + 7: 0.020, torso + 8: 0.020})],
        "encoder zero": [wide(size, {zero + int(j): OFF_ANGLE}) for j in joints],
        "torque scale": [OFF_GAIN * wrong_gain(u, size, int(j)) for j in joints],
        "IMU tilt": [wide(size, {mounting: OFF_ANGLE, mounting + 1: OFF_ANGLE})],
    }


def describe_size(
    model: RobotModel, axes: str, kind: str, V: Array, change: Array
) -> str:
    """Returns the size of a cause in words.

    Args:
        model: the robot.
        axes: of an outside pull, in words.
        kind: of the cause.
        V: (Z, k) its choice.
        change: (Z,) most probable change.
    """
    own = change[np.abs(V).max(axis=1) > 0.0]
    if kind == "payload":
        return f"{float(model.bodies.mass.max()) * np.expm1(2.0 * own[0]):+.1f} kg"
    if kind == "torso CoM":
        return f"x {1e3 * own[0]:+.0f}, y {1e3 * own[1]:+.0f} mm"
    if kind == "torque scale":
        scale = V[:, 0] @ change / (V[:, 0] @ V[:, 0]) * OFF_GAIN
        return f"reads {-100.0 * scale:+.0f} %"
    if kind == "outside pull":
        return f"x {own[0]:+.0f}, y {own[1]:+.0f} N {axes}"
    turned = OFF_ANGLE * np.linalg.lstsq(V, change, rcond=None)[0]
    angles = ", ".join(f"{np.degrees(angle):+.1f}" for angle in turned[:2])
    return f"{angles} deg"
