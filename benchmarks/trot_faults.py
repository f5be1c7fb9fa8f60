"""Sensors that fail while a quadruped trots with feedback: does it fall?

    tools/in_env python benchmarks/trot_faults.py [ROBOT ...] [--fault NAME ...]

SCALF-II, A1 and ANYmal trot forwards in lockstep with the simulator, by the session that trot_gait
runs, with the true CoM of the trunk as feedback. From 3 s of the trot on, one sensor fails:

imu_frozen       orientation and angular velocity stay as they are
imu_flipped      both have the other sign of roll and pitch
imu_drift        the orientation drifts forwards by 0.3 rad/s
gyro_x10, gyro_zero, gyro_flipped     the angular velocity: ten times, 0, other sign
encoders_frozen  all positions stay as they are for 0.3 s
encoder_off      a knee reads 0.15 rad more
sensors_slow     all sensors are read ten times less often
clock_step       stamps are 0.3 s later

A robot "trotted" to the end, "stood" on all feet, or "fell". Open loop (without feedback) all trot.

The last line is one JSON object: robots {robot: {fault: trotted, stood or fell}}, stood, falls,
falls_control (without a fault), falls_open (without feedback), wrong_reasons (reasons that name
another sensor), too_fast (commands beyond the joints' velocity limits), noticed_ms (the longest
time until a failed sensor was named).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation
from sensor_failures import Outcome, figures, run_cases
from trot_lab import TROT_NOISE, TrotRun, build

from com_control.trot.parameters import GaitParameters
from com_control.trot.session import GaitSession, TrotPhase
from com_control.trot.trot import TrotFeedback, TrotGait
from com_simulation.physics.simulation import Simulation

NAMES = ("scalf2", "a1", "anymal")
PERIOD = 0.005  # s
AT, LENGTH = 3.0, 4.0  # s of the trot until a sensor fails, and from then on
FOR, SLOW = 0.3, 10  # s for which encoders are frozen; ticks between two readings
VELOCITY = 0.1  # m/s, forwards
IMU, JOINTS, CLOCK = ("imu",), ("encoder", "joint"), ("clock",)
FAULTS: dict[str, tuple[str, ...]] = {
    "open": (),
    "none": (),
    "imu_frozen": IMU,
    "imu_flipped": IMU,
    "imu_drift": IMU,
    "gyro_x10": IMU,
    "gyro_zero": IMU,
    "gyro_flipped": IMU,
    "encoders_frozen": JOINTS,
    "encoder_off": JOINTS,
    "sensors_slow": (*IMU, *JOINTS),
    "clock_step": CLOCK,
}
"""Faults, and words that name them."""
CONTROLS = ("open", "none")


@dataclass
class Sensed:
    """What the sensors say: position (n,), R of the root link (3, 3), angular velocity (3,)."""

    q: np.ndarray
    R: np.ndarray
    omega: np.ndarray


@dataclass
class Trot(Outcome):
    """What became of a trot; tilt: rad, the largest."""

    tilt: float = 0.0


def fail(fault: str, since: float, now: Sensed, held: Sensed, knee: int) -> Sensed:
    """The readings with a fault; held: those of when it began, or of the last slow tick."""
    if fault == "imu_frozen":
        return replace(now, R=held.R, omega=held.omega)
    if fault == "imu_flipped":
        turn = Rotation.from_matrix(now.R).as_rotvec() * np.array([-1.0, -1.0, 1.0])
        R = Rotation.from_rotvec(turn).as_matrix()
        return replace(now, R=R, omega=now.omega * np.array([-1.0, -1.0, 1.0]))
    if fault == "imu_drift":
        drift = Rotation.from_rotvec([0.0, 0.3 * since, 0.0])
        return replace(now, R=drift.as_matrix() @ now.R)
    if fault.startswith("gyro"):
        factor = {"gyro_x10": 10.0, "gyro_zero": 0.0, "gyro_flipped": -1.0}[fault]
        return replace(now, omega=factor * now.omega)
    if fault == "encoders_frozen" and since < FOR:
        return replace(now, q=held.q)
    if fault == "encoder_off":
        return replace(now, q=now.q + 0.15 * (np.arange(len(now.q)) == knee))
    return held if fault == "sensors_slow" else now


def trot(case: tuple[str, str]) -> Trot:
    """Lets a robot trot with a fault."""
    robot, fault = case
    feeds, result = fault != "open", Trot(*case)
    model, config, world = build(TrotRun(robot))
    gait = TrotGait(model, config, GaitParameters(velocity_x=VELOCITY), feedback=feeds)
    session = GaitSession(gait, 1.0, PERIOD)
    session.trot = False
    simulation = Simulation(world, PERIOD, TROT_NOISE, 1)
    R_imu_root = model.bodies.R_body_link[model.link_index(world.imu_link)].T
    offset = model.bodies.first_moment[0] / model.bodies.mass[0] - gait.center
    knee = int(gait.legs[0].joints[-1])
    held: Sensed | None = None
    sent = world.posture
    for k in range(round((2.5 + AT + LENGTH) / PERIOD)):
        since = k * PERIOD - 2.5 - AT
        reading = simulation.advance()
        turn = Rotation.from_quat(reading.imu_orientation).as_matrix()
        omega = R_imu_root.T @ reading.angular_velocity
        now, time = Sensed(reading.position, turn @ R_imu_root, omega), reading.time
        if since >= 0.0:
            if held is None or (fault == "sensors_slow" and k % SLOW == 0):
                held = now
            now = fail(fault, since, now, held, knee)
            time += 0.3 * (fault == "clock_step")
        if k == round(2.5 / PERIOD):
            session.start()
        feedback = TrotFeedback(now.R, offset, now.omega) if feeds else TrotFeedback()
        trots = session.trot
        command = session.step(time, now.q, feedback)
        if trots and not session.trot and np.isnan(result.noticed):
            result.reason, result.noticed = session.reason, since
        if command is not None:
            result.add_command(model, PERIOD, sent, command.position)
            sent = command.position
            simulation.lead(sent, command.velocity)
        up = Rotation.from_quat(reading.root_orientation).as_matrix()[2, 2]
        result.tilt = max(result.tilt, float(np.arccos(min(up, 1.0))))
        if result.tilt > 0.6:
            return result
    trots = session.last is not None and session.last.state is TrotPhase.TROTTING
    result.end = "trotted" if trots else "stood"
    return result


def main() -> int:
    """Runs all and prints the figures."""
    tilt = {"tilt (rad)": lambda each: f"{each.tilt:.2f}"}
    found = run_cases(__doc__, NAMES, list(FAULTS), trot, "trotted", tilt)

    def is_named(each: Outcome) -> bool:
        return any(word in each.reason for word in FAULTS[each.fault])

    def fallen(fault: str) -> int:
        return sum(each.end == "fell" for each in found if each.fault == fault)

    stood = sum(each.end == "stood" for each in found if each.fault not in CONTROLS)
    more = {
        "stood": stood,
        "falls_control": fallen("none"),
        "falls_open": fallen("open"),
    }
    print(json.dumps(figures(found, CONTROLS, is_named) | more))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
