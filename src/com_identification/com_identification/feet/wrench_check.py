"""Finds what is wrong with foot wrenches that cannot be the robot's: sign, axes, unit, feet.

Readings that break a rule (the feet carry the weight, vertically, within friction and from
within the soles; the CoM that they give is near the URDF's) are corrected by each common fault in
turn; the simplest fault whose correction obeys all rules is reported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import permutations, product

import numpy as np
from scipy.linalg import block_diag

from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.settings import SensorNoise
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.robot_config import wrench_signs

_UNITS = (
    ("kilogram-force or decanewton", 9.80665, 9.80665),
    ("gram-force", 9.80665e-3, 9.80665e-3),
    ("millinewton", 1e-3, 1e-3),
    ("kilonewton", 1e3, 1e3),
    ("pound-force", 4.4482216, 4.4482216),
    ("newton, but newton millimetre", 1.0, 1e-3),
    ("newton, but newton centimetre", 1.0, 1e-2),
    ("kilogram-force and kilogram-force centimetre", 9.80665, 9.80665e-2),
)


class WrenchFault(IntEnum):
    """Kinds of faults."""

    UNKNOWN = 0  # the readings cannot be true, and no simple fault explains them
    SIGN = 1  # the force of the robot on the ground instead of the reverse
    AXES = 2  # the sensor is mounted rotated against its frame
    SWAPPED = 3  # two feet have each other's readings
    UNIT = 4  # not in N and N m
    OFFSET = 5  # a reading without load is not zero: the sensor has a bias
    IN_AIR = 6  # a foot does not stand: no fault of the sensor, but worth reporting
    WEIGHT = 7  # the feet together do not carry the robot's weight


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One fault that may be there."""

    fault: WrenchFault  # its kind
    feet: tuple[int, ...]  # indices of the feet concerned
    fix: Callable[[Array], Array]  # corrects wrenches (f, 6) as read
    text: str  # what is wrong and how to fix it, with a placeholder {feet}


def hypotheses(known: Sequence[int]) -> Iterator[Hypothesis]:
    """Generates all faults, the simplest first."""
    known = tuple(known)
    groups = [known, *((i,) for i in known if len(known) > 1)]
    for group in groups:
        text = (
            "it is the force of the robot on the ground: change the sign of {feet} "
            "(wrench.sign in the robot's configuration)"
        )
        yield Hypothesis(WrenchFault.SIGN, group, _transformed(group, _scale(-1.0, -1.0)), text)
    for i in known:
        for j in known[i + 1 :]:
            text = "{feet} have each other's readings: exchange their wrench.topic or their cables"
            yield Hypothesis(WrenchFault.SWAPPED, (i, j), _swapped(i, j), text)
    for name, force, moment in _UNITS:
        for sign in (1.0, -1.0):
            yield _unit(known, name, force, moment, sign)
    for group in groups:
        for R in _axis_rotations():
            yield _rotated(group, R)


def _unit(
    group: tuple[int, ...], name: str, force: float, moment: float, sign: float
) -> Hypothesis:
    also = " and change wrench.sign" if sign < 0.0 else ""
    text = f"its unit is {name}: convert {{feet}} to N and N m{also}"
    scale = _scale(sign * force, sign * moment)
    return Hypothesis(WrenchFault.UNIT, group, _transformed(group, scale), text)


def _rotated(group: tuple[int, ...], R: Array) -> Hypothesis:
    names = [
        ("-" if R[:, k].min() < 0.0 else "") + "xyz"[int(np.argmax(np.abs(R[:, k])))]
        for k in range(3)
    ]
    text = (
        f"the x, y and z of its sensor are along {', '.join(names)} of the frame: give {{feet}} a "
        "wrench.frame that is turned so"
    )

    fix = _transformed(group, block_diag(R, R))
    return Hypothesis(WrenchFault.AXES, group, fix, text)


def _axis_rotations() -> list[Array]:
    """The 23 rotations other than none that map axes onto axes; those about z first."""
    found = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            R = np.zeros((3, 3))
            R[order, range(3)] = signs
            if np.linalg.det(R) > 0.0 and not np.array_equal(R, np.eye(3)):
                found.append(R)
    return sorted(found, key=lambda R: (-R[2, 2], -float(np.trace(R))))


def _transformed(group: tuple[int, ...], matrix: Array) -> Callable[[Array], Array]:
    def fix(wrenches: Array) -> Array:
        corrected = wrenches.copy()
        corrected[list(group)] = wrenches[list(group)] @ matrix.T
        return corrected

    return fix


def _scale(force: float, moment: float) -> Array:
    return np.diag(np.repeat([force, moment], 3))


def _swapped(i: int, j: int) -> Callable[[Array], Array]:
    def fix(wrenches: Array) -> Array:
        corrected = wrenches.copy()
        corrected[[i, j]] = wrenches[[j, i]]
        return corrected

    return fix


_SURE = 6.0  # standard deviations
_IN_AIR = 0.02  # of the weight
_LIGHT = 0.15  # of the weight, up to which an offset may be all of a reading
_LEAN = 0.1  # rad, of all force against gravity
_SLIDE = 0.6  # rad, of one foot's force against gravity: friction 0.7
_EDGE = 0.01  # m, of the centre of pressure beyond a sole
_AS_GOOD = 0.3  # a simpler fault is preferred where its excess is larger by no more
_PLAIN = ("weight", "lean", "push")  # rules that need the mass and gravity only
_SHOWN = 3  # violations in a text


@dataclass(frozen=True)
class Violation:
    """A rule that wrenches violate."""

    rule: str  # weight, lean, push, edge or com
    excess: float  # error over what is allowed; above 1
    text: str  # what was read and what was expected
    foot: int | None = None  # index of the foot; None for all together


class WrenchRules:
    """The rules for one posture.

    Args:
        mass_tolerance: Error of the URDF's mass that is allowed, a fraction of it.
        com_std: m, horizontal standard deviation of its CoM.
    """

    def __init__(
        self,
        observations: ObservationModel,
        posture: Posture,
        mass_tolerance: float,
        com_std: float,
    ) -> None:
        self._observations = observations
        self._mass_tolerance, self._com_std = mass_tolerance, com_std
        model, statics = observations.model, observations.statics
        self.feet: tuple[Foot, ...] = observations.feet
        self.weight = model.mass * observations.gravity
        self.read = posture.wrenches
        noise, factor = observations.noise, _SURE * observations.noise.std_ratio(posture.samples)
        self._force, self._moment = factor * noise.force, factor * noise.moment
        poses = statics.poses(posture.q[None])
        links = [model.link_index(foot.wrench_frame) for foot in observations.feet]
        soles = [model.link_index(foot.frame) for foot in observations.feet]
        R, p = statics.link_frames(poses, links)
        self._R, self._p = R[0], p[0]
        R, p = statics.link_frames(poses, soles)
        self._R_sole, self._p_sole = R[0], p[0]
        self._has_sole = np.array([len(foot.corners) > 0 for foot in observations.feet])
        self._given_up = posture.up
        self._signs = wrench_signs(observations.feet)
        self._com = statics.com(poses, statics.parameters)[0]

    def violations(self, wrenches: Array) -> list[Violation]:
        """Returns the rules that wrenches (f, 6), as read, violate."""
        up = self._up(wrenches)
        forces = np.einsum("fij,fj->fi", self._R, (self._signs * wrenches)[:, :3])
        known = np.isfinite(wrenches).all(axis=1)
        found = []
        if known.all():
            found += self._totals(wrenches, forces, up)
        for i in np.flatnonzero(known):
            if np.linalg.norm(forces[i]) > _IN_AIR * self.weight + self._force:
                found += self._foot(int(i), forces[i], wrenches[i], up)
        return [each for each in found if each.excess > 1.0]

    def unloaded(self, wrenches: Array) -> list[int]:
        """Returns the feet that read next to nothing while others stand."""
        loads = np.linalg.norm(wrenches[:, :3], axis=1)
        light = loads < _IN_AIR * self.weight + self._force
        return [] if light.all() else [int(i) for i in np.flatnonzero(light)]

    def lightly_loaded(self, foot: int) -> bool:
        """Whether a foot reads so little that an offset may be all of it."""
        return bool(np.linalg.norm(self.read[foot, :3]) < _LIGHT * self.weight)

    def _up(self, wrenches: Array) -> Array:
        """Against gravity (3,): by the IMU or the loaded flat soles; NaN where not known."""
        if np.isfinite(self._given_up).all():
            return self._given_up
        flat = self._observations.contacts.loaded(wrenches) & self._has_sole
        if not flat.any():
            return np.full(3, np.nan)
        up = self._R_sole[flat][:, :, 2].sum(axis=0)
        return np.asarray(up / np.linalg.norm(up))

    def _totals(self, wrenches: Array, forces: Array, up: Array) -> list[Violation]:
        force = forces.sum(axis=0)
        size = float(np.linalg.norm(force))
        off = abs(size - self.weight) / (self._mass_tolerance * self.weight + 2.0 * self._force)
        text = (
            f"the feet carry {size:.4g} N together, the robot weighs {self.weight:.4g} N by its "
            "URDF"
        )
        found = [Violation("weight", off, text)]
        if not np.isfinite(up).all() or not size > 2.0 * self._force:
            return found
        lean = angle_between(force, up)
        text = f"their force leans {np.degrees(lean):.0f} deg against gravity"
        found.append(Violation("lean", lean / (_LEAN + 2.0 * self._force / size), text))
        far = float(np.linalg.norm(self._gap(wrenches, forces, up)))
        may = self._com_std + 2.0 * self._moment / self.weight
        text = f"they put the CoM {1e3 * far:.0f} mm beside the URDF's"
        found.append(Violation("com", far / may, text))
        return found

    def _gap(self, wrenches: Array, forces: Array, up: Array) -> Array:
        """Horizontal distance (3,) m from the URDF's CoM to the vertical by the feet."""
        moments = np.einsum("fij,fj->fi", self._R, (self._signs * wrenches)[:, 3:])
        center = self._p_sole[self._observations.contacts.loaded(wrenches)].mean(axis=0)
        moment = (moments + np.cross(self._p - center, forces)).sum(axis=0)
        push = float(forces.sum(axis=0) @ up)
        if not abs(push) > 1e-9 * self.weight:
            return np.full(3, np.inf)
        gap = center + np.cross(up, moment) / push - self._com
        return np.asarray(gap - (gap @ up) * up)

    def _foot(self, i: int, force: Array, wrench: Array, up: Array) -> list[Violation]:
        name, size = self.feet[i].frame, float(np.linalg.norm(force))
        found = []
        if np.isfinite(up).all():
            angle = angle_between(force, up)
            text = (
                f"{name} reads {size:.3g} N at {np.degrees(angle):.0f} deg against gravity, less "
                f"than {np.degrees(_SLIDE):.0f} deg was expected"
            )
            excess = angle / (_SLIDE + 2.0 * self._force / size)
            found.append(Violation("push", excess, text, i))
        if len(self.feet[i].corners):
            found += self._edge(i, force, wrench)
        return found

    def _edge(self, i: int, force: Array, wrench: Array) -> list[Violation]:
        """How far the centre of pressure is beyond the box around a sole."""
        moment = self._signs[i] * (self._R[i] @ wrench[3:])
        moment = moment + np.cross(self._p[i] - self._p_sole[i], force)
        f, m = self._R_sole[i].T @ force, self._R_sole[i].T @ moment
        if not abs(f[2]) > 0.2 * np.linalg.norm(f):
            return []
        center = np.array([-m[1], m[0]]) / f[2]
        corners = self.feet[i].corners
        beyond = np.maximum(corners.min(axis=0) - center, center - corners.max(axis=0))
        far = float(np.linalg.norm(np.maximum(beyond, 0.0)))
        text = f"the centre of pressure of {self.feet[i].frame} is {1e3 * far:.0f} mm off its sole"
        return [Violation("edge", far / (_EDGE + self._moment / abs(f[2])), text, i)]


def angle_between(a: Array, b: Array) -> float:
    """Angle between two vectors (3,), rad."""
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


@dataclass(frozen=True)
class WrenchIssue:
    """One problem of the wrenches."""

    fault: WrenchFault  # its kind
    feet: tuple[str, ...]  # names of the feet concerned
    text: str  # what was read, what was expected, how to fix it
    # whether the feet's force is not the vertical weight, and no common fault of a sensor
    # explains it: something else may carry or pull the robot
    other_force: bool = False
    off_sole: bool = False  # whether a centre of pressure is beside its sole

    def __str__(self) -> str:
        return self.text


def diagnose(
    model: RobotModel,
    feet: Sequence[Foot],
    posture: Posture,
    noise: SensorNoise | None = None,
    *,
    mass_tolerance: float = 0.1,
    com_std: float = 0.02,
    gravity: float = GRAVITY,
) -> tuple[WrenchIssue, ...]:
    """Compares a posture's wrenches with what the URDF predicts; none where they may be true.

    See the module. A foot in the air is an issue, too. What a posture does not show (feet with
    equal load may be exchanged) is not found: check more than one. The URDF's mass may be off by
    a fraction mass_tolerance, its CoM has a horizontal standard deviation of com_std, m.
    """
    if not feet or len(posture.wrenches) != len(feet):
        return ()
    rules = WrenchRules(
        ObservationModel(model, feet, noise, gravity), posture, mass_tolerance, com_std
    )
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
        likely = _likely_faults(good)
        corrected = likely[0].fix(posture.wrenches)
        return (_explained(rules, read, likely), *_in_air(rules, corrected))
    issues = _offsets(rules, read) or (_unexplained(rules, read),)
    return (*issues, *_in_air(rules, posture.wrenches))


def _worst(violations: Sequence[Violation]) -> float:
    return max((each.excess for each in violations), default=0.0)


def _in_air(rules: WrenchRules, wrenches: Array) -> tuple[WrenchIssue, ...]:
    """Feet that do not stand."""
    found = []
    for i in rules.unloaded(wrenches):
        name, load = rules.feet[i].frame, float(np.linalg.norm(wrenches[i, :3]))
        text = (
            f"{name} does not stand: it carries {load:.3g} N of the robot's {rules.weight:.4g} N. "
            "If it should, put it on the ground."
        )
        found.append(WrenchIssue(WrenchFault.IN_AIR, (name,), text))
    return tuple(found)


def _offsets(rules: WrenchRules, read: Sequence[Violation]) -> tuple[WrenchIssue, ...]:
    """Feet with little load that read what no ground can give, where that is all that is wrong."""
    feet = {each.foot for each in read}
    found = []
    for i in feet:
        if i is None or not rules.lightly_loaded(i):
            return ()
        name = rules.feet[i].frame
        text = (
            f"{name} reads {_vector(rules.read[i])} N and N m, which no ground can give to a foot "
            "with so little load: lift it into the air and tare its sensor."
        )
        found.append(WrenchIssue(WrenchFault.OFFSET, (name,), text))
    return tuple(found)


def _likely_faults(good: Sequence[tuple[float, Hypothesis]]) -> list[Hypothesis]:
    """The simplest fault that explains all, then another one that explains it as well."""
    least = min(score for score, _ in good)
    near = [(score, each) for score, each in good if score <= least + _AS_GOOD]
    found: list[Hypothesis] = []
    for fault in dict.fromkeys(each.fault for _, each in near):
        same = (pair for pair in near if pair[1].fault == fault)
        # Excess, as far as it distinguishes, then the number of feet.
        best = min(same, key=lambda pair: (round(pair[0], 1), len(pair[1].feet)))
        found.append(best[1])
    return found[:2]


def _explained(
    rules: WrenchRules, read: Sequence[Violation], likely: Sequence[Hypothesis]
) -> WrenchIssue:
    texts = []
    for each in likely:
        which = " and ".join(rules.feet[i].frame for i in each.feet)
        texts.append(f"{which}: {each.text.format(feet=which)}.")
    names = tuple(rules.feet[i].frame for i in likely[0].feet)
    text = f"{_sentence(read)}. {' Or '.join(texts)}"
    return WrenchIssue(likely[0].fault, names, text, off_sole=_off_sole(read))


def _unexplained(rules: WrenchRules, read: Sequence[Violation]) -> WrenchIssue:
    names = tuple(foot.frame for foot in rules.feet)
    if [each.rule for each in read] == ["weight"]:
        text = (
            f"{_sentence(read)}: tare the sensors with the feet in the air, see that nothing else "
            "carries the robot, and weigh it."
        )
        return WrenchIssue(WrenchFault.WEIGHT, names, text, other_force=True)
    text = (
        f"{_sentence(read)}. No wrong sign, axes, unit or exchange of feet alone explains that: "
        "tare the sensors, then check wrench.frame and wrench.sign of each foot."
    )
    other = any(each.rule in ("weight", "lean") for each in read)
    return WrenchIssue(WrenchFault.UNKNOWN, names, text, other, _off_sole(read))


def _off_sole(read: Sequence[Violation]) -> bool:
    return any(each.rule == "edge" for each in read)


def _sentence(read: Sequence[Violation]) -> str:
    texts = [each.text for each in read[:_SHOWN]]
    return "; ".join([texts[0][0].upper() + texts[0][1:], *texts[1:]])


def _vector(values: Array) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in values) + ")"
