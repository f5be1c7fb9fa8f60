"""Which recordings of walking cannot be used, and which results may: in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking import rows
from com_identification.walking.fit import Fit
from com_identification.walking.kernels import IMU, Limbs
from com_identification.walking.log import Conditioned, condition, moving, moving_mean
from com_identification.walking.rows import Contacts, Rows
from com_identification.walking.unknowns import KINDS, Scale, Unknowns, make_unknowns
from com_identification.walking.window_kernels import Noise
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, Flags
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses
from com_model.geometry.rotations import angle_between
from com_model.text import listing

_WALKED = 0.4  # fraction of the time
LEAST_TIME = 25.0  # s, in all: the covariance needs several blocks of 5 s
_LOAD = (0.55, 1.8)  # carried by the feet, over the weight by the URDF
_LIFTED, _LIFTED_TIME = 0.35, 0.8  # of the weight; s
_FALLEN = np.deg2rad(45.0)
_STUCK, _ABSENT = (
    2.0,
    0.1,
)  # s without a change of the torque; fraction of samples without one
_ASKEW, _SPUN, _TURNED = np.deg2rad(20.0), 3.0, 0.02  # of the vertical; rad/s, rms
_FROZEN = (
    1e-6  # rad by which the vertical of a driver without orientation turns at most
)
_PERCENT, _GAINED = 5.0, 0.5  # % of the torques; of the URDF's residual
_WHITENED = 0.5, 0.67  # of joints: the median of noise as large as assumed
_TEMPERING = 6.0  # of healthy robots 1.5 to 3.6
_NUISANCE = 4.0  # prior standard deviations; of 75 normal values one is beyond in 0.5 % of robots
_AGREEMENT, _BEST, _CHANGED = (
    3.0,
    20,
    0.04,
)  # standard deviations; directions; of the mass
_SCALE, _LIKELY = 0.03, 2.5  # of the mass; prior standard deviations of the mass
URDF_MASS = "URDF's mass"
_LEAST_BLOCKS, _STEP = 2, 6.0  # on each side of a step of the load; standard deviations
_LOAD_CHANGE = np.array(
    [0.01, 0.003, 0.003, 0.003]
)  # of the mass; m, first moment over it
_UNSEEN = 2.0  # of a block's variance, as of the covariance of all


@dataclass(frozen=True, eq=False)
class Prepared:
    """Recordings of a robot that walks, and its unknowns about the URDF."""

    model: RobotModel  # with the frames of its feet
    limbs: Limbs
    measured: Flags  # (n,) joints with torques
    data: list[Conditioned]
    noise: Noise
    unknowns: Unknowns
    posture: Array  # (n,) mean of the walk
    leg_length: float  # m, from the first joint to the foot's link, mean
    notes: tuple[str, ...]  # in words, for the report


def prepare(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    least_time: float = LEAST_TIME,
) -> Prepared:
    """Conditions recordings, of least_time s in all; a WalkError says why they are no use."""
    model = config.attach(model)
    limbs = rows.find_limbs(model, config)
    measured = measured_joints(model, limbs, logs)
    imu = config.imu_link or model.root_link
    frozen = [
        log.up is not None and np.ptp(log.up, axis=0).max() < _FROZEN for log in logs
    ]
    logs = [
        replace(log, up=None) if same else log
        for log, same in zip(logs, frozen, strict=True)
    ]
    data = [condition(log, model, imu, measured) for log in logs]
    motions = [each.motion for each in data]
    effort = np.sqrt(np.concatenate([m.tau**2 for m in motions]).mean(axis=0))
    posture = np.concatenate([m.q for m in motions]).mean(axis=0)
    _, p = body_poses(model.bodies, posture)
    for number, (log, each) in enumerate(zip(logs, data, strict=True), start=1):
        if fault := imu_fault(each, p[limbs.body].mean(axis=0), log.up is not None):
            raise WalkError(
                f"recording {number}: {fault}. Expected rad/s, m/s^2 with gravity, and the "
                f"orientation, all in the axes that link {imu!r} has in the URDF"
            )
    check_motion(data, limbs, least_time)
    length = float(np.linalg.norm(p[limbs.body] - p[limbs.path[:, 0]], axis=1).mean())
    load = rows.drive_sizes(model.effort_limits, effort)
    noise = rows.noise_of(model.mass, length, load)
    legs = np.isin(np.arange(model.n_joints), limbs.joints)
    unknowns = make_unknowns(
        model, config.servo.armature(model.joint_names), load, legs
    )
    note = (
        f"the IMU's orientation never changes in {sum(frozen)} of {len(logs)} recordings: it "
        "counts as unknown there, the accelerometer shows the vertical"
    )
    notes = (note,) if any(frozen) else ()
    return Prepared(
        model, limbs, measured, data, noise, unknowns, posture, length, notes
    )


def measured_joints(model: RobotModel, limbs: Limbs, logs: Sequence[WalkLog]) -> Flags:
    """Joints (n,) with efforts that go on changing; a WalkError if one of the legs has none."""
    known = np.ones(model.n_joints, dtype=np.bool_)
    for log in logs:
        parts = np.array_split(
            np.nan_to_num(log.effort), int(np.ptp(log.time) / _STUCK) + 1
        )
        spread = np.min([np.ptp(part, axis=0) for part in parts], axis=0)
        known &= (spread > 1e-6) & (np.isnan(log.effort).mean(axis=0) < _ABSENT)
    silent = np.setdiff1d(limbs.joints[limbs.joints >= 0], np.flatnonzero(known))
    if len(silent):
        names = listing([model.joint_names[j] for j in silent])
        raise WalkError(
            f"these joints of the legs report no torque, or one that stays as it is for "
            f"{_STUCK:g} s: {names}. Expected `effort` in N m in joint_states: let the driver "
            "publish torques (motor current, times torque constant and gear ratio)"
        )
    return known


def imu_fault(each: Conditioned, feet: Array, oriented: bool) -> str:
    """What the IMU cannot be right about, in words; "" if nothing.

    The vertical u turns as the gyroscope says, du/dt = -w x u, and on average is where the
    accelerometer has it, which feels g; feet (3,) m, on average in the root link, are below it.
    """
    motion, squares = each.motion, each.motion.omega**2
    force, up = motion.force.mean(axis=0), motion.up.mean(axis=0)
    size, spin = (
        float(np.linalg.norm(force)),
        float(np.sqrt(squares.sum(axis=1).mean())),
    )
    turn, rate = (
        np.cross(motion.up, motion.omega),
        np.gradient(motion.up, each.period, axis=0),
    )
    known = oriented and bool((turn**2).sum() > _TURNED**2 * len(turn))
    follows = float((turn * rate).sum() / (turn**2).sum()) if known else 1.0
    if not 0.8 < size / GRAVITY < 1.25:
        return f"the accelerometer reads {size:.1f} m/s^2 on average"
    if (off := angle_between(force, up)) > _ASKEW:
        return f"orientation and accelerometer differ by {np.degrees(off):.0f} degrees about up"
    if up @ feet > 0.0:
        return "by the IMU the feet are above the trunk"
    if not 0.5 < follows < 2.0:
        return (
            f"the orientation turns {follows:.2f} times as fast as the gyroscope reads"
        )
    return f"the gyroscope reads {spin:.2f} rad/s, rms" if spin > _SPUN else ""


def check_motion(
    data: Sequence[Conditioned], limbs: Limbs, least_time: float = LEAST_TIME
) -> None:
    """Raises an WalkError, that says when, where the robot stands or falls."""
    legs, walked = limbs.joints[limbs.joints >= 0], 0.0
    seconds = sum(each.period * len(each.usable) for each in data)
    for number, each in enumerate(data, start=1):
        time = each.period * np.arange(len(each.usable), dtype=np.float64)
        walked += each.period * float(moving(time, each.motion.q[:, legs]).sum())
        up, middle = each.motion.up, each.motion.up.mean(axis=0)
        tilt = np.arccos(np.clip(up @ middle / np.linalg.norm(middle), -1.0, 1.0))
        if (tilt > _FALLEN).any():
            when = each.period * int(np.argmax(tilt > _FALLEN))
            raise WalkError(
                f"recording {number}: the trunk tilts by {np.degrees(tilt.max()):.0f} degrees "
                f"{when:.1f} s after the start: the robot falls. Leave that part out"
            )
    if seconds < least_time:
        raise WalkError(
            f"the recordings have {seconds:.1f} s in all: expected {least_time:g} s or more, "
            "better 60 s of six gaits"
        )
    if walked < _WALKED * seconds:
        raise WalkError(
            f"the robot walks in {walked:.1f} of {seconds:.1f} s: expected a recording of walking. "
            "Standing postures are for identify with foot force sensors"
        )


def check_loads(
    data: Sequence[Conditioned], contacts: Sequence[Contacts], mass: float
) -> None:
    """Raises an WalkError where the torques do not carry the robot; says why."""
    pairs = [
        (
            loads.sum(axis=1),
            mass * np.einsum("ki,ki->k", each.motion.force, each.motion.up),
        )
        for each, (loads, _) in zip(data, contacts, strict=True)
    ]
    ratio = sum(carried.sum() for carried, _ in pairs) / sum(
        weight.sum() for _, weight in pairs
    )
    if not _LOAD[0] < ratio < _LOAD[1] and abs(ratio) > _LIFTED:
        cause = (
            "have the opposite sign"
            if -_LOAD[1] < ratio < -_LOAD[0]
            else "are in another unit"
        )
        raise WalkError(
            f"by the joints' efforts the feet carry {ratio:.2g} times the weight of the URDF "
            f"({mass:.1f} kg): the efforts {cause}, or the URDF's mass is wrong. Expected N m at "
            "the joint: multiply motor currents by torque constant and gear ratio"
        )
    for number, (each, pair) in enumerate(zip(data, pairs, strict=True), start=1):
        width = round(_LIFTED_TIME / each.period)
        carried, weight = (moving_mean(values, width) for values in pair)
        light = carried < _LIFTED * weight
        if light.any():
            raise WalkError(
                f"recording {number}: {each.period * int(np.argmax(light)):.1f} s after the start "
                f"the feet carry less than {100.0 * _LIFTED:.0f} % of the weight for "
                f"{_LIFTED_TIME:g} s: the robot is carried or hangs (or its efforts are currents). "
                "Leave that part out"
            )


def check_payload(found: Fit, unknowns: Unknowns, starts: Array) -> None:
    """Raises a WalkError, that says when, where the trunk's mass or first moment makes a step.

    Each block i, of starts (K,) s, says by how much these four are off the fit of all, d_i, with a
    variance s_i^2. For a step between blocks, by the means m of those before and after it,

      T^2 = (m_2 - m_1)^2 / (v (1 / W_1 + 1 / W_2)),   W = sum 1 / s_i^2 of each side,
      v = UNSEEN max(1, sum (d_i - m)^2 / s_i^2 / (K - 2))

    The largest T of all steps and components is above _STEP in 0.2 % of recordings in which half of
    the variance of a block's error is that of its gait, in 4 % where it is 90 %; the step must also
    be large. The moment's vertical component alone is no load: flexible joints make it step.
    """
    H, mass, trunk = found.information, unknowns.total_mass(found.z), slice(0, 4)
    if len(H) < 2 * _LEAST_BLOCKS:
        return
    x, own = unknowns.coefficients(found.z), H[:, trunk, trunk]
    off = -np.linalg.solve(own, (H[:, trunk] @ x)[..., None])[..., 0] / mass
    weight = mass**2 / np.diagonal(np.linalg.inv(own), axis1=1, axis2=2)

    def sums(values: Array) -> tuple[Array, Array]:
        """Of the blocks before and after each of the steps."""
        before = np.cumsum(values, axis=0)
        inner = before[_LEAST_BLOCKS - 1 : -_LEAST_BLOCKS]
        return inner, before[-1] - inner

    weights, moments, squares = sums(weight), sums(weight * off), sums(weight * off**2)
    left = [s - m**2 / w for w, m, s in zip(weights, moments, squares, strict=True)]
    variance = _UNSEEN * np.maximum(1.0, (left[0] + left[1]) / (len(H) - 2))
    steps = moments[1] / weights[1] - moments[0] / weights[0]
    size = np.abs(steps) / np.sqrt(variance * (1.0 / weights[0] + 1.0 / weights[1]))
    best = int(size.max(axis=1).argmax())
    changed = (size[best] > _STEP) & (np.abs(steps[best]) > _LOAD_CHANGE)
    if changed.any():
        kg, *moment = (f"{value:+.2f}" for value in mass * steps[best])
        cause = "something was put on, taken off, or slipped"
        if not changed[:3].any():
            cause = "it does not look like a load; joints or feet give way, or the IMU is late"
        raise WalkError(
            f"about {starts[_LEAST_BLOCKS + best]:.0f} s into the recordings the load on the trunk "
            f"changes by {kg} kg, its first moment by {' '.join(moment)} kg m: {cause}. Identify "
            "the parts before and after that separately"
        )


@dataclass(frozen=True)
class Gate:
    """One test of a result."""

    name: str
    text: str  # what was found, and what to do where it failed
    passed: bool
    required: bool = True  # without it nothing is exported


def accept(
    found: Fit, unknowns: Unknowns, held: Rows, scale: Scale
) -> tuple[Gate, ...]:
    """Runs the tests on a fit before its scale is set; held are rows that it has not seen."""
    n, z = unknowns.model.n_joints, found.z
    x, urdf = unknowns.coefficients(z), unknowns.coefficients(unknowns.mean)
    urdf[-(len(KINDS) * n + IMU) :] *= np.repeat(
        [0.0, 1.0, 0.0], [3 * n, n, 2 * n + IMU]
    )
    ours, before = unexplained(held, x, n), unexplained(held, urdf, n)
    size = np.abs(held.X @ x)
    medians = [
        float(np.median(size[own])) if own.any() else 0.0
        for own in (held.base, ~held.base)
    ]
    order = np.arange(len(found.information))
    gates = [
        Gate(
            "held-out torques",
            f"{ours:.1f} % of the torques are not explained in the part that was held out, by the "
            f"URDF {before:.1f} %; limits {_PERCENT:g} % and half of the URDF's",
            bool(ours < _PERCENT and ours < _GAINED * before),
        ),
        Gate(
            "residuals",
            f"medians {medians[0]:.2f} (base) and {medians[1]:.2f} (joints), limits "
            f"{_WHITENED[0]} and {_WHITENED[1]}",
            bool((np.array(medians) < _WHITENED).all()),
        ),
        Gate(
            "tempering",
            f"residuals of a gait vary {found.tempering:.1f} times as they should, limit "
            f"{_TEMPERING:g}: above, something is not modelled (soft ground, flexible joints, a "
            "late IMU, a payload that changed)",
            found.tempering < _TEMPERING,
        ),
        _nuisances(unknowns, z),
        _agreement(found, unknowns, order % 2 == 0, "odd and even blocks"),
        _agreement(found, unknowns, order < len(order) / 2, "first and second half"),
    ]
    name, limit, mass = "weighed mass", _SCALE, scale.mass
    if mass is None:
        name, mass, own = URDF_MASS, unknowns.model.mass, unknowns.mean
        limit = _LIKELY * float(
            np.linalg.norm(unknowns.mass_direction(own) * unknowns.std)
        )
    rho = mass / unknowns.total_mass(z)
    text = (
        f"the {name} is {100.0 * (rho - 1.0):+.1f} % off that of torques with a mean gain of 1, "
        f"limit {100.0 * limit:.0f} %: above, torques have a wrong scale or another unit, or the "
        "robot has another load. Weigh it as it walks: --mass KG"
    )
    gates.append(Gate(name, text, bool(abs(np.log(rho)) < limit)))
    return tuple(gates)


def unexplained(rows: Rows, x: Array, n: int) -> float:
    """Residual over the part of the torques, rms, %."""
    gains = slice(len(x) - IMU - 3 * n, len(x) - IMU - 2 * n)
    torques = rows.X[:, gains] @ x[gains]
    return float(100.0 * np.linalg.norm(rows.X @ x) / np.linalg.norm(torques))


def _nuisances(unknowns: Unknowns, z: Array) -> Gate:
    """Friction, gains, biases, encoder and IMU errors near what the prior has."""
    off = (z - unknowns.mean) / unknowns.std
    names, joints = [], np.array(unknowns.model.joint_names)
    for kind in KINDS:
        own = off[unknowns.joint_slice(kind)]
        if kind == "gain":
            own = (unknowns.joints(z, kind) - 1.0) / unknowns.std[
                unknowns.joint_slice(kind)
            ][0]
        names += [f"{kind} of {joint}" for joint in joints[np.abs(own) > _NUISANCE]]
    for name, own in (("accelerometer bias", off[-IMU:-3]), ("IMU mounting", off[-3:])):
        names += [name] * bool((np.abs(own) > _NUISANCE).any())
    text = "friction, gains, biases, encoders, IMU within 4 standard deviations of what is usual"
    return Gate(
        "nuisances", f"too large: {listing(names, 6)}" if names else text, not names
    )


def _agreement(found: Fit, unknowns: Unknowns, first: Flags, what: str) -> Gate:
    """Whether two parts of the recording give the same estimates in the best directions."""
    s, z = unknowns.std, found.z
    D, x = unknowns.jacobian(z) * s, unknowns.coefficients(z)
    estimates, covariances = [], []
    for part in (first, ~first):
        H = found.information[part].sum(axis=0) / found.tempering
        covariances.append(np.linalg.inv(D.T @ H @ D + np.eye(len(z))))
        estimates.append(-covariances[-1] @ (D.T @ (H @ x) + (z - unknowns.mean) / s))
    best = np.linalg.eigh(D.T @ found.information.sum(axis=0) @ D)[1][:, -_BEST:]
    difference = best.T @ (estimates[0] - estimates[1])
    variance = np.einsum("ik,ij,jk->k", best, covariances[0] + covariances[1], best)
    rms = float(np.sqrt((difference**2 / variance).mean()))
    change = float(unknowns.mass_direction(z) * s @ (estimates[1] - estimates[0]))
    text = (
        f"differ by {rms:.1f} standard deviations, limit {_AGREEMENT:g}; masses by "
        f"{100.0 * change:+.1f} %, limit {100.0 * _CHANGED:g} %. A payload changed, or the model "
        "lacks something"
    )
    return Gate(
        f"agreement of {what}", text, rms < _AGREEMENT and abs(change) < _CHANGED
    )
