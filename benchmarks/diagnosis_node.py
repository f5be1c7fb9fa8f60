"""Processor time of humanoid_com_estimator: the installed node follows a robot that walks.

    tools/in_env python benchmarks/diagnosis_node.py [--robot talos] [--seed 5000]

The recording of benchmarks/diagnosis.py (200 Hz: joint_states, imu, two wrenches) is published in
real time, RUNS times. The last line is one JSON object, of the run with the median processor time:
node_cpu_percent, of one core, all threads of the node from SKIPPED s on, when its kernels are
loaded; answers, com_corrected a second meanwhile; all_percent, of all runs.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from itertools import chain, cycle, takewhile
from pathlib import Path
from typing import Any

import rclpy
from diagnosis_lab import PERIOD, Errors, believed, load, simulate, spoil
from geometry_msgs.msg import WrenchStamped
from node_latency import cpu_seconds, node_program, start, stop
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from com_model.dynamics.link_frames import LinkFrames
from com_model.robot_config import ground_wrenches
from com_msgs.msg import CenterOfMass
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    numpy_to_wrench,
    rotation_to_quaternion,
)

RUNS = 3
SKIPPED = 3.0  # s
STANDING = range(60, 100)  # samples of the recording, settled and before the first step
READY = 120.0  # s, for the node to start


def node_figures(name: str, seed: int) -> dict[str, Any]:
    """The figures: what else a computer does makes single ones differ by a third."""
    runs = sorted(
        (follow_walk(name, seed) for _ in range(RUNS)), key=lambda run: run[0]
    )
    percent, answers = runs[RUNS // 2]
    every = [run[0] for run in runs]
    return {"node_cpu_percent": percent, "answers": answers, "all_percent": every}


def follow_walk(name: str, seed: int) -> tuple[float, float]:
    """node_cpu_percent and answers of a walk."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    config, model = load(name)[1], believed(name, Errors(), seed)
    log = spoil(name, simulate(name, "walk", seed), Errors(), seed)
    imu, names = (
        LinkFrames(model, [config.imu_link or model.root_link]),
        list(model.joint_names),
    )
    raw = ground_wrenches(log.wrenches, config.feet)
    came: list[float] = []
    rclpy.init()
    driver = Node("diagnosis_driver")
    kinds = [(JointState, "joint_states"), (Imu, "imu")]
    kinds += [(WrenchStamped, foot.wrench_topic) for foot in config.feet]
    joints, orientation, *wrenches = (
        driver.create_publisher(*kind, 100) for kind in kinds
    )
    driver.create_subscription(
        CenterOfMass, "com_corrected", lambda _: came.append(time.monotonic()), 1000
    )
    with tempfile.TemporaryDirectory() as folder:
        parameters = {"robot_description": model.xml, "robot_config": config.source}
        node = start(
            node_program(
                "com_estimation", "humanoid_com_estimator", parameters, Path(folder)
            )
        )
        try:
            end = time.monotonic() + READY
            while not all(
                p.get_subscription_count() for p in (joints, orientation, *wrenches)
            ):
                if time.monotonic() > end or node.poll() is not None:
                    raise SystemExit("humanoid_com_estimator does not start: see above")
                time.sleep(0.1)
            # it stands until the node has loaded its kernels
            standing = takewhile(lambda _: not came, cycle(STANDING))
            begin, cpu, first = time.monotonic(), 0.0, round(SKIPPED / PERIOD)
            start_ns = time.time_ns()
            for sent, k in enumerate(
                chain(standing, range(STANDING.start, len(log.q)))
            ):
                q = log.q[k]
                if time.monotonic() > end:
                    raise SystemExit(
                        "humanoid_com_estimator does not answer: see above"
                    )
                stamp = ns_to_stamp(start_ns + round(1e9 * PERIOD) * sent)
                reading = Imu()
                R = log.R[k] @ imu.poses(q)[0][0]
                reading.orientation = rotation_to_quaternion(R)
                messages: list[tuple[Any, Any]] = [
                    (publisher, WrenchStamped(wrench=numpy_to_wrench(wrench)))
                    for publisher, wrench in zip(wrenches, raw[k], strict=True)
                ]
                messages += [(orientation, reading)]
                messages += [(joints, numpy_to_joint_state(names, q, stamp=stamp))]
                for publisher, msg in messages:
                    msg.header.stamp = stamp
                    publisher.publish(msg)
                for _ in range(3):
                    rclpy.spin_once(driver, timeout_sec=0.0)
                if k == first:
                    cpu, measured = cpu_seconds(node), time.monotonic()
                    came.clear()
                time.sleep(max(0.0, begin + (sent + 1) * PERIOD - time.monotonic()))
            cpu, seconds = cpu_seconds(node) - cpu, time.monotonic() - measured
        finally:
            stop(node)
            driver.destroy_node()
            rclpy.shutdown()
    if len(came) < 0.5 * (len(log.q) - first):
        raise SystemExit(
            f"only {len(came)} of {len(log.q) - first} samples were answered"
        )
    return round(100.0 * cpu / seconds, 1), round(len(came) / seconds, 1)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--robot", default="talos")
    parser.add_argument("--seed", type=int, default=5000)
    args = parser.parse_args()
    print(json.dumps(node_figures(args.robot, args.seed)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
