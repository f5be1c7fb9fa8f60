#!/usr/bin/env python3
"""Write urdf/scalf2.urdf and its variants from the tables in data/ (SI units, REP 103 axes).

    make_scalf2_urdf.py                          write scalf2.urdf: legs of 3 kg
    make_scalf2_urdf.py --leg-mass 25 --output urdf/scalf2_heavy.urdf
    make_scalf2_urdf.py --check [...]            write nothing; exit 1 if the URDF differs

The robot is named after the file. The tables:
  scalf2_parameters.csv  lengths, masses, limits, each with its source or "assumed"
  scalf2_shapes.csv      what the bodies look like and collide with, in mm; the rows of the leg are
                         those of the left front one, the others are its mirror images
data/README.md says more. [Ding] = C. Ding et al., "Online Center of Mass Detection for Quadruped
Robots in Trot Gait Motion". To change the robot, edit a table and run this.
"""

import argparse
import math
import sys
from dataclasses import dataclass

import urdf_writer as urdf

LIGHT_LEG = 3.0  # kg
ROOT = "base_link"
COLOURS = {
    "orange": "0.93 0.45 0.10 1",
    "light_grey": "0.78 0.79 0.81 1",
    "grey": "0.55 0.56 0.58 1",
    "dark_grey": "0.27 0.28 0.30 1",
    "black": "0.08 0.08 0.09 1",
}
X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)

Numbers = dict[str, float]


@dataclass(frozen=True)
class Leg:
    """Which leg: its name, 1 or -1 for left or right ([Ding]'s lambda), front or hind."""

    name: str
    lateral: int
    longitudinal: int


LEGS = (Leg("lf", 1, 1), Leg("rf", -1, 1), Leg("lh", 1, -1), Leg("rh", -1, -1))


def rod(mass: float, radius: float, length: float) -> urdf.Vector:
    """Return the moments of inertia of a full cylinder along z about its center, kg m^2."""
    across = mass * (3 * radius * radius + length * length) / 12
    return across, across, mass * radius * radius / 2


def add_trunk(robot: urdf.Element, p: Numbers, shapes: list[urdf.Row]) -> None:
    """Append the root, the trunk with the root in its center of mass, and the IMU."""
    urdf.add(robot, "link", name=ROOT)
    size = p["trunk_length"], p["trunk_width"], p["trunk_height"]
    mass = p["trunk_mass"]
    link = urdf.add_body(
        robot, "trunk", mass, (0.0, 0.0, 0.0), urdf.box_moments(mass, *size)
    )
    urdf.add_shapes(link, (row for row in shapes if row["link"] == "trunk"))
    urdf.add_fixed(robot, ROOT, "trunk", (0.0, 0.0, 0.0))
    urdf.add(robot, "link", name="imu_link")
    urdf.add_fixed(robot, ROOT, "imu_link", (p["imu_x"], p["imu_y"], p["imu_z"]))


def add_leg(
    robot: urdf.Element, leg: Leg, mass: float, p: Numbers, shapes: list[urdf.Row]
) -> None:
    """Append the bodies and joints of a leg: hip, thigh, shank, foot.

    Abduction turns about x, flexion and knee about y, all at 0 where the leg hangs straight down:
    so the foot is where [Ding] eq. 1 has it.
    """
    out, down, thigh, shank = leg.lateral * p["d2"], -p["L0"], p["L1"], p["L2"]
    hip_mass, thigh_mass, shank_mass = (
        mass * p[f"{part}_share"] for part in ("hip", "thigh", "shank")
    )
    hip_inertia = urdf.box_moments(
        hip_mass, p["hip_length"], p["hip_width"], p["hip_height"]
    )
    thigh_inertia = urdf.box_moments(
        thigh_mass, p["thigh_length"], p["thigh_width"], thigh
    )
    shank_inertia = rod(shank_mass, p["shank_radius"], shank)
    bodies = {
        "hip": urdf.add_body(
            robot, f"{leg.name}_hip", hip_mass, (0, out / 2, down / 2), hip_inertia
        ),
        "thigh": urdf.add_body(
            robot, f"{leg.name}_thigh", thigh_mass, (0, 0, -thigh / 2), thigh_inertia
        ),
        "shank": urdf.add_body(
            robot, f"{leg.name}_shank", shank_mass, (0, 0, -shank / 2), shank_inertia
        ),
        "foot": urdf.add(robot, "link", name=f"{leg.name}_foot"),
    }
    for part, link in bodies.items():
        rows = (row for row in shapes if row["link"] == part)
        urdf.add_shapes(link, rows, (leg.longitudinal, leg.lateral, 1))
    corner = (
        leg.longitudinal * p["trunk_length"] / 2,
        leg.lateral * p["trunk_width"] / 2,
        0.0,
    )
    add_joint(robot, leg, ("haa", ROOT, "hip"), corner, X, p)
    add_joint(robot, leg, ("hfe", f"{leg.name}_hip", "thigh"), (0.0, out, down), Y, p)
    add_joint(
        robot, leg, ("kfe", f"{leg.name}_thigh", "shank"), (0.0, 0.0, -thigh), Y, p
    )
    urdf.add_fixed(robot, f"{leg.name}_shank", f"{leg.name}_foot", (0.0, 0.0, -shank))


def add_joint(
    robot: urdf.Element,
    leg: Leg,
    names: tuple[str, str, str],
    xyz: tuple[float, float, float],
    axis: tuple[float, float, float],
    p: Numbers,
) -> None:
    """Append a joint of a leg; names are its own, the parent link's and the part of the leg."""
    joint, parent, part = names
    most = {"haa": "abduction_limit", "hfe": "flexion_limit", "kfe": "knee_limit"}[
        joint
    ]
    lower, upper = -p[most], p[most]
    if (
        joint == "kfe"
    ):  # knees to the outer side: shanks turn backwards in front, forwards behind
        lower, upper = (0.0, upper) if leg.longitudinal > 0 else (lower, 0.0)
    limits = {
        "lower": lower,
        "upper": upper,
        "effort": p["effort"],
        "velocity": p["velocity"],
    }
    name, child = f"{leg.name}_{joint}_joint", f"{leg.name}_{part}"
    urdf.add_revolute(robot, name, parent, child, xyz, axis, limits)


def build(name: str, leg_mass: float) -> urdf.Element:
    """Return the robot as an XML element.

    Args:
        name: Of the robot.
        leg_mass: kg, of each leg.
    """
    p, shapes = (
        urdf.read_numbers("scalf2_parameters.csv"),
        urdf.read_table("scalf2_shapes.csv"),
    )
    comment = (
        "Written by tools/robots/make_scalf2_urdf.py from the tables in data/, with legs of"
        f" {leg_mass:.10g} kg: edit those. Lengths and the mass of the trunk are those of"
        " Table I of [Ding], the rest is assumed; data/README.md says which."
    )
    robot = urdf.new_robot(name, comment, COLOURS)
    add_trunk(robot, p, shapes)
    for leg in LEGS:
        add_leg(robot, leg, leg_mass, p, shapes)
    return robot


def positive(word: str) -> float:
    """Read a mass from the command line, kg."""
    mass = float(word)
    if not (math.isfinite(mass) and mass > 0):
        raise argparse.ArgumentTypeError(f"expected kg above 0, got {word}")
    return mass


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = urdf.command_line(__doc__, "scalf2.urdf")
    parser.add_argument(
        "--leg-mass",
        type=positive,
        default=LIGHT_LEG,
        help=f"kg, of each of the four legs (default: {LIGHT_LEG:g})",
    )
    options = parser.parse_args(arguments)
    return urdf.write_or_check(
        __file__, options, lambda: build(options.output.stem, options.leg_mass)
    )


if __name__ == "__main__":
    sys.exit(main())
