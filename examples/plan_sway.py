"""A minute of swaying that shows where a humanoid's CoM is, planned within its limits.

python examples/plan_sway.py hoap2 sway.csv
"""

import sys

import numpy as np

from com_control.motion.sway_tour import plan_sway
from com_model import load_robot


def main(robot: str, output: str, seconds: str = "60") -> None:
    """Print how large it is; write time (s) and joint positions (rad) as CSV."""
    model, config = load_robot(robot)
    tour = plan_sway(model, config, float(seconds))
    motion = tour.motion
    print(
        f"{model.name}: {100 * tour.size:.0f} % of the usual amplitudes, the CoM stays "
        f"{1e3 * tour.margin:.0f} mm inside the soles"
    )
    table = np.column_stack([motion.times, motion.positions])
    head = ",".join(["time", *model.joint_names])
    np.savetxt(output, table, fmt="%.6f", delimiter=",", header=head, comments="")


if __name__ == "__main__":
    main(*sys.argv[1:])
