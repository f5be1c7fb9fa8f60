"""A walking session with a stabiliser, HOAP-2 on soft ground: what ccgd_gait runs, without ROS."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_control.walking.biped import Biped
from com_control.walking.session import State, WalkSession
from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
from com_control.walking.walk_monitor import Reading, WalkChecks
from com_control.walking.walker import Walker, WalkRequest
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

PERIOD = 0.005
REQUEST = WalkRequest(
    steps=4, step_length=0.05, step_time=0.6, double_support=0.2, method="refined"
)


class Bench:
    """Simulator and session; a target is due one sample after its reading, less the servos' lag."""

    def __init__(self, fed_back):
        config, model, posture, _ = shipped_robot("hoap2")
        biped = Biped.from_config(model, config)
        world = build_world(model, replace(config, posture=config.posture), contact="soft")
        self.lag = float(np.median(world.servos.damping / world.servos.stiffness))
        self.walker, self.simulation = Walker(biped), Simulation(world, PERIOD)
        stiffness = ankle_stiffness(biped, config)
        stabiliser = Stabiliser(biped, stiffness, PERIOD, PERIOD) if fed_back else None
        self.session = WalkSession(
            biped, WalkChecks(biped), approach_time=0.5, stabiliser=stabiliser
        )
        self.posture, self.sent, self.stop_at = posture, [], None

    def tick(self):
        now = self.simulation.advance()
        R = Rotation.from_quat(now.root_orientation).as_matrix()
        self.reading = Reading(
            now.time, now.position, now.wrenches, float(np.arccos(R[2, 2])), R_world_root=R
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

    def walk(self, seconds=20.0, stop_at=None):
        """Begins a walk and goes on until it has ended."""
        for _ in range(100):
            self.tick()
        assert self.session.state is State.READY, self.session.reason
        self.session.start_planning()
        walk = self.walker.plan(REQUEST, self.posture)
        assert self.session.begin(walk, self.reading) is not None
        for _ in range(round(seconds / PERIOD)):
            state = self.tick()
            if stop_at is not None and self.session.walk_time > stop_at:
                self.session.stop("asked for")
                stop_at = None
            if state in (State.READY, State.REFUSED, State.FALLEN):
                break
        return state


def test_it_walks_where_it_falls_without():
    assert Bench(fed_back=False).walk() is State.FALLEN
    bench = Bench(fed_back=True)
    assert bench.walk() is not State.FALLEN
    assert bench.session.outcome.completed, bench.session.outcome
    steps = np.abs(np.diff(bench.sent, axis=0))
    model = bench.session.stabiliser.biped.model
    assert (steps <= model.velocity_limits * PERIOD * 1.01 + 1e-6).all()


@pytest.mark.parametrize("stop_at", [2.6])
def test_it_stops_after_a_step(stop_at):
    bench = Bench(fed_back=True)
    assert bench.walk(stop_at=stop_at) is not State.FALLEN
    assert bench.session.outcome.reason == "asked for"
    assert bench.session.outcome.steps < 4
    assert np.abs(np.diff(bench.sent, axis=0)).max() < 0.05  # rad in 5 ms: nothing jumps
