"""How calm a robot trots when its feet go below the CoM that is found meanwhile.

SCALF-II with light legs in the simulator, its trunk's CoM off the URDF's by up to 5 cm in x and y,
its sensors with the errors of TROT_NOISE. It stands for STANDING s, in which the floating-base
estimator finds the offset to some millimetres, and then trots for 10 s: with feedback, the gait
receives each estimate that is USABLE or CONVERGED, as in trot_gait; without, it
does not. ANYmal with offsets scaled to the distances of its hips is an extra, and both trot with
feedback under CONDITIONS, too. Roll and pitch are the true ones; on a slope, from the slope.

The last line is one JSON object, in degrees: roll_rms_deg and pitch_rms_deg from SETTLED s after
the first lift-off on and ..._all from lift-off on, per robot and offset (x,y in cm), with and
without; conditions: roll, pitch (RMS), largest tilt, and way, m and deg of yaw at the end, of each;
and fell, the number of runs with feedback that tilted by FALLEN. Aim: 0.15 and 0.08.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from trot_lab import TrotRun, build, in_processes, run_trot

from com_control.trot.trot import TrotGait
from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.interface import Sample
from com_model import RobotConfig, RobotModel, quadruped_legs
from com_model.status import TRUSTED

Array = NDArray[np.float64]

OFFSETS = ((0.0, 0.0), (-0.03, 0.03), (0.05, -0.05), (0.0, 0.05), (-0.05, 0.0))  # m
STANDING = 1.5  # s, of the gait's standing
SETTLED = 2.0  # s after the first lift-off
CONDITIONS: dict[str, dict[str, Any]] = {
    "friction 0.2": {"grip": 0.2},
    "slope 8 deg": {"slope": np.radians(8.0)},
    "uneven 2 cm": {"tiles": 0.02},
    "push 0.3 m/s forwards": {"push": (0.3, 0.0, 6.0)},
    "push 0.3 m/s left": {"push": (0.0, 0.3, 6.0)},
    "0.5 m/s": {"way": ((2.0, (0.5, 0.0, 0.0)),)},
    "cmd_vel": {
        "way": (
            (2.0, (0.3, 0.0, 0.0)),
            (4.0, (0.2, 0.0, 0.4)),
            (7.0, (0.0, 0.1, -0.4)),
            (9.0, (0.0, 0.0, 0.0)),
        )
    },
    "a minute": {"seconds": 60.0 + STANDING},
}
FALLEN = 30.0  # deg


class Feedback:
    """What the gait is given: the estimate, once it is good enough."""

    def __init__(self, model: RobotModel, config: RobotConfig) -> None:
        self._estimator = FloatingBaseEstimator(model, config)

    def __call__(self, sample: Sample) -> Array | None:
        """Takes in a sample; gives the offset from the geometric centre (3,), m, or None."""
        self._estimator.update(sample)
        latest = self._estimator.latest
        return latest.offset_from_center if latest.status in TRUSTED else None


@dataclass(frozen=True, eq=False)
class Case:
    """A run, with feedback or without."""

    run: TrotRun
    feedback: bool
    condition: str = ""


@dataclass(frozen=True, eq=False)
class Rocking:
    """What the trunk did.

    Attributes:
        time: (N,) s from the first lift-off on.
        tilt: (N, 2) rad, true roll and pitch.
        shift_error: (N,) m, length of the error in x and y of the gait's input; NaN: none.
        way: m forwards, m to the left and deg to the left, at the end.
    """

    time: Array
    tilt: Array
    shift_error: Array
    way: Array

    def rms(self, after: float) -> Array:
        """Of roll and pitch (2,), deg, from a time after the first lift-off on."""
        return np.asarray(
            np.degrees(np.sqrt((self.tilt[self.time >= after] ** 2).mean(axis=0)))
        )


def rock(case: Case) -> Rocking:
    """Simulates."""
    model, config, _ = build(case.run)
    log = run_trot(case.run, Feedback(model, config) if case.feedback else None)
    center = np.mean([leg.hip for leg in quadruped_legs(model, config)], axis=0)
    error = (log.com_offset_used + center - log.trunk_com)[:, :2]
    standing = log.stance.all(axis=1)
    time = log.time - log.time[int(np.argmin(standing))]
    tilt = np.column_stack([log.roll, log.pitch + case.run.slope])
    moved, R = log.root_position[-1] - log.root_position[0], log.R_world_root[-1]
    way = np.append(moved[:2], np.degrees(np.arctan2(R[1, 0], R[0, 0])))
    return Rocking(time, tilt, np.linalg.norm(error, axis=1), way)


def cases(
    robot: str, offsets: Sequence[tuple[float, float]], seconds: float, seed: int
) -> list[Case]:
    """Runs with all offsets, each with feedback and without, in the gait that is for feedback."""
    model, config, _ = build(TrotRun(robot))
    p = TrotGait(model, config, feedback=True).parameters
    gait = {"start_delay": STANDING, "frequency": p.frequency, "blend": p.blend}
    return [
        Case(
            TrotRun(
                robot,
                offset=(*offset, 0.0),
                seconds=STANDING + seconds,
                seed=seed + i,
                gait=gait,
            ),
            feedback,
        )
        for i, offset in enumerate(offsets)
        for feedback in (True, False)
    ]


def conditions(robot: str, offset: tuple[float, float], seed: int) -> list[Case]:
    """Runs with feedback under CONDITIONS."""
    base = cases(robot, [offset], 10.0, seed)[0]
    return [
        Case(replace(base.run, seed=seed + i, **changes), True, name)
        for i, (name, changes) in enumerate(CONDITIONS.items())
    ]


def scaled(
    robot: str, offsets: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """SCALF-II's offsets in fractions of another robot's hip distances."""

    def size(name: str) -> Array:
        model, config, _ = build(TrotRun(name))
        hips = np.array([leg.hip for leg in quadruped_legs(model, config)])
        return np.asarray(np.ptp(hips, axis=0)[:2])

    ratio = size(robot) / size("scalf2")
    return [(float(x * ratio[0]), float(y * ratio[1])) for x, y in offsets]


def name_of(offset: Sequence[float]) -> str:
    """The offset in cm, x and y."""
    return ",".join(f"{100.0 * v:.3g}" for v in offset[:2])


def figures(planned: Sequence[Case], done: Sequence[Rocking]) -> dict[str, Any]:
    """What the last line has of a robot."""
    result: dict[str, Any] = {}
    for case, rocking in zip(planned, done, strict=True):
        if case.condition:
            roll, pitch = rocking.rms(SETTLED).round(3).tolist()
            tilt = np.degrees(np.abs(rocking.tilt[rocking.time >= 0.0]).max())
            result.setdefault("conditions", {})[case.condition] = {
                "roll": roll,
                "pitch": pitch,
                "tilt": round(float(tilt), 2),
                "way": rocking.way.round(2).tolist(),
            }
            continue
        how = "with" if case.feedback else "without"
        for suffix, after in (("", SETTLED), ("_all", 0.0)):
            for name, value in zip(("roll", "pitch"), rocking.rms(after), strict=True):
                offsets = result.setdefault(f"{name}_rms_deg{suffix}", {})
                offsets.setdefault(name_of(case.run.offset), {})[how] = round(
                    float(value), 4
                )
    result["fell"] = sum(
        case.feedback and bool(np.degrees(np.abs(rocking.tilt)).max() > FALLEN)
        for case, rocking in zip(planned, done, strict=True)
    )
    return result


def show(planned: Sequence[Case], done: Sequence[Rocking]) -> None:
    """Prints the table."""
    table = Table(
        "robot",
        "offset [cm]",
        "feedback",
        "roll, pitch RMS [deg]",
        "from lift-off on [deg]",
        "largest tilt [deg]",
        "CoM given, RMS error [mm]",
    )
    for case, r in zip(planned, done, strict=True):
        given = r.shift_error[(r.time >= SETTLED) & np.isfinite(r.shift_error)]
        table.add_row(
            case.run.robot,
            f"{name_of(case.run.offset)} {case.condition}",
            "yes" if case.feedback else "no",
            " ".join(f"{v:.3f}" for v in r.rms(SETTLED)),
            " ".join(f"{v:.3f}" for v in r.rms(0.0)),
            f"{np.degrees(np.abs(r.tilt[r.time >= 0.0]).max()):.2f}",
            f"{1e3 * np.sqrt((given**2).mean()):.2f}" if given.size else "",
        )
    Console(width=130).print(table)


def draw(planned: Sequence[Case], done: Sequence[Rocking], path: Path) -> None:
    """Draws roll and pitch over time, with feedback and without."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, 2, figsize=(11, 6), sharex=True, layout="constrained"
    )
    for case, r in zip(planned, done, strict=True):
        column = 1 if case.feedback else 0
        for row in range(2):
            axes[row, column].plot(
                r.time,
                np.degrees(r.tilt[:, row]),
                lw=0.8,
                label=name_of(case.run.offset),
            )
    for row, what in enumerate(("roll", "pitch")):
        axes[row, 0].set_ylabel(f"{what} [deg]")
    for column, what in enumerate(("without feedback", "with feedback")):
        axes[0, column].set_title(what)
        axes[1, column].set_xlabel("time since the first lift-off [s]")
    axes[0, 1].legend(title="offset x,y [cm]", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> int:
    """Simulates, prints and draws."""
    parser = argparse.ArgumentParser(
        description="Rocking of the trunk with CoM feedback."
    )
    parser.add_argument(
        "--seed", type=int, default=917, help="the runs have 1000 times this on"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one offset of SCALF-II, 3 s of trot"
    )
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    parser.add_argument("--out", type=Path, help="folder for the picture")
    args = parser.parse_args()
    seconds, first = (3.0 if args.quick else 10.0), 1000 * args.seed
    plan = {
        "scalf2": cases(
            "scalf2", OFFSETS[1:2] if args.quick else OFFSETS, seconds, first
        )
    }
    if not args.quick:
        aside = scaled("anymal", OFFSETS[1:3])
        plan["anymal"] = cases("anymal", aside, seconds, first + 100)
        plan["scalf2"] += conditions("scalf2", OFFSETS[1], first + 200)
        plan["anymal"] += conditions("anymal", aside[0], first + 300)
    flat = [case for group in plan.values() for case in group]
    done = in_processes(rock, flat, "trots", args.processes)
    show(flat, done)
    count = len(plan["scalf2"])
    if args.out:
        usual = [i for i in range(count) if not flat[i].condition]
        draw(
            [flat[i] for i in usual],
            [done[i] for i in usual],
            args.out / "trot_feedback.png",
        )
    result: dict[str, object] = dict(figures(flat[:count], done[:count]))
    if flat[count:]:
        result["anymal"] = figures(flat[count:], done[count:])
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
