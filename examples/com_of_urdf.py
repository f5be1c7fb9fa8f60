"""The centre of mass of a robot in a posture, and how it moves with each joint.

python examples/com_of_urdf.py hoap2 RLEG_JOINT3=-0.5 RLEG_JOINT4=1.0
"""

import sys

from com_model import Sesc, load_robot


def main(robot: str, *posture: str) -> None:
    """Print CoM and Jacobian; joints that are not named are where the configuration has them."""
    model, config = load_robot(robot)
    q = config.nominal_posture(model).copy()
    for word in posture:
        joint, _, value = word.partition("=")
        q[model.joint_index(joint)] = float(value)  # rad or m
    com, jacobian = Sesc(model).com_and_jacobian(q)
    print(
        f"{model.name}: {model.mass:.3f} kg, CoM in {model.root_link}: {com.round(5)} m"
    )
    for joint, column in zip(model.joint_names, jacobian.T, strict=True):
        print(f"  {joint:20} {1e3 * column.round(6)} mm/rad (mm/m)")


if __name__ == "__main__":
    main(*sys.argv[1:])
