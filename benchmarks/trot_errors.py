"""Errors that nobody declares, put into clean logs of trots; and a noise model of another hand.

    log = run_trot(TrotRun("scalf2", noise=CLEAN, ...))
    sensed = independent_noise(with_errors(log, Errors(zero=0.0087)), seed)

Errors of sensors falsify what was read. Legs of another mass are the other way round: the robot
stays, the URDF that the estimator gets is wrong (weighed). Friction must be simulated.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation
from trot_log import TrotLog

from com_model import RobotModel
from com_model.legs import Leg
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.sensors import TROT_NOISE, Noise, NoiseLevels, Reading

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Errors:
    """What is wrong with a robot; (n,) for its joints, (3,) for the IMU, or one number for all.

    Torques first are larger by load friction, pass `low_pass` and come `late`, then have gain and
    bias.

    Attributes:
        gain: Of each torque, relative.
        bias: Of each torque, N m.
        rotor: kg m^2, reflected inertia that the model does not know.
        zero: rad, of each encoder.
        tilt: rad, of the IMU's mounting: true = read + tilt x read.
        arm: m, of the IMU from where the model has it.
        delay: s, of the IMU after the joints, in whole samples.
        late: s, of the torques after the joints, in whole samples.
        low_pass: Hz, corner of a first-order low pass of the torques; 0: none.
        load: friction over the torque that the drive reports; driven joints need that much more.
        elastic: rad/(N m), by which encoders on the motors' side read too much for the torque.
    """

    gain: Array | float = 0.0
    bias: Array | float = 0.0
    rotor: Array | float = 0.0
    zero: Array | float = 0.0
    tilt: Array | float = 0.0
    arm: Array | float = 0.0
    delay: float = 0.0
    late: float = 0.0
    low_pass: float = 0.0
    elastic: float = 0.0
    load: Array | float = 0.0


def with_errors(log: TrotLog, errors: Errors) -> TrotLog:
    """The log as sensors with these errors read it; the truth in it stays."""
    period = log.time[1] - log.time[0]
    rise = np.gradient(log.velocity, period, axis=0)
    w = log.angular_velocity
    dw = np.gradient(w, period, axis=0)
    arm = np.broadcast_to(errors.arm, 3)
    force = log.specific_force + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))
    tilt = Rotation.from_rotvec(np.zeros(3) + errors.tilt)  # true = R read
    count = len(log.time)

    def delayed(by: float) -> NDArray[np.int64]:
        return np.clip(np.arange(count) - round(by / period), 0, count - 1)

    effort, late = log.effort + errors.rotor * rise, delayed(errors.delay)
    direction = np.tanh(log.velocity / 0.02)
    effort = effort / (1.0 - errors.load * direction * np.sign(effort))
    if errors.low_pass:
        a = np.exp(-2.0 * np.pi * errors.low_pass * period)
        start = a * effort[:1]
        effort = lfilter([1.0 - a], [1.0, -a], effort, axis=0, zi=start)[0]
    return replace(
        log,
        position=log.position + errors.zero + errors.elastic * log.effort,
        effort=(1.0 + np.asarray(errors.gain)) * effort[delayed(errors.late)]
        + errors.bias,
        angular_velocity=tilt.inv().apply(w)[late],
        specific_force=tilt.inv().apply(force)[late],
        R_world_imu=(log.R_world_imu @ tilt.as_matrix())[late],
    )


def suite_noise(log: TrotLog, seed: int, factor: float = 1.0) -> TrotLog:
    """The log with the noise of the suite's simulator; TROT_NOISE, the IMU's times a factor."""
    levels: NoiseLevels = replace(
        TROT_NOISE,
        gyro=factor * TROT_NOISE.gyro,
        accelerometer=factor * TROT_NOISE.accelerometer,
        orientation=factor * TROT_NOISE.orientation,
    )
    noise = Noise(levels, log.position.shape[1], 4, seed)
    quaternions = Rotation.from_matrix(log.R_world_imu).as_quat()
    point, no_forces = np.zeros(3), np.zeros((4, 3))
    truth = (point,) * 4 + (
        np.zeros(4),
        no_forces,
        0.0,
        0.0,
        point,
        np.eye(3),
    )  # is not used
    rows = [
        noise.add(Reading(t, p, v, e, np.zeros((4, 6)), o, w, a, *truth))
        for t, p, v, e, o, w, a in zip(
            log.time,
            log.position,
            log.velocity,
            log.effort,
            quaternions,
            log.angular_velocity,
            log.specific_force,
            strict=True,
        )
    ]
    read = SimpleNamespace(
        **{
            name: np.array([getattr(row, name) for row in rows])
            for name in vars(rows[0])
        }
    )
    return replace(
        log,
        position=read.position,
        velocity=read.velocity,
        effort=read.effort,
        angular_velocity=read.angular_velocity,
        specific_force=read.specific_force,
        R_world_imu=Rotation.from_quat(read.imu_orientation).as_matrix(),
    )


def independent_noise(log: TrotLog, seed: int, factor: float = 1.0) -> TrotLog:
    """The log with noise as the suite's simulator does not make it.

    Torques: coloured noise of 1 % with a correlation of 20 ms, a ripple of 0.5 % that goes with the
    joint's angle (six periods a turn of a 1:10 gear), steps of 12 bits. Encoders: 14 bits, an
    eccentricity of 0.01 degrees. Gyro: white noise and a random walk; accelerometer: white noise,
    1 % scale, bias; the IMU's samples come 1 ms late, the attitude wanders by 0.2 degrees in 1 s.
    """
    rng = np.random.default_rng(seed)
    count, n = log.position.shape

    def coloured(shape: tuple[int, ...], std: float, time: float) -> Array:
        a = np.exp(-(log.time[1] - log.time[0]) / time)
        drive = std * np.sqrt(1.0 - a**2) * rng.standard_normal(shape)
        drive[0] = std * rng.standard_normal(shape[1:])
        return np.asarray(lfilter([1.0], [1.0, -a], drive, axis=0))

    phase = rng.uniform(0.0, 2.0 * np.pi, (2, n))
    ripple = 0.005 * np.sin(60.0 * log.position + phase[0])
    effort = log.effort * (1.0 + coloured((count, n), 0.01, 0.02) + ripple)
    step = 2.0 * np.abs(log.effort).max() / 4096.0
    bits = 2.0 * np.pi / 16384.0
    eccentric = log.position + np.deg2rad(0.01) * np.sin(log.position + phase[1])
    gyro = factor * 0.005 * rng.standard_normal((count, 3))
    gyro += np.cumsum(factor * 2e-5 * rng.standard_normal((count, 3)), axis=0)
    force = log.specific_force * (1.0 + 0.01 * rng.standard_normal(3))
    force += factor * (
        0.03 * rng.standard_normal((count, 3))
    ) + 0.02 * rng.standard_normal(3)
    attitude = Rotation.from_rotvec(factor * coloured((count, 3), np.deg2rad(0.2), 1.0))
    late = np.maximum(np.arange(count) - 1, 0)
    return replace(
        log,
        position=np.round(eccentric / bits) * bits,
        effort=np.round(effort / step) * step,
        angular_velocity=(log.angular_velocity + gyro)[late],
        specific_force=force[late],
        R_world_imu=(log.R_world_imu @ attitude.as_matrix())[late],
    )


def with_shocks(log: TrotLog, seed: int) -> TrotLog:
    """The log with what stiff feet and a ringing frame add to the accelerometer at touch-down.

    A burst of 25 to 60 Hz, of 60 to 120 m/s^2, that dies out within 15 to 30 ms; its mean is 0, so
    no force belongs to it.
    """
    rng = np.random.default_rng(seed)
    loaded = (
        log.true_forces[:, :, 2] > 0.05 * log.true_forces[:, :, 2].sum(axis=1).mean()
    )
    force = log.specific_force.copy()
    for foot in loaded.T:
        for k in np.flatnonzero(foot[1:] & ~foot[:-1]):
            t = log.time[k:] - log.time[k]
            size, rate, decay = rng.uniform([60.0, 25.0, 0.015], [120.0, 60.0, 0.03])
            turn = 2.0 * np.pi * rate  # the velocity rings: exp(-t / decay) sin(turn t)
            ring = np.cos(turn * t) - np.sin(turn * t) / (turn * decay)
            ring *= size * np.exp(-t / decay)
            force[k:] += ring[:, None] * [0.1, 0.1, 1.0]
    return replace(log, specific_force=force)


NOISES = {"suite": suite_noise, "independent": independent_noise}


def moved_links(model: RobotModel, legs: Sequence[Leg], shifts: Array) -> RobotModel:
    """The model with the CoMs of the legs' links off by shifts (12, 3) m, axes of the links."""
    changed, bodies = {}, model.bodies
    joints = np.concatenate([leg.joints for leg in legs])
    for i, link in enumerate(model.link_names):
        body = bodies.body_of_link[i]
        if body > 0 and bodies.q_index[body] in joints and model.link_masses[i] > 0.0:
            shift = shifts[int(np.flatnonzero(joints == bodies.q_index[body])[0])]
            changed[link] = Inertial(
                model.link_masses[i],
                model.link_coms[i] + shift,
                model.link_inertias[i],
            )
    return RobotModel.from_urdf(edit_inertials(model.xml, changed))


def lengthened(
    model: RobotModel, legs: Sequence[Leg], lengths: Array, hips: Array
) -> RobotModel:
    """The model with hip, thigh and shank of each leg longer by lengths (4, 3) m.

    Origins of the thigh's and the knee's joint and of the foot's frame move along themselves, the
    hips on the trunk by hips (4, 3) m.
    """
    root = ElementTree.fromstring(model.xml)  # noqa: S314 (the suite's own)
    joints = root.findall("joint")
    for leg, more, moved in zip(legs, lengths, hips, strict=True):
        names = [model.joint_names[j] for j in leg.joints[1:]]
        ends = [next(j for j in joints if j.get("name") == name) for name in names]
        foot = leg.foot.frame
        ends.append(
            next(j for j in joints if j.find("child").attrib["link"] == foot)  # type: ignore[union-attr]
        )
        name = model.joint_names[leg.joints[0]]
        ends.append(next(j for j in joints if j.get("name") == name))
        for k, joint in enumerate(ends):
            origin = joint.find("origin")
            assert origin is not None
            xyz = np.array(origin.attrib["xyz"].split(), dtype=float)
            xyz += moved if k == 3 else more[k] * xyz / np.linalg.norm(xyz)
            origin.set("xyz", " ".join(map(repr, xyz.tolist())))
    return RobotModel.from_urdf(ElementTree.tostring(root, encoding="unicode"))


def weighed(model: RobotModel, legs: Sequence[Leg], factors: Array) -> RobotModel:
    """The model with masses and inertias of the legs' links (12,) times factors."""
    changed, bodies = {}, model.bodies
    joints = np.concatenate([leg.joints for leg in legs])
    for i, link in enumerate(model.link_names):
        body = bodies.body_of_link[i]
        if body > 0 and bodies.q_index[body] in joints and model.link_masses[i] > 0.0:
            factor = factors[int(np.flatnonzero(joints == bodies.q_index[body])[0])]
            changed[link] = Inertial(
                factor * model.link_masses[i],
                model.link_coms[i],
                factor * model.link_inertias[i],
            )
    return RobotModel.from_urdf(edit_inertials(model.xml, changed))
