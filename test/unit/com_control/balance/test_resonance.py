"""How a robot rocks on its drives, and a reference that does not make it rock."""

from dataclasses import replace

import numpy as np
import pytest
from balance_lab import run

from com_control.balance.balancer import Balancer
from com_control.balance.options import BalanceOptions
from com_control.balance.resonance import Resonance, ShapedReference
from com_model import Foot, RobotModel, link_pose
from com_model.robot_config import Servo, ServoGains

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

WITHIN, SETTLED, OVERSHOOT = 0.5e-3, 1.5, 0.2  # m, s, of the first error
PLACE = np.array([0.01, 0.0, np.nan])

STICK = """
<robot name="stick">
  <link name="root">
    <inertial><origin xyz="0 0 0.2"/><mass value="4"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial>
  </link>
  <joint name="ankle_y" type="revolute"><origin xyz="0 0 -0.3"/><parent link="root"/>
    <child link="between"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="9" effort="99"/>
  </joint>
  <link name="between"/>
  <joint name="ankle_x" type="revolute"><parent link="between"/><child link="sole"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="9" effort="99"/></joint>
  <link name="sole"/>
</robot>
"""
CORNERS = np.array([[0.1, 0.05, 0], [0.1, -0.05, 0], [-0.1, -0.05, 0], [-0.1, 0.05, 0]])
HEIGHT, MASS, INERTIA = 0.5, 4.0, 0.1


def stick(stiffness, damping, options=None):
    model = RobotModel.from_urdf(STICK)
    gains = [ServoGains(k, d) for k, d in zip(stiffness, damping, strict=True)]
    servo = Servo(ServoGains(), dict(zip(model.joint_names, gains, strict=True)))
    feet = [Foot("sole", "", CORNERS[:, :2], 0.0, "wrench", "sole", 1)]
    balancer = Balancer(model, feet, np.array([0.0, 0.0, 1.0]), options, servo)
    balancer.start(np.zeros(2), np.array([0.0, 0.0, 1.0]))
    return balancer


def test_an_inverted_pendulum_on_two_springs():
    """w^2 = (K - m g h) / (m h^2 + I), 2 d w = D / (m h^2 + I)."""
    found = stick([100.0, 200.0], [3.0, 4.0]).resonance
    about_ankle = MASS * HEIGHT**2 + INERTIA
    for axis, K, D in ((0, 100.0, 3.0), (1, 200.0, 4.0)):
        w = np.sqrt((K - MASS * 9.81 * HEIGHT) / about_ankle)
        assert found.frequency[axis] == pytest.approx(w, rel=1e-3)
        assert found.damping[axis] == pytest.approx(
            D / about_ankle / (2.0 * w), rel=1e-3
        )


@pytest.mark.parametrize("stiffness", [[15.0, 200.0], [None, 200.0], [0.0, 200.0]])
def test_drives_that_cannot_hold_it_or_are_not_known_have_no_resonance(stiffness):
    balancer = stick(stiffness, [3.0, 4.0])
    assert balancer.resonance is None
    assert balancer.com_gain == 4.0


def test_what_was_measured_on_the_robot_goes_before_the_configuration():
    given = BalanceOptions(resonance=9.0, resonance_damping=0.2)
    balancer = stick([100.0, 200.0], [3.0, 4.0], given)
    assert balancer.resonance.frequency.tolist() == [9.0, 9.0]
    assert balancer.com_gain == pytest.approx(0.75 * 0.2 * 9.0)
    balancer.set_options(replace(given, com_gain=1.5))
    assert balancer.com_gain == 1.5
    balancer.set_options(BalanceOptions())
    assert balancer.resonance.frequency[0] == pytest.approx(8.548, abs=1e-3)


def rock(resonance, u, dt):
    """c (T, 2) of c'' = w^2 (u - c) - 2 d w c'."""
    w, d = resonance.frequency, resonance.damping
    c, v, places = np.zeros(2), np.zeros(2), []
    for command in u:
        v = v + (w * w * (command - c) - 2.0 * d * w * v) * dt
        c = c + v * dt
        places.append(c)
    return np.array(places)


def shaped(targets, velocities, resonance, dt):
    reference, u, commands, places = ShapedReference(), np.zeros(2), [], []
    for target, velocity in zip(targets, velocities, strict=True):
        u = u + reference.move(target, velocity, 1.0 * dt, resonance, dt) * dt
        commands.append(u)
        places.append(reference.position)
    return np.array(commands), np.array(places)


def test_the_plant_follows_a_shaped_step_without_rocking():
    resonance, dt = Resonance(np.array([13.0, 25.0]), np.array([0.1, 0.3])), 1e-4
    targets = np.tile([0.01, -0.02], (20000, 1))
    u, r = shaped(targets, 0.0 * targets, resonance, dt)
    c = rock(resonance, u, dt)
    assert np.abs(c - r).max() < 1e-4
    assert (np.abs(c).max(axis=0) < np.abs(targets[0]) * 1.005).all()
    bare = rock(resonance, targets, dt)
    assert np.abs(bare[:, 0]).max() > 0.0165  # exp(-pi d) more


def test_a_moving_target_is_followed_without_lag():
    resonance, dt = Resonance(np.full(2, 13.0), np.full(2, 0.2)), 1e-3
    time = np.arange(0.0, 3.0, dt)
    targets, velocities = (
        np.outer(time, [0.03, -0.02]),
        np.tile([0.03, -0.02], (len(time), 1)),
    )
    _, r = shaped(targets, velocities, resonance, dt)
    np.testing.assert_allclose(r[-1], targets[-1], atol=2e-5)


def test_long_pauses_and_an_unmoved_clock_do_not_make_it_swing():
    reference, resonance = (
        ShapedReference(),
        Resonance(np.full(2, 40.0), np.full(2, 0.3)),
    )
    target = np.array([0.01, 0.0])
    assert (reference.move(target, np.zeros(2), 0.0, resonance, 0.0) == 0.0).all()
    for _ in range(20):
        reference.move(target, np.zeros(2), 1.0, resonance, 0.1)
        assert -1e-12 <= reference.position[0] <= 0.01 + 1e-12
    np.testing.assert_allclose(reference.position, target, atol=1e-9)


def test_the_resonance_of_hoap2_is_that_of_its_drives(model, config, posture):
    """17 rad/s forwards in MuJoCo; the soles, which this takes as hard, make it lower."""
    R, _ = link_pose(model, posture, "l_sole")
    balancer = Balancer(model, config.feet, R[:, 2], servo=config.servo)
    balancer.start(posture, R[:, 2])
    assert 16.0 < balancer.resonance.frequency[0] < 20.0
    assert balancer.resonance.frequency[1] > 1.5 * balancer.resonance.frequency[0]


@pytest.mark.parametrize("robot", ["hoap2", "hoap3"])
def test_the_com_settles_and_hardly_overshoots(robot):
    done = run(2.5, lambda *_: (PLACE, np.zeros(3)), robot=robot)
    settled, overshoot = done.settling(WITHIN)
    assert done.error()[0] > 2e-3
    assert settled < SETTLED
    assert overshoot < OVERSHOOT
    assert done.error()[-1] < 0.05e-3  # also with HOAP-3's IMU on the chest


def test_hoap3_rocks_where_its_resonance_is_not_heeded():
    options = BalanceOptions(com_gain=4.0, resonance=1000.0)
    done = run(2.5, lambda *_: (PLACE, np.zeros(3)), options=options, robot="hoap3")
    settled, overshoot = done.settling(WITHIN)
    assert settled > SETTLED
    assert overshoot > OVERSHOOT
