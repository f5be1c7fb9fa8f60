"""Samples of a quadruped that trots or stands, spoiled at will, and what is found in them."""

import math
from dataclasses import replace
from functools import cache

import numpy as np

from com_estimation.trunk.interface import Sample
from com_estimation.trunk.pipeline import InputChecks
from com_estimation.trunk.sensor_checks import reason
from com_model import RobotConfig, RobotModel
from com_model.legs import quadruped_legs

LEG = """
 <joint name="{n}_haa" type="revolute"><parent link="base"/><child link="{n}_hip"/>
  <origin xyz="{x} {y} 0"/><axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="90" velocity="9"/>
 </joint><link name="{n}_hip"/>
 <joint name="{n}_hfe" type="revolute"><parent link="{n}_hip"/><child link="{n}_thigh"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="90" velocity="9"/></joint>
 <link name="{n}_thigh"/>
 <joint name="{n}_kfe" type="revolute"><parent link="{n}_thigh"/><child link="{n}_shank"/>
  <origin xyz="0 0 -0.3"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" effort="90" velocity="9"/></joint>
 <link name="{n}_shank"/>
 <joint name="{n}_end" type="fixed"><parent link="{n}_shank"/><child link="{n}_foot"/>
  <origin xyz="0 0 -0.3"/></joint><link name="{n}_foot"/>"""
NAMES = {"lf": (1, 1), "rf": (1, -1), "lh": (-1, 1), "rh": (-1, -1)}
URDF = (
    '<robot name="quad"><link name="base"><inertial><mass value="30"/></inertial></link>'
    + "".join(LEG.format(n=n, x=0.4 * x, y=0.2 * y) for n, (x, y) in NAMES.items())
    + "</robot>"
)
CONFIG = {
    "name": "quad",
    "feet": {
        f"{n}_foot": {
            "side": "left" if y > 0 else "right",
            "end": "front" if x > 0 else "hind",
            "radius": 0.02,
        }
        for n, (x, y) in NAMES.items()
    },
}
MODEL = RobotModel.from_urdf(URDF)
LEGS = quadruped_legs(MODEL, RobotConfig.from_dict(CONFIG))
COUNT = 12
ENCODER_STEP = 2 * math.pi / 2**16


@cache
def trot(duration, rate=1000.0, hertz=1.0):
    """Samples of a robot that trots on the spot: a leg is bent while it swings and stands else."""
    rng = np.random.default_rng(1)
    time = np.arange(int(duration * rate))[:, None] / rate
    phase = (np.repeat([0.0, 0.5, 0.5, 0.0], 3) + hertz * time) % 1.0
    swings = phase < 0.5
    bend = np.where(swings, np.sin(2 * np.pi * phase) ** 2, 0.0)
    speed = np.where(swings, 2 * np.pi * hertz * np.sin(4 * np.pi * phase), 0.0)
    amplitude = np.tile([0.002, 0.3, 0.6], 4)
    q = amplitude * bend + 1e-4 * np.sin(7.0 * time)
    position = np.round(q / ENCODER_STEP) * ENCODER_STEP
    torque = np.where(swings, 2.0, 40.0) + 3.0 * np.sin(9.0 * time + np.arange(COUNT))
    torque *= 1 + 0.01 * rng.normal(size=torque.shape)
    velocity = amplitude * speed + 0.005 * rng.normal(size=torque.shape)
    gyro = 0.005 * rng.normal(size=(len(time), 3))
    force = [0, 0, 9.81] + 0.03 * rng.normal(size=gyro.shape)
    times = 100.0 + time[:, 0]
    columns = zip(times.tolist(), position, torque, velocity, gyro, force, strict=True)
    return [Sample(*values, R_world_imu=np.eye(3)) for values in columns]


def stand(duration, rate=1000.0, noise=1.0):
    for k, sample in enumerate(trot(duration, rate)):
        rng = np.random.default_rng(k)
        yield replace(
            sample,
            position=np.full(COUNT, 0.25),
            velocity=0.005 * rng.normal(size=COUNT) + 0.002,
            effort=40.0 + noise * rng.normal(size=COUNT),
        )


def run(samples, change=lambda t, s: s, health=None):
    """Verdicts by time since the start; `change` spoils the samples."""
    health = health or InputChecks(MODEL, LEGS)
    verdicts = {}
    for sample in samples:
        time = sample.time - 100.0
        verdicts[round(time, 6)] = health.check(change(time, sample))
    return verdicts


def spoiled(sample, joint, **values):
    changes = {}
    for key, value in values.items():
        changes[key] = getattr(sample, key).copy()
        changes[key][joint] = value
    return replace(sample, **changes)


def between(verdicts, start, end):
    return [v for t, v in verdicts.items() if start <= t < end]


def assert_sound(verdicts):
    for verdict in verdicts:
        assert reason(verdict.problems) == ""
        assert verdict.sample is not None
        assert np.isfinite(verdict.sample.effort).all()
        assert np.isfinite(verdict.sample.specific_force).all()


def stuck(joint, begin, end, **more):
    """A joint's position stays at its last value for a time."""
    last = {}

    def change(time, sample):
        if not begin <= time < end:
            last["q"] = sample.position[joint]
            return sample
        return spoiled(sample, joint, position=last["q"], **more)

    return change


def nan3():
    return np.full(3, np.nan)


def worst_is(verdict, severity):
    return max(problem.severity for problem in verdict.problems) is severity
