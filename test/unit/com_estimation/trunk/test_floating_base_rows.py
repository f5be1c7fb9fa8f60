"""The floating-base filter's rows and filters, against finite differences and other solutions."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.signal import lsim

from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.floating_base.filter_types import (
    CHANNEL,
    JOINT_SIGNALS,
    STATE,
    STATES,
    FilteredMotion,
    FootForces,
)
from com_estimation.trunk.floating_base.rows import make_base_rows, set_base_rows
from com_estimation.trunk.floating_base.signals import read_motion, start_channels, update_channels

pytestmark = pytest.mark.slow

GRAVITY = 9.81


@pytest.fixture(scope="module")
def estimator(heavy_quadruped):
    model, config = heavy_quadruped
    found = FloatingBaseEstimator(model, config)
    found._model.armature[:] = 0.05 * np.arange(1, model.n_joints + 1)
    return found


class Rows:
    """set_base_rows of an estimator for a motion, as a function of the state."""

    def __init__(self, estimator, motion, root, drop=0.0):
        self.model = estimator._model._replace(radii=estimator._model.radii - drop)
        self.settings = estimator._settings
        self.motion = FilteredMotion(*motion, *root)
        self.rows = make_base_rows(self.model)
        self.known, self.noise, self.bodies = self.rows.known, self.rows.noise, self.rows.bodies
        self.forces = FootForces(*np.empty((3, 4, 3)), np.zeros(4, dtype=bool))

    def at(self, x):
        set_base_rows(self.motion, 1.0, self.model, self.settings, x, self.rows, self.forces)
        return self.rows.H.copy(), self.rows.residual.copy()

    def differences(self, x, step=1e-5):
        steps = step * np.eye(STATES)
        return np.array([self.at(x - d)[1] - self.at(x + d)[1] for d in steps]).T / (2 * step)


def some_motion(estimator, config, rng, moving=1.0):
    """Rows q, qd, qdd, tau; and angular velocity, its derivative, specific force, up."""
    model = estimator.model
    motion = moving * rng.normal(size=(4, model.n_joints))
    motion[0] = config.nominal_posture(model) + 0.1 * rng.normal(size=model.n_joints)
    motion[3] = 30.0 * rng.normal(size=model.n_joints)
    root = moving * rng.normal(size=(4, 3))
    root[2] += [0.5, -0.3, GRAVITY]
    root[3] = np.array([0.1, -0.2, 1.0]) / np.linalg.norm([0.1, -0.2, 1.0])
    return motion, root


def some_state(estimator, rng, masses=0.0):
    x = estimator._memory.x.copy()
    x[: STATE.moment.stop] *= 1.1
    x[STATE.inertia] += rng.normal(size=6)
    x[STATE.bias] = 0.1 * rng.normal(size=3)
    x[STATE.gain] = 0.02 * rng.normal(size=12)
    x[STATE.friction] = np.abs(rng.normal(size=12))
    x[STATE.leg_mass] = masses * rng.normal(size=4)
    return x


# --- rows -----------------------------------------------------------------------------------
def test_the_rows_are_linearised_right_in_every_state(estimator, heavy_quadruped):
    """Where the robot moves: all but the legs' masses, which count by their weight alone."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        rows = Rows(estimator, *some_motion(estimator, heavy_quadruped[1], rng))
        x = some_state(estimator, rng)
        H, expected = rows.at(x)[0], rows.differences(x)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            H[:, : STATE.leg_mass.start],
            expected[:, : STATE.leg_mass.start],
            rtol=1e-5,
            atol=1e-8 * scale,
        )
        assert np.abs(expected).max(axis=0).min() > 0.0  # no column is empty


def test_the_legs_masses_are_linearised_right_at_rest(estimator, heavy_quadruped):
    rng = np.random.default_rng(2)
    rows = Rows(estimator, *some_motion(estimator, heavy_quadruped[1], rng, moving=0.0))
    x = some_state(estimator, rng)
    x[STATE.bias] = 0.0
    H, expected = rows.at(x)[0], rows.differences(x)
    np.testing.assert_allclose(
        H[:, STATE.leg_mass], expected[:, STATE.leg_mass], rtol=1e-5, atol=1e-6
    )
    assert np.abs(H[:, STATE.leg_mass]).max(axis=0).min() > 10.0


class Oracle:
    """The same robot in Pinocchio, with a trunk and legs' masses of its own."""

    def __init__(self, model, legs, rng):
        self.names, self.legs = model.joint_names, legs
        self.pin = pin.buildModelFromXML(model.xml, pin.JointModelFreeFlyer())
        self.pin.gravity = pin.Motion.Zero()  # gravity is in the specific force
        self.mass, self.com = 112.0, np.array([0.04, -0.07, 0.03])
        self.inertia = np.diag([4.5, 8.0, 12.0]) + 0.3 * np.ones((3, 3))
        self.pin.inertias[1] = pin.Inertia(self.mass, self.com, self.inertia)
        self.fraction = 0.1 * rng.normal(size=4)
        for leg, fraction in zip(legs, self.fraction, strict=True):
            for joint in leg.joints:
                at = self.pin.getJointId(self.names[joint])
                old = self.pin.inertias[at]
                scaled = pin.Inertia(
                    (1 + fraction) * old.mass, old.lever, (1 + fraction) * old.inertia
                )
                self.pin.inertias[at] = scaled
        self.order = [self.pin.joints[self.pin.getJointId(n)].idx_v - 6 for n in self.names]

    def take(self, motion, root):
        """Generalised forces (6,), (n,) that the motion takes: those of the root, of the joints."""
        q = np.concatenate((np.zeros(6), [1.0], np.empty(len(self.order))))
        v, a = np.zeros(self.pin.nv), np.zeros(self.pin.nv)
        joints = 6 + np.array(self.order)
        q[1 + joints], v[joints], a[joints] = motion[:3]
        v[3:6], a[:3], a[3:6] = root[:3][[0, 2, 1]]
        self.data = self.pin.createData()
        tau = pin.rnea(self.pin, self.data, q, v, a)
        pin.computeJointJacobians(self.pin, self.data, q)
        return tau[:6], tau[joints]

    def contact(self, leg, up):
        """Lowest point of a foot in the root's frame, and its Jacobian (3, n)."""
        at = self.pin.getJointId(self.names[leg.joints[2]])
        point = self.data.oMi[at].act(leg.ball) - leg.radius * up
        J = pin.getJointJacobian(self.pin, self.data, at, pin.ReferenceFrame.WORLD)
        J = J[:3] - pin.skew(point) @ J[3:]
        return point, J[:, 6 + np.array(self.order)]

    def state(self):
        about_origin = self.inertia + self.mass * (
            self.com @ self.com * np.eye(3) - np.outer(self.com, self.com)
        )
        six = about_origin[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        return np.concatenate(([self.mass], self.mass * self.com, six))


def test_the_residual_is_nothing_at_the_truth(estimator, heavy_quadruped):
    """The whole robot by Pinocchio, with everything that falsifies sensors and model."""
    rng = np.random.default_rng(3)
    model, config = heavy_quadruped
    for _ in range(3):
        motion, root = some_motion(estimator, config, rng)
        oracle = Oracle(model, estimator.legs, rng)
        wrench, needed = oracle.take(motion, root)
        points, jacobians = zip(
            *(oracle.contact(leg, root[3]) for leg in estimator.legs), strict=True
        )
        G = np.hstack([np.vstack((np.eye(3), pin.skew(p))) for p in points])
        forces = np.linalg.pinv(G) @ wrench
        forces += (np.eye(12) - np.linalg.pinv(G) @ G) @ (100.0 * rng.normal(size=12))
        for J, f in zip(jacobians, forces.reshape(4, 3), strict=True):
            needed = needed - J.T @ f
        x = some_state(estimator, rng)
        x[: STATE.bias.start], x[STATE.leg_mass] = oracle.state(), oracle.fraction
        joints = estimator._model.leg_joints.ravel()
        direction = np.tanh(motion[1, joints] / estimator._settings.friction_speed)
        by_drive = needed + estimator._model.armature * motion[2]
        by_drive[joints] += x[STATE.friction] * direction
        motion[3, joints] = by_drive[joints] / (1.0 - x[STATE.gain])
        root[2] += x[STATE.bias]
        rows = Rows(estimator, motion, root)

        residual = rows.at(x)[1]

        np.testing.assert_allclose(residual, 0.0, atol=1e-9 * np.abs(wrench).max())
        np.testing.assert_allclose(rows.forces.force, forces.reshape(4, 3), atol=1e-7)
        np.testing.assert_allclose(rows.forces.point, points, atol=1e-12)
        other = rows.at(estimator._memory.x)[1]
        assert np.abs(other).max() > 10.0  # elsewhere it is not


def test_a_leg_without_torques_tells_the_moment_about_its_foot_alone(estimator, heavy_quadruped):
    rng = np.random.default_rng(4)
    rows = Rows(estimator, *some_motion(estimator, heavy_quadruped[1], rng))
    rows.known[1] = False
    rows.at(estimator._memory.x)
    p = rows.forces.point[1]
    A = np.vstack((np.eye(3), pin.skew(p)))
    blind = A @ np.linalg.solve(A.T @ A, A.T)
    variances, axes = np.linalg.eigh(rows.noise)
    assert variances[3] > 1e4 * variances[2]
    np.testing.assert_allclose(axes[:, 3:] @ axes[:, 3:].T, blind, atol=1e-2)
    assert np.isnan(rows.forces.force[1]).all()
    assert not rows.known[1]


def test_the_covariance_is_symmetric_and_positive(estimator, heavy_quadruped):
    rng = np.random.default_rng(5)
    rows = Rows(estimator, *some_motion(estimator, heavy_quadruped[1], rng))
    rows.at(estimator._memory.x)
    np.testing.assert_allclose(rows.noise, rows.noise.T, rtol=1e-12)
    assert np.linalg.eigvalsh(rows.noise).min() > 0.0


def test_a_straight_leg_is_as_one_without_torques(estimator, heavy_quadruped):
    rng = np.random.default_rng(6)
    motion, root = some_motion(estimator, heavy_quadruped[1], rng)
    motion[0, estimator.legs[2].joints] = 0.0
    rows = Rows(estimator, motion, root)
    rows.at(estimator._memory.x)
    assert list(rows.known) == [True, True, False, True]
    assert np.isnan(rows.forces.force[2]).all()
    assert np.isfinite(rows.noise).all()


# --- filters --------------------------------------------------------------------------------
BANDWIDTH = 150.0


def filtered(times, values):
    """Value, rate and acceleration of a joint's position after each sample, and its channel."""
    channels, signals = np.zeros(JOINT_SIGNALS + 2, CHANNEL), np.zeros(JOINT_SIGNALS + 2)
    signals[JOINT_SIGNALS] = values[0]
    start_channels(channels, signals, 0.05)
    result = [(values[0], 0.0, 0.0)]
    for dt, u in zip(np.diff(times), values[1:], strict=True):
        signals[JOINT_SIGNALS] = u
        update_channels(channels, signals, dt, BANDWIDTH, 0.05)
        motion = read_motion(channels, BANDWIDTH)
        result.append((motion.q[0], motion.qd[0], motion.qdd[0]))
    return np.array(result).T, channels[JOINT_SIGNALS]


def irregular(rng, count=400):
    return 1e-5 * np.cumsum(rng.integers(30, 400, count))


def test_the_filter_is_exact_for_lines_between_irregular_samples():
    rng = np.random.default_rng(7)
    times = irregular(rng)
    values = np.cumsum(rng.normal(size=len(times)))
    values[0] = 0.0
    fine = 1e-5 * np.arange(round(times[0] * 1e5), round(times[-1] * 1e5) + 1)
    system = [BANDWIDTH**3], np.poly([-BANDWIDTH] * 3)
    _, expected, _ = lsim(system, np.interp(fine, times, values), fine - fine[0])
    (value, _, _), _ = filtered(times, values)
    at = np.rint((times - times[0]) * 1e5).astype(int)
    np.testing.assert_allclose(value, expected[at], atol=1e-9 * np.abs(values).max())


def test_the_derivatives_are_those_of_the_filtered_value():
    """A line is followed with a lag; of a sine, each is the derivative of the one before."""
    rng = np.random.default_rng(8)
    times = irregular(rng)
    (value, rate, rise), _ = filtered(times, 3.0 * times)
    late = times > times[0] + 0.2
    np.testing.assert_allclose(value[late], 3.0 * (times[late] - 3.0 / BANDWIDTH), atol=1e-6)
    np.testing.assert_allclose(rate[late], 3.0, atol=1e-4)
    np.testing.assert_allclose(rise[late], 0.0, atol=1e-2)
    steps = 1e-4 * np.arange(6000)
    (value, rate, rise), _ = filtered(steps, np.sin(20.0 * steps))
    np.testing.assert_allclose(np.gradient(value, 1e-4)[1:-1], rate[1:-1], atol=2e-3 * 20.0)
    np.testing.assert_allclose(np.gradient(rate, 1e-4)[2:-2], rise[2:-2], atol=2e-3 * 400.0)


def test_a_channel_settles_anew_after_a_value_that_is_not_known():
    times = 0.001 * np.arange(100)
    values = np.ones(100)
    values[60:62] = np.nan
    (value, _, _), channel = filtered(times, values)
    assert channel["settling"] == pytest.approx(0.05 - 0.038)
    np.testing.assert_allclose(value, 1.0)


# --- contact --------------------------------------------------------------------------------
def test_the_contact_point_is_the_lowest_of_the_ball(estimator, heavy_quadruped):
    rng = np.random.default_rng(9)
    motion, root = some_motion(estimator, heavy_quadruped[1], rng)
    rows, centers = Rows(estimator, motion, root), Rows(estimator, motion, root, drop=0.03)
    for each in (rows, centers):
        each.at(estimator._memory.x)
    down = rows.forces.point - centers.forces.point
    np.testing.assert_allclose(down, np.tile(-0.03 * root[3], (4, 1)), atol=1e-12)
