"""Records a robot that rests in many postures: a bag to identify its centres of mass from.

The robot stands in MuJoCo and is not as its URDF says; its sensors err. Nothing of ROS needs to
run, and the physics goes as fast as the machine can.

The robot is led through the postures of a file, in a hoist where its feet would have to move: it
is lifted, its joints move in the air, it is lowered onto its soles. Postures in which the feet
stay where they are in the nominal posture are gone through standing.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from com_demos import posture_sequence
from com_demos.bag_writer import STORAGES, BagWriter
from com_demos.posture_files import read_postures
from com_demos.posture_sequence import PostureSequence, RestPeriod
from com_model import ComModelError, ConfigError, find_robot, load_robot
from com_model.commands import add_robot, command_parser
from com_model.files import whole_folder, write_file
from com_simulation.exceptions import ComSimulationError
from com_simulation.physics.sensors import PRESETS
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.true_errors import TrueErrors, true_robot
from com_simulation.physics.world_builder import DEFAULT_STEP, build_world

START_NS = 1_700_000_000_000_000_000  # of every bag, so that the same input gives the same bytes


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = command_line(words)
    try:
        rests, figures = record(options, Console(stderr=True, quiet=options.quiet))
    except (ComModelError, OSError) as error:
        print(f"record_bag: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("record_bag: interrupted, nothing is left behind", file=sys.stderr)
        return 130
    for number, rest in enumerate(rests, 1):
        if rest.problem:
            print(
                f"record_bag: posture {number} has no mark: {rest.problem}",
                file=sys.stderr,
            )
    print(json.dumps(figures))
    return int(figures["marked"] < figures["postures"])


def command_line(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = command_parser("record_bag", __doc__, __file__)
    add = parser.add_argument
    add_robot(parser)
    add("--postures", type=Path, required=True, help="file written by propose_postures")
    add("--output", type=Path, required=True, help="folder to create")
    add(
        "--transfer",
        choices=posture_sequence.TRANSFERS,
        default="auto",
        help="how to move to the next posture",
    )
    add("--rest", type=float, default=1.0, help="recorded time in each posture, s")
    add("--settle", type=float, default=0.5, help="minimum time before it, s")
    add(
        "--speed",
        type=float,
        default=0.5,
        help="speed of the fastest joint, rad/s or m/s",
    )
    add("--rate", type=float, default=200.0, help="samples per second")
    add(
        "--noise", choices=tuple(PRESETS), default="identification", help="sensor noise"
    )
    add(
        "--com-error",
        type=float,
        default=0.005,
        help="error of each link's CoM per axis, m",
    )
    add(
        "--mass-error",
        type=float,
        default=0.0,
        help="relative error of each link's mass",
    )
    add(
        "--truth", default="", metavar="URDF", help="true URDF, instead of these errors"
    )
    add("--seed", type=int, default=0, help="seed of errors and noise")
    add("--storage", choices=tuple(STORAGES), default="mcap", help="format of the bag")
    add("--quiet", action="store_true", help="do not show progress")
    options = parser.parse_args(words)
    if not 1.0 <= options.rate <= 1.0 / DEFAULT_STEP:
        parser.error(f"--rate {options.rate:g}: give 1 to {1.0 / DEFAULT_STEP:g}")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: give 0 or more")
    return options


def record(
    options: argparse.Namespace, console: Console
) -> tuple[list[RestPeriod], dict[str, Any]]:
    """Record the bag; return a rest for each posture, and the figures of the recording.

    Raises ComSimulationError where the robot cannot be simulated or the folder exists,
    ComModelError where a file is not what it is to be.
    """
    files = find_robot(options.robot, options.config)
    if files.config is None:
        raise ConfigError("there is none for it; give --config", options.robot)
    believed, config = load_robot(options.robot, options.config)
    postures = read_postures(options.postures, believed)
    drawn = TrueErrors(options.com_error, options.mass_error, options.seed)
    true = true_robot(believed, TrueErrors() if options.truth else drawn, options.truth)
    world = build_world(true, config, urdf_path=files.urdf)
    noise = PRESETS[options.noise]
    simulation = Simulation(world, 1.0 / options.rate, noise, options.seed)
    way = posture_sequence.SequenceOptions(
        options.transfer, options.speed, options.settle, options.rest
    )
    sequence = PostureSequence(simulation, postures, way)
    if options.output.exists():
        problem = "exists already: give another path, or remove it"
        raise ComSimulationError(f"{options.output} {problem}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(options.output) as folder:
        folder.mkdir()
        writer = BagWriter(folder / "bag", world, noise, START_NS, options.storage)
        with writer as bag, Progress(console=console) as progress:
            task = progress.add_task("postures", total=len(postures))
            for reading in sequence.readings():
                bag.write(reading)
                progress.update(task, completed=len(sequence.rests))
        write_file(folder / "robot.urdf", believed.xml)
        write_file(folder / "truth.urdf", true.xml)
        write_file(folder / "marks.csv", marks_text(sequence.rests))
    figures = {
        "output": str(options.output),
        "postures": len(sequence.rests),
        "marked": sum(not rest.problem for rest in sequence.rests),
        "transfer": sequence.transfer,
        "bag_s": round(reading.time, 2),
        "messages": bag.messages,
    }
    return sequence.rests, figures


def marks_text(rests: Sequence[RestPeriod]) -> str:
    """When the robot rested well, as CSV: s since the first joint state, and a label."""
    lines = ["start,end,label"]
    for number, rest in enumerate(rests, 1):
        if not rest.problem:
            lines.append(f"{rest.begin:.6f},{rest.end:.6f},p{number:03d}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
