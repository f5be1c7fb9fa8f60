"""Which of seven causes makes a simulated G1 or Go2 lean: named right, wrong, or not at all.

Robots within a factory's tolerances (slow_lab.py) with one large cause or none: payload 1 to 2.5
kg, torso CoM 15 to 30 mm, zero of a leg's encoder 1.2 to 3 degrees, torque scale of a leg's joint
15 to 30 %, IMU tilt and floor slope 1.5 to 3 degrees, pull 8 to 20 N. They sway for 60 s in MuJoCo
and were weighed. Cases in turn; the flexible ones have gears of 3000 N m/rad, and friction that
drifts by 10 % over the minute. The G1's servos are rigid in every second round of the causes, so
that encoder zeros press its soles onto their edges, and of 2000 N m/rad in the others. Trotting
Go2s trot for 45 s in three gaits, with torques up to 4 ms late and feet up to 3.5 mm higher than
configured; a slope is no cause there.

The last line is one JSON object: cases, named_right (torso CoM left out), wrong, best_guess_right
(of those with a cause), joint_right (of causes named right with a joint), wrong_flexible;
fractions, of the G1; go2, go2_trot: the same of a Go2 that sways, and of one that trots, whose
calves have 20 to 34 % of load friction.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from processes import in_processes
from rich.console import Console
from rich.table import Table
from slow_lab import LEG, SlowRobot, draw, sway, trot

from com_identification.slow.checkup import check_up
from com_model import RobotModel
from com_model.urdf.editing import Inertial, edit_inertials

CAUSES = (
    *("payload", "torso CoM", "encoder zero", "torque scale"),
    *("IMU tilt", "floor slope", "outside pull", "none"),
)

SOFT = 2000.0  # N m/rad


@dataclass(frozen=True)
class Case:
    """One robot."""

    kind: str
    seed: int
    flexible: bool
    seconds: float
    robot: str = "g1"
    trots: bool = False
    servo: float | None = None


def make(case: Case) -> tuple[SlowRobot, str]:
    """The robot, and the joint that its cause has."""
    rng = np.random.default_rng([case.seed, 7])
    payload = rng.uniform(1.0, 2.5) if case.kind == "payload" else 0.0
    robot = draw(case.robot, case.seed, (payload, payload), 0.6, 0.005)
    faults, joint = robot.faults, ""
    faults = replace(
        faults,
        stiffness=3000.0 if case.flexible else 1e9,
        drift=0.1 if case.flexible else 0.0,
        servo=case.servo,
    )
    sign = rng.choice([-1.0, 1.0])
    names = robot.true.joint_names
    legs = [j for j, name in enumerate(names) if re.search(LEG, name)]
    j = int(rng.choice(legs))
    turned = sign * np.deg2rad(rng.uniform(1.5, 3.0))
    if case.kind == "torso CoM":
        model, link = robot.true, robot.torso
        i, angle = model.link_index(link), rng.uniform(0.0, 2.0 * np.pi)
        off = rng.uniform(0.015, 0.030) * np.array([np.cos(angle), np.sin(angle), 0.0])
        own = Inertial(
            model.link_masses[i], model.link_coms[i] + off, model.link_inertias[i]
        )
        xml = edit_inertials(model.xml, {link: own})
        robot = replace(robot, true=RobotModel.from_urdf(xml, model.frames))
    elif case.kind == "encoder zero":
        joint, zero = robot.true.joint_names[j], faults.zero.copy()
        zero[j] += sign * np.deg2rad(rng.uniform(1.2, 3.0))
        faults = replace(faults, zero=zero)
    elif case.kind == "torque scale":
        joint, gain = robot.true.joint_names[j], faults.gain.copy()
        gain[j] *= 1.0 + sign * rng.uniform(0.15, 0.30)
        faults = replace(faults, gain=gain)
    elif case.kind == "IMU tilt":
        axis = rng.integers(2)
        faults = replace(faults, mounting=faults.mounting + turned * np.eye(3)[axis])
    elif case.kind == "floor slope":
        faults = replace(faults, slope=np.array([turned, 0.0]))
    elif case.kind == "outside pull":
        angle = rng.uniform(0.0, 2.0 * np.pi)
        pull = rng.uniform(8.0, 20.0) * np.array([np.cos(angle), np.sin(angle), 0.0])
        faults = replace(faults, pull=pull)
    return replace(robot, faults=faults), joint


def try_case(case: Case) -> dict[str, Any]:
    """Simulates and checks a robot."""
    robot, joint = make(case)
    result: dict[str, Any] = {
        "robot": case.robot,
        "kind": case.kind,
        "seed": case.seed,
        "flexible": case.flexible,
        "trots": case.trots,
        "soft": case.servo is not None,
    }
    if case.trots and case.kind == "floor slope":
        result["kind"] = "none"
    config = robot.config
    try:
        if case.trots:
            logs, config = trot(robot, 45.0, case.seed)
        else:
            logs = [sway(robot, case.seconds, case.seed)]
    except RuntimeError as error:
        return result | {"fell": str(error)}
    found = check_up(logs, robot.believed, config, robot.true.mass)
    named = found.named
    return result | {
        "named": named.kind if named else "",
        "guess": found.causes[0].kind,
        "joint": bool(named and named.joint == joint),
        "which": bool(named and named.joint),
        "text": found.text,
    }


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all cases."""

    def share(values: list[bool]) -> float | None:
        return round(float(np.mean(values)), 3) if values else None

    rigid = [row for row in rows if not row["flexible"]]
    caused = [row for row in rigid if row["kind"] != "none"]
    right = [row for row in caused if row["named"] == row["kind"]]
    flexible = [row for row in rows if row["flexible"]]
    wrong = [
        [bool(r["named"]) and r["named"] != r["kind"] for r in own]
        for own in (rigid, flexible)
    ]
    return {
        "cases": len(rows),
        "named_right": share(
            [r["named"] == r["kind"] for r in caused if r["kind"] != "torso CoM"]
        ),
        "wrong": share(wrong[0]),
        "best_guess_right": share([r["guess"] == r["kind"] for r in caused]),
        "joint_right": share([r["joint"] for r in right if r["which"]]),
        "wrong_flexible": share(wrong[1]),
    }


def main() -> int:
    """Simulates, checks, prints."""
    parser = argparse.ArgumentParser(description="Check-ups of robots that lean.")
    parser.add_argument("--cases", type=int, default=8, help="with rigid gears")
    parser.add_argument(
        "--flexible", type=int, default=2, help="cases with flexible gears"
    )
    parser.add_argument(
        "--full", action="store_true", help="100 of each kind of a G1, 48 of a Go2"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="the robots have it and the next"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of each sway")
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    parser.add_argument("--go2", type=int, default=4, help="cases of a Go2 that sways")
    parser.add_argument("--trots", type=int, default=4, help="of a Go2 that trots")
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes
    counts = (args.cases, args.flexible, args.go2, args.trots)
    if args.full:
        counts = (100, 100, 48, 48)
    kinds = (
        *(("g1", False, False), ("g1", True, False)),
        *(("go2", False, False), ("go2", False, True)),
    )
    cases = []
    for count, (robot, flexible, trots) in zip(counts, kinds, strict=True):
        for k in range(count):
            turn, cause = divmod(k, len(CAUSES))
            servo = SOFT if robot == "g1" and turn % 2 else None
            case = Case(CAUSES[cause], args.seed + k, flexible, args.seconds)
            cases.append(replace(case, robot=robot, trots=trots, servo=servo))
    done = in_processes(try_case, cases, "cases", args.processes)
    table = Table("robot", "cause", "seed", "motion", "named", "answer")
    for row in done:
        motion = "trot" if row["trots"] else "sway"
        motion += ", flexible" if row["flexible"] else ""
        motion += ", soft servos" if row["soft"] else ""
        answer = row.get("fell") or row["text"]
        own = row["robot"], row["kind"], str(row["seed"])
        table.add_row(*own, motion, row.get("named", ""), answer)
    Console(width=150).print(table)
    stood = [row for row in done if "fell" not in row]
    g1, go2, trotting = (
        figures([row for row in stood if (row["robot"], row["trots"]) == kind])
        for kind in (("g1", False), ("go2", False), ("go2", True))
    )
    print(json.dumps(g1 | {"go2": go2, "go2_trot": trotting}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
