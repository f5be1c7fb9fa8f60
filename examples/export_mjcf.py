"""A URDF as MJCF for MuJoCo, with its masses and CoMs, for instance the corrected ones.

python examples/export_mjcf.py corrected.urdf robot.mjcf.xml
"""

import sys
from pathlib import Path

import mujoco

from com_model import load_robot
from com_simulation.physics.world_builder import build_world


def main(robot: str, output: str) -> None:
    """Write the robot with the soles of its configuration, above a plane; print what it weighs."""
    model, config = load_robot(robot)
    specs: list[mujoco.MjSpec] = []
    world = build_world(model, config, edit=specs.append)
    specs[0].compile()
    Path(output).write_text(specs[0].to_xml())
    read = mujoco.MjModel.from_xml_path(output)
    print(
        f"{output}: {read.nbody - 1} bodies, {read.nu} actuators, {sum(read.body_mass):.4f} kg"
    )
    for note in world.notes:
        print(f"note: {note}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
