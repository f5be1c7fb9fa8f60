"""The workspace of HOAP-2's centre of mass ([Cotton] VI.A), sampled a million times.

Prints the hull of all joints and of the legs alone, reach margins of the nominal posture, and the
two-joint human of [Cotton] eq. 12. `--out` draws both workspaces. wall_s is sampling and CoMs from
Python with two threads, the best of five, cpu_s the CPU time with one, which depends less on what
else the machine does; the hull is timed alone. standing: HOAP-2 on both feet with the legs as they
are, and on one foot. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from com_demos.com_workspace import (
    StandingReach,
    Workspace,
    reach_on_feet,
    reach_on_foot,
    sample_coms,
)
from com_demos.two_joint_human import study
from com_demos.workspace_plot import workspace_png
from com_model import RobotConfig, RobotModel, Sesc

CONFIG = (
    Path(__file__).resolve().parent.parent / "src/robot_descriptions/config/hoap2.yaml"
)
COUNT, STANDING = 1_000_000, 100_000
AXES = {
    "front": (1, 0, 0),
    "back": (-1, 0, 0),
    "left": (0, 1, 0),
    "up": (0, 0, 1),
    "down": (0, 0, -1),
}


def best_times(model: RobotModel, threads: int) -> tuple[float, float]:
    """Times the sampling, s of wall time and of CPU time."""
    sample_coms(model, 10_000, threads=threads)
    times = []
    for seed in range(5):
        start = time.perf_counter(), time.process_time()
        sample_coms(model, COUNT, seed=seed, threads=threads)
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, cpu = zip(*times, strict=True)
    return min(wall), min(cpu)


def stand(model: RobotModel, config: RobotConfig) -> dict[str, dict[str, float]]:
    """Postures on both feet, legs as they are, and on the first one, all joints."""

    def figures(reach: StandingReach) -> dict[str, float]:
        low, high = reach.heights
        beyond = reach.over_edges()
        return {
            "fraction": round(reach.fraction, 3),
            "best_margin_mm": round(1e3 * reach.best_margin, 1),
            "lowest_mm": round(1e3 * low),
            "highest_mm": round(1e3 * high),
            "beyond_front_mm": round(1e3 * beyond["front"]),
            "beyond_back_mm": round(1e3 * beyond["back"]),
        }

    foot, *others = config.feet
    found = {
        "both feet": figures(
            reach_on_feet(model, config.feet, config.nominal_posture(model), STANDING)
        ),
        "one foot": figures(reach_on_foot(model, foot, STANDING, 0, others)),
    }
    print(found)
    return found


def _write(path: Path, picture: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)
    print(f"wrote {path}")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of the pictures")
    out = parser.parse_args().out
    config = RobotConfig.from_file(CONFIG)
    assert config.urdf is not None
    model = RobotModel.from_file(config.urdf)
    (one, cpu), (two, _) = best_times(model, 1), best_times(model, 2)
    points = sample_coms(model, COUNT, threads=2)
    start = time.perf_counter()
    workspace = Workspace.from_points(points)
    hull = time.perf_counter() - start
    legs = [
        name
        for group in ("left_leg", "right_leg")
        for name in config.joint_groups[group]
    ]
    volumes = {
        "all joints": workspace.volume,
        "legs": Workspace.from_points(
            sample_coms(model, 100_000, legs, threads=2)
        ).volume,
    }
    com = Sesc(model).com(config.nominal_posture(model))
    print(
        f"{COUNT} CoMs: {one:.3f} s with one thread, {two:.3f} s with two; hull {hull:.2f} s"
    )
    for name, volume in volumes.items():
        print(f"{name}: hull of {1e6 * volume:.0f} cm^3")
    reaches = dict(zip(AXES, workspace.reach(list(AXES.values())), strict=True))
    for name, reach in reaches.items():
        print(f"reach {name}: {1e3 * reach:.0f} mm from the waist")
    print(f"nominal posture: {1e3 * workspace.margin([com])[0]:.0f} mm inside the hull")
    lengths = study(out, overwrite=True)
    if out is not None:
        title = "Centre of mass of HOAP-2, waist held"
        _write(out / "com_workspace.png", workspace_png(workspace, title))
    summary = {
        "configurations": COUNT,
        "wall_s": round(two, 3),
        "one_thread_s": round(one, 3),
        "cpu_s": round(cpu, 3),
        "hull_s": round(hull, 3),
        "hull_cm3": {name: round(1e6 * volume) for name, volume in volumes.items()},
        "reach_mm": {
            name: round(1e3 * float(reach)) for name, reach in reaches.items()
        },
        "standing": stand(model, config),
        "human_legs": lengths,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
