"""Shows the check-up: a G1 leans, and a sway of 40 s shows which of seven causes it has.

The simulated robot is within a factory's tolerances but for one cause, which is drawn. Its log has
joints with torques and one IMU; the command `checkup` gets it with the URDF and the weight.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from pathlib import Path

import numpy as np
import yaml
from checkup import CAUSES, Case, make
from slow_lab import G1, sway
from walk_scenarios import load_robot

from com_demos import demonstration
from com_demos.exceptions import RunError
from com_identification.commands.checkup import main as checkup
from com_model.files import write_file


def command_line() -> argparse.ArgumentParser:
    """Options of the demo."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cause", choices=CAUSES, help="what it has; default: drawn")
    parser.add_argument("--seed", type=int, help="of the robot; default: drawn")
    parser.add_argument("--seconds", type=float, default=40.0, help="of the sway (40)")
    parser.add_argument(
        "--output", type=Path, default=Path("out"), help="folder of what it writes"
    )
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    rng = np.random.default_rng(options.seed)
    seed = int(rng.integers(1000)) if options.seed is None else options.seed
    kind = options.cause or str(rng.choice(CAUSES))
    robot, joint = make(Case(kind, seed, False, options.seconds))
    print(f"A G1 leans. It sways for {options.seconds:g} s on both feet.", flush=True)
    log = sway(robot, options.seconds, seed)
    folder = options.output / "g1_checkup"
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        "t": log.time,
        "q": log.position,
        "tau": log.effort,
        "gyro": log.angular_velocity,
        "acc": log.specific_force,
    }
    np.savez(folder / "sway.npz", **arrays)
    n = robot.believed.n_joints
    mapping = {
        "time": "t",
        "joints": {
            "names": list(robot.believed.joint_names),
            "position": f"q[0:{n}]",
            "effort": f"tau[0:{n}]",
        },
        "imu": {"gyro": "gyro[0:3]", "acceleration": "acc[0:3]"},
    }
    write_file(folder / "sway.yaml", yaml.safe_dump(mapping), True)
    known = load_robot(*G1)
    settings = yaml.safe_load(Path(str(known.config.source)).read_text())
    settings |= {"urdf": str(known.path), "imu": {"link": robot.believed.root_link}}
    write_file(folder / "g1.yaml", yaml.safe_dump(settings), True)
    words = [str(folder / "sway.npz"), "--robot", str(known.path)]
    words += ["--config", str(folder / "g1.yaml")]
    words += [
        "--mapping",
        str(folder / "sway.yaml"),
        "--mass",
        f"{robot.true.mass:.2f}",
    ]
    print("checkup " + " ".join(words), flush=True)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = checkup(words)
    print(said.getvalue(), flush=True)
    if status > 1:
        raise RunError("checkup refuses the recording, see above")
    lines = said.getvalue().splitlines()
    answer = next(line for line in lines if not line.startswith("note: "))
    named = "" if answer.startswith(("healthy", "cannot tell")) else answer
    truth = " of ".join(filter(None, (kind, joint)))
    figures = {
        "answer": answer,
        "truth": truth,
        "named_right": named.startswith(truth),
        "seed": seed,
        "recording": str(folder / "sway.npz"),
    }

    def check() -> None:
        if named and not named.startswith(kind):
            raise RunError(f"a wrong cause is named: it is {truth}")

    then = (
        "`ros2 run com_identification checkup LOG --robot robot.urdf` for your own robot: "
        "docs/tutorial_diagnosis.md; `make demo-checkup` once more has another cause."
    )
    verdict = "The check-up says: {answer}. The truth: {truth}."
    path = options.output / "g1_checkup.json"
    demonstration.finish(figures, path, check, verdict, then, "Why does it lean?")


if __name__ == "__main__":
    sys.exit(demonstration.run_demo(show, command_line))  # type: ignore[arg-type]
