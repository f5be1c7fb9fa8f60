"""Time and memory of identify on recordings of TALOS at 500 Hz: joints, two wrenches, IMU.

The robot stands still for two seconds, moves for one, and so on, through 60 postures that it takes
again and again. The command runs as a process of its own; its memory is its largest resident set.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from identification_bags import BagWriter, Scene, Tour, samples

from com_model import RobotModel, Sesc
from com_model.dynamics.link_frames import LinkFrames
from com_model.robots import find_robot

_ROBOT = "talos"
_POSTURES = 60
_MB = 1024.0  # kB

# Runs the command and prints what the kernel says of its largest resident set and its CPU time;
# ru_maxrss would be that of this process where it is larger.
_CHILD = """
import resource, sys
from com_identification.commands.identify import main
status = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as lines:
    peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
print(peak, used.ru_utime + used.ru_stime, file=sys.stderr)
sys.exit(status)
"""


@dataclass(frozen=True)
class Run:
    """A run of the command.

    Attributes:
        storage: "mcap" or "sqlite3".
        minutes: Length of the recording.
        messages: Number.
        size_mb: Of the bag.
        wall_s: From start to end of the process.
        cpu_s: Of CPU time in it; other than wall_s, much the same on a busy machine.
        peak_rss_mb: Largest resident set.
        before_mm: RMS of the URDF's CoM, horizontal, in postures that were not recorded.
        after_mm: The same of the corrected URDF.
    """

    storage: str
    minutes: float
    messages: int
    size_mb: float
    wall_s: float
    cpu_s: float
    peak_rss_mb: float
    before_mm: float
    after_mm: float


def main() -> None:
    """Runs all cases and prints a table and, last, one line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="recordings of one minute")
    minutes = 1.0 if parser.parse_args().quick else 10.0
    robot = find_robot(_ROBOT)
    if robot.config is None:
        raise SystemExit(f"no configuration of {_ROBOT}")
    scene = Scene(robot.urdf, robot.config)
    runs = []
    print(" storage    min  messages     MB      s  CPU s  RSS MB  CoM off, mm")
    for storage, factor in (("mcap", 1.0), ("sqlite3", 1.0), ("mcap", 2.0)):
        run = _run(scene, robot.urdf, robot.config, storage, factor * minutes)
        runs.append(run)
        print(
            f"{run.storage:8s} {run.minutes:5.1f} {run.messages:9d} {run.size_mb:6.0f} "
            f"{run.wall_s:6.1f} {run.cpu_s:6.1f} {run.peak_rss_mb:7.0f}  {run.before_mm:.2f} -> "
            f"{run.after_mm:.2f}",
            flush=True,
        )
    mcap, sqlite, long = runs
    figures = {
        "bag_minutes": minutes,
        "messages": mcap.messages,
        "joints": scene.model.n_joints,
        "wall_s": round(mcap.wall_s, 1),
        "cpu_s": round(mcap.cpu_s, 1),
        "wall_s_sqlite3": round(sqlite.wall_s, 1),
        "wall_s_double_length": round(long.wall_s, 1),
        "peak_rss_mb": round(mcap.peak_rss_mb),
        "peak_rss_mb_sqlite3": round(sqlite.peak_rss_mb),
        "peak_rss_mb_double_length": round(long.peak_rss_mb),
        "com_rms_mm": {
            "urdf": round(mcap.before_mm, 2),
            "identified": round(mcap.after_mm, 2),
        },
    }
    print(json.dumps(figures))


def _run(scene: Scene, urdf: Path, config: Path, storage: str, minutes: float) -> Run:
    """Makes a recording, runs the command on it and compares the result with the truth."""
    with tempfile.TemporaryDirectory(prefix="bag_identification_") as name:
        folder = Path(name)
        bag, out = folder / "bag", folder / "out"
        tour = Tour(seconds=60.0 * minutes)
        with BagWriter(bag, scene, storage) as writer:
            blocks = samples(scene, scene.postures(_POSTURES), tour)
            messages = sum(writer.write(block) for block in blocks)
        arguments = [
            str(bag),
            "--robot",
            str(urdf),
            "--config",
            str(config),
            "--output",
            str(out),
        ]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *arguments, "--imu", "/imu"],
            capture_output=True,
            text=True,
            check=False,
        )
        wall = time.perf_counter() - start
        if done.returncode:
            raise SystemExit(f"identify failed:\n{done.stderr}")
        memory, cpu = (float(word) for word in done.stderr.split()[-2:])
        size = sum(file.stat().st_size for file in bag.iterdir()) / 1e6
        errors = _errors(scene, RobotModel.from_file(out / "corrected.urdf"))
    return Run(storage, minutes, messages, size, wall, cpu, memory / _MB, *errors)


def _errors(scene: Scene, corrected: RobotModel) -> tuple[float, float]:
    """RMS in mm of the CoM, horizontal, of the URDF and of the corrected one."""
    truth = Sesc(RobotModel.from_urdf(scene.xml))
    models = Sesc(scene.model), Sesc(corrected)
    sole = LinkFrames(scene.model, [scene.feet[0].frame])
    squares = []
    for q in scene.postures(50, seed=11):
        up = sole.poses(q)[0][0][:, 2]
        gaps = [model.com(q) - truth.com(q) for model in models]
        squares.append([float(gap @ gap - (gap @ up) ** 2) for gap in gaps])
    before, after = 1000.0 * np.sqrt(np.mean(squares, axis=0))
    return float(before), float(after)


if __name__ == "__main__":
    main()
