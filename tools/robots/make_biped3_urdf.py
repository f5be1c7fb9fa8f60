#!/usr/bin/env python3
"""Write urdf/biped3.urdf, the biped of [Muscolo] Table 1, from data/biped3_links.csv.

    make_biped3_urdf.py            write biped3.urdf
    make_biped3_urdf.py --check    write nothing; exit 1 if the URDF differs

The table has the links of the left leg, in mm, each in the frame of its joint; the right leg is its
mirror image. A row without joint is fixed to its parent. data/README.md says what is in [Muscolo]
and what is assumed. To change the robot, edit the table and run this.

[Muscolo] = G. G. Muscolo, D. Caldwell, F. Cannella, "Calculation of the Center of Mass Position
of Each Link of Multibody Biped Robots", Applied Sciences, 2017.
"""

import sys
from math import pi

import urdf_writer as urdf

ROOT, WAIST = "base_link", 0.94  # kg
WAIST_SIZE = 0.12, 0.4, 0.06  # m
SOLE = -0.1  # m, below the ankle's axis: L_a of [Muscolo] Table 1
COLOURS = {
    "light_grey": "0.78 0.79 0.81 1",
    "grey": "0.55 0.56 0.58 1",
    "dark_grey": "0.27 0.28 0.30 1",
}
LIMITS = {"lower": -pi / 3, "upper": pi / 3, "effort": 200.0, "velocity": 5.0}
SIDES = {"l": 1.0, "r": -1.0}


def add_inertial(
    link: urdf.Element, mass: float, com: list[float], size: list[float]
) -> None:
    """Append mass, centre of mass and the inertia of a full box of this size around it."""
    x, y, z = (width * width for width in size)
    inertial = urdf.add(link, "inertial")
    urdf.add(inertial, "origin", xyz=urdf.text(com))
    urdf.add(inertial, "mass", value=urdf.text([mass]))
    moments = {"ixx": (y + z) / 12, "iyy": (x + z) / 12, "izz": (x + y) / 12}
    values = {key: urdf.text([mass * moment]) for key, moment in moments.items()}
    urdf.add(inertial, "inertia", **values, ixy="0", ixz="0", iyz="0")


def add_box(
    link: urdf.Element, center: list[float], size: list[float], colour: str
) -> None:
    """Append a box to see and to touch."""
    for use in ("visual", "collision"):
        shape = urdf.add(link, use)
        urdf.add(shape, "origin", xyz=urdf.text(center))
        urdf.add(urdf.add(shape, "geometry"), "box", size=urdf.text(size))
        if use == "visual":
            urdf.add(shape, "material", name=colour)


def add_link(robot: urdf.Element, row: urdf.Row, side: str) -> None:
    """Append a link of one leg with its joint."""
    name = f"{side}_{row['link']}"
    parent = ROOT if row["parent"] == ROOT else f"{side}_{row['parent']}"
    size = urdf.vector(row, "size_x_mm", "size_y_mm", "size_z_mm", scale=1e-3)
    link = urdf.add(robot, "link", name=name)
    com = urdf.vector(row, "com_x_mm", "com_y_mm", "com_z_mm", scale=1e-3)
    add_inertial(link, float(row["mass_kg"]), com, size)
    box = urdf.vector(row, "box_x_mm", "box_y_mm", "box_z_mm", scale=1e-3)
    add_box(link, box, size, row["colour"])
    x, y, z = urdf.vector(row, "x_mm", "y_mm", "z_mm", scale=1e-3)
    place = (x, SIDES[side] * y if y else 0.0, z)
    if row["joint"]:
        joint = f"{side}_{row['joint']}"
        urdf.add_revolute(robot, joint, parent, name, place, (0.0, 1.0, 0.0), LIMITS)
    else:
        urdf.add_fixed(robot, parent, name, place)


def build(name: str) -> urdf.Element:
    """Return the robot."""
    robot = urdf.new_robot(name, "", COLOURS)
    waist = urdf.add(robot, "link", name=ROOT)
    add_inertial(waist, WAIST, [0.0, 0.0, 0.0], list(WAIST_SIZE))
    add_box(waist, [0.0, 0.0, 0.0], list(WAIST_SIZE), "light_grey")
    for side in SIDES:
        for row in urdf.read_table("biped3_links.csv"):
            add_link(robot, row, side)
        urdf.add(robot, "link", name=f"{side}_sole")
        urdf.add_fixed(robot, f"{side}_foot", f"{side}_sole", (0.0, 0.0, SOLE))
    return robot


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = urdf.command_line(__doc__, "biped3.urdf").parse_args(arguments)
    return urdf.write_or_check(__file__, options, lambda: build(options.output.stem))


if __name__ == "__main__":
    sys.exit(main())
