"""Whether Ctrl-C ends every node and command quietly, at whatever moment it comes.

    tools/in_env python benchmarks/ctrl_c.py [--starts 4] [--programs sesc_publisher] [--full]

Each installed program is started as from a terminal, and its process group gets SIGINT after a
random time: while modules are imported, a robot is read, kernels are compiled (each third start
has an empty cache), or while it works; each second start of a node has a simulator as its robot. A
program that ends by itself before is started again with less time. It must end within LIMIT with 0
or 130 (as a shell counts: ended by SIGINT is 130), print no traceback and leave no process behind.

The last line is one JSON object:
    programs, starts    how many were tried, and how often in all
    bad_codes           starts that ended with something else than 0 or 130
    tracebacks          starts that printed one, or a fatal error
    left                starts that left a process, or did not end within LIMIT
    python_start        starts interrupted before anything of the suite was imported, where Python
                        prints a traceback of its own; in none of the counts above
    ended_before        starts of programs that always ended by themselves; in no count above
    slowest_s           longest time from Ctrl-C to the end
    problems            what happened
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen, TimeoutExpired, run

import numpy as np
import yaml
from ament_index_python.packages import get_package_prefix
from processes import in_processes

from com_demos.background import Background, free_domain_id
from com_model import RobotConfig, RobotModel
from com_model.postures import write_postures

SHARE = Path(__file__).resolve().parents[1] / "src" / "robot_descriptions"
LIMIT = 60.0  # s, to end
LONGEST, LONGEST_DEMO = 10.0, 30.0  # s, until Ctrl-C
ATTEMPTS = 6  # to interrupt a program before it ends by itself
CODES = (0, 128 + signal.SIGINT, -signal.SIGINT)
LOUD = (
    "Traceback (most recent call last)",
    "[FATAL]",
    "Fatal Python error",
    "Exception ignored",
)
OF_THE_SUITE = re.compile(r'File "[^"]*/com_\w+/[^"]*\.py"')  # in a traceback

HOAP2 = f"--robot hoap2 --config {SHARE}/config/hoap2.yaml"
MOTION = f"--robot hoap2 --layout {SHARE}/config/motion/hoap2.yaml"
WAVE = f"{SHARE}/motions/hoap2_squat_and_wave.csv"
PROTOCOL = f"{SHARE}/config/posture_protocol/hoap2.yaml"
URDF = f"{SHARE}/urdf/hoap2.urdf"
# Arguments by package/program; NEW is a folder for its output, MADE that of make_inputs.
COMMANDS = {
    "com_control/plan_sway": "--robot hoap3 --output NEW/sway.csv",
    "com_control/check_motion": f"{WAVE} {MOTION}",
    "com_control/convert_motion": f"{WAVE} NEW/bag {MOTION}",
    "com_demos/human_motion": "--height 1.8 --mass 70 --sex f --trial MADE/a.c3d "  # no such file
    "--markers MADE/markers.yaml --output NEW",
    "com_demos/correct_demo": "--output NEW",
    "com_demos/identify_demo": "--output NEW",
    "com_demos/motion_lab": "hoap2_walk",
    "com_demos/sway_demo": "--output NEW",
    "com_demos/trot_demo": "--output NEW",
    "com_demos/walk_demo": "--output NEW",
    "com_bags/com_convert": "MADE/bag/bag --robot hoap2 --output NEW/standard",
    "com_estimation/diagnose_bag": "MADE/bag/bag --robot hoap2 --output NEW/page.html",
    "com_estimation/trunk_bag": "MADE/bag/bag --robot scalf2 --output NEW",  # not its bag
    "com_identification/com_health": "show MADE/robots.db --plot NEW/history.png",
    "com_identification/com_human": "--height 1.8 --mass 70 --sex f --output NEW/person.urdf",
    "com_identification/com_randomise": "MADE/posterior.npz --output NEW/robots",  # no such file
    "com_identification/identify": "MADE/bag/bag --robot hoap2 --output NEW/results",
    "com_identification/posture_protocol": f"{HOAP2} --protocol {PROTOCOL} --output NEW/tips",
    "com_identification/checkup": "MADE/bag/bag --robot hoap3",
    "com_identification/propose_sway": f"{WAVE} --robot hoap3",
    "com_identification/propose_postures": f"{HOAP2} --output NEW/postures.yaml",
    "com_model/audit": URDF,
    "com_model/inertials_to_mjcf": f"{URDF} {URDF}",  # no model of MuJoCo
    "com_model/com_setup": f"{URDF} --output NEW/hoap2.yaml",
    "com_demos/workspace": f"{HOAP2} --count 5000000 --output NEW",
    "com_demos/compare_urdfs": f"{URDF} {URDF} {URDF}",
    "com_simulation/find_urdf": "talos",
    "com_demos/record_bag": f"{HOAP2} --postures MADE/postures.yaml --output NEW/bag",
    "com_viewer/com_viewer": "hoap2 --port 0",
}
# Parameters besides the robot's.
NODES: dict[str, dict[str, object]] = {
    "com_control/ccgd_gait": {"autostart": True},
    "com_control/com_balancer": {"autostart": True},
    "com_control/motion_player": {
        "motion_layout": f"{SHARE}/config/motion/hoap2.yaml",
        "motion_directory": f"{SHARE}/motions",
        "motion": Path(WAVE).name,
        "play": True,
    },
    "com_control/sway_tour": {},
    "com_control/trot_gait": {"autostart": True},
    "com_estimation/foot_forces": {},
    "com_estimation/humanoid_com_estimator": {},
    "com_estimation/sesc_publisher": {"use_imu": True},
    "com_ros/state_adapter": {"driver": "unitree-go2"},
    "com_estimation/trunk_estimator": {},
    "com_identification/com_identification": {"storage_directory": "NEW"},
    "com_identification/posture_protocol_server": {"protocol": PROTOCOL},
    "com_identification/posture_tour": {},
    "com_identification/tip_ramp": {"protocol": PROTOCOL},
    "com_simulation/simulator": {},
    "com_simulation/sway": {},
}
SIMULATOR = "com_simulation/simulator"
QUADRUPEDS = ("com_control/trot_gait", "com_estimation/trunk_estimator")


@dataclass
class Start:
    """What happened in one start; seconds: from Ctrl-C to the end, None: it ended before."""

    name: str
    seconds: float | None = None
    code: int | None = None
    text: str = ""
    left: str = ""

    @property
    def loud(self) -> bool:
        """Whether it printed what a user should not see."""
        return any(words in self.text for words in LOUD)

    @property
    def early(self) -> bool:
        """Whether it was interrupted before anything of the suite was imported."""
        return self.loud and not OF_THE_SUITE.search(self.text)

    @property
    def problem(self) -> str:
        """One line; empty: none."""
        code = "" if self.code in CODES else f"exit code {self.code}"
        found = [word for word in (code, self.left, "a traceback" * self.loud) if word]
        return (
            "; ".join([self.name, *found, *self.text.splitlines()[-1:]])
            if found
            else ""
        )

    @property
    def shown(self) -> str:
        """For people; what it printed, too, where that is a problem."""
        if self.seconds is None:
            return f"{self.name}: ended before"
        if self.early:
            return f"{self.name}: {self.code}, before the suite was imported"
        if self.problem:
            return f"{self.problem}\n{self.text[-4000:]}"
        return f"{self.name}: {self.code}, {self.seconds:g} s"


def try_start(job: tuple[str, int, str]) -> Start:
    """Start a program and interrupt it, again where it ended by itself before."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # an ignored one is inherited
    name, number, made = job
    rng = np.random.default_rng([*name.encode(), number])
    env = os.environ | {"ROS_DOMAIN_ID": str(free_domain_id())}
    after = (LONGEST_DEMO if name.startswith("com_demos") else LONGEST) * rng.random()
    with tempfile.TemporaryDirectory(prefix="ctrl_c.") as top, ExitStack() as stack:
        if number % 3 == 2:
            env["NUMBA_CACHE_DIR"] = f"{top}/numba"
        if number % 2 and name in NODES and name != SIMULATOR:
            words = command_line(SIMULATOR, Path(top), "", name in QUADRUPEDS)
            stack.enter_context(Background(words, f"{top}/robot.log", env))
        for attempt in range(ATTEMPTS):
            folder = Path(top) / f"new{attempt}"
            folder.mkdir()
            command = command_line(name, folder, made, name in QUADRUPEDS)
            start = interrupt(
                f"{name} after {after:.2f} s", command, folder, env, after
            )
            if start.seconds is not None:
                break
            after *= 0.3 + 0.5 * rng.random()
    print(start.shown, file=sys.stderr, flush=True)
    return start


def command_line(name: str, folder: Path, made: str, quadruped: bool) -> list[str]:
    """Of a program that writes into a folder."""
    package, _, program = name.partition("/")
    path = str(Path(get_package_prefix(package)) / "lib" / package / program)
    if name in COMMANDS:
        words = COMMANDS[name].replace("NEW", str(folder)).replace("MADE", made)
        return [path, *words.split()]
    robot = "scalf2" if quadruped else "hoap2"
    values = {
        key: str(folder) if value == "NEW" else value
        for key, value in NODES[name].items()
    }
    values["robot_description"] = (SHARE / "urdf" / f"{robot}.urdf").read_text()
    values["robot_config"] = f"{SHARE}/config/{robot}.yaml"
    file = folder / f"{program}.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}, width=1e9))
    return [path, "--ros-args", "--params-file", str(file)]


def interrupt(
    name: str, command: list[str], folder: Path, env: dict[str, str], after: float
) -> Start:
    """Run a command and interrupt its process group after a time (s)."""
    start = Start(name)
    log = folder / "log.txt"
    with log.open("wb") as out:
        process = Popen(
            command,
            stdin=DEVNULL,
            stdout=out,
            stderr=STDOUT,
            env=env,
            start_new_session=True,
        )
    try:
        with suppress(TimeoutExpired):
            process.wait(after)
            return start
        begin = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        with suppress(TimeoutExpired):
            process.wait(LIMIT)
        start.seconds = round(time.monotonic() - begin, 1)
    finally:
        start.code = process.poll()
        with suppress(ProcessLookupError):
            time.sleep(0.2)
            os.killpg(process.pid, signal.SIGKILL)
            start.left = "left a process" if start.code is not None else "did not end"
        process.wait()
        start.text = log.read_text(errors="replace")
    return start


def make_inputs(folder: Path) -> None:
    """Postures, a bag of them and a record of identifications, for the commands that read them."""
    model = RobotModel.from_file(URDF)
    rest = RobotConfig.from_file(SHARE / "config" / "hoap2.yaml").nominal_posture(model)
    postures = np.tile(rest, (6, 1))  # in which the feet stay where they are
    postures[:, model.joint_index("LARM_JOINT1")] += np.linspace(0.0, 0.3, 6)
    write_postures(folder / "postures.yaml", model, postures, "interrupted")
    for name, words in (
        ("com_demos/record_bag", COMMANDS["com_demos/record_bag"]),
        (
            "com_identification/identify",
            "MADE/bag/bag --robot hoap2 --output NEW/results --record MADE/robots.db --serial 1",
        ),
    ):
        path = command_line(name, folder, str(folder), False)[0]
        arguments = (
            words.replace("NEW", str(folder)).replace("MADE", str(folder)).split()
        )
        done = run([path, *arguments], stdout=sys.stderr)
        if done.returncode:
            raise SystemExit(f"{name} ended with {done.returncode}: see above")


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    names = {name.rpartition("/")[2]: name for name in (*COMMANDS, *NODES)}
    parser.add_argument(
        "--programs", nargs="+", default=list(names), choices=names, metavar="NAME"
    )
    parser.add_argument("--starts", type=int, default=4, help="of each program")
    parser.add_argument(
        "--full", action="store_true", help="100 starts of each program"
    )
    parser.add_argument("--processes", type=int, default=2, help="starts at a time")
    options = parser.parse_args()
    number = 100 if options.full else options.starts
    with tempfile.TemporaryDirectory(prefix="ctrl_c.") as made:
        if any("MADE" in COMMANDS.get(names[name], "") for name in options.programs):
            make_inputs(Path(made))
        jobs = [
            (names[name], k, made) for k in range(number) for name in options.programs
        ]
        found = in_processes(try_start, jobs, "starts", options.processes)
    before = [start for start in found if start.seconds is None]
    early = [start for start in found if start.seconds is not None and start.early]
    starts = [start for start in found if start.seconds is not None and not start.early]
    result = {
        "programs": len(options.programs),
        "starts": len(starts),
        "bad_codes": sum(start.code not in CODES for start in starts),
        "tracebacks": sum(start.loud for start in starts),
        "left": sum(bool(start.left) for start in starts),
        "python_start": len(early),
        "ended_before": len(before),
        "slowest_s": max((start.seconds or 0.0 for start in starts), default=None),
        "problems": [start.problem for start in starts if start.problem],
    }
    print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
