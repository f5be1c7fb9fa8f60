"""A walking session with a stabiliser, HOAP-2 on soft ground: what ccgd_gait runs, without ROS."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_control.walking.biped import Biped, sole_poses
from com_control.walking.session import WalkPhase, WalkSession
from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
from com_control.walking.velocity import VelocityWalker
from com_control.walking.walk import WalkRequest
from com_control.walking.walk_monitor import Reading, WalkChecks
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import Walker
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

PERIOD = 0.005
REQUEST = WalkRequest(
    steps=4, step_length=0.05, step_time=0.6, double_support=0.2, method="refined"
)


class Bench:
    """Simulator and session; a target is due one sample after its reading, less the servos' lag."""

    def __init__(self, fed_back, contact="soft"):
        config, model, posture, _ = shipped_robot("hoap2")
        biped = Biped.from_config(model, config)
        world = build_world(
            model, replace(config, posture=config.posture), contact=contact
        )
        self.lag = float(np.median(world.servos.damping / world.servos.stiffness))
        self.walker, self.simulation = Walker(biped), Simulation(world, PERIOD)
        stiffness = ankle_stiffness(biped, config)
        stabiliser = Stabiliser(biped, stiffness, PERIOD, PERIOD) if fed_back else None
        self.session = WalkSession(
            biped, WalkChecks(biped), approach_time=0.5, stabiliser=stabiliser
        )
        self.posture, self.sent, self.stop_at = posture, [], None
        self.lost, self.feet = False, []  # wrenches; places of the soles on the ground
        # of the IMU, of the wrenches
        self.tilt, self.zeros = np.eye(3), np.zeros((2, 6))

    def tick(self):
        now = self.simulation.advance()
        R = Rotation.from_quat(now.root_orientation).as_matrix()
        self.reading = Reading(
            now.time,
            now.position,
            np.full((2, 6), np.nan) if self.lost else now.wrenches + self.zeros,
            float(np.arccos(R[2, 2])),
            R_world_root=self.tilt @ R,
        )
        self.com = now.root_position + R @ now.com
        self.feet.append(
            sole_poses(self.walker.biped, now.position)[:, :, 3] @ R.T
            + now.root_position
        )
        self.session.update(self.reading)
        if self.session.stop_due:
            at = max(self.session.time_of(now.time), 0.0) + 0.3
            shorter = self.walker.plan_stop(self.session.walk, at)
            self.session.replace(shorter, at, now.time)
        target = self.session.target_at(now.time + PERIOD + self.lag)
        if target is not None:
            self.sent.append(target[0])
            self.simulation.lead(target[0])
        return self.session.state

    def walk(self, seconds=20.0, stop_at=None, ways=None):
        """Begins a walk and goes on until it has ended.

        Args:
            ways: (step, velocity) each, which is asked for up to that step; then 0.
        """
        for _ in range(100):
            self.tick()
        assert self.session.state is WalkPhase.READY, self.session.reason
        self.session.start_planning()
        velocity = np.zeros(3) if ways is None else np.array(ways[0][1])
        by_velocity = VelocityWalker(
            self.walker, REQUEST, find_stance(self.walker.biped, self.posture)
        )
        walk = (
            self.walker.plan(REQUEST, self.posture)
            if ways is None
            else by_velocity.begin(velocity, self.posture)
        )
        assert self.session.begin(walk, self.reading) is not None
        for _ in range(round(seconds / PERIOD)):
            state = self.tick()
            if stop_at is not None and self.session.walk_time > stop_at:
                self.session.stop("asked for")
                stop_at = None
            if ways is not None and state is WalkPhase.WALKING:
                made, at = self.session.planned_now().step, self.session.walk_time + 0.3
                velocity = next(
                    (np.array(v) for until, v in ways if made < until), np.zeros(3)
                )
                if by_velocity.due(self.session.walk, at, velocity):
                    walk = by_velocity.plan_further(self.session.walk, at, velocity)
                    assert (
                        self.session.continue_with(walk, at, self.reading.time)
                        is not None
                    )
            if state in (WalkPhase.READY, WalkPhase.REFUSED, WalkPhase.FALLEN):
                break
        return state


@pytest.mark.parametrize("sensor", ["wrench", "imu"])
def test_a_sensor_that_fails_ends_the_walk_standing(sensor):
    """With the feedback of that sensor the robot fell."""
    bench, held = Bench(fed_back=True, contact="stiff"), []
    advance = bench.simulation.advance

    def failing():
        now = advance()
        if bench.session.walk is not None and bench.session.walk_time > 1.4:
            held.append(now)
            wrenches = now.wrenches * [[10.0], [1.0]]
            if sensor == "wrench":
                return replace(now, wrenches=wrenches)
            return replace(now, root_orientation=held[0].root_orientation)
        return now

    bench.simulation.advance = failing
    assert bench.walk() is WalkPhase.READY
    assert not bench.session.outcome.completed
    words = {"wrench": "wrenches", "imu": "imu"}[sensor]
    assert words in bench.session.outcome.reason
    bench.simulation.advance = advance
    for _ in range(100):
        bench.tick()
    assert bench.reading.tilt < 0.1


@pytest.mark.exhaustive
def test_it_balances_before_and_after_a_walk_and_its_feet_do_not_creep():
    bench = Bench(fed_back=True, contact="stiff")
    for k in range(round(12.0 / PERIOD)):
        bench.tick()
        assert k < 40 or bench.session.balance is not None
    places = np.array(bench.feet[round(2.0 / PERIOD) :])
    assert np.abs(places - places[0]).max() < 0.002
    before = len(bench.sent)
    assert bench.walk() is WalkPhase.READY
    assert bench.session.outcome.completed
    for _ in range(200):
        bench.tick()
        assert bench.session.balance is not None
    model, steps = bench.walker.biped.model, np.abs(np.diff(bench.sent, axis=0))
    assert (steps <= model.velocity_limits * PERIOD * 1.01 + 1e-6).all()
    approach = steps[before : before + round(1.0 / PERIOD)]
    assert approach.max() < 0.25 * model.velocity_limits.min() * PERIOD, "nothing jumps"


@pytest.mark.exhaustive
def test_a_tilted_imu_and_zeros_of_the_force_do_not_move_the_com():
    """Each of them alone would move it by 2.5 mm: 10 mrad or 1 % of the weight, of h = 0.25 m."""
    places = []
    for error in (0.0, 0.01):
        bench = Bench(fed_back=True, contact="stiff")
        bench.tilt = Rotation.from_rotvec([-error, error, 0.0]).as_matrix()
        bench.zeros[:, :2] = 0.5 * error * bench.walker.biped.model.mass * 9.81
        for _ in range(round(12.0 / PERIOD)):
            bench.tick()
        places.append((bench.com - bench.feet[-1].mean(axis=0))[:2])
    assert np.abs(places[1] - places[0]).max() < 0.0005


def test_without_wrenches_feedback_fades_while_it_stands():
    bench = Bench(fed_back=True)
    for _ in range(200):
        bench.tick()
    bench.lost, count = True, len(bench.sent)
    for _ in range(200):
        bench.tick()
    assert bench.session.state is WalkPhase.REFUSED
    assert bench.session.balance is None
    held = bench.session._commanded.q[-1]
    assert np.abs(bench.sent[-1] - held).max() < 1e-3
    assert len(bench.sent) - count < 110, "it is sent until it has faded"
    bench.lost = False
    for _ in range(200):
        bench.tick()
    assert bench.session.state is WalkPhase.READY
    assert bench.session.balance is not None
    assert np.abs(np.diff(bench.sent, axis=0)).max() < 0.01


def test_it_may_be_told_to_stand_without():
    bench = Bench(fed_back=True)
    bench.session.balances = False
    for _ in range(200):
        bench.tick()
    assert bench.session.state is WalkPhase.READY
    assert bench.sent == []


def test_a_robot_that_falls_as_it_stands_gets_no_more():
    bench = Bench(fed_back=True)
    for _ in range(100):
        bench.tick()
    push = np.array([60.0, 0.0, 0.0])
    for k in range(400):
        bench.simulation.push(push * (k < 100))
        if bench.tick() is WalkPhase.FALLEN:
            break
    assert bench.session.state is WalkPhase.FALLEN
    assert bench.session.target_at(bench.reading.time + PERIOD) is None
    count = len(bench.sent)
    for _ in range(100):
        assert bench.tick() is WalkPhase.FALLEN
    assert len(bench.sent) == count


def test_it_walks_where_it_falls_without():
    assert Bench(fed_back=False).walk() is WalkPhase.FALLEN
    bench = Bench(fed_back=True)
    assert bench.walk() is not WalkPhase.FALLEN
    assert bench.session.outcome.completed, bench.session.outcome
    steps = np.abs(np.diff(bench.sent, axis=0))
    model = bench.session.stabiliser.biped.model
    assert (steps <= model.velocity_limits * PERIOD * 1.01 + 1e-6).all()


@pytest.mark.parametrize("stop_at", [2.6])
def test_it_stops_after_a_step(stop_at):
    bench = Bench(fed_back=True)
    assert bench.walk(stop_at=stop_at) is not WalkPhase.FALLEN
    assert bench.session.outcome.reason == "asked for"
    assert bench.session.outcome.steps < 4
    assert (
        np.abs(np.diff(bench.sent, axis=0)).max() < 0.05
    )  # rad in 5 ms: nothing jumps


@pytest.mark.exhaustive
def test_it_walks_on_by_a_velocity_turns_and_stops():
    bench = Bench(fed_back=True)
    ways = [(5, (0.05, 0.0, 0.0)), (10, (0.03, 0.0, 0.2)), (13, (0.0, 0.02, 0.0))]
    assert bench.walk(40.0, ways=ways) is WalkPhase.READY, bench.session.reason
    outcome, walk = bench.session.outcome, bench.session.walk
    assert outcome.completed, outcome
    assert 13 <= outcome.steps <= 16
    assert len(walk.plan.steps) < outcome.steps, "what is over is left out"
    last = walk.plan.steps[-1]
    middle = 0.5 * (last.position + walk.plan.steps[-2].position)
    assert middle[0] > 0.25
    assert middle[1] > 0.05
    assert 0.6 < last.yaw < 1.2
    steps = np.abs(np.diff(bench.sent, axis=0))
    model = bench.session.stabiliser.biped.model
    assert (steps <= model.velocity_limits * PERIOD * 1.01 + 1e-6).all()
    end = bench.simulation.advance()
    forward = Rotation.from_quat(end.root_orientation).as_matrix()[:, 0]
    assert np.arctan2(forward[1], forward[0]) == pytest.approx(last.yaw, abs=0.2)
