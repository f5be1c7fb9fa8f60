"""Commands that no robot can follow, which benchmarks/faults.py gives to the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fault_cases import Batch, Fault
from fault_lab import load_robot
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


def command_faults() -> list[Fault]:
    """What the simulator is commanded: the messages of an instant become these."""
    model, _ = load_robot("hoap2")
    names, n = list(model.joint_names), model.n_joints
    zeros = [0.0] * n

    def trajectory(
        points: list[tuple[list[float], float]], names: list[str], **stamp: int
    ) -> Any:
        msg = JointTrajectory(joint_names=names)
        msg.header.stamp.sec = stamp.get("sec", 0)
        for q, after in points:
            point = JointTrajectoryPoint(positions=q)
            point.time_from_start.sec = int(after)
            point.time_from_start.nanosec = round((after - int(after)) * 1e9)
            msg.points.append(point)
        return msg

    good = [(zeros, 0.5)]
    messages: list[tuple[str, Any]] = [
        ("no points", trajectory([], names)),
        ("no names", trajectory(good, [])),
        ("unknown name", trajectory(good, ["nobody", *names[1:]])),
        ("a name twice", trajectory(good, [names[1], *names[1:]])),
        ("too few positions", trajectory([(zeros[1:], 0.5)], names)),
        ("too many positions", trajectory([([*zeros, 0.0], 0.5)], names)),
        ("no positions", trajectory([([], 0.5)], names)),
        ("times that decrease", trajectory([(zeros, 1.0), (zeros, 0.5)], names)),
        ("equal times", trajectory([(zeros, 1.0), (zeros, 1.0)], names)),
        ("time 0", trajectory([(zeros, 0.0)], names)),
        ("time -1", trajectory([(zeros, -1.0)], names)),
        ("time 2e9", trajectory([(zeros, 2e9)], names)),
        ("10 000 points", trajectory([(zeros, 0.001 * (i + 1)) for i in range(10_000)], names)),
        *((f"stamp {sec}", trajectory(good, names, sec=sec)) for sec in
          (-(2**31), -1, 1, 2**31 - 1)),
    ]  # fmt: skip
    values = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e6, 10.0, -10.0)
    for value in values:
        one = [float(value), *zeros[1:]]
        all_of_them = [float(value)] * n
        messages += [
            (f"position {value:g}", trajectory([(one, 0.5)], names)),
            (f"all positions {value:g}", trajectory([(all_of_them, 0.5)], names)),
            (f"at once {value:g}", trajectory([(one, 1e-9)], names)),
            (f"targets {value:g}", Float64MultiArray(data=all_of_them)),
        ]
    messages += [
        ("targets too few", Float64MultiArray(data=zeros[1:])),
        ("no targets", Float64MultiArray(data=[])),
        ("a million targets", Float64MultiArray(data=[0.0] * 1_000_000)),
    ]

    def change(msg: Any) -> Callable[..., Batch]:
        topic = "targets" if isinstance(msg, Float64MultiArray) else "trajectory"
        return lambda _batch, progress: (
            [(topic, msg)] if progress.tick % 10 == 0 else []
        )

    return [Fault(f"command {name}", change(msg)) for name, msg in messages]
