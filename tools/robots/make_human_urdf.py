#!/usr/bin/env python3
"""Write person_f.urdf and person_m.urdf of com_identification: a woman and a man of 1 m and 1 kg.

    make_human_urdf.py            write both
    make_human_urdf.py --check    write nothing; exit 1 if one differs

From the tables in data/: human_segments.csv has masses in percent of the body's, centres of mass in
percent of the length from the first end, and lengths; human_parameters.csv has the rest.
data/README.md says what is from where and what is assumed. com_human scales lengths by a person's
height, masses by their mass.
"""

import argparse
import sys
from collections.abc import Mapping
from functools import partial

import urdf_writer as urdf

PEOPLE = {"f": "woman", "m": "man"}
ROOT = "lower_trunk"
FOLDER = urdf.PACKAGE.parent / "com_identification" / "com_identification"
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
Joint = tuple[str, str, urdf.Vector]  # parent, axes, origin in m


def joints(p: Mapping[str, float], length: Mapping[str, float]) -> dict[str, Joint]:
    """Return the joints that carry each link but the root, which is between the hips."""
    found: dict[str, Joint] = {
        "middle_trunk": (ROOT, "xyz", (0.0, 0.0, length[ROOT])),
        "upper_trunk": ("middle_trunk", "xyz", (0.0, 0.0, length["middle_trunk"])),
        "head": ("upper_trunk", "xyz", (0.0, 0.0, p["neck"] / p["stature"])),
    }
    for s, sign in (("l_", 1.0), ("r_", -1.0)):
        shoulder = (0.0, sign * p["shoulder"], length["upper_trunk"])
        found |= {
            f"{s}upper_arm": ("upper_trunk", "yxz", shoulder),
            f"{s}forearm": (f"{s}upper_arm", "yz", (0.0, 0.0, -length["upper_arm"])),
            f"{s}hand": (f"{s}forearm", "xy", (0.0, 0.0, -length["forearm"])),
            f"{s}thigh": (ROOT, "yxz", (0.0, sign * p["hip"], 0.0)),
            f"{s}shank": (f"{s}thigh", "y", (0.0, 0.0, -length["thigh"])),
            f"{s}foot": (f"{s}shank", "yx", (0.0, 0.0, -length["shank"])),
        }
    return found


def center(
    name: str, p: Mapping[str, float], length: float, along: float
) -> urdf.Vector:
    """Return a segment's centre of mass, `along` its length from the first end."""
    if name == "foot":
        return along - p["heel"] * length, 0.0, -0.5 * p["ankle"]
    if name == "head" or name.endswith(
        "trunk"
    ):  # measured from above; their frames are below
        return 0.0, 0.0, length - along
    return 0.0, 0.0, -along


def build(sex: str) -> urdf.Element:
    """Return a standing person as an XML element: x forward, y left, z up."""
    p = {
        row["name"]: float(row[sex]) for row in urdf.read_table("human_parameters.csv")
    }
    rows = {row["segment"]: row for row in urdf.read_table("human_segments.csv")}
    length = {
        name: float(row[f"length_{sex}_mm"]) / p["stature"]
        for name, row in rows.items()
    }
    carried = joints(p, length)
    names = {
        link: link.removeprefix("l_").removeprefix("r_") for link in (ROOT, *carried)
    }
    whole = sum(float(rows[name][f"mass_{sex}_percent"]) for name in names.values())
    comment = (
        f"A {PEOPLE[sex]}: com_human scales lengths and masses of what "
        "tools/robots/make_human_urdf.py wrote from the tables in data/ for 1 m and 1 kg."
    )
    robot = urdf.new_robot("human", comment, {})
    for link, name in names.items():
        mass = float(rows[name][f"mass_{sex}_percent"]) / whole
        along = float(rows[name][f"com_{sex}_percent"]) / 100.0 * length[name]
        moment = mass * (p["rod"] * length[name]) ** 2
        com = center(name, p, length[name], along)
        urdf.add_body(robot, link, mass, com, (moment, moment, moment))
    limits = {"lower": -p["limit"], "upper": p["limit"], "effort": 0.0, "velocity": 0.0}
    for link, (parent, axes, origin) in carried.items():
        for axis in axes:
            child = link if axis == axes[-1] else f"{link}_{axis}"
            if child != link:
                urdf.add(robot, "link", name=child)
            urdf.add_revolute(
                robot, f"{link}_{axis}", parent, child, origin, AXES[axis], limits
            )
            parent, origin = child, (0.0, 0.0, 0.0)
    return robot


def main() -> int:
    """Write or check both files; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="compare instead of writing"
    )
    options, code = parser.parse_args(), 0
    for sex in PEOPLE:
        options.output = FOLDER / f"person_{sex}.urdf"
        code = max(code, urdf.write_or_check(__file__, options, partial(build, sex)))
    return code


if __name__ == "__main__":
    sys.exit(main())
