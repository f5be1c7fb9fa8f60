"""Tip angles of a robot that moves quasi-statically.

It tips where the ground projection of its CoM leaves the support polygon, soles flat on the
ground ([Cominoli] section 8, [Cotton] IV.A). Joints may have an encoder bias, yield under their
load, and be at one end of their backlash: the actual joint angle differs from the encoder's, and
tip angles are the encoder's.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import ProtocolError
from com_identification.tip_over import kernels
from com_identification.tip_over.kernels import JointErrors
from com_identification.tip_over.protocol import DIRECTIONS, TipProtocol, TipTest
from com_model import Foot, RobotConfig, RobotModel, SupportPolygon
from com_model.arrays import Array, as_array
from com_model.dynamics.kinematics import link_pose
from com_model.dynamics.tree_kernels import Tree, tree_of
from com_model.strict_yaml import Section, read_yaml
from com_model.text import listing

_KEYS = {
    "zero_offset_rad": "offset",
    "compliance_rad_per_nm": "compliance",
    "backlash_rad": "backlash",
}


def joint_errors_document(
    model: RobotModel, errors: JointErrors, mean_error_deg: float
) -> dict[str, Any]:
    """Returns the errors of the joints as plain data, zeros left out.

    Args:
        model: the robot.
        errors: of its joints.
        mean_error_deg: deg, of the tip angles with them.
    """
    document: dict[str, Any] = {
        "robot": model.name,
        "mean_error_deg": round(mean_error_deg, 4),
    }
    for key, name in _KEYS.items():
        document[key] = {
            joint: round(float(value), 6)
            for joint, value in zip(
                model.joint_names, getattr(errors, name), strict=True
            )
            if value
        }
    return document


def read_joint_errors(path: str | os.PathLike[str], model: RobotModel) -> JointErrors:
    """Reads a file of joint errors.

    Args:
        path: of a YAML file.
        model: the robot.

    Raises:
        ComModelError: the file is wrong or another robot's; says what.
    """
    top = Section(read_yaml(path), str(path))
    robot = top.text("robot", None)
    if robot != model.name:
        raise ProtocolError(
            f"{path} has joint errors of robot {robot!r}, but the robot is {model.name!r}: "
            "give the file of this robot"
        )
    top.number("mean_error_deg", 0.0, least=0.0)
    errors = np.zeros((len(_KEYS), model.n_joints))
    for column, key in zip(errors, _KEYS, strict=True):
        section = top.section(key)
        for joint in section.entries():
            column[model.joint_index(joint)] = section.number(joint, 0.0)
    top.finish()
    return _check_errors(JointErrors(*errors))


def _check_errors(errors: JointErrors) -> JointErrors:
    for name in ("compliance", "backlash"):
        if not (getattr(errors, name) >= 0.0).all():
            raise ProtocolError(f"{name}: expected numbers, 0 or more")
    return errors


@dataclass(frozen=True)
class TipCase:
    """A test, prepared for the kernels.

    Attributes:
        test: of the protocol.
        start: (n,) rad, where it starts.
        rate: (n,) 1 for the joints that rotate, -1 for those opposite.
        limits: rad, least and largest angle that these reach.
        soles: the soles in contact, with the edges on the side of the fall.
        way: (k, n) rad, from the start onto these soles, where the test begins.
    """

    test: TipTest
    start: Array
    rate: Array
    limits: tuple[float, float]
    soles: kernels.FlatSoles
    way: Array

    def angle(self, q: Array) -> float:
        """Returns by which angle, rad, the test's joints are rotated.

        Args:
            q: (n,) rad, joint positions.
        """
        return float((q - self.start) @ self.rate / np.abs(self.rate).sum())


def make_case(model: RobotModel, feet: tuple[Foot, ...], test: TipTest) -> TipCase:
    """Prepares a test.

    Args:
        model: the robot.
        feet: its feet.
        test: of the protocol.

    Raises:
        ProtocolError: a foot is not the robot's or has no corners, the soles are not on one
            ground, or joints start beyond their limits.
    """
    rate = np.zeros(model.n_joints)
    way = np.zeros((2 + len(test.approach), model.n_joints))
    for row, station in zip(way, ({}, *test.approach, {}), strict=True):
        for joint, position in (*test.start.items(), *station.items()):
            row[model.joint_index(joint)] = position
    start = way[0].copy()
    rate[[model.joint_index(joint) for joint in test.joints]] = 1.0
    rate[[model.joint_index(joint) for joint in test.opposite]] = -1.0
    way[-1] += test.begin * rate
    limits, standing = _limits(model, test, start, rate), _soles(test, feet)
    links = [model.link_index(foot.frame) for foot in standing]
    poses = [link_pose(model, start, foot.frame) for foot in standing]
    base_R, base_p = poses[0]
    R = np.array([base_R.T @ R for R, _ in poses])
    p = np.array([base_R.T @ (p - base_p) for _, p in poses])
    # rad and m, from one ground plane
    if np.abs(R[:, :2, 2]).max() > 2e-3 or np.abs(p[:, 2]).max() > 2e-3:
        raise ProtocolError(
            f"{test.name}: the soles of {', '.join(test.feet)} do not lie on one ground in the "
            "start posture: fix the posture, or let one foot stand"
        )
    bodies = model.bodies
    soles = kernels.FlatSoles(
        np.array(bodies.body_of_link[links]),
        np.array(bodies.R_body_link[links]),
        np.array(bodies.p_body_link[links]),
        R,
        p,
        np.full(len(links), 1.0 / len(links)),
        _edges(R, p, standing, test),
    )
    return TipCase(test, start, rate, limits, soles, way)


def _soles(test: TipTest, feet: tuple[Foot, ...]) -> list[Foot]:
    known = {foot.frame: foot for foot in feet}
    for name in test.feet:
        if name not in known:
            valid = ", ".join(known) or "none"
            raise ProtocolError(f"{test.name}: no foot {name!r}; valid: {valid}")
        if len(known[name].corners) < 3:
            raise ProtocolError(
                f"{test.name}: foot {name!r} has no sole to tip over: give corners"
            )
    return [known[name] for name in test.feet]


def _limits(
    model: RobotModel, test: TipTest, start: Array, rate: Array
) -> tuple[float, float]:
    """The least and the largest angle that all its joints reach, at most half a turn, rad."""
    turning = rate != 0.0
    limits = np.array([model.lower[turning], model.upper[turning]])
    ends = (limits - start[turning]) * rate[turning]
    low, high = float(ends.min(axis=0).max()), float(ends.max(axis=0).min())
    # rounded limits
    if not low - 1e-6 <= 0.0 <= high + 1e-6:
        raise ProtocolError(
            f"{test.name}: {listing(test.joints + test.opposite)} cannot be where the "
            f"posture puts them: they would have to turn by {low:.3f} to {high:.3f} rad "
            "to be within their limits"
        )
    return max(low, -np.pi), min(high, np.pi)


def _edges(R: Array, p: Array, standing: list[Foot], test: TipTest) -> Array:
    """Edges (E, 3) of the support polygon on the side that the robot falls to."""
    polygon = SupportPolygon.from_soles(R, p, [f.corners for f in standing], (0, 0, 1))
    corners = polygon.vertices[:, :2]
    along = np.roll(corners, -1, axis=0) - corners
    out = (
        np.column_stack((along[:, 1], -along[:, 0]))
        / np.linalg.norm(along, axis=1)[:, None]
    )
    side = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[DIRECTIONS.index(test.falls)]
    edges = np.column_stack((out, (out * corners).sum(axis=1)))
    # edges within 60 degrees of the direction count as on that side
    return np.ascontiguousarray(edges[out @ side > 0.5])


@dataclass(frozen=True)
class TipAngle:
    """Result of a test.

    Attributes:
        test: its name.
        angle: rad, by the encoders of the joints; NaN where the robot is not balanced at the
            start, or its joints yield without equilibrium before it tips.
        falls: false where the joints reach their limit, `angle`, without a fall.
    """

    test: str
    angle: float
    falls: bool


@dataclass(frozen=True)
class QuasiStatic:
    """Quasi-static simulation of the tests of a protocol.

    Attributes:
        model: the robot; its masses are the default.
        cases: the tests, prepared.
        tree: the model's bodies, for the kernels.
    """

    model: RobotModel
    cases: tuple[TipCase, ...]
    tree: Tree = field(repr=False)

    @classmethod
    def from_protocol(
        cls, model: RobotModel, config: RobotConfig, protocol: TipProtocol
    ) -> "QuasiStatic":
        """Prepares the tests of a protocol.

        Args:
            model: the robot.
            config: its feet.
            protocol: with the tests.

        Raises:
            ComModelError: a joint, link or foot is not the robot's, or see make_case.
        """
        model = config.attach(model)
        for joint in protocol.compliant + sum(protocol.zero_offsets.values(), ()):
            model.joint_index(joint)
        if protocol.trunk is not None:
            model.link_index(protocol.trunk)
        cases = tuple(make_case(model, config.feet, test) for test in protocol.tests)
        return cls(model, cases, tree_of(model.bodies))

    @property
    def tests(self) -> tuple[TipTest, ...]:
        """The T tests."""
        return tuple(case.test for case in self.cases)

    def find_equilibrium(
        self,
        test: int,
        angle: float,
        errors: JointErrors | None = None,
        moment: ArrayLike | None = None,
    ) -> kernels.RockingState:
        """Computes the equilibrium with a test's joints at an angle.

        Args:
            test: its index.
            angle: rad, of the test's joints by their encoders.
            errors: of the joints; None: none.
            moment: (B, 3) kg m, first moments of the bodies; None: the URDF's.

        Raises:
            ProtocolError: the joints are too soft for an equilibrium.
        """
        case = self.cases[test]
        state = _settle(case, angle, self._robot(case, errors, moment))
        if state is None:
            raise ProtocolError(
                f"{case.test.name}: the robot collapses: its joints are too soft"
            )
        return state

    def find_tips(
        self, errors: JointErrors | None = None, moment: ArrayLike | None = None
    ) -> tuple[TipAngle, ...]:
        """Rotates the joints of each test until the robot falls, or to their limit.

        Args:
            errors: of the joints; None: none.
            moment: (B, 3) kg m, first moments of the bodies; None: the URDF's.
        """
        return tuple(
            self._first_fall(case, self._robot(case, errors, moment))
            for case in self.cases
        )

    def tip_angles(
        self, errors: JointErrors | None = None, moment: ArrayLike | None = None
    ) -> Array:
        """Returns the angles (T,) of find_tips(), rad.

        Args:
            errors: Of the joints; None: none.
            moment: (B, 3) kg m, first moments of the bodies; None: the URDF's.
        """
        return np.array([tip.angle for tip in self.find_tips(errors, moment)])

    def tip_angles_near(
        self,
        guess: ArrayLike,
        errors: JointErrors | None = None,
        moment: ArrayLike | None = None,
        only: Sequence[int] | None = None,
    ) -> Array:
        """Searches for the angles of some tests near a guess, whatever the joints' limits.

        Args:
            guess: rad, of each of these tests.
            errors: of the joints; None: none.
            moment: (B, 3) kg m, first moments of the bodies; None: the URDF's.
            only: indices of the tests; None: all.

        Returns:
            rad, of each of these tests; NaN where there is none.
        """
        cases = self.cases if only is None else [self.cases[i] for i in only]
        near = np.asarray(guess, dtype=float)
        pairs = zip(cases, near.tolist(), strict=True)
        return np.array(
            [_tip_angle(c, g, self._robot(c, errors, moment)) for c, g in pairs]
        )

    def _first_fall(self, case: TipCase, robot: kernels.TippingRobot) -> TipAngle:
        """Finds the first change of sign from 0 on, then searches near it."""
        name, limit, before = case.test.name, case.limits[case.test.turn > 0], np.nan
        # 64 angles before the search
        for angle in np.linspace(0.0, limit, 64).tolist():
            state = _settle(case, angle, robot)
            if (
                state is None
                or not kernels.edge_distance(state.com, case.soles.edges) > 0.0
            ):
                return TipAngle(
                    name,
                    np.nan if np.isnan(before) else _tip_angle(case, before, robot),
                    True,
                )
            before = angle
        return TipAngle(name, limit, False)

    def _robot(
        self, case: TipCase, errors: JointErrors | None, moment: ArrayLike | None
    ) -> kernels.TippingRobot:
        if moment is None:
            moment = self.model.bodies.first_moment
        moment = np.array(as_array("moment", moment, (self.model.bodies.count, 3)))
        if errors is None:
            errors = JointErrors(*np.zeros((3, self.model.n_joints)))
        return kernels.TippingRobot(
            self.tree, moment, case.soles, _check_errors(errors)
        )


def _settle(
    case: TipCase, angle: float, robot: kernels.TippingRobot
) -> kernels.RockingState | None:
    """The equilibrium with a test's joints at an angle, rad, if there is one."""
    encoders, n = case.start + angle * case.rate, len(case.start)
    state = kernels.RockingState(
        encoders + robot.joints.offset, np.empty(3), np.empty(n)
    )
    return state if kernels.settle(encoders, robot, state) else None


def _tip_angle(case: TipCase, guess: float, robot: kernels.TippingRobot) -> float:
    return float(kernels.find_tip_angle(case.start, case.rate, guess, robot))
