"""What the scripts that write URDFs share: tables, elements, shapes, files, the command line.

Tables of shapes have lengths in mm and sizes of the bounding box; URDFs have metres.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from math import pi
from pathlib import Path
from xml.etree import ElementTree

from com_model.files import write_file

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"

# A cylinder of URDF lies along z: what turns it along x or y.
CYLINDER_RPY = {"x": (0.0, pi / 2, 0.0), "y": (pi / 2, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}

Row = dict[str, str]
Vector = tuple[float, float, float]
Element = ElementTree.Element


class TableError(Exception):
    """A row of a table that cannot be right; the message names the row and how to fix it."""


def read_table(name: str) -> list[Row]:
    """Return the rows of data/`name`."""
    with open(PACKAGE / "data" / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_numbers(name: str) -> dict[str, float]:
    """Return the numbers of data/`name`, a table of parameters, by name."""
    return {row["name"]: float(row["value"]) for row in read_table(name)}


def vector(row: Row, *columns: str, scale: float = 1.0) -> list[float]:
    """Return the numbers of some columns, times `scale`."""
    return [scale * float(row[column]) for column in columns]


def text(numbers: Iterable[float]) -> str:
    """Write numbers with ten digits, so that the file is the same on every machine."""
    return " ".join(f"{number:.10g}" for number in numbers)


def add(parent: Element, tag: str, **attributes: str) -> Element:
    """Append an element."""
    return ElementTree.SubElement(parent, tag, attributes)


def new_robot(name: str, comment: str, colours: dict[str, str]) -> Element:
    """Return a robot without links, with a comment and materials by name and rgba."""
    robot = Element("robot", name=name)
    if comment:
        robot.append(ElementTree.Comment(f" {comment} "))
    for colour, rgba in colours.items():
        add(add(robot, "material", name=colour), "color", rgba=rgba)
    return robot


def add_geometry(parent: Element, row: Row) -> None:
    """Append a primitive that fills the bounding box of its row.

    Raises:
        TableError: A ball or cylinder whose box is not as wide as it is deep.
    """
    widths = vector(row, "size_x_mm", "size_y_mm", "size_z_mm", scale=1e-3)
    size = dict(zip("xyz", widths, strict=True))
    geometry = add(parent, "geometry")
    if row["shape"] == "box":
        add(geometry, "box", size=text(widths))
        return
    length = size.pop(row["axis"]) if row["shape"] == "cylinder" else None
    if len(set(size.values())) != 1:
        raise TableError(
            f"{row['link']} {row['part']}: a {row['shape']} is as wide as it is deep"
        )
    radius = text([next(iter(size.values())) / 2])
    if length is None:
        add(geometry, "sphere", radius=radius)
    else:
        add(geometry, "cylinder", radius=radius, length=text([length]))


def add_shapes(
    link: Element, rows: Iterable[Row], mirror: Sequence[int] = (1, 1, 1)
) -> None:
    """Append visuals and collisions; `mirror` has -1 for the axes that are turned round."""
    for row in rows:
        shape = add(link, row["use"])
        place = vector(row, "x_mm", "y_mm", "z_mm", scale=1e-3)
        turned = (
            sign * value if value else 0.0
            for sign, value in zip(mirror, place, strict=True)
        )
        origin = add(shape, "origin", xyz=text(turned))
        if row["shape"] == "cylinder":
            origin.set("rpy", text(CYLINDER_RPY[row["axis"]]))
        add_geometry(shape, row)
        if row["use"] == "visual":
            add(shape, "material", name=row["colour"])


def box_moments(mass: float, x: float, y: float, z: float) -> Vector:
    """Return the moments of inertia of a full box about its center, kg m^2."""
    return (
        mass * (y * y + z * z) / 12,
        mass * (x * x + z * z) / 12,
        mass * (x * x + y * y) / 12,
    )


def add_body(
    robot: Element, name: str, mass: float, com: Vector, moments: Vector
) -> Element:
    """Append a link with mass, centre of mass and principal moments along its axes."""
    link = add(robot, "link", name=name)
    inertial = add(link, "inertial")
    add(inertial, "origin", xyz=text(com))
    add(inertial, "mass", value=text([mass]))
    diagonal = dict(
        zip(("ixx", "iyy", "izz"), (text([m]) for m in moments), strict=True)
    )
    add(inertial, "inertia", **diagonal, ixy="0", ixz="0", iyz="0")
    return link


def add_frames(robot: Element, rows: Iterable[Row]) -> None:
    """Append links without mass, each fixed to its parent, with its meaning as a comment."""
    for row in rows:
        robot.append(ElementTree.Comment(f" {row['meaning']} "))
        add(robot, "link", name=row["frame"])
        xyz = vector(row, "x_mm", "y_mm", "z_mm", scale=1e-3)
        add_fixed(robot, row["parent"], row["frame"], xyz)


def add_fixed(robot: Element, parent: str, child: str, xyz: Iterable[float]) -> None:
    """Append a fixed joint."""
    joint = add(robot, "joint", name=f"{child}_fixed", type="fixed")
    add(joint, "origin", xyz=text(xyz))
    add(joint, "parent", link=parent)
    add(joint, "child", link=child)


def add_revolute(
    robot: Element,
    name: str,
    parent: str,
    child: str,
    xyz: Iterable[float],
    axis: Iterable[float],
    limits: dict[str, float],
) -> None:
    """Append a moving joint; limits are lower and upper (rad), effort (N m), velocity (rad/s)."""
    joint = add(robot, "joint", name=name, type="revolute")
    add(joint, "origin", xyz=text(xyz))
    add(joint, "parent", link=parent)
    add(joint, "child", link=child)
    add(joint, "axis", xyz=text(axis))
    add(joint, "limit", **{key: text([value]) for key, value in limits.items()})


def render(robot: Element) -> str:
    """Return the file's text."""
    ElementTree.indent(robot)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(robot, encoding="unicode")}\n'


def command_line(description: str | None, urdf: str) -> argparse.ArgumentParser:
    """Return a parser of --check and --output, by default the package's `urdf`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="compare instead of writing"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=PACKAGE / "urdf" / urdf,
        help=f"the URDF to write or check (default: the package's urdf/{urdf})",
    )
    return parser


def write_or_check(
    script: str, options: argparse.Namespace, build: Callable[[], Element]
) -> int:
    """Write the URDF, or compare it with what is there; return the command's exit code."""
    name = Path(script).name
    try:
        content = render(build())
    except TableError as error:
        print(f"{Path(script).stem}: {error}", file=sys.stderr)
        return 2
    if not options.check:
        write_file(options.output, content)
        print(f"wrote {options.output}")
        return 0
    found = (
        options.output.read_text(encoding="utf-8") if options.output.exists() else None
    )
    if found != content:
        print(
            f"{Path(script).stem}: {options.output} is not what the tables give: "
            f"run {name} and commit both",
            file=sys.stderr,
        )
        return 1
    print(f"{options.output} agrees with the tables")
    return 0


def run(
    script: str, description: str | None, urdf: str, build: Callable[[], Element]
) -> int:
    """Run a script without arguments of its own; return its exit code."""
    return write_or_check(script, command_line(description, urdf).parse_args(), build)
