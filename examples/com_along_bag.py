"""The centre of mass along a recording, as CSV for a spreadsheet or pandas.read_csv. No ROS.

python examples/com_along_bag.py walk_lab hoap2 > com.csv
"""

import sys

import numpy as np

from com_bags import Bag, SensorReader, TopicRequest, find_topics
from com_model import Sesc, load_robot


def main(path: str, robot: str) -> None:
    """Print time (s, from the first sample) and CoM (m, in the root link's frame)."""
    model, _ = load_robot(robot)
    sesc = Sesc(model)
    print("time,x,y,z")
    with Bag(path) as bag:
        topics = find_topics(
            bag.topics(), (), TopicRequest(), use_imu=False, source=path
        )
        reader = SensorReader(bag, model, (), topics)
        for block in reader.blocks():
            known = np.isfinite(block.Q).all(axis=1)
            times = (block.joint_times[known] - (reader.first_ns or 0)) / 1e9
            for time, (x, y, z) in zip(
                times, sesc.com_batch(block.Q[known]), strict=True
            ):
                print(f"{time:.4f},{x:.6f},{y:.6f},{z:.6f}")
        for warning in reader.warnings():
            print(f"warning: {warning}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
