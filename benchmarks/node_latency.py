"""How fast sesc_publisher follows joint_states: real processes, real DDS, one machine.

    tools/in_env python benchmarks/node_latency.py [--seconds 10] [--rate 1000]

1. A driver process publishes HOAP-2's 25 named joints (in an order that is not the model's), the
   installed sesc_publisher follows, a third process listens to `com`. In turn with it, a bare rclpy
   node with the same executor takes its place: it receives the same topics, computes nothing, and
   answers each joint_states by a `com` of the same size. ratio_p50 and ratio_cpu are the node's
   median latency and processor time over those of the bare node.
2. The same with an IMU and the wrenches of two feet at the same rate, which the node uses:
   ratio_p50_sensors, ratio_cpu_sensors.
3. The same with the simulator as the driver.
4. overload: joint_states as fast as the driver goes show which rate the node can follow; then they
   come at twice that rate. rate_hz is the rate that came, age_p99_ms the age of the data in `com`
   when it is published, skipped the number of messages that were not used.

5. start_s: from the start of a process to the first com that is known, of sesc_publisher and of
   trunk_estimator, while their inputs are there: the median of STARTS starts after the first, and
   start_max_s the longest of them. The nodes are ready at the same time in all of them: what the
   longest take more is DDS, which may need up to 3 s until a new reader has found its writers.

Latency: from publication, as DDS dates it, to the listener's callback; com carries the stamp of its
joint_states on, so each is matched. The stamp itself is a little earlier: our driver takes it right
before it publishes, the simulator's is the instant that is simulated, for which it then wakes up.
The last line is one JSON object.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml
from ament_index_python.packages import get_package_prefix, get_package_share_directory

from com_model import RobotConfig

ROLES = Path(__file__).resolve().with_name("latency_roles.py")
WARM_UP_S = 3.0  # after the first com
TIME_LIMIT_S = 60.0  # for what should take a few seconds
STARTS = 7  # of each node, after the first
COMPILE_LIMIT_S = 300.0  # for the first start of a node, which may compile its kernels


def main() -> int:
    """Measure with all drivers and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="time to measure, each time"
    )
    parser.add_argument(
        "--rate", type=float, default=1000.0, help="joint_states per second"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="turns of node and bare node"
    )
    options = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # so that the processes are stopped
    # What a shell starts in the background ignores Ctrl-C, by which its processes are stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Bytecode, also where the environment forbids it: a second start finds that of the first.
        os.environ["PYTHONDONTWRITEBYTECODE"] = ""
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        result, ratios = compare(options, folder, sensors=False)
        with_sensors, more = compare(options, folder, sensors=True)
        simulator = simulator_command(options.rate, folder)
        node = node_command({"use_imu": True}, folder)
        with_simulator = measure(simulator, node, options.seconds, folder)
        describe("simulator", with_simulator)
        overload = measure_overload(options.seconds, folder)
        starts = measure_starts(options.rate, folder)
    others = {
        "overload": overload,
        "start_s": {name: float(np.median(times)) for name, times in starts.items()},
        "start_max_s": {name: max(times) for name, times in starts.items()},
        "sensors": with_sensors,
        "simulator": with_simulator,
    }
    print(json.dumps({**result, **ratios, **more, **others}), flush=True)
    return 0


Figures = dict[str, float]


def compare(
    options: argparse.Namespace, folder: Path, sensors: bool
) -> tuple[Figures, Figures]:
    """Figures of the node with our driver, and its ratios to a bare node; the median of turns."""
    more = ["--sensors"] if sensors else []
    source = role("drive", "--rate", str(options.rate), *more)
    bare, node = role("bare", *more), node_command({"use_imu": sensors}, folder)
    found: dict[str, list[Figures]] = {"bare": [], "node": []}
    for _ in range(options.repeats):
        for name, command in (("bare", bare), ("node", node)):
            found[name].append(measure(source, command, options.seconds, folder))
            describe(f"{name}{' with sensors' if sensors else ''}", found[name][-1])
    middle = {name: _median(turns) for name, turns in found.items()}
    end = "_sensors" if sensors else ""
    ratios = {
        f"ratio_{short}{end}": round(middle["node"][key] / middle["bare"][key], 3)
        for short, key in (("p50", "p50_ms"), ("cpu", "node_cpu"))
    }
    bare_figures = {
        f"bare_{key}": middle["bare"][key] for key in ("p50_ms", "p99_ms", "node_cpu")
    }
    return middle["node"] | bare_figures, ratios


def _median(turns: Sequence[Figures]) -> Figures:
    return {key: float(np.median([turn[key] for turn in turns])) for key in turns[0]}


def measure_overload(seconds: float, folder: Path) -> Figures:
    """rate_hz, age_p99_ms and skipped at twice the rate that the node can follow; see above."""
    node = node_command({}, folder)
    flood = measure(role("drive", "--rate", "0"), node, seconds, folder)
    follows = flood["rate_hz"]
    found = measure(role("drive", "--rate", str(2.0 * follows)), node, seconds, folder)
    result = {
        "rate_hz": round(found["sent"] / seconds, 1),
        "follows_hz": follows,
        "age_p50_ms": found["age_p50_ms"],
        "age_p99_ms": found["age_p99_ms"],
        "skipped": found["sent"] - found["received"],
    }
    print(f"overload: {result}", flush=True)
    return result


def measure_starts(rate_hz: float, folder: Path) -> dict[str, list[float]]:
    """Seconds from STARTS starts of each node to its first result."""
    cases = {
        "sesc_publisher": (
            role("drive", "--rate", str(rate_hz)),
            node_command({}, folder),
        ),
        "trunk_estimator": (
            simulator_command(500.0, folder, "scalf2"),
            node_program("com_estimation", "trunk_estimator", robot("scalf2"), folder),
        ),
    }
    result = {
        name: measure_start(*commands, folder) for name, commands in cases.items()
    }
    print(f"start: {result}", flush=True)
    return result


def measure_start(
    source_command: Sequence[str], node_command: Sequence[str], folder: Path
) -> list[float]:
    """Seconds from STARTS starts of a node to its first result, after one that may compile."""
    came = folder / "came.txt"
    others = [start(source_command), start(role("first", str(came)))]
    try:
        wait(WARM_UP_S, others)
        times = []
        for _ in range(1 + STARTS):
            came.unlink(missing_ok=True)
            begin_ns, node = time.time_ns(), start(node_command)
            try:
                wait(COMPILE_LIMIT_S, [*others, node], came.exists)
            finally:
                stop(node)
            times.append(round((int(came.read_text()) - begin_ns) / 1e9, 2))
    finally:
        for process in others:
            stop(process)
    return times[1:]


def role(*arguments: str) -> list[str]:
    """Command line of a process of latency_roles.py."""
    return [sys.executable, str(ROLES), *arguments]


def measure(
    source_command: Sequence[str],
    node_command: Sequence[str],
    seconds: float,
    folder: Path,
) -> Figures:
    """Run source, node and listener and compare what went in with what came out."""
    received = folder / "received.npz"
    first = received.with_suffix(".first")
    first.unlink(missing_ok=True)
    listener = start(role("listen", str(received)))
    node = start(node_command)
    source = start(source_command)
    processes = [source, node, listener]
    try:
        wait(TIME_LIMIT_S, processes, first.exists)
        wait(WARM_UP_S, processes)
        begin_ns, cpu = time.time_ns(), cpu_seconds(node)
        wait(seconds, processes)
        end_ns, cpu = time.time_ns(), cpu_seconds(node) - cpu
        wait(0.5, processes)
    finally:
        for process in (source, node, listener):
            stop(process)
    return evaluate(np.load(received), begin_ns, end_ns) | {
        "node_cpu": round(cpu / seconds, 3)
    }


def evaluate(received: Mapping[str, np.ndarray], begin_ns: int, end_ns: int) -> Figures:
    """Figures of the joint_states that were published between two times.

    Returns:
        rate_hz (of com), sent, received; p50_ms, p99_ms, max_ms from publication, and stamp_p50_ms,
        stamp_p99_ms from the stamp, to the listener; age_p50_ms, age_p99_ms of the data when com
        was published.
    """
    joints = received["joint_stamp_ns"], received["joint_time_ns"]
    published_ns = dict(zip(*joints, strict=True))
    sent = {stamp: at for stamp, at in published_ns.items() if begin_ns <= at <= end_ns}
    names = ("com_stamp_ns", "com_sent_ns", "com_time_ns", "com_known")
    times = np.array(
        [
            (received_ns - sent[stamp], received_ns - stamp, sent_ns - stamp)
            for stamp, sent_ns, received_ns, known in zip(
                *map(received.get, names), strict=True
            )
            if known and stamp in sent
        ]
    )
    if not times.size:
        raise SystemExit("no com came back: see the messages above")
    p50, p99, largest = (
        np.percentile(times / 1e6, [50, 99, 100], axis=0).round(3).tolist()
    )
    return {
        "rate_hz": round(len(times) / (end_ns - begin_ns) * 1e9, 1),
        "sent": len(sent),
        "received": len(times),
        "p50_ms": p50[0],
        "p99_ms": p99[0],
        "max_ms": largest[0],
        "stamp_p50_ms": p50[1],
        "stamp_p99_ms": p99[1],
        "age_p50_ms": p50[2],
        "age_p99_ms": p99[2],
    }


def node_command(parameters: dict[str, object], folder: Path) -> list[str]:
    """The installed sesc_publisher with HOAP-2's model and configuration."""
    return node_program(
        "com_estimation", "sesc_publisher", robot("hoap2") | parameters, folder
    )


def simulator_command(rate_hz: float, folder: Path, name: str = "hoap2") -> list[str]:
    """The installed simulator with a robot, in real time."""
    parameters = {"publish_rate_hz": rate_hz, "real_time_factor": 1.0}
    return node_program("com_simulation", "simulator", robot(name) | parameters, folder)


def robot(name: str) -> dict[str, object]:
    """Parameters that give a node a robot of robot_descriptions."""
    config = (
        Path(get_package_share_directory("robot_descriptions"))
        / "config"
        / f"{name}.yaml"
    )
    urdf = RobotConfig.from_file(config).urdf
    assert urdf is not None
    return {"robot_description": urdf.read_text(), "robot_config": str(config)}


def node_program(
    package: str, name: str, parameters: dict[str, object], folder: Path
) -> list[str]:
    """Command line of a node with parameters."""
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}, width=1e9))
    program = Path(get_package_prefix(package)) / "lib" / package / name
    return [str(program), "--ros-args", "--params-file", str(file)]


def start(command: Sequence[str]) -> subprocess.Popen:
    """Start a process whose standard output is not ours: that is for the result."""
    return subprocess.Popen(command, stdout=sys.stderr)


def wait(
    seconds: float,
    processes: Sequence[subprocess.Popen],
    until: Callable[[], bool] | None = None,
) -> None:
    """Wait for a time, or at most that for a condition.

    A process that ends meanwhile, and a condition that does not come true, end the benchmark.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for process in processes:
            if process.poll() is not None:
                raise SystemExit(
                    f"{process.args!r} ended with code {process.returncode}"
                )
        if until is not None and until():
            return
        time.sleep(min(0.25, left))
    if until is not None:
        raise SystemExit(f"no com came within {seconds:g} s: see the messages above")


def stop(process: subprocess.Popen) -> None:
    """End a process, at the latest by force."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def cpu_seconds(process: subprocess.Popen) -> float:
    """Processor time that a process has used, s."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def describe(driver: str, result: dict[str, float]) -> None:
    """One line for people."""
    count = f"{result['received']} of {result['sent']} at {result['rate_hz']:g} Hz"
    times = f"median {result['p50_ms']:g} ms, 99 % under {result['p99_ms']:g} ms"
    load = f"the node takes {100 * result['node_cpu']:.0f} % of a core"
    print(
        f"{driver}: {count}, {times}, largest {result['max_ms']:g} ms; {load}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
