"""Sensors that fail while a humanoid walks by the stabiliser: does it fall?

    tools/in_env python benchmarks/walk_faults.py [ROBOT ...] [--fault NAME ...]

HOAP-2, TALOS and iCub walk six steps on stiff ground in lockstep with the simulator, by the session
that ccgd_gait runs. From 2.6 s of the walk on, one sensor fails:

wrenches_frozen     both feet's wrenches stay as they are
left_frozen, left_flipped, left_zero, left_x10     the left foot's: old, other sign, 0, ten times
imu_frozen          the orientation stays as it is, the angular velocity does not
imu_drift           the orientation drifts forwards by 0.3 rad/s, the angular velocity does not
encoders_frozen     all positions stay as they are for 0.3 s
encoder_off         the left knee reads 0.15 rad more
sensors_slow        all sensors are read ten times less often

A robot "walked" all its steps, "stopped" and stood for a second, or "fell". Open loop all walk.

The last line is one JSON object: robots {robot: {fault: walked, stopped or fell}}, stopped, falls,
falls_control (without a fault), wrong_reasons (reasons that name another sensor), too_fast (targets
beyond the joints' velocity limits) and noticed_ms (the longest time until a failure was named).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from sensor_failures import Outcome, figures, run_cases
from walk_playback import starting_at
from walk_robustness import PERIOD, ROBOTS, load

from com_control.walking.session import WalkPhase, WalkSession
from com_control.walking.stabiliser import FIXES, Fault, Stabiliser, ankle_stiffness
from com_control.walking.walk_monitor import Reading, WalkChecks
from com_control.walking.walker import Walker
from com_demos.walk_record import has_fallen
from com_model import find_robot
from com_model.dynamics.link_frames import LinkFrames
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

Array = NDArray[np.float64]
NAMES = ("hoap2", "talos", "icub")
AT, FOR = 2.6, 0.3  # s, when a sensor fails; for which encoders are frozen
SLOW = 10  # ticks between two readings
WRENCH, IMU, JOINTS = (
    FIXES[f] for f in (Fault.NO_WRENCH, Fault.NO_IMU, Fault.NO_ENCODERS)
)
FAULTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "wrenches_frozen": (WRENCH,),
    "left_frozen": (WRENCH,),
    "left_flipped": (WRENCH,),
    "left_zero": (WRENCH,),
    "left_x10": (WRENCH,),
    "imu_frozen": (IMU,),
    "imu_drift": (IMU,),
    "encoders_frozen": (JOINTS,),
    "encoder_off": (JOINTS,),
    "sensors_slow": (WRENCH, IMU, JOINTS),
}
"""Faults, and the reasons that name them."""


@dataclass
class Sensed:
    """Position (n,), wrenches (2, 6), the root link's R (3, 3) and angular velocity (3,)."""

    q: Array
    wrenches: Array
    R: Array
    omega: Array


def fail(fault: str, since: float, now: Sensed, held: Sensed, knee: int) -> Sensed:
    """The readings with a fault; held: those of when it began, or of the last slow tick."""
    left = now.wrenches.copy()
    factors = {"left_flipped": -1.0, "left_zero": 0.0, "left_x10": 10.0}
    left[0] = (
        held.wrenches[0]
        if fault == "left_frozen"
        else left[0] * factors.get(fault, 1.0)
    )
    if fault.startswith("left"):
        return replace(now, wrenches=left)
    if fault == "wrenches_frozen":
        return replace(now, wrenches=held.wrenches)
    if fault == "imu_frozen":
        return replace(now, R=held.R)
    if fault == "imu_drift":
        return replace(
            now, R=Rotation.from_rotvec([0.0, 0.3 * since, 0.0]).as_matrix() @ now.R
        )
    if fault == "encoders_frozen" and since < FOR:
        return replace(now, q=held.q)
    if fault == "encoder_off":
        return replace(now, q=now.q + 0.15 * (np.arange(len(now.q)) == knee))
    return held if fault == "sensors_slow" else now


def walk(case: tuple[str, str]) -> Outcome:
    """Lets a robot walk with a fault."""
    robot, fault = case
    biped, config, _ = load(robot)
    model, result = biped.model, Outcome(*case)
    world = build_world(
        model,
        starting_at(config, model, biped.posture),
        urdf_path=find_robot(robot).urdf,
        contact="stiff",
    )
    lag = float(np.median(world.servos.damping / world.servos.stiffness))
    weight = model.mass * 9.81
    noise = NoiseLevels(
        position=2e-4, orientation=5e-4, force=2e-3 * weight, torque=1e-4 * weight
    )
    simulation, walker = Simulation(world, PERIOD, noise), Walker(biped)
    stabiliser = Stabiliser(biped, ankle_stiffness(biped, config), PERIOD, PERIOD)
    session = WalkSession(
        biped, WalkChecks(biped), approach_time=0.5, stabiliser=stabiliser
    )
    knee, imu = int(biped.legs[0].joints[3]), LinkFrames(model, [world.imu_link])
    held: Sensed | None = None
    sent, begun, ended = None, False, np.inf
    for k in range(round(60.0 / PERIOD)):
        reading = simulation.advance()
        R = Rotation.from_quat(reading.root_orientation).as_matrix()
        if k == 0:
            R_start, p_start = R, reading.root_position
        turn = Rotation.from_quat(reading.imu_orientation).as_matrix()
        R_root_imu = imu.poses(reading.position)[0][0]
        now = Sensed(
            reading.position,
            reading.wrenches,
            turn @ R_root_imu.T,
            R_root_imu @ reading.angular_velocity,
        )
        since = session.walk_time - AT if begun else -1.0
        if since >= 0.0 and np.isfinite(since):
            if held is None or (fault == "sensors_slow" and k % SLOW == 0):
                held = now
            now = fail(fault, since, now, held, knee)
        tilt = float(np.arccos(np.clip(now.R[2, 2], -1.0, 1.0)))
        session.update(
            Reading(reading.time, now.q, now.wrenches, tilt, "", now.R, now.omega)
        )
        if (
            session.fault > Fault.BEYOND_REACH
            and np.isnan(result.noticed)
            and since >= 0.0
        ):
            result.noticed = since
        if session.stop_due and session.walk is not None:
            at = max(session.time_of(reading.time), 0.0) + 0.3
            session.replace(walker.plan_stop(session.walk, at), at, reading.time)
        target = session.target_at(reading.time + PERIOD + lag)
        if target is not None:
            if sent is not None:
                result.add_command(model, PERIOD, sent, target[0])
            sent = target[0]
            simulation.lead(sent)
        if has_fallen(R_start, p_start, R, reading.root_position):
            result.reason = session.reason
            return result
        if not begun and reading.time > 0.5 and session.state is WalkPhase.READY:
            session.start_planning()
            request = replace(ROBOTS[robot], steps=6, method="refined")
            session.begin(
                walker.plan(request, biped.posture),
                Reading(reading.time, now.q, now.wrenches, tilt, R_world_root=now.R),
            )
            begun = True
        elif begun and session.outcome is not None and ended == np.inf:
            ended = reading.time
        if reading.time > ended + 1.0:
            break
    if session.outcome is not None:
        result.end = "walked" if session.outcome.completed else "stopped"
        result.reason = session.outcome.reason
    return result


def main() -> int:
    """Runs all and prints the figures."""
    found = run_cases(__doc__, NAMES, list(FAULTS), walk, "walked")
    common = figures(found, ("none",), lambda each: each.reason in FAULTS[each.fault])
    stopped = sum(each.end == "stopped" for each in found if each.fault != "none")
    print(json.dumps(common | {"stopped": stopped}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
