#!/usr/bin/env python3
"""Write urdf/itu_biped.urdf from the tables in data/ (SI units, REP 103 axes).

    make_itu_biped_urdf.py            write the URDF
    make_itu_biped_urdf.py --check    write nothing; exit 1 if the URDF differs from the tables

The tables:
  itu_biped_parameters.csv  lengths, masses, limits, each with its source or "assumed"
  itu_biped_shapes.csv      what the bodies look like and collide with, in mm; both legs are equal
data/README.md says more. [CCGD] = "Precise Inverse Kinematic Calculation of the Center of Gravity
for Bipedal Walking Robots", 2024. To change the robot, edit a table and run this.
"""

import math
import sys

import urdf_writer as urdf

ROOT = "base_link"
COLOURS = {
    "light_grey": "0.78 0.79 0.81 1",
    "grey": "0.55 0.56 0.58 1",
    "dark_grey": "0.27 0.28 0.30 1",
    "blue": "0.10 0.30 0.60 1",
}
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
LEGS = {"l": 1, "r": -1}

Numbers = dict[str, float]


def ball(mass: float, radius: float) -> urdf.Vector:
    """Return the moments of inertia of a full ball about its center, kg m^2."""
    moment = 0.4 * mass * radius * radius
    return moment, moment, moment


def posture(p: Numbers) -> tuple[float, float, float]:
    """Return the nominal hip pitch, knee and ankle pitch, rad: each ankle is below its hip.

    Raises:
        TableError: The legs are too short or too long for the height of the hips.
    """
    l1, l2, d = p["l1"], p["l2"], p["hip_height"] - p["l3"]
    if not abs(l1 - l2) < d < l1 + l2:
        raise urdf.TableError(
            f"legs of {l1} m and {l2} m cannot span {d} m: change hip_height or l1"
        )
    hip = -math.acos((d * d + l1 * l1 - l2 * l2) / (2 * d * l1))
    knee = math.acos((d * d - l1 * l1 - l2 * l2) / (2 * l1 * l2))
    return hip, knee, -hip - knee


def pelvis_com(p: Numbers) -> urdf.Vector:
    """Return the pelvis' centre of mass, over the hips' middle, m.

    It is so high that the robot's is at cog_height in the nominal posture. Heights over the soles.
    """
    hip, knee, _ = posture(p)

    def height(com_x: float, com_z: float, pitch: float) -> float:
        return com_z * math.cos(pitch) - com_x * math.sin(pitch)

    top = p["hip_height"]
    knee_height = top - p["l1"] * math.cos(hip)
    leg = (
        (p["yaw_mass"] + p["roll_mass"]) * top
        + p["thigh_mass"] * (top + height(p["thigh_com_x"], p["thigh_com_z"], hip))
        + p["shank_mass"]
        * (knee_height + height(p["shank_com_x"], p["shank_com_z"], hip + knee))
        + p["ankle_mass"] * p["l3"]
        + p["foot_mass"] * (p["l3"] + p["foot_com_z"])
    )
    names = ("yaw", "roll", "thigh", "shank", "ankle", "foot")
    mass = p["pelvis_mass"] + 2 * sum(p[f"{name}_mass"] for name in names)
    return 0.0, 0.0, (mass * p["cog_height"] - 2 * leg) / p["pelvis_mass"] - top


def add_pelvis(robot: urdf.Element, p: Numbers, shapes: list[urdf.Row]) -> None:
    """Append the root in the middle of the hips, the pelvis and the IMU."""
    urdf.add(robot, "link", name=ROOT)
    size = p["pelvis_length"], p["pelvis_width"], p["pelvis_height"]
    mass = p["pelvis_mass"]
    link = urdf.add_body(
        robot, "pelvis", mass, pelvis_com(p), urdf.box_moments(mass, *size)
    )
    urdf.add_shapes(link, (row for row in shapes if row["link"] == "pelvis"))
    urdf.add_fixed(robot, ROOT, "pelvis", (0.0, 0.0, 0.0))
    urdf.add(robot, "link", name="imu_link")
    urdf.add_fixed(robot, ROOT, "imu_link", (0.0, 0.0, p["imu_z"]))


def leg_bodies(p: Numbers) -> dict[str, tuple[float, urdf.Vector, urdf.Vector]]:
    """Return mass, centre of mass and moments of a leg's bodies, from the hip to the foot."""
    joint = p["joint_radius"]
    thigh, shank, foot = p["thigh_mass"], p["shank_mass"], p["foot_mass"]
    middle = (0.0, 0.0, 0.0)
    return {
        "hip_yaw": (p["yaw_mass"], middle, ball(p["yaw_mass"], joint)),
        "hip_roll": (p["roll_mass"], middle, ball(p["roll_mass"], joint)),
        "thigh": (
            thigh,
            (p["thigh_com_x"], 0.0, p["thigh_com_z"]),
            urdf.box_moments(thigh, p["thigh_width"], p["thigh_width"], p["l1"]),
        ),
        "shank": (
            shank,
            (p["shank_com_x"], 0.0, p["shank_com_z"]),
            urdf.box_moments(shank, p["shank_width"], p["shank_width"], p["l2"]),
        ),
        "ankle": (p["ankle_mass"], middle, ball(p["ankle_mass"], joint)),
        "foot": (
            foot,
            (p["foot_com_x"], 0.0, p["foot_com_z"]),
            urdf.box_moments(foot, p["foot_length"], p["foot_width"], p["foot_height"]),
        ),
    }


def leg_joints(
    p: Numbers,
) -> dict[str, tuple[str, urdf.Vector, urdf.Vector, tuple[float, float]]]:
    """Return child, origin, axis and limits of a leg's joints, from the hip to the foot.

    All are at 0 where the leg hangs straight down. Pitch and knee turn about y: knees bend when
    positive, as theta_4 of [CCGD].
    """
    hip = (0.0, 0.0, 0.0)
    yaw, roll = p["yaw_limit"], p["roll_limit"]
    return {
        "hip_yaw": ("hip_yaw", hip, Z, (-yaw, yaw)),
        "hip_roll": ("hip_roll", hip, X, (-roll, roll)),
        "hip_pitch": ("thigh", hip, Y, (-p["hip_forward"], p["hip_back"])),
        "knee": ("shank", (0.0, 0.0, -p["l1"]), Y, (0.0, p["knee_limit"])),
        "ankle_pitch": (
            "ankle",
            (0.0, 0.0, -p["l2"]),
            Y,
            (-p["ankle_up"], p["ankle_down"]),
        ),
        "ankle_roll": ("foot", hip, X, (-roll, roll)),
    }


def add_leg(robot: urdf.Element, side: str, p: Numbers, shapes: list[urdf.Row]) -> None:
    """Append the bodies and joints of a leg, its contact balls and the frame of its sole."""
    for name, body in leg_bodies(p).items():
        link = urdf.add_body(robot, f"{side}_{name}", *body)
        urdf.add_shapes(link, (row for row in shapes if row["link"] == name))
    add_balls(link, p)
    parent = ROOT
    for name, (child, origin, axis, (lower, upper)) in leg_joints(p).items():
        if parent == ROOT:
            origin = (0.0, LEGS[side] * p["hip_offset"], 0.0)
        limits = {
            "lower": lower,
            "upper": upper,
            "effort": p["effort"],
            "velocity": p["velocity"],
        }
        child = f"{side}_{child}"
        urdf.add_revolute(
            robot, f"{side}_{name}_joint", parent, child, origin, axis, limits
        )
        parent = child
    urdf.add(robot, "link", name=f"{side}_sole")
    urdf.add_fixed(robot, parent, f"{side}_sole", (0.0, 0.0, -p["l3"]))


def add_balls(foot: urdf.Element, p: Numbers) -> None:
    """Append the four balls on which a foot stands; their lowest points are on the sole."""
    for x in (p["ball_x"], -p["ball_x"]):
        for y in (p["ball_y"], -p["ball_y"]):
            shape = urdf.add(foot, "collision")
            urdf.add(shape, "origin", xyz=urdf.text((x, y, p["ball_radius"] - p["l3"])))
            urdf.add(
                urdf.add(shape, "geometry"),
                "sphere",
                radius=urdf.text([p["ball_radius"]]),
            )


def build() -> urdf.Element:
    """Return the robot as an XML element."""
    p, shapes = (
        urdf.read_numbers("itu_biped_parameters.csv"),
        urdf.read_table("itu_biped_shapes.csv"),
    )
    comment = (
        "Written by tools/robots/make_itu_biped_urdf.py from the tables in data/: edit those. "
        "A robot like the ITU biped of [CCGD]: its proportions are assumed, so that the "
        "heights in the paper come out; data/README.md says how."
    )
    robot = urdf.new_robot("itu_biped", comment, COLOURS)
    add_pelvis(robot, p, shapes)
    for side in LEGS:
        add_leg(robot, side, p, shapes)
    return robot


if __name__ == "__main__":
    sys.exit(urdf.run(__file__, __doc__, "itu_biped.urdf", build))
