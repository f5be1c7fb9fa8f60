#!/usr/bin/env python3
"""Write urdf/hoap2.urdf from the tables in data/ (SI units, REP 103 axes).

    make_hoap2_urdf.py            write the URDF
    make_hoap2_urdf.py --check    write nothing; exit 1 if the URDF differs from the tables

The tables, all lengths in mm:
  hoap2_links.csv    bodies and joints: origins, axes, limits (deg), mass (kg), centre of mass,
                     inertia about it (kg mm^2, elements of the matrix)
  hoap2_frames.csv   frames without mass, fixed to a body
  hoap2_shapes.csv   what the bodies look like and collide with; a row of a limb (LEG3) is the left
                     one, the right one is its mirror image; sizes are those of the bounding box
data/README.md says where each number comes from. To change the robot, edit a table and run this.
"""

import sys
from math import radians
from xml.etree import ElementTree

import urdf_writer as urdf

ROOT, TRUNK = "base_link", "BODY1"

# [Cominoli] 3.6 and 3.8: 209 encoder pulses a degree, at most 57 pulses a millisecond.
MAX_SPEED = radians(57.0 * 1000.0 / 209.0)  # rad/s
# Assumption, see data/README.md: no source gives the torque of the motors.
MAX_TORQUE = 9.0  # N m

COLOURS = {
    "white": "0.93 0.93 0.94 1",
    "light_grey": "0.78 0.79 0.81 1",
    "grey": "0.55 0.56 0.58 1",
    "dark_grey": "0.27 0.28 0.30 1",
    "black": "0.08 0.08 0.09 1",
    "blue": "0.35 0.55 0.86 1",
    "red": "0.80 0.10 0.12 1",
}


def inertia(row: urdf.Row) -> dict[str, float]:
    """Return a body's inertia about its centre of mass, kg m^2.

    A body of positive mass density has Sigma = tr(I)/2 E - I > 0, which is the same as: I is
    positive definite and no principal moment exceeds the sum of the other two.

    Raises:
        TableError: The inertia is not that of a body.
    """
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    xx, yy, zz, xy, xz, yz = urdf.vector(
        row, *(f"{name}_kgmm2" for name in names), scale=1e-6
    )
    a, b, c = (yy + zz - xx) / 2, (xx + zz - yy) / 2, (xx + yy - zz) / 2
    determinant = a * b * c - 2 * xy * xz * yz - a * yz**2 - b * xz**2 - c * xy**2
    if min(a, a * b - xy**2, determinant) <= 0:
        raise urdf.TableError(
            f"{row['link']}: no body has the inertia {[xx, yy, zz, xy, xz, yz]} kg m^2 "
            "(positive definite, triangle inequality): compare the row with the report"
        )
    return dict(zip(names, (xx, yy, zz, xy, xz, yz), strict=True))


def add_inertial(link: urdf.Element, row: urdf.Row) -> None:
    """Append mass, centre of mass and inertia."""
    if row["assumed"]:
        link.append(
            ElementTree.Comment(f" assumed, not read in the report: {row['assumed']} ")
        )
    inertial = urdf.add(link, "inertial")
    urdf.add(
        inertial,
        "origin",
        xyz=urdf.text(urdf.vector(row, "com_x_mm", "com_y_mm", "com_z_mm", scale=1e-3)),
    )
    urdf.add(inertial, "mass", value=urdf.text(urdf.vector(row, "mass_kg")))
    urdf.add(
        inertial,
        "inertia",
        **{name: urdf.text([value]) for name, value in inertia(row).items()},
    )


def add_limb_shapes(link: urdf.Element, shapes: list[urdf.Row]) -> None:
    """Append the visuals and collisions of a body; those of a right limb are mirrored."""
    name = str(link.get("name"))
    limb, right = (
        (name[1:], name[0] == "R") if name[1:4] in ("LEG", "ARM") else (name, False)
    )
    urdf.add_shapes(
        link, (row for row in shapes if row["link"] == limb), (1, -1 if right else 1, 1)
    )


def add_joint(robot: urdf.Element, row: urdf.Row) -> None:
    """Append the moving joint of a row."""
    lower, upper = (
        radians(value) for value in urdf.vector(row, "lower_deg", "upper_deg")
    )
    urdf.add_revolute(
        robot,
        name=row["joint"],
        parent=row["parent"],
        child=row["link"],
        xyz=urdf.vector(row, "origin_x_mm", "origin_y_mm", "origin_z_mm", scale=1e-3),
        axis=urdf.vector(row, "axis_x", "axis_y", "axis_z"),
        limits={
            "lower": lower,
            "upper": upper,
            "effort": MAX_TORQUE,
            "velocity": MAX_SPEED,
        },
    )


def build() -> urdf.Element:
    """Return the robot as an XML element."""
    shapes = urdf.read_table("hoap2_shapes.csv")
    comment = (
        "Written by tools/robots/make_hoap2_urdf.py from the tables in data/: edit those. "
        "Masses, centres of mass and inertias are those of the inspection report, appendix "
        "12.1 of P. Cominoli, diploma thesis, EPFL 2005; data/README.md has the rest."
    )
    robot = urdf.new_robot("hoap2", comment, COLOURS)
    urdf.add(robot, "link", name=ROOT)
    urdf.add_fixed(robot, ROOT, TRUNK, [0.0, 0.0, 0.0])
    for row in urdf.read_table("hoap2_links.csv"):
        link = urdf.add(robot, "link", name=row["link"])
        add_inertial(link, row)
        add_limb_shapes(link, shapes)
        if row["joint"]:
            add_joint(robot, row)
    urdf.add_frames(robot, urdf.read_table("hoap2_frames.csv"))
    return robot


if __name__ == "__main__":
    sys.exit(urdf.run(__file__, __doc__, "hoap2.urdf", build))
