"""Leads a standing robot through postures and lets it rest in each."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_model import RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.parameters import check_options, parameter
from com_model.postures import time_path
from com_simulation.exceptions import ComSimulationError
from com_simulation.physics.motion import Trajectory
from com_simulation.physics.sensors import Reading
from com_simulation.physics.simulation import Simulation

TRANSFERS = ("auto", "hoist", "stand")
BEGIN = 0.5  # s, of standing in the nominal posture
SLOWEST, WATCHED = 4.0, 0.2  # s: longest wait for rest; over which that is judged
IN_AIR = 4.0  # how much faster the joints are in the air
STILL = 5e-5  # m, of the CoM's and the root's way in that time
WEIGHT_FRACTION = 0.01  # of the weight that the soles may lack
OFF_TARGET = 0.1  # rad or m
SAME_PLACE = 1e-3  # m and rad, of the feet to each other; within the accuracy of servos
STEP = 0.1  # rad or m, of the fastest joint between two points of a way


@dataclass(frozen=True)
class SequenceOptions:
    """How the robot gets from posture to posture.

    Transfer "hoist": lifted, moved in the air and put down. "stand": the soles stay where they are;
    it is lifted only after a fall, or where the legs do not reach on the way. "auto": stand where
    all postures allow it.
    """

    transfer: str = parameter(
        "auto", "how to move to the next posture", choices=TRANSFERS
    )
    speed: float = parameter(
        0.5, "rad/s or m/s of the fastest joint while standing", (0.01, 100.0)
    )
    settle: float = parameter(
        0.5, "s, minimum time between arrival and rest", (0.0, 3600.0)
    )
    rest: float = parameter(1.0, "s in each posture", (0.05, 3600.0))

    def __post_init__(self) -> None:
        check_options(self, ComSimulationError)


@dataclass(frozen=True)
class RestPeriod:
    """A rest in a posture."""

    begin: float  # s of the simulation, first reading
    end: float  # s, last reading
    problem: str  # why it is no good, empty when it is


class PostureSequence:
    """A robot on its way through postures (P, n), joint targets, rad or m.

    `transfer` is how it gets from one to the next, "hoist" or "stand". Raises ComSimulationError
    where it has no feet, its root is fixed, or its feet have to move although it is to stand.
    """

    def __init__(
        self, simulation: Simulation, postures: Array, options: SequenceOptions
    ) -> None:
        world = simulation.world
        if not (world.floating and world.feet):
            raise ComSimulationError(
                "the robot has no feet to stand on: give a configuration"
            )
        self._simulation, self._postures, self._options = simulation, postures, options
        self._stance = FlatStance(Statics(world.robot), world.feet, kept=world.posture)
        off, _ = self._stance.residuals(postures)
        planted = bool(np.abs(off).max(initial=0.0) < SAME_PLACE)
        if options.transfer == "stand" and not planted:
            raise ComSimulationError(
                "between the postures the feet move: plan postures that keep them where they are "
                "in the nominal posture, or let a hoist lift the robot"
            )
        self.transfer = options.transfer
        if self.transfer == "auto":
            self.transfer = "stand" if planted else "hoist"
        self.rests: list[RestPeriod] = []

    def readings(self) -> Iterator[Reading]:
        """Goes through all postures; gives every reading on the way."""
        yield from self._wait(BEGIN)
        now = self._simulation.world.posture
        for q in self._postures:
            ways = self._standing_ways(now, q)
            if ways:
                for way in ways:
                    yield from self._move(way, self._options.speed)
            else:
                yield from self._carry(now, q)
            yield from self._settle()
            yield from self._rest(q)
            now = q

    def _standing_ways(self, start: Array, end: Array) -> list[Array]:
        """Ways that keep the feet where they are; none where the robot is to be carried."""
        if self.transfer == "hoist" or (self.rests and self.rests[-1].problem):
            return []
        if (direct := self._way(start, end)) is not None:
            return [direct]
        stations = (start, self._simulation.world.posture, end)
        ways = [self._way(a, b) for a, b in itertools.pairwise(stations)]
        return (
            []
            if any(way is None for way in ways)
            else [w for w in ways if w is not None]
        )

    def _way(self, start: Array, end: Array) -> Array | None:
        """Points (k, n) that keep the feet in place, as straight as they can; None: there are none.

        The first and the last are the postures themselves.
        """
        count = max(int(np.ceil(np.abs(end - start).max() / STEP)), 2)
        fractions = np.linspace(0.0, 1.0, count + 1)[1:-1, None]
        between, found = self._stance.solve_all(start + fractions * (end - start))
        way = np.array([start, *between, end])
        jumps = np.abs(np.diff(way, axis=0)).max() > 3.0 * STEP
        return way if found.all() and not jumps else None

    def _carry(self, start: Array, end: Array) -> Iterator[Reading]:
        """Lifts the robot, moves its joints by way of the nominal posture, and puts it down.

        Straight ways between two postures often lead one limb through another.
        """
        yield from self._lifted(True)
        nominal = self._simulation.world.posture
        for first, last in ((start, nominal), (nominal, end)):
            yield from self._move(np.array([first, last]), IN_AIR * self._options.speed)
        yield from self._lifted(False)

    def _wait(self, seconds: float) -> Iterator[Reading]:
        for _ in range(max(1, round(seconds / self._simulation.sample_period))):
            yield self._simulation.advance()

    def _lifted(self, on: bool) -> Iterator[Reading]:
        self._simulation.set_lifted(on)
        while self._simulation.lifting:
            yield self._simulation.advance()

    def _move(self, way: Array, speed: float) -> Iterator[Reading]:
        timed = time_path(way, speed)
        joints = np.arange(way.shape[1])
        self._simulation.follow(Trajectory(joints, timed.time, timed.q, timed.qd))
        yield from self._wait(timed.end)

    def _settle(self) -> Iterator[Reading]:
        """Waits until neither the root nor the CoM moves."""
        yield from self._wait(self._options.settle)
        for _ in range(round(SLOWEST / WATCHED)):
            places = []
            for reading in self._wait(WATCHED):
                places.append(np.concatenate((reading.root_position, reading.com)))
                yield reading
            if np.ptp(places, axis=0).max() < STILL:
                return

    def _rest(self, q: Array) -> Iterator[Reading]:
        readings = []
        for reading in self._wait(self._options.rest):
            readings.append(reading)
            yield reading
        problem = find_problem(self._simulation.world.robot, readings, q)
        self.rests.append(RestPeriod(readings[0].time, readings[-1].time, problem))


def find_problem(robot: RobotModel, readings: list[Reading], q: Array) -> str:
    """Returns why a rest in a posture (n,) cannot be used, by the truth; empty if it can."""
    last = readings[-1]
    places = [
        np.concatenate((reading.root_position, reading.com)) for reading in readings
    ]
    if np.ptp(places, axis=0).max() > 10.0 * STILL:
        return "the robot moves"
    weight = last.mass * GRAVITY
    lacking = np.linalg.norm(last.foot_forces.sum(axis=0) + weight * last.gravity)
    if lacking > WEIGHT_FRACTION * weight:
        return (
            f"the soles carry {lacking / weight:.0%} of the weight too little or too much: "
            "something else touches the ground"
        )
    off = np.abs(np.mean([reading.position for reading in readings], axis=0) - q)
    if off.max() > OFF_TARGET:
        worst = int(np.argmax(off))
        return f"{robot.joint_names[worst]} is {off[worst]:.2g} off its target"
    return ""
