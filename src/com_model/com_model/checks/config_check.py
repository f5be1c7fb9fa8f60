"""Finds configurations that are valid but do not describe the robot: feet, IMU, groups.

All is measured in the standing posture of the configuration, so nothing needs the robot. Only what
makes every result wrong is an error: feet on which the robot cannot stand. The rest are warnings.
"""

import os
from itertools import combinations
from typing import NamedTuple

import numpy as np

from com_model.arrays import Array
from com_model.checks.issues import Issue
from com_model.dynamics.kinematics import body_poses, link_poses
from com_model.exceptions import ConfigError, GeometryError, listing
from com_model.geometry.rotations import angle_between
from com_model.geometry.support import SupportPolygon, sole_points
from com_model.model import RobotModel
from com_model.robot_config import Foot, RobotConfig
from com_model.shapes.hulls import Hulls, fit_up_axis, hull_of
from com_model.shapes.urdf_shapes import Shape, ShapeReader

MAX_TILT = np.radians(3.0)  # of a sole, in the standing posture
MAX_TURN = np.radians(
    50.0
)  # of x axes against each other and against the way from foot to foot


def check_config(
    model: RobotModel,
    config: RobotConfig,
    urdf_path: str | os.PathLike[str] | None = None,
) -> tuple[Issue, ...]:
    """Lists what of a configuration is probably wrong.

    Args:
        model: The robot.
        config: Its configuration.
        urdf_path: Path of the URDF, from which relative names of meshes count; soles are compared
            with meshes only where it is given.

    Returns:
        Issues, each with the entry and how to fix it.

    Raises:
        ConfigError: The robot cannot be what is configured; see RobotConfig.attach, and feet.
    """
    check = _Check(config.attach(model), config)
    if config.feet:
        check.standing()
        check.legs()
        check.sensors()
        check.groups()
        check.shapes(urdf_path)
    return tuple(check.issues)


def config_warnings(
    model: RobotModel,
    config: RobotConfig,
    urdf_path: str | os.PathLike[str] | None = None,
) -> list[str]:
    """Gives the issues of check_config as lines of text.

    Args:
        model: The robot.
        config: Its configuration.
        urdf_path: As for check_config.

    Returns:
        One line for each.
    """
    found = check_config(model, config, urdf_path)
    return [f"{config.source}: {x.element}: {x.message}. {x.fix}" for x in found]


def _mm(value: float) -> str:
    return f"{1e3 * value:.0f} mm"


def _degrees(angle: float) -> str:
    return f"{np.degrees(angle):.0f} degrees"


class _Placed(NamedTuple):
    """A foot in the standing posture; vectors in the root link's frame.

    Attributes:
        end: The body that carries it.
        chain: Bodies that move no other foot.
        R: (3, 3) of its frame.
        p: (3,) m.
        points: (k, 3) m, corners of its sole, or its center.
        length: m, of its leg.
        mass: kg, of its leg.
    """

    foot: Foot
    end: int
    chain: list[int]
    R: Array
    p: Array
    points: Array
    length: float
    mass: float

    @property
    def key(self) -> str:
        return f"feet.{self.foot.frame}"


class _Check:
    """The robot in its standing posture; vectors in the root link's frame."""

    def __init__(self, model: RobotModel, config: RobotConfig) -> None:
        self.model, self.config, self.bodies = model, config, model.bodies
        self.issues: list[Issue] = []
        R, p = link_poses(model, config.nominal_posture(model))
        bodies, links = (
            self.bodies,
            [model.link_index(foot.frame) for foot in config.feet],
        )
        ends = [int(bodies.body_of_link[link]) for link in links]
        paths = [bodies.path_to(end) for end in ends]
        shared = set.intersection(*map(set, paths)) if len(paths) > 1 else set()
        self.trunk = max(shared, default=0)
        self.com = model.link_masses @ (p + np.einsum("lij,lj->li", R, model.link_coms))
        self.com = self.com / model.mass
        self.feet: list[_Placed] = []
        for foot, link, end, path in zip(config.feet, links, ends, paths, strict=True):
            chain = [body for body in path if body not in shared]
            points = sole_points(R[link], p[link] + R[link] @ foot.center, foot.corners)
            in_body = bodies.p_body_link[link] + bodies.R_body_link[link] @ foot.center
            bones = np.linalg.norm(bodies.d[chain[1:]], axis=1).sum()
            length = float(bones + np.linalg.norm(in_body))
            mass = float(bodies.subtree_mass[chain[0]]) if chain else 0.0
            placed = _Placed(foot, end, chain, R[link], p[link], points, length, mass)
            self.feet.append(placed)
        self.flat = [f for f in self.feet if len(f.foot.corners)]
        up = np.array([f.R[:, 2] for f in self.flat]).reshape(-1, 3).sum(axis=0)
        size = float(np.linalg.norm(up))
        self.up = up / size if size > 1e-6 else R[0][:, 2]
        self.forward = sum((f.R[:, 0] for f in self.flat), start=np.zeros(3))
        if not self.flat:
            self.forward = R[0][:, 0]

    def _warn(self, key: str, message: str, fix: str) -> None:
        self.issues.append(Issue("warning", key, message, fix))

    # --- on the ground ---------------------------------------------------------------------------
    def standing(self) -> None:
        """Soles on one horizontal plane, the CoM above them, the frames' axes."""
        points = np.concatenate([f.points for f in self.feet])
        tilt = angle_between(self.up, self.com - points.mean(axis=0))
        # such a robot does not stand
        if tilt > np.radians(60.0):
            problem = (
                f"in the posture the way from them to the CoM is {_degrees(tilt)} off the soles' z "
                "axes, expected nearly along them: turn the frames (rpy) so that z points out of "
                "the ground, or correct the posture"
            )
            raise ConfigError(problem, self.config.source, "feet")
        heights = [float((f.points @ self.up).min()) - f.foot.radius for f in self.feet]
        highest = 0.005  # m, of a sole above the lowest one
        for f, height in zip(self.feet, heights, strict=True):
            height -= min(heights)
            off = angle_between(f.R[:, 2], self.up)
            if len(f.foot.corners) and off > MAX_TILT:
                self._warn(
                    f.key,
                    f"in the posture its z axis is {_degrees(off)} off the mean of the soles', "
                    f"expected at most {_degrees(MAX_TILT)}",
                    "Correct its rpy, or the joints of this leg in the posture",
                )
            if height > highest:
                self._warn(
                    f.key,
                    f"in the posture its sole is {_mm(height)} above the lowest one, "
                    f"expected at most {_mm(highest)}",
                    "Correct its xyz, or the joints of this leg in the posture",
                )
        self._directions()
        try:
            margin = float(SupportPolygon.from_points(points, self.up).margin(self.com))
        except GeometryError:
            return
        if len(points) > 2 and margin < 0.0:
            self._warn(
                "posture",
                f"the CoM is {_mm(-margin)} outside the support of the feet: the robot falls",
                "Give a posture in which the CoM is above the feet; see also the feet's corners",
            )

    def _directions(self) -> None:
        """Left and right, front and hind where they are; x axes of soles forwards."""
        left = np.cross(self.up, self.forward)
        axes = "the x axes of the soles" if self.flat else "the x axis of the root link"
        for key, first, second, direction in (
            ("side", "left", "right", left),
            ("end", "front", "hind", np.cross(left, self.up)),
        ):
            places = [
                [
                    f.points.mean(axis=0)
                    for f in self.feet
                    if getattr(f.foot, key) == name
                ]
                for name in (first, second)
            ]
            if not all(places):
                continue
            way = np.mean(places[0], axis=0) - np.mean(places[1], axis=0)
            turn = angle_between(self._across(way), direction)
            if turn > np.pi - MAX_TURN:
                self._warn(
                    f"feet.<foot>.{key}",
                    f"by {axes} the {first} feet are on the {second} side",
                    f"Swap {first} and {second}, or turn the sole frames (rpy) so that x points "
                    "forwards",
                )
            elif turn > MAX_TURN:
                self._warn(
                    f"feet.<foot>.{key}",
                    f"the way from the {second} to the {first} feet is {_degrees(turn)} off what "
                    f"{axes} would have it, expected at most {_degrees(MAX_TURN)}",
                    f"Correct {key}, or turn the sole frames (rpy) so that x points forwards",
                )
        for one, other in combinations(self.flat, 2):
            turn = angle_between(self._across(one.R[:, 0]), self._across(other.R[:, 0]))
            if turn > MAX_TURN:
                self._warn(
                    other.key,
                    f"its x axis is turned by {_degrees(turn)} against that of "
                    f"{one.foot.frame}, expected at most {_degrees(MAX_TURN)}",
                    "Turn the sole frames (rpy) so that all x axes point forwards",
                )

    def _across(self, v: Array) -> Array:
        return np.asarray(v - (v @ self.up) * self.up)

    # --- the legs --------------------------------------------------------------------------------
    def legs(self) -> None:
        """Feet at the ends of legs that are equal, and not all or nothing of the mass."""
        bodies = self.bodies
        for f in self.feet:
            if not f.chain:
                fix = "Name the last link of the leg, below its joints"
                self._warn(f.key, "no joint of its own moves it", fix)
            below = bodies.joint_names[f.end + 1 : bodies.subtree_end[f.end]]
            if below:
                last = bodies.names[f.end + len(below)]
                fix = f"Name the last link of the leg, e.g. {last!r}"
                self._warn(f.key, f"joints move below it: {listing(below)}", fix)
        for one, other in combinations(self.feet, 2):
            sides = {one.foot.side, other.foot.side}
            if one.foot.end != other.foot.end or sides != {"left", "right"}:
                continue
            # the last number: what they may differ by, of the larger one
            for what, a, b, most, unit in (
                ("long", one.length, other.length, 0.02, "m"),
                ("heavy", one.mass, other.mass, 0.2, "kg"),
            ):
                if abs(a - b) > most * max(a, b):
                    self._warn(
                        other.key,
                        f"its leg is {b:.3g} {unit} {what}, that of {one.foot.frame} "
                        f"{a:.3g} {unit}, expected the same to {100 * most:.0f} %",
                        "Name links at the same place of both legs, and check their masses",
                    )
        fraction = sum(f.mass for f in self.feet) / self.model.mass
        least = 0.005
        greatest = 0.97  # mass of all legs, of the robot's
        if all(f.chain for f in self.feet) and not least < fraction < greatest:
            self._warn(
                "feet",
                f"the legs have {100 * fraction:.2g} % of the mass of the robot, expected "
                f"{100 * least:g} to {100 * greatest:g} %",
                "Check the feet's links, and the masses of the URDF by com-audit",
            )

    # --- sensors and groups ----------------------------------------------------------------------
    def sensors(self) -> None:
        """The IMU on the trunk."""
        link, bodies = self.config.imu_link, self.bodies
        body = (
            -1
            if link is None
            else int(bodies.body_of_link[self.model.link_index(link)])
        )
        for f in self.feet:
            if f.chain and f.chain[0] <= body < bodies.subtree_end[f.chain[0]]:
                self._warn(
                    "imu.link",
                    f"{link!r} is on the leg of {f.foot.frame}, expected on the trunk",
                    f"Name a link that is fixed to the trunk, e.g. {bodies.names[self.trunk]!r}",
                )
                return

    def groups(self) -> None:
        """Groups that are named for one side and move the feet of the other."""
        for group, joints in self.config.joint_groups.items():
            for side, other in (("left", "right"), ("right", "left")):
                if side not in group or other in group:
                    continue
                chains = [f.chain for f in self.feet if f.foot.side == other]
                moving = [
                    {self.bodies.joint_names[body] for body in chain}
                    for chain in chains
                ]
                wrong = [
                    joint for names in moving for joint in joints if joint in names
                ]
                if wrong:
                    message = f"{listing(wrong)} move a foot whose side is {other}"
                    fix = f"Swap the groups or the feet's sides, as {side} is"
                    self._warn(f"joint_groups.{group}", message, fix)

    # --- shapes ----------------------------------------------------------------------------------
    def shapes(self, urdf_path: str | os.PathLike[str] | None) -> None:
        """Soles where the shapes of the foot end."""
        reader = ShapeReader(self.model.xml, urdf_path)
        most = 0.008  # m, of a sole from the lowest point of the foot's shapes
        for f in self.feet:
            if not (len(f.foot.corners) or f.foot.radius):
                continue
            own = [
                self.model.link_names[i]
                for i in np.flatnonzero(self.bodies.body_of_link == f.end)
            ]
            found = [
                [
                    s
                    for name in own
                    if name in reader.links
                    for s in reader.read(name, tag)[0]
                ]
                for tag in ("collision", "visual")
            ]
            gaps = [
                self._gap(f, fit_up_axis(shapes, self.model))
                for shapes in found
                if shapes
            ]
            if gaps and min(map(abs, gaps)) > most:
                where = "below" if gaps[0] < 0.0 else "above"
                self._warn(
                    f.key,
                    f"the lowest point of the foot's shapes is {_mm(abs(gaps[0]))} {where} its "
                    f"sole, expected within {_mm(most)}",
                    "Give the foot as link and sole frame (link, xyz, rpy): z of the sole's ground"
                    if len(f.foot.corners)
                    else "Correct radius and center of the ball",
                )

    def _gap(self, f: _Placed, shapes: list[Shape]) -> float:
        """Height of the lowest point of shapes above the sole, m, along the soles' normal."""
        up = f.R[:, 2] if len(f.foot.corners) else self.up
        hulls = Hulls([hull_of(shape, self.model) for shape in shapes])
        R, p = body_poses(self.bodies, self.config.nominal_posture(self.model))
        lowest = hulls.lowest(up[None], R[None], p[None]).min()
        return float(lowest - up @ (f.p + f.R @ f.foot.center)) + f.foot.radius
