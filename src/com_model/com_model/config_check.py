"""Finds configurations that are valid but do not describe the robot: feet, IMU, groups.

All is measured in the standing posture of the configuration, so nothing needs the robot. Only what
makes every result wrong is an error: feet on which the robot cannot stand. The rest are warnings.
"""

import os
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses, link_poses
from com_model.exceptions import ConfigError, GeometryError
from com_model.geometry.support import SupportPolygon, sole_points
from com_model.model import RobotModel
from com_model.robot_config import Foot, RobotConfig
from com_model.shapes.hulls import Hulls, hull_of
from com_model.shapes.urdf_shapes import Shape, ShapeReader, fit_up_axis
from com_model.text import listing
from com_model.urdf.audit import Issue

MAX_TILT = np.radians(3.0)  # of a sole, in the standing posture
UPSIDE = np.radians(60.0)  # between the soles' normal and the way from them to the CoM: no standing
MAX_TURN = np.radians(50.0)  # of x axes against each other and against the way from foot to foot
MAX_HEIGHT = 0.005  # m, of a sole above the lowest one
MAX_GAP = 0.008  # m, of a sole from the lowest point of the foot's shapes
MAX_LENGTH = 0.02  # of the length of a leg, by which it may differ from that on the other side
MAX_MASS = 0.2  # of the mass of a leg, likewise
LEAST_LEGS, MOST_LEGS = 0.005, 0.97  # mass of all legs, of the robot's


def check_config(
    model: RobotModel, config: RobotConfig, urdf_path: str | os.PathLike[str] | None = None
) -> tuple[Issue, ...]:
    """Lists what of a configuration is probably wrong; each with the entry and how to fix it.

    Soles are compared with meshes only with urdf_path. Raises ConfigError where the robot cannot be
    what is configured; see RobotConfig.attach, and feet.
    """
    check = _Check(config.attach(model), config)
    issues = [*check.standing(), *check.legs(), *check.sensors(), *check.groups()]
    return (*issues, *check.shapes(urdf_path))


def config_warnings(
    model: RobotModel, config: RobotConfig, urdf_path: str | os.PathLike[str] | None = None
) -> list[str]:
    """Gives the issues of check_config as lines of text."""
    found = check_config(model, config, urdf_path)
    return [f"{config.source}: {x.element}: {x.message}. {x.fix}" for x in found]


def _warn(key: str, message: str, fix: str) -> Issue:
    return Issue("warning", key, message, fix)


def _mm(value: float) -> str:
    return f"{1e3 * value:.0f} mm"


def _degrees(angle: float) -> str:
    return f"{np.degrees(angle):.0f} degrees"


class _Check:
    """The robot in its standing posture; vectors in the root link's frame."""

    def __init__(self, model: RobotModel, config: RobotConfig) -> None:
        self.model, self.config, self.feet = model, config, config.feet
        self.R, self.p = link_poses(model, config.nominal_posture(model))
        self.links = [model.link_index(foot.frame) for foot in self.feet]
        bodies = model.bodies
        self.ends = [int(bodies.body_of_link[link]) for link in self.links]
        paths = [bodies.path_to(end) for end in self.ends]
        shared = set.intersection(*map(set, paths)) if len(paths) > 1 else set()
        self.chains = [[body for body in path if body not in shared] for path in paths]
        self.trunk = max(shared, default=0)
        self.com = model.link_masses @ (self.p + np.einsum("lij,lj->li", self.R, model.link_coms))
        self.com = self.com / model.mass
        self.points = [
            sole_points(self.R[link], self.p[link] + self.R[link] @ foot.center, foot.corners)
            for foot, link in self._linked()
        ]
        flat = [link for foot, link in self._linked() if len(foot.corners)]
        up = self.R[flat][:, :, 2].sum(axis=0)
        length = float(np.linalg.norm(up))
        self.up = up / length if length > 1e-6 else self.R[0][:, 2]

    # --- on the ground ---------------------------------------------------------------------------
    def standing(self) -> Iterator[Issue]:
        """Soles on one horizontal plane, the CoM above them, the frames' axes."""
        if not self.feet:
            return
        middle = np.concatenate(self.points).mean(axis=0)
        tilt = _angle(self.up, self.com - middle)
        if tilt > UPSIDE:
            problem = (
                f"in the posture the way from them to the CoM is {_degrees(tilt)} off the soles' z "
                "axes, expected nearly along them: turn the frames (rpy) so that z points out of "
                "the ground, or correct the posture"
            )
            raise ConfigError(problem, self.config.source, "feet")
        heights = [float((p @ self.up).min()) - f.radius for p, f in self._placed()]
        for (foot, link), height in zip(self._linked(), heights, strict=True):
            height -= min(heights)
            off = _angle(self.R[link][:, 2], self.up)
            if len(foot.corners) and off > MAX_TILT:
                yield _warn(
                    f"feet.{foot.frame}",
                    f"in the posture its z axis is {_degrees(off)} off the mean of the soles', "
                    f"expected at most {_degrees(MAX_TILT)}",
                    "Correct its rpy, or the joints of this leg in the posture",
                )
            if height > MAX_HEIGHT:
                yield _warn(
                    f"feet.{foot.frame}",
                    f"in the posture its sole is {_mm(height)} above the lowest one, "
                    f"expected at most {_mm(MAX_HEIGHT)}",
                    "Correct its xyz, or the joints of this leg in the posture",
                )
        yield from self._directions()
        with_area = len(np.concatenate(self.points)) > 2
        try:
            support = SupportPolygon.from_points(np.concatenate(self.points), self.up)
        except GeometryError:
            return
        margin = float(support.margin(self.com))
        if with_area and margin < 0.0:
            yield _warn(
                "posture",
                f"the CoM is {_mm(-margin)} outside the support of the feet: the robot falls",
                "Give a posture in which the CoM is above the feet; see also the feet's corners",
            )

    def _directions(self) -> Iterator[Issue]:
        """Left and right, front and hind where they are; x axes of soles forwards."""
        flat = [link for foot, link in self._linked() if len(foot.corners)]
        forward = self.R[flat or [0]][:, :, 0].sum(axis=0)
        ways = {
            ("side", "left", "right"): np.cross(self.up, forward),
            ("end", "front", "hind"): np.cross(np.cross(self.up, forward), self.up),
        }
        for (key, first, second), direction in ways.items():
            places = [
                [p.mean(axis=0) for p, f in self._placed() if getattr(f, key) == name]
                for name in (first, second)
            ]
            if not all(places):
                continue
            way = np.mean(places[0], axis=0) - np.mean(places[1], axis=0)
            turn = _angle(self._across(way), direction)
            axes = "the x axes of the soles" if flat else "the x axis of the root link"
            if turn > np.pi - MAX_TURN:
                yield _warn(
                    f"feet.<foot>.{key}",
                    f"by {axes} the {first} feet are on the {second} side",
                    f"Swap {first} and {second}, or turn the sole frames (rpy) so that x points "
                    "forwards",
                )
            elif turn > MAX_TURN:
                yield _warn(
                    f"feet.<foot>.{key}",
                    f"the way from the {second} to the {first} feet is {_degrees(turn)} off what "
                    f"{axes} would have it, expected at most {_degrees(MAX_TURN)}",
                    f"Correct {key}, or turn the sole frames (rpy) so that x points forwards",
                )
        for i, j in combinations(range(len(self.feet)), 2):
            x, y = (self.R[self.links[k]][:, 0] for k in (i, j))
            turn = _angle(self._across(x), self._across(y))
            if len(self.feet[i].corners) and len(self.feet[j].corners) and turn > MAX_TURN:
                yield _warn(
                    f"feet.{self.feet[j].frame}",
                    f"its x axis is turned by {_degrees(turn)} against that of "
                    f"{self.feet[i].frame}, expected at most {_degrees(MAX_TURN)}",
                    "Turn the sole frames (rpy) so that all x axes point forwards",
                )

    def _linked(self) -> list[tuple[Foot, int]]:
        return list(zip(self.feet, self.links, strict=True))

    def _placed(self) -> list[tuple[Array, Foot]]:
        return list(zip(self.points, self.feet, strict=True))

    def _across(self, v: Array) -> Array:
        return np.asarray(v - (v @ self.up) * self.up)

    # --- the legs --------------------------------------------------------------------------------
    def legs(self) -> Iterator[Issue]:
        """Feet at the ends of legs that are alike, and not all or nothing of the mass."""
        bodies, total = self.model.bodies, self.model.mass
        for foot, end, chain in zip(self.feet, self.ends, self.chains, strict=True):
            if not chain:
                yield _warn(
                    f"feet.{foot.frame}",
                    "no joint of its own moves it",
                    "Name the last link of the leg, below its joints",
                )
            below = bodies.joint_names[end + 1 : bodies.subtree_end[end]]
            if below:
                yield _warn(
                    f"feet.{foot.frame}",
                    f"joints move below it: {listing(below)}",
                    f"Name the last link of the leg, e.g. {bodies.names[end + len(below)]!r}",
                )
        lengths = []
        for chain, (foot, link) in zip(self.chains, self._linked(), strict=True):
            foot_in_body = bodies.p_body_link[link] + bodies.R_body_link[link] @ foot.center
            bones = np.linalg.norm(bodies.d[chain[1:]], axis=1).sum()
            lengths.append(float(bones + np.linalg.norm(foot_in_body)))
        masses = [float(bodies.subtree_mass[c[0]]) if c else 0.0 for c in self.chains]
        for i, j in combinations(range(len(self.feet)), 2):
            one, other = self.feet[i], self.feet[j]
            if one.end != other.end or {one.side, other.side} != {"left", "right"}:
                continue
            for what, values, most, unit in (
                ("long", lengths, MAX_LENGTH, "m"),
                ("heavy", masses, MAX_MASS, "kg"),
            ):
                if abs(values[i] - values[j]) > most * max(values[i], values[j]):
                    yield _warn(
                        f"feet.{other.frame}",
                        f"its leg is {values[j]:.3g} {unit} {what}, that of {one.frame} "
                        f"{values[i]:.3g} {unit}, expected the same to {100 * most:.0f} %",
                        "Name links at the same place of both legs, and check their masses",
                    )
        fraction = sum(masses) / total
        if self.feet and all(self.chains) and not LEAST_LEGS < fraction < MOST_LEGS:
            yield _warn(
                "feet",
                f"the legs have {100 * fraction:.2g} % of the mass of the robot, expected "
                f"{100 * LEAST_LEGS:g} to {100 * MOST_LEGS:g} %",
                "Check the feet's links, and the masses of the URDF by com-audit",
            )

    # --- sensors and groups ----------------------------------------------------------------------
    def sensors(self) -> Iterator[Issue]:
        """The IMU on the trunk."""
        link, bodies = self.config.imu_link, self.model.bodies
        if link is None:
            return
        body = int(bodies.body_of_link[self.model.link_index(link)])
        moved = [
            foot.frame
            for foot, chain in zip(self.feet, self.chains, strict=True)
            if chain and chain[0] <= body < bodies.subtree_end[chain[0]]
        ]
        if moved:
            yield _warn(
                "imu.link",
                f"{link!r} is on the leg of {moved[0]}, expected on the trunk",
                f"Name a link that is fixed to the trunk, e.g. {bodies.names[self.trunk]!r}",
            )

    def groups(self) -> Iterator[Issue]:
        """Groups that are named for one side and move the feet of the other."""
        bodies = self.model.bodies
        for group, joints in self.config.joint_groups.items():
            for side, other in (("left", "right"), ("right", "left")):
                if side not in group or other in group:
                    continue
                wrong = [
                    joint
                    for foot, chain in zip(self.feet, self.chains, strict=True)
                    if foot.side == other
                    for joint in joints
                    if joint in [bodies.joint_names[body] for body in chain]
                ]
                if wrong:
                    yield _warn(
                        f"joint_groups.{group}",
                        f"{listing(wrong)} move a foot whose side is {other}",
                        f"Swap the groups or the feet's sides, as {side} is",
                    )

    # --- shapes ----------------------------------------------------------------------------------
    def shapes(self, urdf_path: str | os.PathLike[str] | None) -> Iterator[Issue]:
        """Soles where the shapes of the foot end."""
        reader = ShapeReader(self.model.xml, urdf_path) if self.feet else None
        bodies = self.model.bodies
        for foot, link, end in zip(self.feet, self.links, self.ends, strict=True):
            if reader is None or not (len(foot.corners) or foot.radius):
                continue
            names = [
                name
                for name in self.model.link_names
                if name in reader.links and bodies.body_of_link[self.model.link_index(name)] == end
            ]
            read = {
                tag: [s for name in names for s in reader.read(name, tag)[0]]
                for tag in ("collision", "visual")
            }
            gaps = [
                self._gap(foot, link, fit_up_axis(shapes, self.model))
                for shapes in read.values()
                if shapes
            ]
            if gaps and min(map(abs, gaps)) > MAX_GAP:
                gap = gaps[0]
                where = "below" if gap < 0.0 else "above"
                yield _warn(
                    f"feet.{foot.frame}",
                    f"the lowest point of the foot's shapes is {_mm(abs(gap))} {where} its sole, "
                    f"expected within {_mm(MAX_GAP)}",
                    "Give the foot as link and sole frame (link, xyz, rpy): z of the sole's ground"
                    if len(foot.corners)
                    else "Correct radius and center of the ball",
                )

    def _gap(self, foot: Foot, link: int, shapes: list[Shape]) -> float:
        """Height of the lowest point of shapes above the sole, m, along the soles' normal."""
        R, p = self.R[link], self.p[link]
        up = R[:, 2] if len(foot.corners) else self.up
        hulls = Hulls([hull_of(shape, self.model) for shape in shapes])
        R_bodies, p_bodies = body_poses(self.model.bodies, self.config.nominal_posture(self.model))
        lowest = hulls.lowest(up[None], R_bodies[None], p_bodies[None]).min()
        return float(lowest - up @ (p + R @ foot.center)) + foot.radius


def _angle(a: Array, b: Array) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))
