"""Sensors that fail while a humanoid sways under the control of its CoM: does it fall?

    tools/in_env python benchmarks/balance_faults.py [ROBOT ...] [--fault NAME ...]

HOAP-2, TALOS and iCub sway by 5 % of their CoM's height on a level floor, in lockstep with the
simulator, by the session that com_balancer runs. From 3 s of balancing on, one sensor fails, as in
walk_faults.py. Controls: no fault ("none"), standing on a floor that tilts by 5 degrees/s to 8
degrees ("tilts"), a push of 0.05 m/s to the left ("pushed"). A robot "balanced" to the end, "held"
its joints and stood, or "fell". With its joints held each stands on the level floor.

The last line is one JSON object: robots {robot: {fault: balanced, held or fell}}, held, falls,
falls_control and false_alarms (without a fault), wrong_reasons (reasons that name another sensor),
too_fast (commands beyond the joints' velocity limits), noticed_ms (the longest time until a failed
sensor was named) and worst_mm (largest true error of a CoM whose sensors had failed).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from balance_lab import SETTLE, true_com
from scipy.spatial.transform import Rotation
from sensor_failures import Outcome, figures, run_cases
from walk_faults import FAULTS, IMU, JOINTS, NAMES, SLOW, WRENCH, Sensed, fail

from com_control.balance.demonstrations import sway
from com_control.balance.session import BalancePhase, BalanceReading, BalanceSession
from com_demos.walk_record import has_fallen
from com_model import RobotConfig, RobotModel, find_robot
from com_model.dynamics.link_frames import LinkFrames
from com_model.joint_path import JointPath
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.suspension_rig import Tilt
from com_simulation.physics.world_builder import build_world

PERIOD = 0.002  # s
AT, LENGTH = 3.0, 4.0  # s of balancing until a sensor fails, and from then on
SWAY = 0.05  # of the CoM's height, to either side
PUSH, PUSH_TIME = 0.05, 0.1  # m/s, s
CONTROLS = ("none", "tilts", "pushed")
WORDS = {WRENCH: "wrenches", IMU: "imu", JOINTS: "joint positions"}


@dataclass
class Sway(Outcome):
    """What became of a robot that sways; worst: m, the largest true error of its CoM."""

    worst: float = 0.0


def balance(case: tuple[str, str]) -> Sway:
    """Lets a robot sway with a fault."""
    robot, fault = case
    files, result = find_robot(robot), Sway(*case)
    assert files.config is not None
    model = RobotModel.from_file(files.urdf)
    config = RobotConfig.from_file(files.config)
    world, weight = build_world(model, config), model.mass * 9.81
    noise = NoiseLevels(
        position=2e-4, orientation=5e-4, force=2e-3 * weight, torque=1e-4 * weight
    )
    tilt = Tilt(8.0, 5.0, start=SETTLE + AT) if fault == "tilts" else None
    simulation = Simulation(world, PERIOD, noise, tilt=tilt)
    session = BalanceSession(model, config)
    feet = [model.link_index(foot.frame) for foot in config.feet]
    knee = int(
        model.bodies.q_index[
            model.bodies.path_to(model.bodies.body_of_link[feet[0]])[3]
        ]
    )
    imu = LinkFrames(model, [world.imu_link])
    held: Sensed | None = None
    path: JointPath | None = None
    sent = world.posture
    for k in range(round((SETTLE + AT + LENGTH) / PERIOD)):
        since = k * PERIOD - SETTLE - AT
        pushed = fault == "pushed" and 0.0 <= since < PUSH_TIME
        simulation.push(np.array([0.0, pushed * PUSH * model.mass / PUSH_TIME, 0.0]))
        reading = simulation.advance()
        R_true = Rotation.from_quat(reading.root_orientation).as_matrix()
        if k == 0:
            start = R_true, reading.root_position
        turn = Rotation.from_quat(reading.imu_orientation).as_matrix()
        now = Sensed(
            reading.position,
            reading.wrenches,
            turn @ imu.poses(reading.position)[0][0].T,
            reading.angular_velocity,
        )
        if since >= 0.0:
            if held is None or (fault == "sensors_slow" and k % SLOW == 0):
                held = now
            now = fail(fault, since, now, held, knee)
        if k == round(SETTLE / PERIOD):
            session.start()
        command = session.step(
            BalanceReading(reading.time, now.q, now.R[2], now.wrenches[:, 2], sent)
        )
        if command is not None:
            result.add_command(model, PERIOD, sent, command.position)
            sent = command.position
            simulation.lead(sent, command.velocity)
            if command.step is not None and fault != "tilts":
                com = command.step.com
                room = command.step.frame.corners, session.options.margin
                path = path or sway(com, SWAY * float(com[2]), *room)
                session.set_desired_com(*path.sample(reading.time - SETTLE))
        if session.state in (BalancePhase.HOLDING, BalancePhase.FALLEN):
            result.reason = result.reason or session.reason
            if np.isnan(result.noticed):
                result.noticed = since
        if since >= 0.0 and session.desired is not None and command and command.step:
            error = true_com(model, feet, reading) - command.step.reference
            result.worst = max(result.worst, float(np.linalg.norm(error[:2])))
        if has_fallen(*start, R_true, reading.root_position):
            return result
    balances = session.state is BalancePhase.BALANCING
    result.end = "balanced" if balances else "held"
    return result


def main() -> int:
    """Runs all and prints the figures."""
    choices = [*CONTROLS, *(fault for fault in FAULTS if fault != "none")]
    error = {"error (mm)": lambda each: f"{1e3 * each.worst:.1f}"}
    found = run_cases(__doc__, NAMES, choices, balance, "balanced", error)

    def is_named(each: Outcome) -> bool:
        return any(WORDS[text] in each.reason for text in FAULTS.get(each.fault, ()))

    faulty = [each for each in found if each.fault not in CONTROLS]
    sound = [each for each in found if each.fault in CONTROLS]
    more = {
        "held": sum(each.end == "held" for each in faulty),
        "false_alarms": sum(bool(each.reason) for each in sound),
        "worst_mm": round(1e3 * max((each.worst for each in faulty), default=0.0), 1),
    }
    print(json.dumps(figures(found, CONTROLS, is_named) | more))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
