"""Which recordings of walking can be used; legs, noise and unknowns of those that can."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d

from com_bags import UnitError, WalkLog, check_units, in_bursts
from com_bags.unit_checks import EFFORTS
from com_identification.exceptions import WalkError
from com_identification.walking.kernels import EquationNoise, LegChains
from com_identification.walking.log import (
    GOOD_RATE,
    ConditionedLog,
    band,
    condition,
    moving,
    moving_mean,
)
from com_identification.walking.unknowns import FootLoads, Unknowns, make_unknowns
from com_model import Foot, RobotConfig, RobotModel
from com_model.actuators import DRIVES, STANDARD_DEVIATIONS, ActuatorModel
from com_model.arrays import Array, Flags, Indices
from com_model.contact import SUPPORT_LOAD
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses
from com_model.text import listing, quote

LEAST_TIME = 25.0  # s, in all: the covariance needs several blocks of 5 s
_HANGING_TIME = 0.8  # s, longer than the flight of a run
_FALLEN = np.deg2rad(45.0)


def find_limbs(model: RobotModel, config: RobotConfig) -> LegChains:
    """Finds the legs of a robot, the chains of joints from its root to its feet.

    Args:
        model: with the feet's frames (config.attach).
        config: its feet.

    Raises:
        WalkError: there are no feet, two legs share a joint, or no joint moves a foot.
    """
    bodies, feet = model.bodies, config.feet
    if not feet:
        raise WalkError(
            f"{config.source} has no feet: give them (com_setup writes them from the URDF)"
        )
    links = [model.link_index(foot.frame) for foot in feet]
    paths = [bodies.path_to(bodies.body_of_link[link]) for link in links]
    joints = [list(dict.fromkeys(bodies.q_index[path].tolist())) for path in paths]
    for i, own in enumerate(joints):
        shared = {j for j in own for other in joints[:i] if j in other}
        if shared or not own:
            names = listing([model.joint_names[j] for j in sorted(shared)])
            problem = f"{names} also move other feet" if shared else "no joint moves it"
            raise WalkError(
                f"foot {quote(feet[i].frame)}: {problem}. The legs must start from the URDF's root"
            )
    centers = np.array([foot.center for foot in feet])
    return LegChains(
        body=np.array(bodies.body_of_link[links]),
        point=bodies.p_body_link[links]
        + np.einsum("cij,cj->ci", bodies.R_body_link[links], centers),
        radius=np.array([foot.radius for foot in feet]),
        size=np.array([6 if len(foot.corners) else 3 for foot in feet]),
        joint_count=np.array([len(own) for own in joints]),
        joints=_filled(joints),
        path=_filled(paths),
    )


def _filled(rows: list[list[int]]) -> Indices:
    width = max(len(row) for row in rows)
    return np.array([row + [-1] * (width - len(row)) for row in rows], dtype=np.int64)


def drive_sizes(limits: Array, effort_rms: Array) -> Array:
    """Torques (n,) N m that scale the priors of friction, noise and biases.

    They are the rms torques of a Go2's legs when it walks: a third of the URDF's limits, but not
    less than the rms of the recording, nor 3 times more than that or the rms of all joints; those
    where the URDF has no limits.

    Args:
        limits: (n,) N m, of the URDF; 0 or not finite where there is none.
        effort_rms: (n,) N m, in the recordings.
    """
    usual = np.maximum(effort_rms, max(1.0, float(np.sqrt((effort_rms**2).mean()))))
    return np.where(
        np.isfinite(limits) & (limits > 0.0),
        np.clip(limits / 3.0, effort_rms, 3.0 * usual),
        usual,
    )


def noise_of(mass: float, length: float, load: Array) -> EquationNoise:
    """Returns the noise of the equations, by the size of the robot.

    1.5 N, 0.3 N m, 0.2 and 0.3 N m for a robot of 15 kg with legs of 0.3 m and torques of 8 N m.

    Args:
        mass: kg.
        length: m, of the legs.
        load: (n,) N m, sizes of the drives.
    """
    force = 0.01 * mass * GRAVITY
    return EquationNoise(
        force, 0.67 * force * length, 0.2 / 8.0 * load, 0.3 / 8.0 * load
    )


@dataclass(frozen=True, eq=False)
class PreparedWalk:
    """Recordings of a robot that walks, with its unknowns and their priors.

    Attributes:
        model: with the frames of its feet.
        limbs: its legs.
        measured: (n,) joints with torques.
        data: the recordings, conditioned.
        noise: of the equations.
        unknowns: their priors are about the URDF.
        posture: (n,) rad or m, mean of the walk.
        leg_length: m, from the first joint to the foot's link, mean.
        notes: in words, for the report.
    """

    model: RobotModel
    limbs: LegChains
    measured: Flags
    data: list[ConditionedLog]
    noise: EquationNoise
    unknowns: Unknowns
    posture: Array
    leg_length: float
    notes: tuple[str, ...]


def refuse_units(
    logs: Sequence[WalkLog],
    model: RobotModel,
    feet: Sequence[Sequence[Foot]],
    imu: str,
) -> None:
    """Refuses recordings in other units, and names the unit.

    Args:
        logs: recordings of one robot.
        model: as its URDF says, with the frames of its feet.
        feet: of each recording, those that carry the robot.
        imu: link of the IMU.

    Raises:
        WalkError: readings are in another unit, or have another sign or other axes.
    """
    for number, (log, carrying) in enumerate(zip(logs, feet, strict=True), start=1):
        try:
            check_units(log, model, carrying, imu)
        except UnitError as error:
            raise WalkError(f"recording {number}: {error}") from error


def prepare(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    least_time: float = LEAST_TIME,
) -> PreparedWalk:
    """Conditions recordings and finds what the identification needs to know about them.

    Args:
        logs: recordings of one robot.
        model: as its URDF says.
        config: its feet and the IMU's link.
        least_time: s, of all recordings.

    Raises:
        WalkError: they cannot be used; says why.
    """
    model = config.attach(model)
    limbs = find_limbs(model, config)
    measured = measured_joints(model, limbs, logs)
    imu = config.imu_link or model.root_link
    refuse_units(logs, model, [config.feet] * len(logs), imu)
    # rad that the vertical turns at most where a driver has no orientation
    frozen = [
        log.up is not None and np.ptp(log.up, axis=0).max() < 1e-6 for log in logs
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
    check_motion(data, limbs, least_time)
    length = float(np.linalg.norm(p[limbs.body] - p[limbs.path[:, 0]], axis=1).mean())
    load = drive_sizes(model.effort_limits, effort)
    noise = noise_of(model.mass, length, load)
    legs = np.isin(np.arange(model.n_joints), limbs.joints)
    wide = all(log.has_imu for log in logs)
    unknowns = make_unknowns(model, drives(model, config, limbs, load, wide), legs)
    notes = []
    scales = [accelerometer_scale(each) for each in data]
    data = [
        replace(each, motion=each.motion._replace(force=scale * each.motion.force))
        for each, scale in zip(data, scales, strict=True)
    ]
    if set(scales) != {1.0}:
        notes.append(
            f"the accelerometer reads {listing(f'{GRAVITY / s:.2f}' for s in scales)} m/s^2 on "
            f"average: its readings are divided by that over {GRAVITY:.2f}"
        )
    if late := sum(in_bursts(log.time) for log in logs):
        notes.append(
            f"samples of {late} of {len(logs)} recordings arrive in bursts, with stamps of "
            "receipt: they count as evenly spaced"
        )
    if any(frozen):
        notes.append(
            f"the IMU's orientation never changes in {sum(frozen)} of {len(logs)} recordings: it "
            "counts as unknown there, the accelerometer shows the vertical"
        )
    period = max(each.period for each in data)
    if 1.0 / period < GOOD_RATE:
        notes.append(
            f"joint states come {1.0 / period:.0f} times a second: motion up to "
            f"{band(period):.0f} Hz is used, and standard deviations are larger than at 500 Hz"
        )
    return PreparedWalk(
        model, limbs, measured, data, noise, unknowns, posture, length, tuple(notes)
    )


def drives(
    model: RobotModel, config: RobotConfig, limbs: LegChains, load: Array, wide: bool
) -> list[ActuatorModel]:
    """Returns the drives of all joints, see RobotConfig.drives.

    Args:
        model: the robot, n joints.
        config: its actuators and servos.
        limbs: its legs.
        load: (n,) N m, sizes of the drives.
        wide: the recordings show what the drives lose: all of it may be as far from the
            configuration's as it may be from an unknown drive's; load friction may be 0, and
            the rotors those of the servos.
    """
    legs = [own[own >= 0].tolist() for own in limbs.joints]
    found = config.drives(model.joint_names, legs, load)
    armature = config.servo.armature(model.joint_names)
    return [
        _widened(own, float(armature[j]), float(load[j])) if wide else own
        for j, own in enumerate(found)
    ]


def _widened(own: ActuatorModel, armature: float, size: float) -> ActuatorModel:
    """A drive that may be as far off as an unknown one, with biases as they are declared.

    Args:
        own: with all of its values.
        armature: kg m^2, of its servo, which its rotor may have; 0: unknown.
        size: N m, of the drive.
    """
    least = vars(ActuatorModel().filled(size, DRIVES[0])) | {"torque_bias_std": 0.0}
    stds = {key: max(getattr(own, key), least[key]) for key in STANDARD_DEVIATIONS}
    friction, rotor = own.load_friction or 0.0, own.rotor_inertia or 0.0
    stds["load_friction_std"] = max(stds["load_friction_std"], friction)
    if armature > 0.0:
        off = abs(armature - rotor)
        stds["rotor_inertia_std"] = max(stds["rotor_inertia_std"], off)
    return replace(own, **stds)


def accelerometer_scale(each: ConditionedLog) -> float:
    """Returns the factor of the accelerometer's readings by which they are g on average.

    A walk neither rises nor falls on average. 1 where they are within 1 %.

    Args:
        each: a recording.
    """
    motion = each.motion
    mean = float(np.einsum("ki,ki->k", motion.force, motion.up)[each.usable].mean())
    # from 1 % on, the scale of an accelerometer is corrected
    return 1.0 if abs(mean / GRAVITY - 1.0) < 0.01 else GRAVITY / mean


def measured_joints(
    model: RobotModel, limbs: LegChains, logs: Sequence[WalkLog]
) -> Flags:
    """Finds the joints whose efforts are measured, i.e. are never constant for 2 s.

    Args:
        model: the robot, n joints.
        limbs: its legs.
        logs: recordings.

    Returns:
        (n,) whether each joint has efforts.

    Raises:
        WalkError: a joint of a leg has none.
    """
    known = np.ones(model.n_joints, dtype=np.bool_)
    longest = 2.0  # s without a change of the torque
    for log in logs:
        parts = np.array_split(
            np.nan_to_num(log.effort), int(np.ptp(log.time) / longest) + 1
        )
        spread = np.min([np.ptp(part, axis=0) for part in parts], axis=0)
        # more than a tenth of the samples without a torque: the joint has none
        known &= (spread > 1e-6) & (np.isnan(log.effort).mean(axis=0) < 0.1)
    silent = np.setdiff1d(limbs.joints[limbs.joints >= 0], np.flatnonzero(known))
    if len(silent):
        names = listing([model.joint_names[j] for j in silent])
        raise WalkError(
            "these joints of the legs report no torque, or one that stays as it is for "
            f"{longest:g} s: {names}. Expected `effort` in N m in joint_states: let the driver "
            "publish torques (motor current, times torque constant and gear ratio)"
        )
    return known


def check_motion(
    data: Sequence[ConditionedLog], limbs: LegChains, least_time: float = LEAST_TIME
) -> None:
    """Checks that the robot walks.

    Args:
        data: Recordings.
        limbs: Its legs.
        least_time: s, of all recordings.

    Raises:
        WalkError: It stands, falls, or walks for too short a time; says when.
    """
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
    # the feet must carry the robot in 40 % of the time
    if walked < 0.4 * seconds:
        raise WalkError(
            f"the robot walks in {walked:.1f} of {seconds:.1f} s: expected a recording of walking. "
            "Standing postures are for identify with foot force sensors"
        )


def check_loads(
    data: Sequence[ConditionedLog], contacts: Sequence[FootLoads], mass: float
) -> None:
    """Checks that the torques carry the robot.

    Args:
        data: Recordings.
        contacts: Of each recording.
        mass: kg, of the robot by its URDF.

    Raises:
        WalkError: They do not; says why.
    """
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
    if error := EFFORTS.problem(np.array([ratio]), ["feet"], mass):
        raise WalkError(str(error))
    for number, (each, (loads, _)) in enumerate(zip(data, contacts, strict=True), 1):
        light = ~carrying(each, loads, mass)
        # half of the time without load on the feet
        if light.mean() > 0.5:
            raise WalkError(
                f"recording {number}: {each.period * int(np.argmax(light)):.1f} s after the start "
                f"the feet carry less than {100.0 * SUPPORT_LOAD:.0f} % of the weight for "
                f"{_HANGING_TIME:g} s, and in {100.0 * light.mean():.0f} % of the time: the robot "
                "is carried, lies or hangs (or its efforts are currents). Record it on its feet"
            )


def carrying(each: ConditionedLog, loads: Array, mass: float) -> Flags:
    """Returns when (N,) the feet carry the robot; else it lies, hangs or is carried.

    Args:
        each: a recording.
        loads: (N, L) N, of the feet.
        mass: kg, of the robot by its URDF.
    """
    width = round(_HANGING_TIME / each.period)
    weight = mass * np.einsum("ki,ki->k", each.motion.force, each.motion.up)
    means = (moving_mean(values, width) for values in (loads.sum(axis=1), weight))
    carried, needed = means
    light = carried < SUPPORT_LOAD * needed
    return ~maximum_filter1d(light.astype(np.uint8), width).astype(np.bool_)
