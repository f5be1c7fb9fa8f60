"""All that a robot's configuration needs, found in its URDF and its shapes."""

import os
from pathlib import Path

import numpy as np

from com_model.dynamics.kinematics import TURNS, body_poses, free_axis
from com_model.exceptions import listing
from com_model.geometry.support import SupportPolygon
from com_model.model import RobotModel
from com_model.setup.gains import find_gains, gait_parameters, weak_hips
from com_model.setup.limbs import NoLegsError, find_limbs
from com_model.setup.parts import HUMANOID, FootSetup, Leg, RobotSetup, Sole, Standing
from com_model.setup.posture import contact_points, find_posture
from com_model.setup.sensors import find_imu, find_wrench
from com_model.setup.soles import find_sole
from com_model.shapes.hulls import Outside, read_outside

LEAST_BEND = 0.1
"""rad, of the knees of a robot that leans or walks; others get no sizes of steps."""


def describe(
    model: RobotModel, urdf_path: str | os.PathLike[str] | None = None
) -> RobotSetup:
    """Finds out how a robot is built.

    Args:
        model: The robot.
        urdf_path: Path of its URDF, from which relative names of meshes count.

    Returns:
        What its configuration needs.

    Raises:
        NoLegsError: It does not stand on two or more legs.
    """
    outside = read_outside(model, urdf_path)
    limbs = find_limbs(model, outside)
    R0, p0 = body_poses(model.bodies, model.neutral, limbs.R_root_robot.T)
    soles = [find_sole(model, outside, leg, R0, p0, limbs.kind) for leg in limbs.legs]
    standing, overlaps = find_posture(model, limbs, soles, outside)
    # of the robot's height, of the CoM over the feet
    if standing.com[2] < standing.ground + 0.05 * limbs.height:
        raise NoLegsError(
            "no legs: in no posture are all its feet below its centre of mass"
        )
    feet = tuple(
        _foot(model, leg, sole, standing)
        for leg, sole in zip(limbs.legs, soles, strict=True)
    )
    imu = find_imu(model, limbs)
    polygon = SupportPolygon.from_points(np.concatenate([foot.points for foot in feet]))
    margin = float(polygon.margin(standing.com))
    issues = [("kind", issue) for issue in limbs.issues]
    issues += [(f"feet.{f.name}", issue) for f in feet for issue in f.sole.issues]
    issues += [
        (f"feet.{f.name}.wrench", f.wrench.issue) for f in feet if f.wrench.issue
    ]
    issues += [
        ("walking", part) for f in feet if (part := _free_part(model, f, standing))
    ]
    issues += [
        (f"feet.{f.name}", text)
        for f in feet
        if (text := _beside(model, outside, f, standing))
    ]
    weak = weak_hips(model, limbs, standing) if limbs.kind == HUMANOID else ()
    if weak:
        text = f"by the URDF's effort limits {listing(weak)} cannot hold the weight on one leg"
        issues.append(("walking", f"{text}: walks with feedback fall"))
    issues += [("posture", issue) for issue in standing.issues]
    issues += [
        ("posture", f"the hulls of {a} and {b} overlap") for a, b in overlaps[:5]
    ]
    # m, of the CoM inside the support
    if sum(len(foot.points) for foot in feet) < 3:
        issues.append(
            (
                "feet",
                "two point feet are no support: the robot cannot stand without feedback. If it has "
                "soles, give their corners (feet.<name>.corners, m)",
            )
        )
    elif margin < 0.01:
        issues.append(
            ("posture", f"the CoM is {1e3 * margin:.0f} mm inside the support polygon")
        )
    if imu.issue:
        issues.append(("imu", imu.issue))
    most = 200  # that are named where they cannot be read
    for reason, shapes in outside.problems.items():
        text = f"shapes not read ({reason}): {listing(shapes, most)}"
        issues.append(("feet", text))
    gait = gait_parameters(model, limbs, standing, [foot.points for foot in feet])
    joints = {len(leg.bodies) for leg in limbs.legs}
    # of each leg of a robot that walks (com_control's Biped)
    if limbs.kind == HUMANOID and not joints <= {5, 6}:
        counts = listing(map(str, sorted(joints)))
        text = f"its legs have {counts} joints: walks are for legs of five or six"
        issues.append(("kind", text))
        gait = {}
    elif limbs.kind == HUMANOID and standing.bend < LEAST_BEND:
        gait = {}
    name = model.name if urdf_path is None else Path(urdf_path).stem
    trunk = np.flatnonzero(model.bodies.body_of_link == limbs.trunk)
    return RobotSetup(
        name="".join(c if c.isalnum() or c in "-_" else "_" for c in name) or "robot",
        urdf="" if urdf_path is None else Path(urdf_path).name,
        model=model,
        limbs=limbs,
        trunk_link=model.link_names[int(trunk[np.argmax(model.link_masses[trunk])])],
        feet=feet,
        standing=standing,
        imu=imu,
        gains=find_gains(model, limbs, standing),
        gait=gait,
        margin=margin,
        issues=tuple(issues),
    )


def _foot(model: RobotModel, leg: Leg, sole: Sole, standing: Standing) -> FootSetup:
    place = leg.name.removesuffix("_leg")
    name = sole.own_link or (f"{place}_sole" if sole.flat else sole.link)
    if name not in (sole.own_link, sole.link):
        while name in model.link_names:
            name += "_frame"
    wrench = find_wrench(model, sole, leg.foot)
    return FootSetup(
        name, leg, sole, wrench, contact_points(standing.R, standing.p, leg, sole)
    )


def _beside(
    model: RobotModel, outside: Outside, foot: FootSetup, standing: Standing
) -> str:
    """What of the leg touches the ground beside the sole; "" where nothing does."""
    for body in foot.leg.bodies[:-1]:
        heights = outside.points[body] @ standing.R[body][2] + standing.p[body][2]
        if heights.min(initial=np.inf) < standing.ground + 0.005:  # m
            link = model.bodies.names[body]
            fix = "does its <collision> belong to the foot?"
            return f"{link} ends on the ground beside {foot.name}: {fix}"
    return ""


def _free_part(model: RobotModel, foot: FootSetup, standing: Standing) -> str:
    """What a leg of five joints does not give its sole; "" of others."""
    bodies, body = list(foot.leg.bodies), foot.leg.foot
    if len(bodies) != 5 or not foot.sole.flat:
        return ""
    axes = np.einsum("bij,bj->bi", standing.R[bodies], model.bodies.axis[bodies])
    R, p = standing.R[body], standing.p[body]
    R_sole, p_sole = R @ foot.sole.R_body, p + R @ foot.sole.p_body
    turn = TURNS[free_axis(axes, standing.p[bodies], R_sole, p_sole)]
    return f"{foot.leg.name} has five joints: none moves the {turn} of {foot.name}, which tilts"
