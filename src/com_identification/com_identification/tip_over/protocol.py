"""A posture protocol: which joints turn, from which postures, until which edge it tips over.

[Cominoli] section 8 rotates one pair of joints of HOAP-2 slowly until it falls, in eight
directions, with the arms forward and lowered: sixteen tests. Another robot has its own protocol
as a YAML file:

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

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from com_identification.exceptions import ProtocolError
from com_model.arrays import Array
from com_model.strict_yaml import Section, read_yaml
from com_model.text import columns, quote

DIRECTIONS = ("front", "back", "left", "right")
_SUFFIX = "_rad"


@dataclass(frozen=True)
class TipTest:
    """One test: joints that rotate together until the robot tips.

    Attributes:
        name: of the move and the posture, "leg3 Back, arms_lowered".
        family: of the tests of the same joints, "leg3".
        start: joint positions by name, rad; others are at 0.
        joints: those that rotate, all by the same angle.
        opposite: those that rotate by the negative angle.
        turn: 1 or -1: the sign of the angle.
        falls: where to: front, back, left or right of the first foot's frame.
        feet: sole frames in contact, the weight distributed evenly.
        approach: how the robot gets onto these feet, joint positions by name, rad; others as
            in the start.
        begin: rad, angle with the sign of turn, from which on only these feet are in contact.
    """

    name: str
    family: str
    start: Mapping[str, float]
    joints: tuple[str, ...]
    opposite: tuple[str, ...]
    turn: int
    falls: str
    feet: tuple[str, ...]
    approach: tuple[Mapping[str, float], ...] = ()
    begin: float = 0.0


@dataclass(frozen=True)
class TipProtocol:
    """The tip-over tests of a robot.

    Attributes:
        robot: its name.
        tests: in the order of the file: the postures of the first move, of the second, ...
        zero_offsets: what a fit to the tip angles may find: joints that share an encoder bias, by
            its name.
        compliant: joints that yield under load, all with the same compliance.
        trunk: the link whose CoM may be shifted, or None.
    """

    robot: str
    tests: tuple[TipTest, ...]
    zero_offsets: Mapping[str, tuple[str, ...]]
    compliant: tuple[str, ...]
    trunk: str | None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "TipProtocol":
        """Reads a YAML file.

        Args:
            path: of the file; see the module's docstring.

        Raises:
            ConfigError: a key is missing or wrong; names it.
            ProtocolError: there are no moves.
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
        parameters = top.section("parameters")
        offsets = parameters.section("zero_offsets")
        zero_offsets = {name: offsets.names(name) for name in offsets.entries()}
        compliant, trunk = parameters.names("compliant"), parameters.text("trunk", None)
        parameters.finish()
        top.finish()
        if not tests:
            raise ProtocolError(
                f"{path}: there are no moves, so there is nothing to test"
            )
        return cls(robot, tests, MappingProxyType(zero_offsets), compliant, trunk)


def _posture(section: Section) -> Mapping[str, float]:
    return MappingProxyType(
        {joint: section.number(joint, 0.0) for joint in section.entries()}
    )


def _test(
    section: Section, move: str, posture: str, start: Mapping[str, float]
) -> TipTest:
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
    stations = section.section("approach")
    test = TipTest(
        name=f"{move}, {posture}" if posture else move,
        family=section.text("family", move),
        start=start,
        joints=joints,
        opposite=opposite,
        turn=section.sign("turn", 1),
        falls=falls,
        feet=feet,
        approach=tuple(_posture(stations.section(name)) for name in stations.entries()),
        begin=section.number("begin", 0.0, least=0.0) * section.sign("turn", 1),
    )
    section.finish()
    return test


def read_angles(
    path: str | os.PathLike[str], protocol: TipProtocol
) -> dict[str, Array]:
    """Reads a CSV file of tip angles: a column `test`, and columns `<name>_rad`.

    Args:
        path: of a CSV file.
        protocol: with the T tests.

    Returns:
        (T,) rad by name, in the order of the protocol's tests, NaN where a cell is empty.

    Raises:
        ProtocolError: a value is wrong, or a test is missing, unknown or there twice.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProtocolError(f"{path} cannot be read: {error}") from error
    if not rows or "test" not in rows[0]:
        raise ProtocolError(f"{path}: expected a column 'test' and rows below it")
    names = [test.name for test in protocol.tests]
    by_test = {row["test"]: row for row in rows}
    missing, unknown = set(names) - set(by_test), set(by_test) - set(names)
    if missing or unknown or len(by_test) < len(rows):
        problem = "a test is there twice"
        if unknown:
            problem = f"unknown tests: {', '.join(sorted(map(str, unknown)))}"
        elif missing:
            problem = f"missing tests: {', '.join(sorted(missing))}"
        raise ProtocolError(f"{path}: {problem}. The protocol has: {'; '.join(names)}")
    return {
        key.removesuffix(_SUFFIX): np.array(
            [_angle(by_test[name][key], f"{path}, {name}, {key}") for name in names]
        )
        for key in rows[0]
        if key and key.endswith(_SUFFIX)
    }


def angles_text(tests: Sequence[str], angles: Mapping[str, Array]) -> str:
    """Returns a table of tip angles, in degrees.

    Args:
        tests: T names.
        angles: (T,) rad by name.
    """
    rows = zip(tests, np.degrees(list(angles.values())).T, strict=True)
    lines = ((test, *(f"{value:.2f}" for value in own)) for test, own in rows)
    return columns(("(deg)", *angles), lines)


def _angle(text: str | None, where: str) -> float:
    """An angle; NaN for an empty cell."""
    if not (text or "").strip():
        return float("nan")
    try:
        value = float(text or "")
    except ValueError as error:
        raise ProtocolError(
            f"{where}: expected an angle in rad, got {text!r}"
        ) from error
    if not abs(value) < 10.0:
        raise ProtocolError(
            f"{where}: expected an angle in rad, got {value:g}. Are these degrees?"
        )
    return value
