"""What changed between two identifications of a robot, with a stated rate of false alarms.

With the bodies x in prior standard deviations, the data of identification i have the information
L_i = P_i^-1 - 1 and b_i = P_i^-1 x_i, P_i being the posterior covariance: the prior, which both
share, is removed, so that a direction in which only the prior has information is neither a change
nor a proof of none. The change d = x_2 - x_1 then has, x_1 being unknown with the weak prior w,

  M = L_2 S^-1 (w + L_1),  h = b_2 - L_2 S^-1 (b_1 + b_2),  S = w + L_1 + L_2

and h ~ N(M d, M). For a change in few directions A (a body's mass, or centre of mass) d = A u,
u^T of the data is chi squared: t = h^T A (A^T M A)^-1 A^T h. The largest is taken, its directions
are projected out, and so on (like matching pursuit), until none is significant. The errors of the
sensors count as new in each recording; where they are the same in both, t is smaller, and false
alarms are rarer than stated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import (
    chdtrc,
    chdtri,
    ndtri,
)  # scipy.stats takes 30 MB and half a second

from com_identification.health.records import HealthDatabase, Record
from com_identification.regression.priors import error_unit
from com_model import RobotModel
from com_model.arrays import Array, Flags
from com_model.text import listing

FALSE_ALARMS = 0.01  # of comparisons of a robot that did not change
_VISIBLE = {
    "com": 0.05,
    "mass": 0.5,
}  # m, of the mass: a change that shows less is not judged


@dataclass(frozen=True)
class RecordChange:
    """One significant change between two identifications.

    Attributes:
        what: "com", "mass" or "sensor".
        name: of the body or of the sensor's error.
        value: m, kg, or the unit of the sensor's error; a CoM in body axes.
        std: standard deviations of the components of value.
        sigmas: of a normal distribution, as improbable as this is without a change.
        instead: bodies that explain it as well.
        unit: of a sensor's error; "": it has none, or none is known.
    """

    what: str
    name: str
    value: tuple[float, ...]
    std: tuple[float, ...]
    sigmas: float
    instead: tuple[str, ...] = ()
    unit: str = ""

    def __str__(self) -> str:
        """The change as a sentence."""
        scale = 1e3 if self.what == "com" else 1.0
        unit = {"com": " mm", "mass": " kg"}.get(self.what, f" {self.unit}".rstrip())
        axes = ("x ", "y ", "z ") if len(self.value) == 3 else ("",)
        parts = [
            f"{axis}{scale * v:+.3g} ± {scale * s:.2g}{unit}"
            for axis, v, s in zip(axes, self.value, self.std, strict=True)
        ]
        what = {"com": "CoM of ", "mass": "mass of ", "sensor": ""}[self.what]
        moved = "moved" if self.what == "com" else "changed by"
        other = (
            f"; or {listing(self.instead)}, which explains it as well"
            if self.instead
            else ""
        )
        return f"{what}{self.name} {moved} {', '.join(parts)} ({self.sigmas:.1f} sigma){other}"


@dataclass(frozen=True)
class RecordComparison:
    """Comparison of two identifications of a robot.

    Attributes:
        old: the earlier identification.
        new: the later one.
        changes: the significant ones, the clearest first.
        problem: why they cannot be compared; else empty.
        detectable: m, smallest change of each body's CoM along its best known axis that is
            found every second time; infinite where the data show none.
        tests: how many changes were looked for; the rate of false alarms is for all.
    """

    old: Record
    new: Record
    changes: tuple[RecordChange, ...] = ()
    problem: str = ""
    detectable: dict[str, float] = field(default_factory=dict)
    tests: int = 0

    def lines(self) -> list[str]:
        """Returns what changed, in sentences."""
        if self.problem:
            return [f"not compared with {self.old.taken}: {self.problem}"]
        # eight sentences
        lines = [f"since {self.old.taken}: {change}" for change in self.changes[:8]]
        more = len(self.changes) - len(lines)
        return [*lines, f"and {more} more"] if more else lines


def history(
    records: Sequence[Record], false_alarms: float = FALSE_ALARMS
) -> list[RecordComparison]:
    """Compares each identification with the first one since the last change of a body.

    Not with the one before: a body that drifts slowly would never change.

    Args:
        records: of one robot, in order of time.
        false_alarms: fraction of comparisons of an unchanged robot that may find something.
    """
    steps: list[RecordComparison] = []
    reference = records[0] if records else None
    for record in records[1:]:
        if reference is not None:
            found = compare(reference, record, false_alarms)
            steps.append(found)
            moved = any(change.what != "sensor" for change in found.changes)
            reference = record if moved or found.problem else reference
    return steps


def changes_of(record: Record, database: HealthDatabase) -> list[str]:
    """Returns what changed in an identification, in sentences; none for the first one.

    Args:
        record: the identification.
        database: the record of the robot.
    """
    steps = history(database.records(record.robot, record.serial))
    return [
        line for step in steps if step.new.key == record.key for line in step.lines()
    ]


def compare(
    old: Record, new: Record, false_alarms: float = FALSE_ALARMS
) -> RecordComparison:
    """Finds what changed from one identification to a later one.

    Args:
        old: the earlier identification.
        new: the later one.
        false_alarms: fraction of comparisons of an unchanged robot that may find something.
    """
    if old.bodies != new.bodies or old.kinematics != new.kinematics:
        return RecordComparison(old, new, problem="the URDFs' joints or frames differ")
    priors = new.priors
    used = priors.used
    if not (used == old.priors.used).all():
        return RecordComparison(
            old, new, problem="other masses or centres of mass counted as known"
        )
    sensors = list(_sensors(old, new))
    to_x = np.asarray(np.linalg.inv(priors.factor[used]), dtype=np.float64)
    M, h = _change_information(old, new, used)
    blocks = _blocks(new, used, to_x)
    detectable, level = {}, false_alarms / max(1, len(blocks) + len(sensors))
    for (what, name), (A, _) in blocks.items():
        if what == "com":
            best = float(np.linalg.eigvalsh(A.T @ M @ A).max(initial=0.0))
            least = float(np.sqrt(chdtri(3, level)))
            detectable[name] = least / np.sqrt(best) if best > 0.0 else float("inf")
    changes = _search(M, h, blocks, level)
    least = -float(ndtri(level / 2.0))
    drifted = [sensor for sensor in sensors if abs(sensor[1]) > least * sensor[2]]
    if drifted:
        model = RobotModel.from_urdf(new.urdf)
    for name, value, std in drifted:
        unit = error_unit(model, *name.split(" ", 1))
        changes.append(
            RecordChange("sensor", name, (value,), (std,), abs(value) / std, (), unit)
        )
    return RecordComparison(
        old, new, tuple(changes), "", detectable, len(blocks) + len(sensors)
    )


def _change_information(old: Record, new: Record, used: Flags) -> tuple[Array, Array]:
    """M (U, U) and h (U,), in the later one's prior standard deviations."""
    F_old, F_new = old.priors.factor[used], new.priors.factor[used]
    L1, b1 = _data(old, used, F_old)
    L2, b2 = _data(new, used, F_new)
    G = np.linalg.solve(F_old, F_new)  # x_old = G x_new + g
    g = np.linalg.solve(F_old, (new.priors.parameters - old.priors.parameters)[used])
    L1, b1 = G.T @ L1 @ G, G.T @ (b1 - L1 @ g)
    # the standard deviations of the URDF are assumed to be three times the prior's
    prior = (1.0 / 9.0) * np.eye(len(b1))
    S = cho_factor(prior + L1 + L2)
    M = L2 @ cho_solve(S, prior + L1)
    return (M + M.T) / 2.0, b2 - L2 @ cho_solve(S, b1 + b2)


def _data(record: Record, used: Flags, factor: Array) -> tuple[Array, Array]:
    """Information (U, U) of the data without the prior, and it times the estimate (U,)."""
    inverse = np.linalg.inv(factor)
    values, V = np.linalg.eigh(
        inverse @ record.covariance[np.ix_(used, used)] @ inverse.T
    )
    # of the prior's variance
    values = np.clip(values, 1e-9, 1.0)
    x = inverse @ (record.parameters - record.priors.parameters)[used]
    return (V * (1.0 / values - 1.0)) @ V.T, V @ (V.T @ x / values)


def _blocks(
    new: Record, used: Flags, to_x: Array
) -> dict[tuple[str, str], tuple[Array, float]]:
    """Directions (U, k) of changes by (what, body), and the smallest size that must be visible."""
    blocks = {}
    place = np.cumsum(used) - 1
    mass, com, *_ = new.by_body
    for k in np.flatnonzero(mass > 0.0):
        rows = np.arange(4 * k, 4 * k + 4)
        if used[rows[1:]].all():
            A = to_x[:, place[rows[1:]]] * mass[k]
            blocks["com", new.bodies[k]] = A, _VISIBLE["com"]
        if used[rows].all():
            A = to_x[:, place[rows]] @ np.append(1.0, com[k])[:, None]
            blocks["mass", new.bodies[k]] = A, _VISIBLE["mass"] * float(mass[k])
    return blocks


def _search(
    M: Array, h: Array, blocks: dict[tuple[str, str], tuple[Array, float]], level: float
) -> list[RecordChange]:
    changes: list[RecordChange] = []
    while len(changes) < len(blocks):
        tests = {key: _test(M, h, *block) for key, block in blocks.items()}
        best = min(tests, key=lambda key: tests[key][0])
        logp, basis, u, std = tests[best]
        if logp > np.log(level):
            break
        instead = [
            name
            for (what, name), (A, visible) in blocks.items()
            if name != best[1]
            and _test(*_project(M, h, tests[what, name][1]), *blocks[best])[0]
            > np.log(level)
        ]
        sigmas = (
            -float(ndtri(np.exp(logp) / 2.0))
            if logp > -600.0
            else float(np.sqrt(-2 * logp))
        )
        changes.append(
            RecordChange(
                *best, tuple(u), tuple(std), sigmas, tuple(dict.fromkeys(instead))
            )
        )
        M, h = _project(M, h, basis)
    return changes


def _test(
    M: Array, h: Array, A: Array, visible: float
) -> tuple[float, Array, Array, Array]:
    """Logarithm of the p-value, the directions (U, j) that were judged, estimate and std (k,)."""
    information = A.T @ M @ A
    values, V = np.linalg.eigh(information)
    judged = values > 1.0 / visible**2
    basis, score = A @ V[:, judged], V[:, judged].T @ (A.T @ h)
    t = float(np.sum(score**2 / values[judged]))
    with np.errstate(divide="ignore"):
        logp = float(np.log(chdtrc(judged.sum(), t))) if judged.any() else 0.0
    covariance = np.linalg.inv(information + np.eye(len(values)) / visible**2)
    return logp, basis, covariance @ (A.T @ h), np.sqrt(np.diag(covariance))


def _project(M: Array, h: Array, basis: Array) -> tuple[Array, Array]:
    """M and h when the change along some directions (U, j) is free."""
    if not basis.size:
        return M, h
    columns = M @ basis
    step = np.linalg.solve(basis.T @ columns, np.column_stack((columns.T, basis.T @ h)))
    left = M - columns @ step[:, :-1]
    return (left + left.T) / 2.0, h - columns @ step[:, -1]


def _sensors(old: Record, new: Record) -> Iterator[tuple[str, float, float]]:
    """Changes of the sensors' constant errors, with their standard deviations: name, value, std.

    With prior variance 1 and posterior variances p_1, p_2, the difference of the estimates of an
    unchanged value has the variance p_1 + p_2 - 2 p_1 p_2.
    """
    for kind, values in new.sensors.items():
        for name, (value, std, prior_std) in values.items():
            before = old.sensors.get(kind, {}).get(name)
            if before is None or before[2] != prior_std:
                continue
            p1, p2 = (before[1] / prior_std) ** 2, (std / prior_std) ** 2
            # an error whose standard deviation stays above 80 % of the prior's is not judged
            if max(p1, p2) < 0.8**2:
                spread = prior_std * float(np.sqrt(p1 + p2 - 2.0 * p1 * p2))
                yield f"{kind} {name}", value - before[0], spread


def append(where: str, record: Record) -> list[str]:
    """Adds an identification to the record of the robot.

    Args:
        where: Path or URL of the record.
        record: The identification.

    Returns:
        What changed, in sentences.
    """
    database = HealthDatabase(where, create=True)
    if not database.append(record):
        return [f"this recording is in {database.name} already"]
    return [f"added to {database.name}", *changes_of(record, database)]
