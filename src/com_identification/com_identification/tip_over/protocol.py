"""A posture protocol: which joints turn, from which postures, until a robot tips over which edge.

[Cominoli] section 8 turns one pair of joints of HOAP-2 slowly until it falls, in eight directions,
with the arms forward and lowered: sixteen tests. Another robot has its own protocol as a YAML file:

  robot: hoap2                       # the name of its URDF
  postures:                          # joint positions, rad; joints without one are at 0
    arms_forward: {}
  moves:
    leg3 Back: {family: leg3, joints: [...], turn: 1, falls: back, feet: [l_sole, r_sole]}
    # where left and right axes are mirrored, `opposite: [...]` names joints that turn by -angle
  parameters:                        # what a fit may find
    zero_offsets: {hip pitch: [...]} # joints of one offset
    compliant: [...]                 # joints with one common compliance
    trunk: BODY1                     # the link whose CoM may be shifted
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from com_identification.exceptions import ProtocolError
from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.strict_yaml import Section, read_yaml
from com_model.text import listing, quote

DIRECTIONS = ("front", "back", "left", "right")
_SLACK = 1e-6  # rad: rounded limits


@dataclass(frozen=True)
class TipTest:
    """One test: joints that turn together until the robot tips.

    Attributes:
        name: Of the move and the posture, "leg3 Back, arms_lowered".
        family: Of the tests of the same joints, "leg3".
        posture: Name of the posture that it starts from.
        start: Joint positions by name, rad; others are at 0.
        joints: Those that turn, all by the same angle.
        opposite: Those that turn by as much with the other sign.
        turn: 1 or -1: the sign of the angle.
        falls: Where to: front, back, left or right of the first foot's frame.
        feet: Sole frames that stand, the weight shared evenly.
    """

    name: str
    family: str
    posture: str
    start: Mapping[str, float]
    joints: tuple[str, ...]
    opposite: tuple[str, ...]
    turn: int
    falls: str
    feet: tuple[str, ...]

    def start_position(self, model: RobotModel) -> Array:
        """Returns the joint positions (n,) that it starts from, rad."""
        q = np.zeros(model.n_joints)
        for joint, position in self.start.items():
            q[model.joint_index(joint)] = position
        return q

    def rate(self, model: RobotModel) -> Array:
        """Returns (n,) 1 for the joints that turn, -1 for those opposite, 0 for the others."""
        rate = np.zeros(model.n_joints)
        rate[[model.joint_index(joint) for joint in self.joints]] = 1.0
        rate[[model.joint_index(joint) for joint in self.opposite]] = -1.0
        return rate

    def limits(self, model: RobotModel) -> tuple[float, float]:
        """Returns the least and the largest angle that all its joints reach from the start, rad.

        Half a turn is the most.
        """
        rate = self.rate(model)
        turning = rate != 0.0
        start, rate = self.start_position(model)[turning], rate[turning]
        ends = (np.array([model.lower[turning], model.upper[turning]]) - start) * rate
        low, high = ends.min(axis=0).max(), ends.max(axis=0).min()
        return max(float(low), -np.pi), min(float(high), np.pi)


@dataclass(frozen=True)
class FitParameters:
    """What a fit to the tip angles of a robot may find.

    Attributes:
        zero_offsets: Joints that share a zero offset, by the offset's name.
        compliant: Joints that yield under load, all with the same compliance.
        trunk: The link whose CoM may be shifted, or None.
    """

    zero_offsets: Mapping[str, tuple[str, ...]]
    compliant: tuple[str, ...]
    trunk: str | None


@dataclass(frozen=True)
class Protocol:
    """The tests of a robot.

    Attributes:
        robot: Name of the robot.
        tests: In the order of the file: the postures of the first move, of the second, ...
        parameters: What a fit may find.
    """

    robot: str
    tests: tuple[TipTest, ...]
    parameters: FitParameters

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Protocol:
        """Reads a YAML file.

        Raises:
            ConfigError: The file or a key in it is wrong; names the key and what it expects.
            ProtocolError: It has no moves.
        """
        top = Section(read_yaml(path), str(path))
        robot = top.text("robot", None)
        if robot is None:
            raise top.error("is missing: give the name of the robot", "robot")
        postures, moves = top.section("postures"), top.section("moves")
        starts = {name: _posture(postures.section(name)) for name in postures.entries()}
        tests = tuple(
            _test(moves.section(move), move, name, start)
            for move in moves.entries()
            for name, start in (starts or {"": MappingProxyType({})}).items()
        )
        parameters = _parameters(top.section("parameters"))
        top.finish()
        if not tests:
            raise ProtocolError(f"{path}: there are no moves, so there is nothing to test")
        return cls(robot, tests, parameters)

    def check(self, model: RobotModel, config: RobotConfig) -> None:
        """Checks that every joint is the model's and every foot one with a sole.

        Raises:
            UnknownNameError: No such joint; lists those that there are.
            ProtocolError: No such foot, or one without corners; or a test starts with its joints
                beyond their limits.
        """
        for test in self.tests:
            low, high = test.limits(model)
            if not low - _SLACK <= 0.0 <= high + _SLACK:
                raise ProtocolError(
                    f"{test.name}: {listing(test.joints + test.opposite)} cannot be where the "
                    f"posture puts them: they would have to turn by {low:.3f} to {high:.3f} rad "
                    "to be within their limits"
                )
            soles(test, config.feet)
        joints = self.parameters.compliant + sum(self.parameters.zero_offsets.values(), ())
        for joint in joints:
            model.joint_index(joint)
        if self.parameters.trunk is not None:
            model.link_index(self.parameters.trunk)


def soles(test: TipTest, feet: tuple[Foot, ...]) -> list[Foot]:
    """Finds the feet that stand in a test.

    Raises:
        ProtocolError: No such foot, or one without corners.
    """
    known = {foot.frame: foot for foot in feet}
    for name in test.feet:
        if name not in known:
            valid = ", ".join(known) or "none"
            raise ProtocolError(f"{test.name}: no foot {name!r}; valid: {valid}")
        if len(known[name].corners) < 3:
            raise ProtocolError(f"{test.name}: foot {name!r} has no sole to tip over: give corners")
    return [known[name] for name in test.feet]


def _posture(section: Section) -> Mapping[str, float]:
    return MappingProxyType({joint: section.number(joint, 0.0) for joint in section.entries()})


def _parameters(section: Section) -> FitParameters:
    offsets = section.section("zero_offsets")
    found = FitParameters(
        MappingProxyType({name: offsets.names(name) for name in offsets.entries()}),
        section.names("compliant"),
        section.text("trunk", None),
    )
    section.finish()
    return found


def _test(section: Section, move: str, posture: str, start: Mapping[str, float]) -> TipTest:
    joints, feet = section.names("joints"), section.names("feet")
    opposite = section.names("opposite")
    if not joints + opposite:
        raise section.error("expected at least one name", "joints")
    if not feet:
        raise section.error("expected at least one name", "feet")
    if both := [joint for joint in joints if joint in opposite]:
        raise section.error(f"{quote(both[0])} is among joints, too", "opposite")
    falls = section.text("falls", None, DIRECTIONS)
    if falls is None:
        raise section.error(f"is missing: give one of {', '.join(DIRECTIONS)}", "falls")
    test = TipTest(
        name=f"{move}, {posture}" if posture else move,
        family=section.text("family", move),
        posture=posture,
        start=start,
        joints=joints,
        opposite=opposite,
        turn=section.sign("turn", 1),
        falls=falls,
        feet=feet,
    )
    section.finish()
    return test
