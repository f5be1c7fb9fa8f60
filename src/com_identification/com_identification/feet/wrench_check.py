"""Tells what is wrong with foot wrenches that cannot be the robot's: sign, axes, unit, feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.feet.wrench_hypotheses import Hypothesis, WrenchFault, hypotheses
from com_identification.feet.wrench_rules import Violation, WrenchRules
from com_identification.regression.postures import Posture, SensorNoise
from com_identification.regression.rows import RowBuilder
from com_model import Foot, RobotModel
from com_model.arrays import Array

__all__ = ["WrenchFault", "WrenchFinding", "diagnose"]

_AS_GOOD = 0.3  # a simpler fault is preferred where its misfit is larger by no more
_PLAIN = ("weight", "lean", "push")  # rules that need the mass and gravity only
_SHOWN = 3  # violations in a text


@dataclass(frozen=True)
class WrenchFinding:
    """One thing that is wrong.

    Attributes:
        fault: Its kind.
        feet: Names of the feet concerned.
        text: What was read, what was expected, how to fix it.
        other_force: Whether the feet's force is not the weight along gravity, and no common fault
            of a sensor explains it: something else may carry or pull the robot.
    """

    fault: WrenchFault
    feet: tuple[str, ...]
    text: str
    other_force: bool = False

    def __str__(self) -> str:
        return self.text


def diagnose(
    model: RobotModel,
    feet: Sequence[Foot],
    posture: Posture,
    noise: SensorNoise | None = None,
    *,
    mass_share: float = 0.1,
    com_std: float = 0.02,
    gravity: float = 9.81,
) -> tuple[WrenchFinding, ...]:
    """Compares a posture's wrenches with what the URDF lets expect.

    True readings sum up to the weight, along gravity; each foot pushes, within friction and from
    within its sole; the CoM that they give is near the URDF's. Where one of these fails, common
    faults are tried, and the simplest that explains all is told. What a posture does not show (two
    feet that are loaded alike may be exchanged) is not found: check more than one.

    Args:
        model: The robot.
        feet: Its feet, with the signs and frames that are in doubt.
        posture: Means of readings at rest.
        noise: Of one reading.
        mass_share: How far the URDF's mass may be off, a share of it.
        com_std: m, how far its CoM may be off across gravity.
        gravity: m/s^2.

    Returns:
        What is wrong; empty where the readings may be true. A foot in the air is told too.
    """
    if not feet or len(posture.wrenches) != len(feet):
        return ()
    rules = WrenchRules(RowBuilder(model, feet, noise, gravity), posture, mass_share, com_std)
    read = rules.violations(posture.wrenches)
    if not read:
        return _in_air(rules, posture.wrenches)
    known = [i for i, row in enumerate(posture.wrenches) if np.isfinite(row).all()]
    tried = [(rules.violations(each.fix(posture.wrenches)), each) for each in hypotheses(known)]
    good = [(_worst(left), each) for left, each in tried if _worst(left) <= 1.0]
    if not good and any(each.rule in _PLAIN for each in read):
        # The sole may be larger than the configuration says, or the CoM far from the URDF's.
        plain = (each for left, each in tried if not any(v.rule in _PLAIN for v in left))
        good = [(1.0, each) for each in plain][:1]
    if good:
        likely = _likely(good)
        corrected = likely[0].fix(posture.wrenches)
        return (_explained(rules, read, likely), *_in_air(rules, corrected))
    found = _offsets(rules, read) or (_unexplained(rules, read),)
    return (*found, *_in_air(rules, posture.wrenches))


def _worst(violations: Sequence[Violation]) -> float:
    return max((each.share for each in violations), default=0.0)


def _in_air(rules: WrenchRules, wrenches: Array) -> tuple[WrenchFinding, ...]:
    """Feet that do not stand."""
    found = []
    for i in rules.unloaded(wrenches):
        name, load = rules.feet[i].frame, float(np.linalg.norm(wrenches[i, :3]))
        text = (
            f"{name} does not stand: it carries {load:.3g} N of the robot's {rules.weight:.4g} N. "
            "If it should, put it on the ground."
        )
        found.append(WrenchFinding(WrenchFault.IN_AIR, (name,), text))
    return tuple(found)


def _offsets(rules: WrenchRules, read: Sequence[Violation]) -> tuple[WrenchFinding, ...]:
    """Feet with little load that read what no ground can give, where that is all that is wrong."""
    feet = {each.foot for each in read}
    found = []
    for i in feet:
        if i is None or not rules.light(i):
            return ()
        name = rules.feet[i].frame
        text = (
            f"{name} reads {_vector(rules.read[i])} N and N m, which no ground can give to a foot "
            "with so little load: lift it into the air and tare its sensor."
        )
        found.append(WrenchFinding(WrenchFault.OFFSET, (name,), text))
    return tuple(found)


def _likely(good: Sequence[tuple[float, Hypothesis]]) -> list[Hypothesis]:
    """The simplest fault that explains all, then another one that explains it as well."""
    least = min(score for score, _ in good)
    near = [(score, each) for score, each in good if score <= least + _AS_GOOD]
    found: list[Hypothesis] = []
    for fault in dict.fromkeys(each.fault for _, each in near):
        best = min((pair for pair in near if pair[1].fault == fault), key=_simplest)
        found.append(best[1])
    return found[:2]


def _simplest(pair: tuple[float, Hypothesis]) -> tuple[float, int]:
    """Misfit, as far as it tells, then the number of feet."""
    return round(pair[0], 1), len(pair[1].feet)


def _explained(
    rules: WrenchRules, read: Sequence[Violation], likely: Sequence[Hypothesis]
) -> WrenchFinding:
    texts = []
    for each in likely:
        which = " and ".join(rules.feet[i].frame for i in each.feet)
        texts.append(f"{which}: {each.text.format(feet=which)}.")
    names = tuple(rules.feet[i].frame for i in likely[0].feet)
    return WrenchFinding(likely[0].fault, names, f"{_said(read)}. {' Or '.join(texts)}")


def _unexplained(rules: WrenchRules, read: Sequence[Violation]) -> WrenchFinding:
    names = tuple(foot.frame for foot in rules.feet)
    if [each.rule for each in read] == ["weight"]:
        text = (
            f"{_said(read)}: tare the sensors with the feet in the air, see that nothing else "
            "carries the robot, and weigh it."
        )
        return WrenchFinding(WrenchFault.WEIGHT, names, text, other_force=True)
    text = (
        f"{_said(read)}. No wrong sign, axes, unit or exchange of feet alone explains that: tare "
        "the sensors, then check wrench.frame and wrench.sign of each foot."
    )
    other = any(each.rule in ("weight", "lean") for each in read)
    return WrenchFinding(WrenchFault.UNKNOWN, names, text, other)


def _said(read: Sequence[Violation]) -> str:
    texts = [each.text for each in read[:_SHOWN]]
    return "; ".join([texts[0][0].upper() + texts[0][1:], *texts[1:]])


def _vector(values: Array) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in values) + ")"
