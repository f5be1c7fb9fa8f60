"""How fast sesc_publisher follows joint_states: real processes, real DDS, one machine.

    tools/in_env python benchmarks/node_latency.py [--seconds 10] [--rate 1000]

1. A driver process publishes HOAP-2's 25 named joints (in an order that is not the model's), the
   installed sesc_publisher follows, a third process listens to `com`.
2. The same with the simulator as the driver: foot forces, IMU and truth come at the same rate,
   and the node uses forces and IMU.

Latency: from the stamp that the driver gives joint_states right before it publishes them to the
listener's callback; com carries the stamp on. Received counts the stamps that came back with a
CoM. The last line is one JSON object.
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

ROLES = Path(__file__).resolve().with_name("latency_roles.py")
WARM_UP_S = 3.0  # after the first com
TIME_LIMIT_S = 60.0  # for what should take a few seconds


def main() -> int:
    """Measure with both drivers and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="time to measure")
    parser.add_argument("--rate", type=float, default=1000.0, help="joint_states per second")
    options = parser.parse_args()
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = measure(driver_command(options.rate, folder), {}, options.seconds, folder)
        describe("driver", result)
        simulator = simulator_command(options.rate, folder)
        with_simulator = measure(simulator, {"use_imu": True}, options.seconds, folder)
        describe("simulator", with_simulator)
    print(json.dumps(result | {"simulator": with_simulator}), flush=True)
    return 0


def measure(
    source_command: Sequence[str], parameters: dict[str, object], seconds: float, folder: Path
) -> dict[str, float]:
    """Run source, node and listener and compare the stamps that went in with those that came out.

    A driver of ours writes down what it sent; of another source the listener writes it down.

    Returns:
        rate_hz (of com), sent, received, p50_ms, p99_ms, max_ms and node_cpu (of one core).
    """
    sent, heard = folder / "sent.npy", folder / "heard.npz"
    ours = str(sent) in source_command
    first = heard.with_suffix(".first")
    first.unlink(missing_ok=True)
    ears = [sys.executable, str(ROLES), "listen", str(heard)]
    listener = start(ears if ours else [*ears, "--with-joint-states"])
    node = start(node_command(parameters, folder))
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
        for process in (source, listener, node):
            stop(process)
    answers = np.load(heard)
    stamps = np.load(sent) if ours else answers["joint_stamp_ns"]
    stamps = stamps[(stamps >= begin_ns) & (stamps <= end_ns)]
    return evaluate(stamps, answers, end_ns - begin_ns) | {"node_cpu": round(cpu / seconds, 3)}


def evaluate(
    sent_ns: np.ndarray, heard: Mapping[str, np.ndarray], span_ns: int
) -> dict[str, float]:
    """Figures of the samples with these stamps."""
    chosen = np.isin(heard["com_stamp_ns"], sent_ns) & heard["com_known"]
    latency_ms = (heard["com_time_ns"] - heard["com_stamp_ns"])[chosen] / 1e6
    if not latency_ms.size:
        raise SystemExit("no com came back: see the messages above")
    return {
        "rate_hz": round(latency_ms.size / span_ns * 1e9, 1),
        "sent": int(np.unique(sent_ns).size),
        "received": int(np.unique(heard["com_stamp_ns"][chosen]).size),
        "p50_ms": round(float(np.percentile(latency_ms, 50)), 3),
        "p99_ms": round(float(np.percentile(latency_ms, 99)), 3),
        "max_ms": round(float(latency_ms.max()), 3),
    }


def driver_command(rate_hz: float, folder: Path) -> list[str]:
    """Our own driver."""
    return [sys.executable, str(ROLES), "drive", str(folder / "sent.npy"), "--rate", str(rate_hz)]


def node_command(parameters: dict[str, object], folder: Path) -> list[str]:
    """The installed sesc_publisher with HOAP-2's model and configuration."""
    return node_program("com_estimation", "sesc_publisher", hoap2() | parameters, folder)


def simulator_command(rate_hz: float, folder: Path) -> list[str]:
    """The installed simulator with HOAP-2, in real time."""
    parameters = {"publish_rate_hz": rate_hz, "real_time_factor": 1.0}
    return node_program("com_simulation", "simulator", hoap2() | parameters, folder)


def hoap2() -> dict[str, object]:
    """Parameters that give a node HOAP-2."""
    share = Path(get_package_share_directory("robot_descriptions"))
    return {
        "robot_description": (share / "urdf" / "hoap2.urdf").read_text(),
        "robot_config": str(share / "config" / "hoap2.yaml"),
    }


def node_program(package: str, name: str, parameters: dict[str, object], folder: Path) -> list[str]:
    """Command line of a node with parameters."""
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}, width=1e9))
    program = Path(get_package_prefix(package)) / "lib" / package / name
    return [str(program), "--ros-args", "--params-file", str(file)]


def start(command: Sequence[str]) -> subprocess.Popen:
    """Start a process whose standard output is not ours: that is for the result."""
    return subprocess.Popen(command, stdout=sys.stderr, start_new_session=True)


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
                raise SystemExit(f"{process.args!r} ended with code {process.returncode}")
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
    print(f"{driver}: {count}, {times}, largest {result['max_ms']:g} ms; {load}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
