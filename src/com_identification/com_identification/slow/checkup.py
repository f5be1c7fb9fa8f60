"""Why a standing robot leans or drifts: posterior over causes from a minute of swaying.

One linear Gaussian system of slow.rows, with the tolerances of a factory as priors. A cause h
widens its own prior to L L^T. With H the information of the rows, b = L^T g their gradient,

  ln p(data | h) = 1/2 b^T A^-1 b - 1/2 ln det A,   A = 1 + L^T H L

and of causes of which there is one for each joint, the mean over the joints. A cause is named from
a posterior of 0.9 on. "Nothing is wrong" cannot be named, a small cause is always possible: the
answer is the bound of what all causes together may move the CoM by.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from com_bags import WalkLog
from com_identification.slow import rows
from com_identification.slow.system import (
    TEMPERING,
    SlowSystem,
    drive_sizes,
    make_system,
    slow_unknowns,
)
from com_identification.walking.fit import huber_weights
from com_identification.walking.preparation import find_limbs
from com_identification.walking.unknowns import PARAMETERS, Unknowns
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array

_GAIN = 0.025  # factory tolerance of a gain
_OFF_ANGLE, _OFF_GAIN = np.deg2rad(2.0), 0.20

ADVICE = {
    frozenset(
        {"encoder zero", "IMU tilt"}
    ): "lay a spirit level on the IMU's link (0.1 degrees)",
    frozenset({"encoder zero", "floor slope"}): "turn the robot round and sway again",
    frozenset({"IMU tilt", "floor slope"}): "turn the robot round and sway again",
    frozenset({"torso CoM", "outside pull"}): "turn the robot round and sway again",
    frozenset({"payload", "outside pull"}): "weigh the robot",
    frozenset({"payload", "torque scale"}): "weigh the robot",
}
"""The cheapest measurement that separates two causes: what changes the sign of one of them, or is
not in the null space of both."""


@dataclass(frozen=True)
class Cause:
    """A possible cause.

    Attributes:
        kind: payload, torso CoM, encoder zero, torque scale, IMU tilt, floor slope, outside pull.
        joint: of causes that one joint has, the most probable one; "" for others.
        probability: posterior.
        size: most probable size in words.
    """

    kind: str
    joint: str
    probability: float
    size: str

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
        return self.causes[0] if self.causes[0].probability >= 0.9 else None

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
        if second.probability < 0.05:
            return (
                f"cannot tell {first.text} from nothing: no cause moves the CoM by more than "
                f"{1e3 * self.bound:.0f} mm (95 %); {self.further}"
            )
        advice = ADVICE.get(frozenset({first.kind, second.kind}), self.further)
        return f"cannot tell {first.text} from {second.text}: {advice}"


def check_up(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    mass: float | None = None,
) -> CheckUp:
    """Finds why a robot leans or drifts.

    Args:
        logs: standing and swaying slowly on all feet, with torques and an IMU.
        model: as its URDF says, or as it was identified.
        config: its feet, drives and the IMU's link.
        mass: kg, weighed; None: unknown.

    Raises:
        WalkError: the recordings cannot be used; says why.
    """
    attached = config.attach(model)
    limbs = find_limbs(attached, config)
    prior = _factory(
        slow_unknowns(attached, config, limbs, drive_sizes(attached)), attached
    )
    system = make_system(logs, [False] * len(logs), model, config, unknowns=prior)
    factory, choices = _tolerances(system), _hypotheses(system)
    H, g = _information(
        system, factory, np.hstack([V for own in choices.values() for V in own]), mass
    )
    none, _ = _evidence(H, g, factory)
    causes, joints = [], np.flatnonzero(system.robot.legs)
    odds, sizes = [], []
    for kind, own in choices.items():
        found = [_evidence(H, g, np.hstack([factory, V])) for V in own]
        values = np.array([evidence for evidence, _ in found]) - none
        best = int(values.argmax())
        odds.append(float(np.logaddexp.reduce(values) - np.log(len(values))))
        joint = attached.joint_names[joints[best]] if len(own) > 1 else ""
        sizes.append((kind, joint, _describe(system, kind, own[best], found[best][1])))
    total = np.logaddexp.reduce([0.0, *odds])
    for value, (kind, joint, size) in zip(odds, sizes, strict=True):
        causes.append(Cause(kind, joint, float(np.exp(value - total)), size))
    causes.sort(key=lambda cause: -cause.probability)
    hang, walk = "hang it (docs/gantry.md)", "walk it (identify --use walk)"
    return CheckUp(
        tuple(causes),
        float(np.exp(-total)),
        _com_bound(system, H, g, factory, choices),
        f"{hang if system.robot.flat else walk} and identify",
    )


def _factory(u: Unknowns, model: RobotModel) -> Unknowns:
    """Unknowns with a factory's tolerances."""
    std, used = u.std.copy(), model.bodies.mass > 0.0
    torso = np.arange(model.bodies.count)[used] == int(np.argmax(model.bodies.mass))
    inertial = std[: PARAMETERS * len(torso)].reshape(-1, PARAMETERS)
    # factory tolerances: 2 % of each mass
    inertial[:, 0] = 0.02 / 2.0
    # m, of the torso's CoM and of a link's
    inertial[:, 7:] = np.where(torso, 0.005, 0.003)[:, None]
    std[u.joint_slice("gain")] = _GAIN
    # encoder biases, and the mounting of the IMU
    std[u.joint_slice("encoder_zero")], std[-3:] = np.deg2rad([0.25, 0.4])
    return replace(u, std=std)


def _places(system: SlowSystem) -> list[tuple[slice, slice]]:
    """Where the slope and the pull of each recording are in z."""
    chain, slope, pull = system.robot.extras(hung=False)
    first, each = len(system.base.std) + chain, chain + slope + pull
    starts = [first + k * each for k in range(len(system.recordings))]
    return [
        (slice(at, at + slope), slice(at + slope, at + slope + pull)) for at in starts
    ]


def _tolerances(system: SlowSystem) -> Array:
    """Factor L (Z + 1, k) of the prior of z, and of the mean gain of the legs."""
    s = np.append(system.unknowns.std, _GAIN / np.sqrt(system.robot.legs.sum()))
    for slope, pull in _places(system):
        s[slope] = np.deg2rad(0.3)
        s[pull] = 1e-3  # N: no outside pull
    base = system.base
    # Load friction mu of the motor's torque or of the joint's: which one is not known, and read
    # as the other one it is a gain of 1 + mu^2
    mu = base.mean[base.joint_slice("load_friction")]
    sides = [mu[j] ** 2 * _gain(system, int(j)) for j in np.flatnonzero(mu > 0.1)]
    return np.hstack([np.diag(s), *sides])


def _gain(system: SlowSystem, joint: int) -> Array:
    """A torque that is read 1 times too large (Z + 1, 1)."""
    V, base = np.zeros((len(system.unknowns.std) + 1, 1)), system.base
    V[base.joint_slice("gain"), 0] = base.gain_directions[joint]
    return V


def _hypotheses(system: SlowSystem) -> dict[str, list[Array]]:
    """What each cause adds to the prior: V (Z + 1, k) of V V^T, for each joint that may have it."""
    u, base, model = system.unknowns, system.base, system.robot.model
    size = len(u.std) + 1
    torso = PARAMETERS * int(base.bodies[: int(np.argmax(model.bodies.mass))].sum())
    legs = np.flatnonzero(system.robot.legs)

    def wide(values: dict[int, float]) -> Array:
        V = np.zeros((size, len(values)))
        V[list(values), range(len(values))] = list(values.values())
        return V

    com = {torso + 7 + k: value for k, value in enumerate((0.020, 0.020, 0.030))}
    mounting = len(base.std) - 3
    zero = base.joint_slice("encoder_zero").start
    slopes, pulls = [], []
    for each, (slope, pull) in zip(system.recordings, _places(system), strict=True):
        V = np.zeros((size, 2))
        V[slope] = _OFF_ANGLE * system.robot.tilts(each.motion.q)
        slopes.append(V)
        pulls.append(wide({pull.start + k: 10.0 for k in range(2)}))
    # a payload of 24 % of the torso's mass; an outside pull of 10 N
    # prior, m, of the torso's CoM
    return {
        "payload": [wide({torso: 0.24 / 2.0, **com})],
        "torso CoM": [wide({torso + 7: 0.020, torso + 8: 0.020})],
        "encoder zero": [wide({zero + int(j): _OFF_ANGLE}) for j in legs],
        "torque scale": [_OFF_GAIN * _gain(system, int(j)) for j in legs],
        "IMU tilt": [wide({mounting: _OFF_ANGLE, mounting + 1: _OFF_ANGLE})],
        "floor slope": [np.hstack(slopes)],
        "outside pull": [np.hstack(pulls)],
    }


def _information(
    system: SlowSystem, factory: Array, V: Array, mass: float | None
) -> tuple[Array, Array]:
    """H (Z + 1, Z + 1) and g of the rows about the prior's mean, and of a weighed mass.

    Huber's weights are by the residuals that are left where every cause is possible.
    """
    u = system.unknowns
    made, x = system.rows(u.mean), u.coefficients(u.mean)
    gains = made.X[:, u.gain_columns] @ x[u.gain_columns]
    A, r = np.column_stack([made.X @ u.jacobian(u.mean), gains]), made.X @ x
    weights = np.ones(len(r))
    scales = 0.002  # of the mass
    for _ in range(2):
        H = (A * weights[:, None]).T @ A / TEMPERING
        g = -A.T @ (weights * r) / TEMPERING
        if mass is not None:
            own = np.append(u.mass_direction(u.mean), 0.0)
            H = H + np.outer(own, own) / scales**2
            g = g + own * np.log(mass / u.total_mass(u.mean)) / scales**2
        change = _evidence(H, g, np.hstack([factory, V]))[1]
        weights = huber_weights(r + A @ change, made.joint, 1.0)
        weights[made.joint == rows.TIED] = 1.0
    return H, g


def _evidence(H: Array, g: Array, L: Array) -> tuple[float, Array]:
    """Log of p(data | prior L L^T), and the most probable change of the unknowns."""
    A, b = np.eye(L.shape[1]) + L.T @ H @ L, L.T @ g
    w = np.linalg.solve(A, b)
    return float(0.5 * b @ w - 0.5 * np.linalg.slogdet(A)[1]), L @ w


def _describe(system: SlowSystem, kind: str, V: Array, change: Array) -> str:
    """The size of a cause in words."""
    own = change[np.abs(V).max(axis=1) > 0.0]
    if kind == "payload":
        body = float(system.robot.model.bodies.mass.max())
        return f"{body * np.expm1(2.0 * own[0]):+.1f} kg"
    if kind == "torso CoM":
        return f"x {1e3 * own[0]:+.0f}, y {1e3 * own[1]:+.0f} mm"
    if kind == "torque scale":
        scale = V[:, 0] @ change / (V[:, 0] @ V[:, 0]) * _OFF_GAIN
        return f"reads {-100.0 * scale:+.0f} %"
    if kind == "outside pull":
        axes = "in the left sole's axes" if system.robot.flat else "in the feet's axes"
        return f"x {own[0]:+.0f}, y {own[1]:+.0f} N {axes}"
    turned = _OFF_ANGLE * np.linalg.lstsq(V, change, rcond=None)[0]
    angles = ", ".join(f"{np.degrees(angle):+.1f}" for angle in turned[:2])
    return f"{angles} deg"


def _com_bound(
    system: SlowSystem,
    H: Array,
    g: Array,
    factory: Array,
    choices: dict[str, list[Array]],
) -> float:
    """Change of the CoM in the posture, m, 95 %, with any cause possible in the robot."""
    L = np.hstack([factory, *choices["payload"], *choices["torso CoM"]])
    change = _evidence(H, g, L)[1]
    C = L @ np.linalg.solve(np.eye(L.shape[1]) + L.T @ H @ L, L.T)
    posture = np.mean(
        [each.motion.q.mean(axis=0) for each in system.recordings], axis=0
    )
    J = system.unknowns.com(system.unknowns.mean, posture)[1][:2]
    moved = np.linalg.norm(J @ change[:-1])
    # 1.96 standard deviations: 95 %
    return float(moved + 1.96 * np.sqrt(np.linalg.eigvalsh(J @ C[:-1, :-1] @ J.T)[-1]))
