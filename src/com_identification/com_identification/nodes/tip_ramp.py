"""Rotates the joints of a posture protocol slowly until the robot is about to tip ([Cominoli] 7.3).

Before each test the robot is lifted, by a hoist or by the operator, moved into the start posture
and put on its feet; from both it moves onto one where the protocol says how (approach, begin).
Then the test's joints rotate at ramp_speed, and the feet's sensors measure the distance of the
centre of pressure from the edge that the robot would tip over; close to it they rotate more
slowly, in particular for a tall robot. At fall_margin the joints go back as slowly as they came;
the tip angle is where a line through the last 15 mm of that distance is 0. The model's angle is
that of the URDF's CoM over the same sole, with the joint positions of the encoders.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.
    joint_states (sensor_msgs/JointState): the angles, by the encoders.
    <foot>/wrench (geometry_msgs/WrenchStamped): the names are the configuration's.

Publishes:
    joint_trajectory (trajectory_msgs/JointTrajectory)
    ~/status (std_msgs/String, latched): what it does, or what it waits for; at the end the table.

Services (std_srvs/Trigger): ~/next confirms a step, unless `automatic`; ~/stop stops the robot and
ends the protocol. With the parameter hoist it calls a std_srvs/SetBool that lifts the robot.

Parameters: see Parameters. The table that it writes is one that the command posture_protocol reads.
"""

import csv
import io
from collections.abc import Generator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from com_identification.nodes.guided_motion import (
    GuidedMotion,
    GuidedParameters,
    Script,
    TourError,
)
from com_identification.planning.feasible import GuidedRobot, time_path
from com_identification.regression.postures import sole_to_reading, wrench_transform
from com_identification.store.results import write_whole
from com_identification.tip_over import kernels
from com_identification.tip_over.protocol import TipProtocol, angles_text, read_angles
from com_identification.tip_over.quasi_static import TipCase, make_case
from com_model import RobotModel, Sesc, link_pose
from com_model.arrays import Array
from com_model.contact import SUPPORT_LOAD
from com_model.dynamics import GRAVITY
from com_model.joint_path import JointPath
from com_model.text import listing
from com_ros.conversions import NS_PER_S
from com_ros.exceptions import ParameterError
from com_ros.parameters import parameter


@dataclass(frozen=True)
class Parameters(GuidedParameters):
    """Parameters of the node; robot_config is needed."""

    protocol: str = parameter("", "path of the posture protocol (YAML); needed")
    angles: str = parameter(
        "", "path of a table (CSV) of measured angles to show beside; empty: none"
    )
    tests: tuple[str, ...] = parameter((), "names of the tests to perform; empty: all")
    output: str = parameter(
        "", "path of the table (CSV) to write, replaced; empty: none"
    )
    ramp_speed: float = parameter(0.035, "rad/s, at which the joints turn", (1e-3, 0.5))
    fall_margin: float = parameter(
        0.002,
        "m of the centre of pressure from the edge, at which the joints go back",
        (0.0, 0.01),
    )


class TipRamp(GuidedMotion[Parameters]):
    """Measures tip angles by rotating joints until the robot is about to tip.

    Args:
        options: those of RobotNode.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("tip_ramp", Parameters, **options)
        p = self.parameters
        if not p.protocol:
            raise ParameterError("protocol", "", "give the path of a YAML file")
        self._protocol = TipProtocol.from_file(p.protocol)
        names = [test.name for test in self._protocol.tests]
        self._wanted = [name for name in p.tests if name] or names
        if unknown := [name for name in self._wanted if name not in names]:
            raise ParameterError("tests", unknown[0], f"valid: {listing(names, 100)}")
        self._others = read_angles(p.angles, self._protocol) if p.angles else {}
        self._cases: list[tuple[TipCase, Array]] = []  # with the maps of wrenches
        feet, timeout = self._config.feet, "joint_timeout"
        self._wrenches = self.follow_wrenches(feet, timeout=timeout)
        self.begin_script()

    def use_model(self, model: RobotModel) -> None:
        """Prepares the tests.

        Args:
            model: with the sole frames of the configuration.

        Raises:
            ComRosError: the robot moves.
            ProtocolError: a test does not fit the robot.
        """
        super().use_model(model)
        cases = [
            make_case(model, self._config.feet, test) for test in self._protocol.tests
        ]
        self._cases = [(case, self._maps(model, case)) for case in cases]
        self._sesc, self._least_load = Sesc(model), SUPPORT_LOAD * model.mass * GRAVITY

    def _maps(self, model: RobotModel, case: TipCase) -> Array:
        """(f, 6, 6) from each sensor's ground wrench to the first standing sole; 0 for others."""
        maps = np.zeros((len(self._config.feet), 6, 6))
        frames = [foot.frame for foot in self._config.feet]
        for name, R, p in zip(
            case.test.feet, case.soles.R_ground, case.soles.p_ground, strict=True
        ):
            foot = self._config.feet[frames.index(name)]
            to_sole = foot.wrench_sign * np.linalg.inv(sole_to_reading(model, foot))
            maps[frames.index(name)] = wrench_transform(R, p) @ to_sole
        return maps

    def script(self) -> Script:
        """Performs the tests, and writes the table of tip angles."""
        state = yield from self._begin()
        found = {}
        for case, maps in self._cases:
            name = case.test.name
            if name not in self._wanted:
                continue
            yield from self._place(state, case)
            found[name] = yield from self._ramp(state, case, maps)
            angles = np.degrees(found[name])
            self._report(
                f"{name}: {angles[0]:.2f} deg, by the model {angles[1]:.2f} deg"
            )
        self._report(self._write(found))

    def _place(self, state: GuidedRobot, case: TipCase) -> Script:
        """Puts the robot on its feet in the start posture."""
        yield from self._carry(case.start, f"the start of {case.test.name}")
        yield from self._confirm(
            f"to begin {case.test.name}, on its feet; be ready to catch it"
        )
        # 0.15 rad/s, slowly, onto the feet that are in contact in the test
        slow = np.minimum(state.speeds, 0.15)
        for q, end in pairwise(case.way):
            if (q != end).any():
                yield from self._move([time_path(np.array([q, end]), slow)])
        yield from self._wait(1.0)

    def _ramp(
        self, state: GuidedRobot, case: TipCase, maps: Array
    ) -> Generator[None, None, Array]:
        """Rotates the joints; returns the angles (2,) rad at which robot and model tip.

        NaN where it does not tip before the joints' limit, or too fast.
        """
        p, limit = self.parameters, case.limits[case.test.turn > 0]
        lag = self._lag(case)
        slow = min(p.ramp_speed, max(p.fall_margin, 1e-3) / 3.0 / lag)
        end_ns = self._turn(
            case, case.test.begin, 0.0, np.copysign(p.ramp_speed, limit)
        )
        self._report(f"{case.test.name}: the joints turn")
        near, margin, fast = [], np.inf, slow < p.ramp_speed
        # m, distance from the edge within which readings determine the angle
        band = 0.015
        while self._time_ns < end_ns and margin >= p.fall_margin:
            yield
            reading = self._reading(case, maps)
            margin = reading[1]
            near += [reading] if margin < band and np.isfinite(margin) else []
            if fast and p.fall_margin <= margin < band + 2.0 * lag * p.ramp_speed:
                fast, angle = False, case.angle(self._target())
                v = np.copysign([p.ramp_speed, slow], limit)
                end_ns = self._turn(case, angle, *v)
        back = np.array([self._position(), case.start])
        yield from self._move([time_path(back, np.minimum(state.speeds, p.ramp_speed))])
        if margin >= self.parameters.fall_margin:
            self._report(f"{case.test.name}: still stands at the joints' limit")
            return np.full(2, np.nan)
        # fewer readings than five near the edge do not determine a line
        if len(near) < 5:
            self._report(
                f"{case.test.name}: {len(near)} readings before it tips: "
                "lower ramp_speed"
            )
            return np.full(2, np.nan)
        x, *margins = np.array(near).T
        slopes, offsets = np.polyfit(x, np.array(margins).T, 1)
        return np.asarray(-offsets / slopes)

    def _lag(self, case: TipCase) -> float:
        """Distance (m) that the CoM moves before it stops, for a rate of 1 rad/s about the sole.

        h sqrt(h / g) with its height h: within v sqrt(h / g) of its velocity v the ankles cannot
        stop it.
        """
        q = case.start
        R, p = link_pose(self._sesc.model, q, case.test.feet[0])
        height = float((self._sesc.com(q) - p) @ R[:, 2])
        return height * float(np.sqrt(height / GRAVITY))

    def _turn(self, case: TipCase, begin: float, before: float, v: float) -> int:
        """Rotates the joints from an angle (rad) by v (rad/s) to their limit; returns when, ns."""
        limit = case.limits[case.test.turn > 0]
        long = max(
            (limit - begin) / v, 1.0
        )  # s; half a second to the speed, and from it
        angles = np.array([begin + 0.25 * (before + v), limit - 0.25 * v, limit])
        rates, times = np.array([v, v, 0.0]), np.array([0.5, long, long + 0.5])
        turns = [np.outer(values, case.rate) for values in (angles, rates)]
        path = JointPath(times, case.start + turns[0], turns[1])
        self._publish(path)
        return self._time_ns + round(path.end * NS_PER_S)

    def _reading(self, case: TipCase, maps: Array) -> tuple[float, float, float]:
        """Angle by the encoders, rad; margins of the CoP and of the model's CoM, m."""
        wrenches, problem = self._wrenches.wrenches(self._time_ns)
        if wrenches is None:
            raise TourError(problem)
        total = np.einsum("fij,fj->i", maps, wrenches)
        q = self._position()
        angle = case.angle(q)
        if total[2] < self._least_load:
            return angle, -np.inf, np.nan
        R, p = link_pose(self._sesc.model, q, case.test.feet[0])
        points = (
            np.array([-total[4], total[3], 0.0]) / total[2],
            R.T @ (self._sesc.com(q) - p),
        )
        pressure, com = (
            float(kernels.edge_distance(x, case.soles.edges)) for x in points
        )
        return angle, pressure, com

    def _write(self, found: dict[str, Array]) -> str:
        """Writes the table; returns the tests that were performed, in degrees, as text."""
        names = [case.test.name for case, _ in self._cases]
        nothing = np.full(2, np.nan)
        measured, model = np.array([found.get(name, nothing) for name in names]).T
        columns = {"measured": measured, "model": model, **self._others}
        if self.parameters.output:
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(["test", *(f"{key}_rad" for key in columns)])
            for name, *values in zip(names, *columns.values(), strict=True):
                writer.writerow(
                    [name, *("" if np.isnan(v) else f"{v:.6f}" for v in values)]
                )
            write_whole(
                Path(self.parameters.output), text.getvalue().encode(), overwrite=True
            )
        shown = {**columns, "difference": measured - model}
        done = [name in found for name in names]
        return angles_text(
            np.array(names)[done].tolist(),
            {name: own[done] for name, own in shown.items()},
        )
