"""HOAP-2 in the sagittal plane: hips, knees and ankles pitch, both legs alike, soles as they stand.

All other joints are fixed in the URDF. Feet, shanks, thighs and trunk move as in [Muscolo] and
[Cotton]; left and right never turn against each other, so that their sums are what is observable.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
from identification_scenario import (
    OFF,
    Array,
    PinocchioRobot,
    Scenario,
    hoap2,
    wrong_robot,
)

from com_identification.regression.priors import urdf_priors
from com_model import RobotModel

PITCH = ("LEG_JOINT3", "LEG_JOINT4", "LEG_JOINT5")  # hip, knee, ankle
PARTS = {"trunk": (None,), "thigh": ("LEG_JOINT3",), "shank": ("LEG_JOINT4",)}


def fix_joints(xml: str) -> str:
    """Fixes all joints but those that pitch the legs, at 0."""

    def fixed(match: re.Match[str]) -> str:
        name, kind = match["name"], match["kind"]
        return (
            match[0]
            if name[1:] in PITCH
            else match[0].replace(f'"{kind}"', '"fixed"', 1)
        )

    pattern = r'<joint\s+name="(?P<name>[^"]+)"\s+type="(?P<kind>revolute|continuous|prismatic)"'
    return re.sub(pattern, fixed, xml)


@cache
def sagittal() -> Scenario:
    """The robot with six joints; a body's prior follows from its links, each off by OFF."""
    whole = hoap2()
    model = RobotModel.from_urdf(fix_joints(whole.model.xml))
    squares, bodies = np.zeros(model.bodies.count), model.bodies
    off = whole.model.bodies
    for b, mass in enumerate(off.mass):
        squares[bodies.body_of_link[model.link_index(off.names[b])]] += (
            mass * OFF
        ) ** 2
    rest = model.neutral.copy()
    for name in model.joint_names:
        rest[model.joint_index(name)] = whole.rest[whole.model.joint_index(name)]
    priors = urdf_priors(model, np.sqrt(squares) / bodies.mass)
    return Scenario(model, whole.feet, rest, priors)


def wrong_leg(rng: np.random.Generator) -> tuple[PinocchioRobot, Array]:
    """A robot with all 26 centres of mass off, its joints fixed; and its (4 B,) parameters."""
    robot, _ = wrong_robot(hoap2(), rng)
    scenario = sagittal()
    xml = fix_joints(robot.xml)
    bodies = RobotModel.from_urdf(xml).bodies
    truth = np.column_stack((bodies.mass, bodies.first_moment)).ravel()
    return PinocchioRobot(xml, scenario.model, scenario.feet), truth


def part_rows() -> dict[str, Array]:
    """Columns (2, 4 B) that take first moments to x and z of the CoM of trunk, thighs, shanks."""
    bodies = sagittal().model.bodies
    rows = {}
    for part, joints in PARTS.items():
        names = ("",) if joints[0] is None else tuple(side + joints[0] for side in "LR")
        members = [
            b for b, name in enumerate(bodies.joint_names) if b and name in names
        ]
        members = members or [0]
        columns = np.zeros((2, bodies.count, 4))
        for b in members:
            columns[0, b, 1] = columns[1, b, 3] = 1.0 / bodies.mass[members].sum()
        rows[part] = columns.reshape(2, -1)
    return rows
