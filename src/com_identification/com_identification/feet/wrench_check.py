"""Finds faults of foot force sensors: sign, axes, unit, exchanged feet, bias.

Readings that break a rule (the feet carry the weight, vertically, within friction and from within
the soles; the CoM that they show is near the URDF's) are corrected by each common fault in turn;
the simplest fault whose correction obeys all rules is reported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import combinations, product

import numpy as np
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

from com_identification.exceptions import IdentificationError
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture, make_posture
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array, Flags
from com_model.contact import LIGHT_LOAD
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose
from com_model.geometry.rotations import angle_between
from com_model.robot_config import ground_wrenches

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
    """Kinds of faults.

    Attributes:
        UNKNOWN: the readings cannot be true, and no simple fault explains them.
        SIGN: the force of the robot on the ground instead of the reverse.
        AXES: the sensor is mounted rotated against its frame.
        SWAPPED: two feet have each other's readings.
        UNIT: not in N and N m.
        OFFSET: a reading without load is not zero: the sensor has a bias.
        IN_AIR: a foot is not in contact: no fault of the sensor, but worth reporting.
        WEIGHT: the feet together do not carry the robot's weight.
    """

    UNKNOWN = 0
    SIGN = 1
    AXES = 2
    SWAPPED = 3
    UNIT = 4
    OFFSET = 5
    IN_AIR = 6
    WEIGHT = 7


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A possible fault of the wrenches.

    Attributes:
        fault: its kind.
        feet: indices of the feet concerned.
        matrix: (6, 6) maps a wrench as read to the true one.
        text: what is wrong and how to fix it, with a placeholder {feet}.
    """

    fault: WrenchFault
    feet: tuple[int, ...]
    matrix: Array
    text: str

    def fix(self, wrenches: Array) -> Array:
        """Corrects wrenches.

        Args:
            wrenches: (f, 6) N and N m, as read.
        """
        corrected, feet = wrenches.copy(), list(self.feet)
        source = feet[::-1] if self.fault is WrenchFault.SWAPPED else feet
        corrected[feet] = wrenches[source] @ self.matrix.T
        return corrected


def hypotheses(known: Sequence[int]) -> Iterator[Hypothesis]:
    """Generates all faults, the simplest first.

    Args:
        known: indices of the feet with readings.
    """
    known = tuple(known)
    groups = [known, *((i,) for i in known if len(known) > 1)]
    for group in groups:
        yield Hypothesis(
            WrenchFault.SIGN,
            group,
            -np.eye(6),
            "it is the force of the robot on the ground: change the sign of {feet} "
            "(wrench.sign in the robot's configuration)",
        )
    for pair in combinations(known, 2):
        yield Hypothesis(
            WrenchFault.SWAPPED,
            pair,
            np.eye(6),
            "{feet} have each other's readings: exchange their wrench.topic or their cables",
        )
    for name, force, moment in _UNITS:
        for sign, also in ((1.0, ""), (-1.0, " and change wrench.sign")):
            scale = sign * np.diag(np.repeat([force, moment], 3))
            yield Hypothesis(
                WrenchFault.UNIT,
                known,
                scale,
                f"its unit is {name}: convert {{feet}} to N and N m{also}",
            )
    for group, R in product(groups, _axis_rotations()):
        axes = (
            "-" * int(c.min() < 0.0) + "xyz"[int(np.argmax(np.abs(c)))] for c in R.T
        )
        yield Hypothesis(
            WrenchFault.AXES,
            group,
            block_diag(R, R),
            f"the x, y and z of its sensor are along {', '.join(axes)} of the frame: give {{feet}} "
            "a wrench.frame that is turned so",
        )


def _axis_rotations() -> list[Array]:
    """The 23 rotations other than none that map axes onto axes; those about z first."""
    turns: list[Array] = list(Rotation.create_group("O").as_matrix().round())

    def order(R: Array) -> tuple[float, ...]:
        return -R[2, 2], -float(np.trace(R)), *np.abs(R).argmax(axis=0), *-R.sum(axis=0)

    return sorted(turns, key=order)[1:]


_PLAIN = ("weight", "lean", "push")  # rules that depend on the mass and gravity only


@dataclass(frozen=True)
class RuleViolation:
    """A rule that wrenches violate.

    Attributes:
        rule: weight, lean, push, edge or com.
        excess: error over what is allowed; above 1.
        text: what was read and what was expected.
        foot: index of the foot; None for all together.
    """

    rule: str
    excess: float
    text: str
    foot: int | None = None


class WrenchRules:
    """The rules that the wrenches of one posture must obey.

    Args:
        observations: the equations of the robot.
        posture: its readings.
        com_std: m, horizontal standard deviation of the URDF's CoM.

    Attributes:
        weight: N, of the robot by its URDF.
        light: N, force up to which a foot counts as in the air.
    """

    def __init__(
        self, observations: ObservationModel, posture: Posture, com_std: float
    ) -> None:
        self._observations, self._posture = observations, posture
        self._com_std = com_std
        model, statics, self.feet = (
            observations.model,
            observations.statics,
            observations.feet,
        )
        self.weight = model.mass * observations.gravity
        # a reading may be off by six standard deviations
        noise, factor = (
            observations.noise,
            6.0 * observations.noise.std_ratio(posture.samples),
        )
        self._force, self._moment = factor * noise.force, factor * noise.moment
        # N, up to which a foot counts as in the air: 2 % of the weight, and noise
        self.light = 0.02 * self.weight + self._force
        poses = statics.poses(posture.q[None])
        links = [model.link_index(foot.wrench_frame) for foot in self.feet]
        soles = [model.link_index(foot.frame) for foot in self.feet]
        R, p = (array[0] for array in statics.link_frames(poses, [*links, *soles]))
        (self._R, self._R_sole), (self._p, self._p_sole) = (
            np.split(R, 2),
            np.split(p, 2),
        )
        self._com = statics.com(poses, statics.parameters)[0]
        self._ups: dict[
            bytes, Array
        ] = {}  # against gravity, by the feet that carry load

    def violations(self, wrenches: Array) -> list[RuleViolation]:
        """Returns the rules that wrenches violate.

        Args:
            wrenches: (f, 6) N and N m, as read.
        """
        loaded = self._observations.contacts.loaded(wrenches)
        if (key := loaded.tobytes()) not in self._ups:
            posture = replace(self._posture, wrenches=wrenches)
            self._ups[key] = self._observations.up_direction(posture)
        up = self._ups[key]
        ground = ground_wrenches(wrenches, self.feet).reshape(-1, 2, 3)
        forces, moments = np.einsum("fij,fkj->kfi", self._R, ground)
        moments = moments + np.cross(
            self._p - self._p_sole, forces
        )  # about the soles' origins
        known = np.isfinite(wrenches).all(axis=1)
        found: list[RuleViolation] = []
        if known.all():
            found += self._totals(forces, moments, loaded, up)
        for i in np.flatnonzero(known):
            if np.linalg.norm(forces[i]) > self.light:
                found += self._foot(int(i), forces[i], moments[i], up)
        return [each for each in found if each.excess > 1.0]

    def _totals(
        self, forces: Array, moments: Array, loaded: Flags, up: Array
    ) -> Iterator[RuleViolation]:
        force = forces.sum(axis=0)
        size = float(np.linalg.norm(force))
        # a tenth of the URDF's mass may be wrong
        off = abs(size - self.weight) / (0.1 * self.weight + 2.0 * self._force)
        yield RuleViolation(
            "weight",
            off,
            f"the feet carry {size:.4g} N together, the robot weighs {self.weight:.4g} N by its "
            "URDF",
        )
        if not np.isfinite(up).all() or not size > 2.0 * self._force:
            return
        lean = angle_between(force, up)
        # 0.1 rad of all force against gravity
        yield RuleViolation(
            "lean",
            lean / (0.1 + 2.0 * self._force / size),
            f"their force leans {np.degrees(lean):.0f} deg against gravity",
        )
        center, push = self._p_sole[loaded].mean(axis=0), float(force @ up)
        moment = (moments + np.cross(self._p_sole - center, forces)).sum(axis=0)
        far = np.inf
        if abs(push) > 1e-9 * self.weight:  # to the vertical by the feet
            gap = center + np.cross(up, moment) / push - self._com
            far = float(np.linalg.norm(gap - (gap @ up) * up))
        yield RuleViolation(
            "com",
            far / (self._com_std + 2.0 * self._moment / self.weight),
            f"they put the CoM {1e3 * far:.0f} mm beside the URDF's",
        )

    def _foot(
        self, i: int, force: Array, moment: Array, up: Array
    ) -> Iterator[RuleViolation]:
        name, size = self.feet[i].frame, float(np.linalg.norm(force))
        steepest = 0.6  # rad, of one foot's force against gravity: friction 0.7
        if np.isfinite(up).all():
            angle = angle_between(force, up)
            yield RuleViolation(
                "push",
                angle / (steepest + 2.0 * self._force / size),
                f"{name} reads {size:.3g} N at {np.degrees(angle):.0f} deg against gravity, less "
                f"than {np.degrees(steepest):.0f} deg was expected",
                i,
            )
        corners = self.feet[i].corners
        f, m = self._R_sole[i].T @ force, self._R_sole[i].T @ moment
        if len(corners) and abs(f[2]) > 0.2 * size:
            center = np.array([-m[1], m[0]]) / f[2]
            beyond = np.maximum(
                corners.min(axis=0) - center, center - corners.max(axis=0)
            )
            far = float(np.linalg.norm(np.maximum(beyond, 0.0)))
            # 1 cm beyond the sole is allowed
            yield RuleViolation(
                "edge",
                far / (0.01 + self._moment / abs(f[2])),
                f"the centre of pressure of {name} is {1e3 * far:.0f} mm off its sole",
                i,
            )


@dataclass(frozen=True)
class WrenchIssue:
    """One problem of the wrenches.

    Attributes:
        fault: its kind.
        feet: names of the feet concerned.
        text: what was read, what was expected, how to fix it.
        other_force: whether the feet's force is not the vertical weight, and no common fault
            of a sensor explains it: something else may carry or pull the robot.
        off_sole: whether a centre of pressure is beside its sole.
    """

    fault: WrenchFault
    feet: tuple[str, ...]
    text: str
    other_force: bool = False
    off_sole: bool = False

    def __str__(self) -> str:
        return self.text


def diagnose(
    observations: ObservationModel, posture: Posture, *, com_std: float = 0.02
) -> tuple[WrenchIssue, ...]:
    """Compares a posture's wrenches with what the URDF predicts.

    A foot in the air is an issue too. A fault that one posture does not show (feet with equal
    load may be exchanged) is not found: check more than one. The URDF's mass may be wrong by a
    tenth.

    Args:
        observations: the equations of the robot.
        posture: its readings.
        com_std: m, horizontal standard deviation of the URDF's CoM.

    Returns:
        The issues; none where the wrenches may be true, or there are none.
    """
    if not observations.feet or len(posture.wrenches) != len(observations.feet):
        return ()
    rules = WrenchRules(observations, posture, com_std)
    read = rules.violations(posture.wrenches)
    if not read:
        return _in_air(rules, posture.wrenches)
    known = np.flatnonzero(np.isfinite(posture.wrenches).all(axis=1)).tolist()
    # Rotated or exchanged sensors of tilted legs add up to another weight by chance; a payload,
    # or a URDF without the battery, is more probable. So only a wrong unit is tried then.
    tried = [
        (rules.violations(each.fix(posture.wrenches)), each)
        for each in hypotheses(known)
        if each.fault is WrenchFault.UNIT or not _is_wrong_model(read)
    ]
    scores = [
        (max((v.excess for v in left), default=0.0), each) for left, each in tried
    ]
    good = [(score, each) for score, each in scores if score <= 1.0]
    if not good and any(each.rule in _PLAIN for each in read):
        # The sole may be larger than the configuration says, or the CoM far from the URDF's.
        plain = (
            each for left, each in tried if not any(v.rule in _PLAIN for v in left)
        )
        good = [(1.0, each) for each in plain][:1]
    if good:
        likely = _likely_faults(good)
        corrected = likely[0].fix(posture.wrenches)
        return (_explained(rules, read, likely), *_in_air(rules, corrected))
    issues = _offsets(rules, posture.wrenches, read) or (_unexplained(rules, read),)
    return (*issues, *_in_air(rules, posture.wrenches))


def _is_wrong_model(read: Sequence[RuleViolation]) -> bool:
    """Whether another mass and CoM of the robot explain all that was read."""
    rules = {each.rule for each in read}
    # the rules that readings of faultless sensors violate if the URDF is wrong
    return "weight" in rules and rules <= {"weight", "com"}


def _in_air(rules: WrenchRules, wrenches: Array) -> tuple[WrenchIssue, ...]:
    loads = np.linalg.norm(wrenches[:, :3], axis=1)
    light = loads < rules.light
    texts = {
        foot.frame: f"{foot.frame} does not stand: it carries {load:.3g} N of the robot's "
        f"{rules.weight:.4g} N. If it should, put it on the ground."
        for foot, load, low in zip(rules.feet, loads, light, strict=True)
        if low and not light.all()
    }
    return tuple(
        WrenchIssue(WrenchFault.IN_AIR, (name,), text) for name, text in texts.items()
    )


def _offsets(
    rules: WrenchRules, wrenches: Array, read: Sequence[RuleViolation]
) -> tuple[WrenchIssue, ...]:
    """Issues of feet with little load and impossible readings, where nothing else is wrong."""
    found = []
    for i in {each.foot for each in read}:
        if i is None or not np.linalg.norm(wrenches[i, :3]) < LIGHT_LOAD * rules.weight:
            return ()
        name, values = (
            rules.feet[i].frame,
            ", ".join(f"{value:.3g}" for value in wrenches[i]),
        )
        found.append(
            WrenchIssue(
                WrenchFault.OFFSET,
                (name,),
                f"{name} reads ({values}) N and N m, which no ground can give to a foot with so "
                "little load: lift it into the air and tare its sensor.",
            )
        )
    return tuple(found)


def _likely_faults(good: Sequence[tuple[float, Hypothesis]]) -> list[Hypothesis]:
    """The simplest fault that explains all, then another one that explains it as well."""
    least = min(score for score, _ in good)
    # a simpler fault is preferred where its excess is larger by no more than 0.3
    near = [(score, each) for score, each in good if score <= least + 0.3]
    found: list[Hypothesis] = []
    for fault in dict.fromkeys(each.fault for _, each in near):
        same = (pair for pair in near if pair[1].fault == fault)
        # By excess, rounded to what is significant, then by the number of feet.
        best = min(same, key=lambda pair: (round(pair[0], 1), len(pair[1].feet)))
        found.append(best[1])
    return found[:2]


def _explained(
    rules: WrenchRules, read: Sequence[RuleViolation], likely: Sequence[Hypothesis]
) -> WrenchIssue:
    texts = []
    for each in likely:
        which = " and ".join(rules.feet[i].frame for i in each.feet)
        texts.append(f"{which}: {each.text.format(feet=which)}.")
    names = tuple(rules.feet[i].frame for i in likely[0].feet)
    return WrenchIssue(
        likely[0].fault,
        names,
        f"{_sentence(read)}. {' Or '.join(texts)}",
        off_sole=_off_sole(read),
    )


def _unexplained(rules: WrenchRules, read: Sequence[RuleViolation]) -> WrenchIssue:
    names = tuple(foot.frame for foot in rules.feet)
    if _is_wrong_model(read):
        return WrenchIssue(
            WrenchFault.WEIGHT,
            names,
            f"{_sentence(read)}: tare the sensors with the feet in the air, see that nothing else "
            "carries the robot, and weigh it.",
            other_force=True,
        )
    text = (
        f"{_sentence(read)}. No wrong sign, axes, unit or exchange of feet alone explains that: "
        "tare the sensors, then check wrench.frame and wrench.sign of each foot."
    )
    other = any(each.rule in ("weight", "lean") for each in read)
    return WrenchIssue(WrenchFault.UNKNOWN, names, text, other, _off_sole(read))


def _off_sole(read: Sequence[RuleViolation]) -> bool:
    return any(each.rule == "edge" for each in read)


def _sentence(read: Sequence[RuleViolation]) -> str:
    # three violations in a text
    texts = [each.text for each in read[:3]]
    return "; ".join([texts[0][0].upper() + texts[0][1:], *texts[1:]])


_TILT = np.radians(5.0)  # of the IMU's gravity against the soles


def check_readings(
    model: RobotModel,
    config: RobotConfig,
    q: Array,
    wrenches: Array,
    acceleration: Array,
) -> tuple[list[str], list[str]]:
    """Compares means of a stationary robot's readings with gravity and its weight.

    Args:
        model: the robot.
        config: its feet and IMU.
        q: (n,) rad or m.
        wrenches: (f, 6) N and N m, as read; NaN without reading.
        acceleration: (3,) m/s^2, in the IMU's axes; NaN without IMU.

    Returns:
        What is right, and what is wrong with how to fix it, sentences.
    """
    feet, good = config.feet, []
    up = _soles_up(model, feet, q)
    bad = list(_imu_issues(model, config, q, up, acceleration))
    if np.isfinite(acceleration).all() and not bad:
        good.append("imu: it reads gravity, upwards as the soles show")
    missing = [
        foot.frame
        for foot, w in zip(feet, wrenches, strict=True)
        if not np.isfinite(w[0])
    ]
    bad += [f"feet.{name}.wrench: no readings: correct its topic" for name in missing]
    if feet and not missing:
        posture = make_posture(model, q, wrenches, up=up, samples=100)
        issues = [
            f"feet: {issue}"
            for issue in diagnose(ObservationModel(model, feet), posture)
        ]
        R = np.array([link_pose(model, q, foot.wrench_frame)[0] for foot in feet])
        forces = np.einsum("fij,fj->i", R, ground_wrenches(wrenches, feet)[:, :3])
        weight = GRAVITY * model.mass
        if not issues:
            good.append(
                f"feet: they carry {forces @ up:.4g} N of the robot's {weight:.4g} N"
            )
        bad += issues
    return good, bad


def _soles_up(model: RobotModel, feet: Sequence[Foot], q: Array) -> Array:
    """Against gravity (3,), root axes, on horizontal ground: a sole's z, or of the balls' plane."""
    soles = [foot for foot in feet if len(foot.corners)]
    try:
        return FlatStance(Statics(model), soles or feet).up_directions(q[None])[0]
    except IdentificationError:  # fewer than three balls
        return np.array([0.0, 0.0, 1.0])


def _imu_issues(
    model: RobotModel, config: RobotConfig, q: Array, up: Array, acceleration: Array
) -> Iterator[str]:
    if not np.isfinite(acceleration).all():
        if config.imu_link:
            yield "imu: no readings: correct the remapping of its topic"
        return
    size = float(np.linalg.norm(acceleration))
    # a healthy accelerometer is accurate to a tenth of g
    if abs(size - GRAVITY) > 0.1 * GRAVITY:
        yield (
            f"imu: it reads {size:.3g} m/s^2 at rest, expected {GRAVITY:.3g}: its unit must be "
            "m/s^2, with gravity in it, and the robot at rest"
        )
        return
    R = link_pose(model, q, config.imu_link or model.root_link)[0]
    angle = angle_between(R @ acceleration, up)
    if angle > np.pi - _TILT:
        yield "imu: it reads gravity downwards, expected upwards (REP 145): negate its data"
    elif angle > _TILT:
        x, y, z = (R.T @ up * GRAVITY).round(2).tolist()
        got = ", ".join(f"{value:.2f}" for value in acceleration)
        yield (
            f"imu: gravity is {np.degrees(angle):.0f} degrees off the soles' normal: in "
            f"{config.imu_link or model.root_link} it reads ({got}), expected ({x}, {y}, {z}) "
            "m/s^2 on horizontal ground: correct imu.link, or how the IMU is mounted in the URDF"
        )
