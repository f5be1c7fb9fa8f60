"""Which further motion would tell most of a robot: by the information that recordings have.

Rows of motions that nobody has recorded are made of seconds of one that was: the trunk's motion is
turned, sped up or leant, the legs follow, and the torques of the joints become those that satisfy
the equations. With H the information of all recordings over the tempering, H_k that of 10 s of a
motion, S the priors, and G the derivatives of the CoM in postures by z,

  expected covariance of the CoM = G (D^T (H + H_k) D + S^-2)^-1 G^T
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from com_bags import WalkLog
from com_identification.walking import acceptance, rows
from com_identification.walking.fit import descend
from com_identification.walking.inertia import PARAMETERS
from com_identification.walking.kernels import Limbs, Motion
from com_identification.walking.log import Conditioned
from com_identification.walking.prepare import Prepared, prepare
from com_identification.walking.unknowns import Unknowns
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses
from com_model.dynamics.tree_kernels import tree_of
from com_model.geometry.rotations import rotations_about

Seconds = tuple[Conditioned, rows.Contacts]
LONGER = 10.0  # s of a further motion
TEMPERING = 12.0  # of recordings that nothing is identified from yet: a gait's 6, and UNSEEN
_EXCERPT = 3.0  # s of which further motions are made
_LEAST = 5.0  # s of a recording that is analysed
_STAYS = 0.9  # posterior over prior standard deviation of a body of which nothing is known
_QUICKER, _LEAN, _LOWER = 1.33, np.deg2rad(10.0), 0.15  # ; rad; of the legs' length
_TURN, _SWING, _SWINGS = 0.7, 0.3, 6.0  # rad/s; rad, rad/s of joints of no leg
_STEP, _DAMPING = 1e-6, 1e-3  # rad; of the legs' length, squared


class Advice(NamedTuple):
    """What recordings would determine of a robot, and what to record next."""

    com_std: Array  # (3,) m, of the whole robot's CoM, rms over postures, axes of the root link
    prior_com_std: Array  # (3,) m, without any recording
    improved: int  # directions of the unknowns of which the data tell more than the prior
    unknown: tuple[str, ...]  # bodies that stay at the URDF
    motions: tuple[tuple[str, float], ...]  # in words; m, length of com_std after LONGER of it
    same: float  # m, likewise after more of what was recorded

    @property
    def text(self) -> str:
        """What to record next, in words."""
        best = ", ".join(f"{name} ({1e3 * std:.1f} mm)" for name, std in self.motions[:3])
        return (
            f"whole-body CoM known to {1e3 * float(np.linalg.norm(self.com_std)):.1f} mm in other "
            f"postures; after {LONGER:g} s more of the same {1e3 * self.same:.1f} mm, of other "
            f"motions: {best}"
        )


def com_std(unknowns: Unknowns, z: Array, covariance: Array, posture: Array) -> Array:
    """Standard deviation (3,) m of the whole robot's CoM, rms over random postures."""
    return _spread(_targets(unknowns, z, posture), covariance)


def advise(
    ready: Prepared,
    unknowns: Unknowns,
    z: Array,
    information: Array,
    tempering: float,
    contacts: rows.Contacts,
) -> Advice:
    """Compares motions that may be recorded next.

    Args:
        unknowns: About the recordings as they are in `ready`; z (Z,) is the estimate.
        information: (P, P) X^T W X of the recordings.
        tempering: Factor by which that is too large.
        contacts: Of the newest recording, of which the motions are made.
    """
    s, D, x = unknowns.std, unknowns.jacobian(z), unknowns.coefficients(z)
    targets = _targets(unknowns, z, ready.posture)

    def relative(information: Array) -> Array:
        return np.asarray(np.outer(s, s) * (D.T @ information @ D))

    def covariance(relative: Array) -> Array:
        return np.asarray(np.linalg.inv(relative + np.eye(len(s))) * np.outer(s, s))

    now = relative(information / tempering)
    C = covariance(now)
    excerpt, touching = _excerpt(ready.data[-1], contacts)
    seconds = excerpt.period * len(excerpt.usable)
    weight = LONGER / seconds / tempering
    lengths = {}
    for name, change in _MOTIONS.items():
        moved = change(excerpt.motion, ready)
        if moved is None:
            continue
        changed = Motion(*(np.ascontiguousarray(v) for v in moved))
        data = replace(excerpt, motion=changed), touching
        more = relative(weight * _consistent_information(ready, data, x))
        lengths[name] = float(np.linalg.norm(_spread(targets, covariance(now + more))))
    same = lengths.pop(_SAME)
    ratios = (np.sqrt(np.diag(C)) / s)[: unknowns.eta(z).size].reshape(-1, PARAMETERS)
    names = np.array(unknowns.model.bodies.names)[unknowns.bodies]
    return Advice(
        com_std=_spread(targets, C),
        prior_com_std=_spread(targets, np.diag(s**2)),
        improved=int((np.linalg.eigvalsh(now) > 1.0).sum()),
        unknown=tuple(str(n) for n, r in zip(names, ratios, strict=True) if stays_at_urdf(r)),
        motions=tuple(sorted(lengths.items(), key=lambda item: item[1])),
        same=same,
    )


def analyse(
    log: WalkLog, model: RobotModel, config: RobotConfig, before: Array | None
) -> tuple[Array, Advice]:
    """Adds a part of a recording to the information (P, P) of those before; nothing is identified.

    Raises:
        WalkError: The recording is no use, for the same reasons as in an identification.
    """
    ready = prepare([log], model, config, _LEAST)
    unknowns, robot = ready.unknowns, tree_of(ready.model.bodies)
    mass, data = float(robot.mass.sum()), ready.data
    contacts = [rows.find_contacts(data[0], robot, ready.limbs, mass)]
    acceptance.check_loads(data, contacts, mass)
    x = unknowns.coefficients(unknowns.mean)
    X = rows.make_rows(data, contacts, robot, ready.limbs, ready.noise, ready.measured, x).X
    total = X.T @ X + (0.0 if before is None else before)
    z = descend(total, unknowns, unknowns.mean, TEMPERING)
    return total, advise(ready, unknowns, z, total, TEMPERING, contacts[0])


def stays_at_urdf(ratios: Array) -> bool:
    """Whether mass and CoM of a body stay where they were; ratios (10,) of log-Cholesky ones."""
    return bool(min(ratios[0], ratios[7:].min()) > _STAYS)


def _targets(unknowns: Unknowns, z: Array, posture: Array) -> Array:
    """Derivatives (3 K, Z) of the CoM in random postures about one."""
    off = np.random.default_rng(0).uniform(-0.3, 0.3, (20, len(posture)))
    return np.vstack([unknowns.com(z, q)[1] for q in posture + off])


def _spread(targets: Array, covariance: Array) -> Array:
    variances = np.einsum("ki,ij,kj->k", targets, covariance, targets).reshape(-1, 3)
    return np.asarray(np.sqrt(np.maximum(variances, 0.0).mean(axis=0)))


def _excerpt(
    data: rows.Conditioned, contacts: rows.Contacts
) -> tuple[rows.Conditioned, rows.Contacts]:
    """The last seconds of a recording."""
    last = slice(-max(1, round(_EXCERPT / data.period)), None)
    motion = Motion(*(values[last] for values in data.motion))
    loads, airborne = contacts
    return replace(data, motion=motion, usable=data.usable[last]), (loads[last], airborne[last])


def _consistent_information(ready: Prepared, data: Seconds, x: Array) -> Array:
    """X^T X of a motion whose torques are those by which the rows X x vanish.

    The torques, in the gains' columns, change by as little as possible of what they are.
    """
    robot, gains = tree_of(ready.model.bodies), ready.unknowns.gain_columns
    made = rows.make_rows([data[0]], [data[1]], robot, ready.limbs, ready.noise, ready.measured, x)
    parts = made.X[made.base].reshape(-1, 6, len(x)), made.X[~made.base][:, None, :]
    total = np.zeros((len(x), len(x)))
    for X in parts:  # (K, 6 or 1, P): rows of the same torques
        M = X[:, :, gains] * x[gains]
        weight = 1.0 / np.maximum((M**2).sum(axis=1), 1e-12)[:, None, :]
        scaled = (M * weight).transpose(0, 2, 1)
        change = (
            scaled @ np.linalg.pinv(M @ scaled, rcond=1e-6, hermitian=True) @ (X @ x)[..., None]
        )
        X[:, :, gains] *= 1.0 - change.transpose(0, 2, 1)
        flat = X.reshape(-1, len(x))
        total += flat.T @ flat
    return total


# --- motions ------------------------------------------------------------------------------------
_SAME = "more of the same"


def _turned(motion: Motion, axis: Array, angle: float) -> Motion:
    """The trunk's motion turned against its own axes; the joints as they are."""
    R = rotations_about(axis[None, :], np.array([angle]))[0]
    rotated = {name: getattr(motion, name) @ R.T for name in ("omega", "omega_dot", "force", "up")}
    return motion._replace(**rotated)


def _leant(direction: int, sign: float) -> Callable[[Motion, Prepared], Motion | None]:
    """The trunk leans about a horizontal axis while the feet stay."""

    def change(motion: Motion, ready: Prepared) -> Motion:
        turned = _turned(motion, np.eye(3)[direction], -sign * _LEAN)
        R = rotations_about(np.eye(3)[direction][None, :], np.array([-sign * _LEAN]))[0]
        feet = _feet(ready, ready.posture)
        return turned._replace(q=motion.q + _follow(ready, feet @ R.T - feet))

    return change


def _lowered(motion: Motion, ready: Prepared) -> Motion:
    up = motion.up.mean(axis=0)
    feet = np.tile(_LOWER * ready.leg_length * up, (len(ready.limbs.body), 1))
    return motion._replace(q=motion.q + _follow(ready, feet))


def _quicker(motion: Motion, ready: Prepared) -> Motion:
    f, weight = _QUICKER, GRAVITY * motion.up
    return motion._replace(
        qd=f * motion.qd,
        qdd=f**2 * motion.qdd,
        omega=f * motion.omega,
        omega_dot=f**2 * motion.omega_dot,
        force=weight + f**2 * (motion.force - weight),
    )


def _sideways(motion: Motion, ready: Prepared) -> Motion:
    up = motion.up.mean(axis=0)
    return _turned(motion, up / np.linalg.norm(up), np.pi / 2.0)._replace(up=motion.up)


def _turning(motion: Motion, ready: Prepared) -> Motion:
    """A rate of turning that comes and goes with the period of the swings."""
    angle = _SWINGS * 0.5 * np.linspace(0.0, _EXCERPT, len(motion.q))[:, None]
    omega, omega_dot = _TURN * np.sin(angle), _TURN * 0.5 * _SWINGS * np.cos(angle)
    turning = motion.omega + omega * motion.up
    return motion._replace(omega=turning, omega_dot=motion.omega_dot + omega_dot * motion.up)


def _swung(motion: Motion, ready: Prepared) -> Motion | None:
    """Joints of no leg swing, each in its own phase."""
    joints = np.setdiff1d(np.arange(motion.q.shape[1]), ready.limbs.joints)
    if not len(joints):
        return None
    time = np.linspace(0.0, _EXCERPT, len(motion.q))[:, None]
    angle = _SWINGS * time * (1.0 + 0.1 * np.arange(len(joints))) + joints
    q, qd, qdd, sign = (np.array(v) for v in (motion.q, motion.qd, motion.qdd, motion.sign))
    q[:, joints] += _SWING * np.sin(angle)
    qd[:, joints] += _SWING * _SWINGS * np.cos(angle)
    qdd[:, joints] -= _SWING * _SWINGS**2 * np.sin(angle)
    sign[:, joints] = np.sign(qd[:, joints])
    return motion._replace(q=q, qd=qd, qdd=qdd, sign=sign)


_MOTIONS: dict[str, Callable[[Motion, Prepared], Motion | None]] = {
    _SAME: lambda motion, ready: motion,
    "another step frequency (a third quicker)": _quicker,
    "lean the trunk 10 degrees forwards": _leant(1, 1.0),
    "lean the trunk 10 degrees backwards": _leant(1, -1.0),
    "lean the trunk 10 degrees sideways": _leant(0, 1.0),
    "lower the trunk": _lowered,
    "walk sideways": _sideways,
    "turn on the spot": _turning,
    "swing the arms and bend the waist": _swung,
}


def _feet(ready: Prepared, q: Array) -> Array:
    """Points (L, 3) m of the feet in the root link's frame."""
    R, p = body_poses(ready.model.bodies, q)
    limbs: Limbs = ready.limbs
    return p[limbs.body] + np.einsum("lij,lj->li", R[limbs.body], limbs.point)


def _follow(ready: Prepared, move: Array) -> Array:
    """Change (n,) of the legs' joints that moves the feet by (L, 3) m, damped, to first order."""
    feet, change = _feet(ready, ready.posture), np.zeros(len(ready.posture))
    for c in range(len(feet)):
        joints = ready.limbs.joints[c][ready.limbs.joints[c] >= 0]
        steps = np.tile(ready.posture, (len(joints), 1))
        steps[np.arange(len(joints)), joints] += _STEP
        J = np.array([(_feet(ready, q)[c] - feet[c]) / _STEP for q in steps]).T
        damping = _DAMPING * ready.leg_length**2 * np.eye(3)
        change[joints] += J.T @ np.linalg.solve(J @ J.T + damping, move[c])
    return change
