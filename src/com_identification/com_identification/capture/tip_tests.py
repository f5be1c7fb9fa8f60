"""Tip-over tests in a recording: when the robot was about to fall, and over which edge."""

from dataclasses import dataclass, field

import numpy as np

from com_bags.streams import Times
from com_identification.capture.com_evidence import tip_over_planes
from com_identification.capture.detector import StationaryInterval
from com_identification.capture.streams import NS_PER_S
from com_identification.regression.postures import ComConstraint, make_posture
from com_identification.settings import SensorNoise
from com_model import RobotModel
from com_model.arrays import Array
from com_model.strict_yaml import Section, read_yaml

_TRAVEL = 0.02  # rad or m, of a joint within a test


@dataclass(eq=False)
class _Test:
    t0_ns: int  # from the first joint state
    t1_ns: int
    constraint: ComConstraint
    readings: list[Array] = field(default_factory=list)


class TipTests:
    """Tests of a YAML file, {link, std, tests: [[start, end, edge_x, edge_y, direction, tilt]]}.

    Each test is a time, s from the first joint state, in which the robot was about to fall over the
    edge, as ComEvidence says; its posture is the mean of the joints, without forces.

    Raises:
        ConfigError: A key is missing or wrong.
    """

    def __init__(self, path: str, model: RobotModel) -> None:
        section, self._model = Section(read_yaml(path), path), model
        link = section.text("link", model.root_link, model.link_names)
        std = section.number("std", SensorNoise().known_com, 1e-6)
        rows = np.array(section.rows("tests", 6)).reshape(-1, 6)
        section.finish()
        if not len(rows) or not (rows[:, 0] < rows[:, 1]).all():
            text = "expected rows of start, end, edge_x, edge_y, direction, tilt; start before end"
            raise section.error(text, "tests")
        normals, offsets = tip_over_planes(section, "tests", *rows[:, 2:].T)
        self._tests = [
            _Test(round(a * NS_PER_S), round(b * NS_PER_S), ComConstraint(link, n, float(c), std))
            for a, b, n, c in zip(*rows[:, :2].T, normals, offsets, strict=True)
        ]
        self._origin: int | None = None

    def add(self, t_ns: Times, Q: Array) -> None:
        """Adds joint states (N, n) at (N,) stamps, ns; the first of all is the origin of time."""
        if not len(t_ns):
            return
        self._origin = int(t_ns[0]) if self._origin is None else self._origin
        for test in self._tests:
            inside = (test.t0_ns <= t_ns - self._origin) & (t_ns - self._origin <= test.t1_ns)
            test.readings += list(Q[inside & np.isfinite(Q).all(axis=1)])

    def intervals(self) -> list[StationaryInterval]:
        """Each test as a posture, or why it is none."""
        found = []
        for number, test in enumerate(self._tests, start=1):
            label, Q = f"tip-over test {number}", np.array(test.readings)
            t0, t1 = ((self._origin or 0) + time for time in (test.t0_ns, test.t1_ns))
            posture, reason = None, f"{label} has no joint states: check its times."
            if len(Q) and (travel := np.ptp(Q, axis=0)).max(initial=0.0) > _TRAVEL:
                joint = self._model.joint_names[int(travel.argmax())]
                text = f"{joint} moved by {travel.max():.3g}, more than {_TRAVEL} rad or m"
                reason = f"{label}: {text}: give the moment at which the robot tips."
            elif len(Q):
                limits, q = (test.constraint,), Q.mean(axis=0)
                posture = make_posture(
                    self._model, q, constraints=limits, samples=len(Q), label=label
                )
            reasons = () if posture is not None else (reason,)
            found.append(StationaryInterval(t0, t1, posture, reasons, label))
        return found
