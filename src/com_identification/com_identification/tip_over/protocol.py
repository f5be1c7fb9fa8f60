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

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from com_identification.exceptions import ProtocolError
from com_model.strict_yaml import Section, read_yaml
from com_model.text import quote

DIRECTIONS = ("front", "back", "left", "right")


@dataclass(frozen=True)
class TipTest:
    """One test: joints that turn together until the robot tips."""

    name: str  # of the move and the posture, "leg3 Back, arms_lowered"
    family: str  # of the tests of the same joints, "leg3"
    posture: str  # name of the posture that it starts from
    start: Mapping[str, float]  # joint positions by name, rad; others are at 0
    joints: tuple[str, ...]  # those that turn, all by the same angle
    opposite: tuple[str, ...]  # those that turn by as much with the other sign
    turn: int  # 1 or -1: the sign of the angle
    falls: str  # where to: front, back, left or right of the first foot's frame
    feet: tuple[str, ...]  # sole frames that stand, the weight shared evenly


@dataclass(frozen=True)
class FitParameters:
    """What a fit to the tip angles of a robot may find."""

    # joints that share a zero offset, by the offset's name
    zero_offsets: Mapping[str, tuple[str, ...]]
    compliant: tuple[str, ...]  # joints that yield under load, all with the same compliance
    trunk: str | None  # the link whose CoM may be shifted, or None


@dataclass(frozen=True)
class Protocol:
    """The tests of a robot."""

    robot: str
    # in the order of the file: the postures of the first move, of the second, ...
    tests: tuple[TipTest, ...]
    parameters: FitParameters

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "Protocol":
        """Reads a YAML file; ConfigError names the wrong key, ProtocolError: no moves."""
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
