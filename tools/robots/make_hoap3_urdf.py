#!/usr/bin/env python3
"""Write urdf/hoap3.urdf, the robot of [Cotton], from the tables in data/ (SI units, REP 103 axes).

    make_hoap3_urdf.py            write the URDF
    make_hoap3_urdf.py --check    write nothing; exit 1 if the URDF differs from the tables

The tables:
  hoap3_links.csv    bodies and joints in the frames of the public description of HOAP-3: origins,
                     angles, axes, limits, masses, centres of mass; `like` is the body of HOAP-2
                     whose inertia, scaled by mass, and looks it takes
  hoap3_frames.csv   frames without mass, fixed to a body
  hoap3_shapes.csv   looks and collision shapes of those bodies that are not like HOAP-2's
Frames are turned so that all are parallel at q = 0: x forward, y left, z up, as HOAP-2's.
data/README.md says where each number comes from and what was repaired.
"""

import sys
from math import cos, pi, sin
from xml.etree import ElementTree

import urdf_writer as urdf
from make_hoap2_urdf import COLOURS, MAX_SPEED, MAX_TORQUE

ROOT = "base_link"
OWN_SHAPES = ("CHEST", "LEG6")

Vector = list[float]
Matrix = list[Vector]


def right_angle(angle: float) -> float:
    """Return the right angle that was meant by one that is printed with four digits.

    Raises:
        TableError: It is no right angle.
    """
    meant = round(angle / (pi / 2)) * (pi / 2)
    if abs(meant - angle) > 1e-4:
        raise urdf.TableError(f"hoap3_links.csv: {angle} rad is no right angle")
    return meant


def product(A: Matrix, B: Matrix) -> Matrix:
    """Return A B, whole numbers where there are right angles only."""
    return [
        [float(round(sum(a * B[k][j] for k, a in enumerate(row)))) for j in range(3)]
        for row in A
    ]


def apply(A: Matrix, v: Vector) -> Vector:
    """Return A v."""
    return [sum(a * x for a, x in zip(row, v, strict=True)) for row in A]


def rotation(row: urdf.Row) -> Matrix:
    """Return the rotation from a joint's to its parent's axes, Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = (
        right_angle(a) for a in urdf.vector(row, "roll_rad", "pitch_rad", "yaw_rad")
    )
    x = [[1.0, 0.0, 0.0], [0.0, cos(roll), -sin(roll)], [0.0, sin(roll), cos(roll)]]
    y = [[cos(pitch), 0.0, sin(pitch)], [0.0, 1.0, 0.0], [-sin(pitch), 0.0, cos(pitch)]]
    z = [[cos(yaw), -sin(yaw), 0.0], [sin(yaw), cos(yaw), 0.0], [0.0, 0.0, 1.0]]
    return product(z, product(y, x))


def orientations(rows: list[urdf.Row]) -> dict[str, Matrix]:
    """Return the rotation of each link's frame at q = 0 to the root's axes; parents come first."""
    found = {ROOT: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}
    for row in rows:
        found[row["link"]] = product(found[row["parent"]], rotation(row))
    return found


def add_inertial(
    link: urdf.Element, row: urdf.Row, R: Matrix, bodies: dict[str, urdf.Row]
) -> None:
    """Append mass, centre of mass, and the inertia of the HOAP-2 body that is like it."""
    mass = float(row["mass_kg"])
    if not mass:
        return
    assumed = (
        f"assumed: the inertia, that of HOAP-2's {row['like']} "
        "times the ratio of their masses"
    )
    repaired = f"; repaired: {row['repaired']}" if row["repaired"] else ""
    link.append(ElementTree.Comment(f" {assumed}{repaired} "))
    like = bodies[row["like"]]
    inertial = urdf.add(link, "inertial")
    urdf.add(
        inertial,
        "origin",
        xyz=urdf.text(apply(R, urdf.vector(row, "com_x_m", "com_y_m", "com_z_m"))),
    )
    urdf.add(inertial, "mass", value=urdf.text([mass]))
    ratio = mass / float(like["mass_kg"])
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    values = {n: urdf.text([ratio * 1e-6 * float(like[f"{n}_kgmm2"])]) for n in names}
    urdf.add(inertial, "inertia", **values)


def add_joint(robot: urdf.Element, row: urdf.Row, turns: dict[str, Matrix]) -> None:
    """Append the joint of a row, its axes turned to those of the root."""
    xyz = apply(
        turns[row["parent"]], urdf.vector(row, "origin_x_m", "origin_y_m", "origin_z_m")
    )
    if row["type"] == "fixed":
        urdf.add_fixed(robot, row["parent"], row["link"], xyz)
        return
    lower, upper = urdf.vector(row, "lower_rad", "upper_rad")
    urdf.add_revolute(
        robot,
        name=row["joint"],
        parent=row["parent"],
        child=row["link"],
        xyz=xyz,
        axis=(
            a + 0.0
            for a in apply(
                turns[row["link"]], urdf.vector(row, "axis_x", "axis_y", "axis_z")
            )
        ),
        limits={
            "lower": lower,
            "upper": upper,
            "effort": MAX_TORQUE,
            "velocity": MAX_SPEED,
        },
    )


def shapes_of(
    row: urdf.Row, own: list[urdf.Row], others: list[urdf.Row]
) -> tuple[list[urdf.Row], int]:
    """Return the rows of a body's shapes, and -1 where they are to be mirrored."""
    like = row["like"]
    limb, right = (
        (like[1:], like[0] == "R") if like[1:4] in ("LEG", "ARM") else (like, False)
    )
    name = row["link"] if row["link"] in OWN_SHAPES else limb
    table = own if name in OWN_SHAPES else others
    return [shape for shape in table if shape["link"] == name], -1 if right else 1


def build() -> urdf.Element:
    """Return the robot as an XML element."""
    rows = urdf.read_table("hoap3_links.csv")
    bodies = {row["link"]: row for row in urdf.read_table("hoap2_links.csv")}
    own, others = (
        urdf.read_table("hoap3_shapes.csv"),
        urdf.read_table("hoap2_shapes.csv"),
    )
    turns = orientations(rows)
    comment = (
        "Written by tools/robots/make_hoap3_urdf.py from the tables in data/: edit those. "
        "Joints, masses and centres of mass are those of the public description package of "
        "HOAP-3, with repairs; inertias and looks are HOAP-2's. data/README.md has the rest."
    )
    robot = urdf.new_robot("hoap3", comment, COLOURS)
    urdf.add(robot, "link", name=ROOT)
    for row in rows:
        link = urdf.add(robot, "link", name=row["link"])
        add_inertial(link, row, turns[row["link"]], bodies)
        shapes, side = shapes_of(row, own, others)
        urdf.add_shapes(link, shapes, (1, side, 1))
        add_joint(robot, row, turns)
    urdf.add_frames(robot, urdf.read_table("hoap3_frames.csv"))
    return robot


if __name__ == "__main__":
    sys.exit(urdf.run(__file__, __doc__, "hoap3.urdf", build))
