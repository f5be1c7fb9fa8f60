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

import argparse
import csv
import os
import sys
import tempfile
from math import pi, radians
from pathlib import Path
from xml.etree import ElementTree

PACKAGE = Path(__file__).resolve().parent.parent
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
# A cylinder of URDF lies along z: what turns it along x or y.
CYLINDER_RPY = {"x": (0.0, pi / 2, 0.0), "y": (pi / 2, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}

Row = dict[str, str]
Element = ElementTree.Element


class TableError(Exception):
    """A row of a table that cannot be right; the message names the row and the mend."""


def read_table(name: str) -> list[Row]:
    """Return the rows of data/`name`."""
    with open(PACKAGE / "data" / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def vector(row: Row, *columns: str, scale: float = 1.0) -> list[float]:
    """Return the numbers of some columns, times `scale`."""
    return [scale * float(row[column]) for column in columns]


def text(numbers: list[float] | tuple[float, ...]) -> str:
    """Write numbers with ten digits, so that the file is the same on every machine."""
    return " ".join(f"{number:.10g}" for number in numbers)


def inertia(row: Row) -> dict[str, float]:
    """Return a body's inertia about its centre of mass, kg m^2.

    A body of positive mass density has Sigma = tr(I)/2 E - I > 0, which is the same as: I is
    positive definite and no principal moment exceeds the sum of the other two.

    Raises:
        TableError: The inertia is not that of a body.
    """
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    xx, yy, zz, xy, xz, yz = vector(row, *(f"{name}_kgmm2" for name in names), scale=1e-6)
    a, b, c = (yy + zz - xx) / 2, (xx + zz - yy) / 2, (xx + yy - zz) / 2
    determinant = a * b * c - 2 * xy * xz * yz - a * yz**2 - b * xz**2 - c * xy**2
    if min(a, a * b - xy**2, determinant) <= 0:
        raise TableError(
            f"{row['link']}: no body has the inertia {[xx, yy, zz, xy, xz, yz]} kg m^2 "
            "(positive definite, triangle inequality): compare the row with the report"
        )
    return dict(zip(names, (xx, yy, zz, xy, xz, yz), strict=True))


def add(parent: Element, tag: str, **attributes: str) -> Element:
    """Append an element."""
    return ElementTree.SubElement(parent, tag, attributes)


def add_inertial(link: Element, row: Row) -> None:
    """Append mass, centre of mass and inertia."""
    if row["assumed"]:
        link.append(ElementTree.Comment(f" assumed, not read in the report: {row['assumed']} "))
    inertial = add(link, "inertial")
    add(inertial, "origin", xyz=text(vector(row, "com_x_mm", "com_y_mm", "com_z_mm", scale=1e-3)))
    add(inertial, "mass", value=text(vector(row, "mass_kg")))
    add(inertial, "inertia", **{name: text([value]) for name, value in inertia(row).items()})


def add_geometry(parent: Element, row: Row) -> None:
    """Append a primitive that fills the bounding box of its row."""
    widths = vector(row, "size_x_mm", "size_y_mm", "size_z_mm", scale=1e-3)
    size = dict(zip("xyz", widths, strict=True))
    geometry = add(parent, "geometry")
    if row["shape"] == "box":
        add(geometry, "box", size=text(widths))
        return
    length = size.pop(row["axis"]) if row["shape"] == "cylinder" else None
    if len(set(size.values())) != 1:
        raise TableError(f"{row['link']} {row['part']}: a {row['shape']} is as wide as it is deep")
    radius = text([next(iter(size.values())) / 2])
    if length is None:
        add(geometry, "sphere", radius=radius)
    else:
        add(geometry, "cylinder", radius=radius, length=text([length]))


def add_shapes(link: Element, shapes: list[Row]) -> None:
    """Append the visuals and collisions of a body; those of a right limb are mirrored."""
    name = str(link.get("name"))
    limb, mirror = (name[1:], name[0] == "R") if name[1:4] in ("LEG", "ARM") else (name, False)
    for row in (row for row in shapes if row["link"] == limb):
        shape = add(link, row["use"])
        x, y, z = vector(row, "x_mm", "y_mm", "z_mm", scale=1e-3)
        origin = add(shape, "origin", xyz=text((x, -y if mirror and y else y, z)))
        if row["shape"] == "cylinder":
            origin.set("rpy", text(CYLINDER_RPY[row["axis"]]))
        add_geometry(shape, row)
        if row["use"] == "visual":
            add(shape, "material", name=row["colour"])


def add_fixed(robot: Element, parent: str, child: str, xyz: list[float]) -> None:
    """Append a fixed joint."""
    joint = add(robot, "joint", name=f"{child}_fixed", type="fixed")
    add(joint, "origin", xyz=text(xyz))
    add(joint, "parent", link=parent)
    add(joint, "child", link=child)


def add_joint(robot: Element, row: Row) -> None:
    """Append the moving joint of a row."""
    joint = add(robot, "joint", name=row["joint"], type="revolute")
    xyz = vector(row, "origin_x_mm", "origin_y_mm", "origin_z_mm", scale=1e-3)
    add(joint, "origin", xyz=text(xyz))
    add(joint, "parent", link=row["parent"])
    add(joint, "child", link=row["link"])
    add(joint, "axis", xyz=text(vector(row, "axis_x", "axis_y", "axis_z")))
    lower, upper = (radians(value) for value in vector(row, "lower_deg", "upper_deg"))
    limits = {"lower": lower, "upper": upper, "effort": MAX_TORQUE, "velocity": MAX_SPEED}
    add(joint, "limit", **{name: text([value]) for name, value in limits.items()})


def build() -> Element:
    """Return the robot as an XML element."""
    shapes = read_table("hoap2_shapes.csv")
    robot = ElementTree.Element("robot", name="hoap2")
    robot.append(
        ElementTree.Comment(
            " Written by scripts/make_hoap2_urdf.py from the tables in data/: edit those. "
            "Masses, centres of mass and inertias are those of the inspection report, appendix "
            "12.1 of P. Cominoli, diploma thesis, EPFL 2005; data/README.md tells the rest. "
        )
    )
    for name, rgba in COLOURS.items():
        add(add(robot, "material", name=name), "color", rgba=rgba)
    add(robot, "link", name=ROOT)
    add_fixed(robot, ROOT, TRUNK, [0.0, 0.0, 0.0])
    for row in read_table("hoap2_links.csv"):
        link = add(robot, "link", name=row["link"])
        add_inertial(link, row)
        add_shapes(link, shapes)
        if row["joint"]:
            add_joint(robot, row)
    for row in read_table("hoap2_frames.csv"):
        robot.append(ElementTree.Comment(f" {row['meaning']} "))
        add(robot, "link", name=row["frame"])
        add_fixed(
            robot, row["parent"], row["frame"], vector(row, "x_mm", "y_mm", "z_mm", scale=1e-3)
        )
    return robot


def render(robot: Element) -> str:
    """Return the file's text."""
    ElementTree.indent(robot)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(robot, encoding="unicode")}\n'


def write(path: Path, content: str) -> None:
    """Write a file under a temporary name, then rename it: never half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)
    os.chmod(name, 0o644)
    os.replace(name, path)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument(
        "--output",
        type=Path,
        default=PACKAGE / "urdf" / "hoap2.urdf",
        help="the URDF to write or check (default: the package's urdf/hoap2.urdf)",
    )
    options = parser.parse_args(arguments)
    try:
        content = render(build())
    except TableError as error:
        print(f"make_hoap2_urdf: {error}", file=sys.stderr)
        return 2
    if not options.check:
        write(options.output, content)
        print(f"wrote {options.output}")
        return 0
    found = options.output.read_text(encoding="utf-8") if options.output.exists() else None
    if found != content:
        print(
            f"make_hoap2_urdf: {options.output} is not what the tables give: "
            f"run {Path(__file__).name} and commit both",
            file=sys.stderr,
        )
        return 1
    print(f"{options.output} agrees with the tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
