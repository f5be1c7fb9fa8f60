"""Any log of a robot as arrays: a bag, Unitree's /lowstate, a table. No ROS.

python examples/log_to_arrays.py run.csv go2 run.npz
python examples/log_to_arrays.py recording robot.urdf run.npz mapping.yaml
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from com_bags import Bag, LogFormat, SensorReader, TopicRequest, find_topics, read_walk
from com_model import load_robot


def main(path: str, robot: str, output: str, mapping: str = "") -> None:
    """Write time, joints in the URDF's order, and readings of the IMU as npz."""
    model, config = load_robot(robot)
    about = LogFormat.of(model, config.feet)
    if mapping:
        about = replace(about, mapping=Path(mapping))
    with Bag(path, about) as bag:
        topics = find_topics(
            bag.topics(), (), TopicRequest(), use_imu=True, source=path
        )
        imu = config.imu_link or model.root_link
        log = read_walk(SensorReader(bag, model, (), topics, imu))
        print(*(f"note: {note}\n" for note in bag.notes), sep="", end="")
    arrays = {name: value for name, value in vars(log).items() if value is not None}
    np.savez(output, joint_names=np.array(model.joint_names), **arrays)
    for name, value in arrays.items():
        print(f"{name:17} {value.shape}")


if __name__ == "__main__":
    main(*sys.argv[1:])
