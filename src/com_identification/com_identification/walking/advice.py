"""Which further motion would be most informative, by the information of the recordings so far.

Rows of motions that nobody has recorded are made of seconds of one that was: the trunk's motion
is changed, and torques become those that satisfy the equations. With H the information of
recordings over the tempering, H_k that of 10 s of a motion, S the priors, G derivatives of the
CoM by z,

  expected covariance of the CoM = G (D^T (H + H_k) D + S^-2)^-1 G^T
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from com_bags import WalkLog
from com_identification.walking import rows
from com_identification.walking.fit import descend
from com_identification.walking.kernels import MotionSamples
from com_identification.walking.log import ConditionedLog
from com_identification.walking.preparation import PreparedWalk, check_loads, prepare
from com_identification.walking.unknowns import FootLoads, Unknowns
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import tree_of

LONGER = 10.0  # s of a further motion
# of recordings that nothing is identified from yet: a gait's 6, and 2 for what few gaits hide
TEMPERING = 12.0


class Advice(NamedTuple):
    """Information of recordings, and what to record next.

    Attributes:
        com_std: (3,) m, of the whole robot's CoM, rms over postures, axes of the root link.
        prior_com_std: (3,) m, without any recording.
        improved: number of directions of the unknowns in which the data have more information
            than the prior.
        unknown: bodies that stay at the URDF.
        motions: in words; m, length of com_std after LONGER of it; the best first.
        same: m, length of com_std after LONGER of what was recorded.
    """

    com_std: Array
    prior_com_std: Array
    improved: int
    unknown: tuple[str, ...]
    motions: tuple[tuple[str, float], ...]
    same: float

    @property
    def text(self) -> str:
        """What to record next, in words."""
        best = ", ".join(
            f"{name} ({1e3 * std:.1f} mm)" for name, std in self.motions[:3]
        )
        return (
            f"whole-body CoM known to {1e3 * float(np.linalg.norm(self.com_std)):.1f} mm in other "
            f"postures; after {LONGER:g} s more of the same {1e3 * self.same:.1f} mm, of other "
            f"motions: {best}"
        )


def com_std(unknowns: Unknowns, z: Array, covariance: Array, posture: Array) -> Array:
    """Returns the standard deviation (3,) m of the CoM, rms over random postures about one.

    Args:
        unknowns: with their priors.
        z: (Z,) the estimate.
        covariance: (Z, Z) of z.
        posture: (n,) rad or m.
    """
    return _spread(_targets(unknowns, z, posture), covariance)


def _targets(unknowns: Unknowns, z: Array, posture: Array) -> Array:
    """Derivatives (K, 3, Z) of the CoM in random postures by z."""
    off = np.random.default_rng(0).uniform(-0.3, 0.3, (20, len(posture)))
    return np.array([unknowns.com(z, q)[1] for q in posture + off])


def _spread(targets: Array, covariance: Array) -> Array:
    variances = np.sum(targets @ covariance * targets, axis=2)
    return np.asarray(np.sqrt(variances.mean(axis=0)))


def advise(
    ready: PreparedWalk,
    z: Array,
    information: Array,
    tempering: float,
    contacts: FootLoads,
) -> Advice:
    """Compares motions that may be recorded next.

    Args:
        ready: the recordings.
        z: (Z,) estimate, of unknowns about the recordings as they are in `ready`.
        information: (P, P) X^T W X of the recordings.
        tempering: by which the information is divided.
        contacts: of the newest recording, of which the motions are made.
    """
    unknowns = ready.unknowns
    s, D, x = unknowns.std, unknowns.jacobian(z), unknowns.coefficients(z)
    # motions are made of the last 2 s
    last = slice(-round(2.0 / ready.data[-1].period), None)
    loads, airborne = contacts[0][last], contacts[1][last]
    motion = MotionSamples(*(values[last] for values in ready.data[-1].motion))
    data = replace(ready.data[-1], motion=motion, usable=ready.data[-1].usable[last])
    weight, targets = (
        LONGER / (data.period * len(loads)),
        _targets(unknowns, z, ready.posture),
    )

    def spread(H: Array) -> tuple[Array, Array]:
        """Standard deviations of the CoM (3,) and of z over the priors' (Z,)."""
        C = np.linalg.inv(np.outer(s, s) * (D.T @ H @ D) / tempering + np.eye(len(s)))
        return _spread(targets, np.outer(s, s) * C), np.sqrt(np.diag(C))

    lengths = {}
    for name, change in _MOTIONS.items():
        moved = replace(
            data, motion=MotionSamples(*map(np.ascontiguousarray, change(motion)))
        )
        more = weight * _consistent_information(ready, moved, (loads, airborne), x)
        lengths[name] = float(np.linalg.norm(spread(information + more)[0]))
    same = lengths.pop(_SAME)
    std, ratios = spread(information)
    each = zip(unknowns.body_names, unknowns.eta(ratios), strict=True)
    return Advice(
        com_std=std,
        prior_com_std=spread(0.0 * information)[0],
        improved=int((ratios < np.sqrt(0.5)).sum()),
        unknown=tuple(name for name, r in each if stays_at_urdf(r)),
        motions=tuple(sorted(lengths.items(), key=lambda item: item[1])),
        same=same,
    )


def analyse(
    log: WalkLog, model: RobotModel, config: RobotConfig, before: Array | None
) -> tuple[Array, Advice]:
    """Adds a part of a recording to the information of those before; nothing is identified.

    Args:
        log: part of a recording.
        model: the robot, as its URDF says.
        config: its feet and the IMU's link.
        before: (P, P) information of the parts before; None: there are none.

    Returns:
        The information (P, P), and what to record next.

    Raises:
        WalkError: it cannot be used, for the same reasons as in an identification.
    """
    # a part of 5 s is analysed
    ready = prepare([log], model, config, 5.0)
    data, unknowns, robot = ready.data, ready.unknowns, tree_of(ready.model.bodies)
    contacts = [rows.find_contacts(data[0], robot, ready.limbs, model.mass)]
    check_loads(data, contacts, model.mass)
    x = unknowns.coefficients(unknowns.mean)
    X = rows.make_rows(
        data, contacts, robot, ready.limbs, ready.noise, ready.measured, x
    ).X
    total = X.T @ X + (0.0 if before is None else before)
    z = descend(total, unknowns, unknowns.mean, TEMPERING)
    return total, advise(ready, z, total, TEMPERING, contacts[0])


def stays_at_urdf(ratios: Array) -> bool:
    """Returns whether mass and CoM of a body keep their priors.

    Args:
        ratios: (10,) posterior over prior standard deviation of its log-Cholesky parameters.
    """
    # a body whose standard deviations stay above 90 % of the prior's has no information
    return bool(min(ratios[0], ratios[7:].min()) > 0.9)


def _consistent_information(
    ready: PreparedWalk, data: ConditionedLog, contacts: FootLoads, x: Array
) -> Array:
    """X^T X of a motion whose torques are those by which the rows X x vanish.

    The torques, in the gains' columns, change by as little as possible of what they are.
    """
    robot, gains = tree_of(ready.model.bodies), ready.unknowns.gain_columns
    made = rows.make_rows(
        [data], [contacts], robot, ready.limbs, ready.noise, ready.measured, x
    )
    total = np.zeros((len(x), len(x)))
    for X in (made.X[made.base].reshape(-1, 6, len(x)), made.X[~made.base][:, None, :]):
        M = X[:, :, gains] * x[gains]  # (K, 6 or 1, n), rows of the same torques
        scaled = (M / np.maximum((M**2).sum(axis=1), 1e-12)[:, None, :]).transpose(
            0, 2, 1
        )
        inverse = np.linalg.pinv(M @ scaled, rcond=1e-6, hermitian=True)
        X[:, :, gains] *= 1.0 - (scaled @ inverse @ (X @ x)[:, :, None]).transpose(
            0, 2, 1
        )
        total += np.einsum("kip,kiq->pq", X, X, optimize=True)
    return total


# --- motions ------------------------------------------------------------------------------------
_SAME = "more of the same"


def _leant(axis: int, angle: float) -> Callable[[MotionSamples], MotionSamples]:
    """The trunk leans by degrees about its own axis."""
    R = Rotation.from_euler("xyz"[axis], angle, degrees=True).as_matrix()
    names = "omega", "omega_dot", "force", "up"
    return lambda motion: motion._replace(
        **{name: getattr(motion, name) @ R for name in names}
    )


def _sideways(motion: MotionSamples) -> MotionSamples:
    """What the trunk did forwards it does to the left."""
    R, weight = (
        np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        GRAVITY * motion.up,
    )
    return motion._replace(
        omega=motion.omega @ R,
        omega_dot=motion.omega_dot @ R,
        force=weight + (motion.force - weight) @ R,
    )


def _quicker(motion: MotionSamples) -> MotionSamples:
    # a third quicker
    f, weight = 1.33, GRAVITY * motion.up
    rates = {"qd": f, "qdd": f**2, "omega": f, "omega_dot": f**2}
    faster = {name: factor * getattr(motion, name) for name, factor in rates.items()}
    return motion._replace(**faster, force=weight + f**2 * (motion.force - weight))


_MOTIONS: dict[str, Callable[[MotionSamples], MotionSamples]] = {
    _SAME: lambda motion: motion,
    "another step frequency (a third quicker)": _quicker,
    "lean the trunk 10 degrees forwards": _leant(1, 10.0),
    "lean the trunk 10 degrees backwards": _leant(1, -10.0),
    "lean the trunk 10 degrees sideways": _leant(0, 10.0),
    "walk sideways": _sideways,
}
