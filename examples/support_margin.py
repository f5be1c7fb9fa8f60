"""How far the CoM of a standing robot is from the edge of its feet, joint by joint.

python examples/support_margin.py hoap2
"""

import sys

import numpy as np

from com_estimation.whole_body.com_state import ComObserver
from com_model import load_robot

STEP = np.deg2rad(1.0)


def main(robot: str) -> None:
    """Print the margin of the standing posture, and what one degree of each joint changes."""
    model, config = load_robot(robot)
    observer = ComObserver(model, config.feet)
    q = config.nominal_posture(model)
    margin = observer.update(q, 0 * q).margin
    print(f"{model.name}: {1e3 * margin:.1f} mm inside the edge of its feet")
    for i, joint in enumerate(model.joint_names):
        moved = np.array(q)
        moved[i] += STEP
        change = observer.update(moved, 0 * q).margin - margin
        if abs(change) > 1e-6:
            print(f"  {joint:20} {1e3 * change:+.2f} mm")


if __name__ == "__main__":
    main(*sys.argv[1:])
