"""Drives with limits of speed and acceleration, and joints with backlash."""

import numpy as np
import pytest

from com_simulation.exceptions import WorldError
from com_simulation.physics.servo import Drive, backlash
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

H = 0.001
SPEED, ACCELERATION = 4.76, 417.0  # 57 pulse/ms, 5 pulse/ms^2


def follow(arm, targets):
    drive = Drive(arm, SPEED, ACCELERATION)
    drive.reset(np.zeros(2))
    return np.array(
        [drive.step(np.full(2, c), H, k * H) for k, c in enumerate(targets)]
    ), drive


def test_a_jump_is_followed_as_fast_as_the_drive_can_and_stops_smoothly(arm):
    """[Cominoli] 4.5.2: 1 rad within 1 ms takes max acceleration, max speed, and a smooth stop."""
    x, drive = follow(arm, np.ones(400))
    v = np.diff(x[:, 0], prepend=0.0) / H
    assert v.max() == pytest.approx(SPEED)
    assert np.abs(np.diff(v, prepend=0.0)).max() <= ACCELERATION * H * (1 + 1e-9)
    assert x.max() <= 1.0 + 1e-12
    arrived = H * np.argmax(x[:, 0] == 1.0)
    best = 1.0 / SPEED + SPEED / ACCELERATION  # of any motion within the limits
    assert best - 2 * H < arrived < best + 5 * H
    assert drive.settled(np.ones(2))
    worst = {
        kind: text
        for (joint, kind), text in drive.excess().items()
        if joint == "shoulder"
    }
    assert (
        "shoulder: speed 1e+03 rad/s asked for at 0.000 s, limit 4.76" in worst["speed"]
    )
    assert set(worst) == {"speed", "acceleration"}


def test_what_is_within_the_limits_is_followed_exactly(arm):
    targets = 0.5 * (1.0 - np.cos(2.0 * np.pi * np.arange(1000) * H))
    x, drive = follow(arm, targets)
    np.testing.assert_allclose(x[:, 0], targets, atol=1e-12)
    assert drive.excess() == {}


def test_a_simulated_joint_keeps_the_limits(arm):
    drive = Drive(arm, 0.5, 20.0)
    simulation = Simulation(build_world(arm, base="fixed"), 0.01, drive=drive)
    simulation.advance()
    simulation.command([0.4, 0.1])
    readings = [simulation.advance() for _ in range(150)]
    assert max(abs(r.velocity[0]) for r in readings) < 0.5 * 1.2
    assert readings[-1].position[0] == pytest.approx(0.4, abs=0.01)
    assert [kind for _, kind in drive.excess()].count("speed") == 2


def test_a_reversal_passes_the_play_before_the_link_follows(arm):
    """A play operator of the joint's own width; the encoder is on the motor's side."""
    width = 0.1
    world = build_world(arm, base="fixed", edit=backlash(arm, [width, 0.0]))
    mj = world.mj
    mj.opt.gravity[:] = 0.0
    simulation = Simulation(world, 0.01)
    gap = int(mj.joint("backlash1").qposadr[0])
    motor, link = [], []
    for k in range(1600):
        simulation.command([0.3 * np.sin(2.0 * np.pi * k / 800.0), 0.0])
        reading = simulation.advance()
        motor.append(reading.position[0])
        link.append(reading.position[0] + simulation._data.qpos[gap])
    motor, link = np.array(motor)[800:], np.array(link)[800:]
    assert np.ptp(motor) - np.ptp(link) == pytest.approx(width, rel=0.15)
    up = np.gradient(motor) > 1e-4
    down = np.gradient(motor) < -1e-4
    near = np.abs(motor) < 0.03
    loop = link[near & down].mean() - link[near & up].mean()
    assert loop == pytest.approx(width, rel=0.15)


def test_limits_and_play_that_cannot_be_are_refused(arm):
    with pytest.raises(WorldError, match="above 0"):
        Drive(arm, 0.0)
    with pytest.raises(WorldError, match="0 or more"):
        backlash(arm, -0.1)
