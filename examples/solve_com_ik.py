"""Joint positions that put the CoM of a biped where it is to be, with both soles in place.

python examples/solve_com_ik.py hoap2 0.0 0.0 -0.02
"""

import sys

import numpy as np

from com_control.walking import Biped, ComIk, find_stance
from com_control.walking.biped import sole_poses
from com_model import Sesc, load_robot


def main(robot: str, *shift: str) -> None:
    """Print the joints that move; shift is that of the CoM, m, along x, y and z."""
    model, config = load_robot(robot)
    biped = Biped.from_config(model, config)
    stance = find_stance(biped, biped.posture)
    to_world = np.column_stack([stance.R_walk_root, stance.p_walk_root])
    feet = to_world[:, :3] @ sole_poses(biped, biped.posture)  # (2, 3, 4) in the world
    feet[:, :, 3] += to_world[:, 3]
    target = stance.com + np.array(shift, dtype=float)
    found = ComIk(biped).solve(target, feet)
    if not found.reached:
        print(f"not reached: {found.reason}")
        return
    com = found.R_world_root @ Sesc(model).com(found.q) + found.p_world_root
    print(
        f"CoM at {com.round(6)} m, {1e3 * np.linalg.norm(com - target):.4f} mm from the target"
    )
    for joint, before, after in zip(
        model.joint_names, biped.posture, found.q, strict=True
    ):
        if abs(after - before) > 1e-6:
            print(f"  {joint:20} {before:+8.4f} -> {after:+8.4f} rad")


if __name__ == "__main__":
    main(*sys.argv[1:])
