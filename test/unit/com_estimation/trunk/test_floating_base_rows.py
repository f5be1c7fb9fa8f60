"""The floating-base filter's rows and filters, against finite differences and other solutions."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.signal import lsim

from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.floating_base import rows as rows_module
from com_estimation.trunk.floating_base.filter_types import (
    CHANNEL,
    JOINT_SIGNALS,
    STATE,
    STATES,
    TRUNK_STATES,
    FilteredMotion,
    FootForces,
)
from com_estimation.trunk.floating_base.signals import (
    FRICTION_SPEED,
    move_to_root,
    read_motion,
    start_channels,
    update_channels,
)

pytestmark = pytest.mark.slow

GRAVITY = 9.81
RATES = np.random.default_rng(32).normal(
    size=(4, 3)
)  # of change of the root's motion, 1/s
TORQUE_RATES = 50.0 * np.random.default_rng(33).normal(size=12)  # N m/s


@pytest.fixture(scope="module", autouse=True)
def plain(estimator):
    """The rows in Python: alone they take long to compile; the filter's step compiles them, too.

    That was before, with the estimator: a step cannot be compiled with them in Python.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, function in vars(rows_module).copy().items():
            if getattr(function, "__module__", "") == rows_module.__name__:
                patch.setattr(rows_module, name, getattr(function, "py_func", function))
        yield


@pytest.fixture(scope="module")
def estimator(heavy_quadruped):
    model, config = heavy_quadruped
    found = FloatingBaseEstimator(model, config)
    found._model.armature[:] = 0.05 * np.arange(1, model.n_joints + 1)
    return found


class Rows:
    """set_rows of an estimator for a motion, as a function of the state."""

    def __init__(self, estimator, motion, root, drop=0.0):
        self.model = estimator._model._replace(radii=estimator._model.radii - drop)
        self.settings = estimator._settings
        direction = np.tanh(motion[1] / FRICTION_SPEED)
        rates = TORQUE_RATES[: len(direction)]
        self.motion = FilteredMotion(
            *motion[:3], direction, motion[3], rates, *root, RATES
        )
        self.rows = rows_module.make_rows(self.model)
        self.known, self.noise = self.rows.known, self.rows.noise
        self.forces = FootForces(*np.empty((3, 4, 3)), np.zeros(4, dtype=bool))

    def at(self, x):
        rows_module.set_rows(
            self.motion, 1.0, self.model, self.settings, x, self.rows, self.forces
        )
        return self.rows.H.copy(), self.rows.residual.copy()

    def of_joints(self, x):
        """Rows (12, STATES) of the legs' joints, and their residuals (12,) at no error."""
        self.at(x)
        return self.rows.joint_rows.reshape(
            12, STATES
        ).copy(), self.rows.legs.residual.ravel()


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


# --- rows -----------------------------------------------------------------------------------
class Oracle:
    """The same robot in Pinocchio, with a trunk and links' masses of its own."""

    def __init__(self, model, legs, rng):
        self.names, self.legs = model.joint_names, legs
        self.pin = pin.buildModelFromXML(model.xml, pin.JointModelFreeFlyer())
        self.pin.gravity = pin.Motion.Zero()  # gravity is in the specific force
        self.mass, self.com = 112.0, np.array([0.04, -0.07, 0.03])
        self.inertia = np.diag([4.5, 8.0, 12.0]) + 0.3 * np.ones((3, 3))
        self.pin.inertias[1] = pin.Inertia(self.mass, self.com, self.inertia)
        self.urdf = [inertia.copy() for inertia in self.pin.inertias]
        self.hips = [p.translation.copy() for p in self.pin.jointPlacements]
        self.order = [
            self.pin.joints[self.pin.getJointId(n)].idx_v - 6 for n in self.names
        ]

    def weigh(self, factors):
        """Give the legs' links other masses: 1 + factors (12,) times the URDF's."""
        joints = [joint for leg in self.legs for joint in leg.joints]
        for joint, factor in zip(joints, factors, strict=True):
            at = self.pin.getJointId(self.names[joint])
            old = self.urdf[at]
            self.pin.inertias[at] = pin.Inertia(
                (1 + factor) * old.mass, old.lever, (1 + factor) * old.inertia
            )

    def move(self, hips):
        """Puts the hips of each diagonal elsewhere: less (2, 2) m along x and y than the URDF."""
        for leg, shift in zip(self.legs, hips[[0, 1, 1, 0]], strict=True):
            at = self.pin.getJointId(self.names[leg.joints[0]])
            self.pin.jointPlacements[at].translation = self.hips[at] - [*shift, 0.0]

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


def measured(estimator, oracle, motion, root, x, foot=100.0):
    """What a robot with the errors in x reads of a true motion; and the feet's true forces.

    Args:
        foot: N, size of the forces within the legs that the motion leaves open; 0: no contact, and
            the root's wrench comes from elsewhere.
    """
    motion, root = motion.copy(), root.copy()
    oracle.weigh(x[STATE.link])
    oracle.move(x[STATE.hip].reshape(2, 2))
    wrench, needed = oracle.take(motion, root)
    forces = np.zeros(12)
    if foot:
        points, jacobians = zip(
            *(oracle.contact(leg, root[3]) for leg in estimator.legs), strict=True
        )
        G = np.hstack([np.vstack((np.eye(3), pin.skew(p))) for p in points])
        forces = np.linalg.pinv(G) @ wrench
        forces += (np.eye(12) - np.linalg.pinv(G) @ G) @ (foot * estimator_noise(12))
        for J, f in zip(jacobians, forces.reshape(4, 3), strict=True):
            needed = needed - J.T @ f
    joints = estimator._model.leg_joints.ravel()
    tau = needed + estimator._model.armature * motion[2]
    direction = np.tanh(motion[1, joints] / FRICTION_SPEED)
    tau[joints] = (1.0 + x[STATE.gain]) * tau[joints] + x[STATE.torque_bias]
    tau[joints] += x[STATE.coulomb] * direction + x[STATE.viscous] * motion[1, joints]
    tau[joints] += x[STATE.rotor] * motion[2, joints]
    # of the reported torque
    tau[joints] /= 1.0 - np.tile(x[STATE.load], 4) * direction * np.sign(tau[joints])
    tau -= x[STATE.late] * TORQUE_RATES
    motion[3] = tau
    motion[0, joints] += x[STATE.zero]
    omega, omega_dot = root[0], root[1]
    root[2] += np.cross(omega_dot, x[STATE.arm]) + np.cross(
        omega, np.cross(omega, x[STATE.arm])
    )
    R = estimator._R_root_imu
    root[2] += R @ (x[STATE.scale] * (R.T @ root[2]))
    root = root - np.cross(x[STATE.tilt], root)  # true = measured + tilt x measured
    root = root - x[STATE.delay] * RATES
    root[2] += x[STATE.bias]
    return motion, root, forces.reshape(4, 3)


def estimator_noise(count):
    return np.random.default_rng(31).normal(size=count)


def test_the_residual_is_nothing_at_the_truth(estimator, heavy_quadruped):
    """The whole robot by Pinocchio."""
    rng = np.random.default_rng(3)
    model, config = heavy_quadruped
    for _ in range(3):
        motion, root = some_motion(estimator, config, rng)
        oracle = Oracle(model, estimator.legs, rng)
        x = np.zeros(STATES)
        x[:TRUNK_STATES] = oracle.state()
        motion, root, forces = measured(estimator, oracle, motion, root, x)
        rows = Rows(estimator, motion, root)

        residual = rows.at(x)[1]

        np.testing.assert_allclose(residual, 0.0, atol=1e-8 * np.abs(motion[3]).max())
        np.testing.assert_allclose(rows.forces.force, forces, atol=1e-6)
        other = rows.at(estimator._memory.x)[1]
        assert np.abs(other).max() > 10.0  # elsewhere it is not


@pytest.mark.parametrize("name", STATE._fields)
def test_the_columns_are_what_an_error_does_to_the_readings(
    estimator, heavy_quadruped, name
):
    """Each error at its place, by Pinocchio, against the column; base rows and a leg in the air."""
    rng = np.random.default_rng(4)
    model, config = heavy_quadruped
    motion, root = some_motion(estimator, config, rng)
    oracle = Oracle(model, estimator.legs, rng)
    truth = np.zeros(STATES)
    truth[:TRUNK_STATES] = oracle.state()
    block, step = getattr(STATE, name), 1e-4
    for state in range(block.start, block.stop):
        change = np.zeros(STATES)
        change[state] = step * (truth[state] if name == "mass" else 1.0)
        if block.stop <= TRUNK_STATES:  # the trunk is linear
            rows = Rows(
                estimator, *measured(estimator, oracle, motion, root, truth)[:2]
            )
            expected = rows.at(truth - change)[1] - rows.at(truth)[1]
            np.testing.assert_allclose(rows.at(truth)[0] @ change, expected, atol=1e-9)
            continue
        columns, differences = [], []
        for foot in (100.0, 0.0):
            found = []
            for sign in (1.0, -1.0):
                x = truth + sign * change
                readings = measured(estimator, oracle, motion, root, x, foot)
                rows = Rows(estimator, *readings[:2])
                found.append(
                    rows.at(truth)[1] if foot else rows.of_joints(truth)[1].copy()
                )
            differences.append((found[0] - found[1]) / (2.0 * step))
            rows = Rows(
                estimator, *measured(estimator, oracle, motion, root, truth, foot)[:2]
            )
            H = rows.at(truth)[0] if foot else rows.of_joints(truth)[0]
            columns.append(H[:, state])
        for column, difference in zip(columns, differences, strict=True):
            scale = max(np.abs(difference).max(), 1.0)
            np.testing.assert_allclose(column, difference, atol=3e-5 * scale)
        assert np.abs(np.concatenate(columns)).max() > 0.0


def test_a_leg_without_torques_tells_the_moment_about_its_foot_alone(
    estimator, heavy_quadruped
):
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
    assert np.isfinite(rows.rows.H).all()


# --- filters --------------------------------------------------------------------------------
BANDWIDTH = 150.0


def filtered(times, values):
    """Value, rate, acceleration, direction of a joint after each sample, and its channel."""
    channels, signals = (
        np.zeros(JOINT_SIGNALS + 2, CHANNEL),
        np.zeros(JOINT_SIGNALS + 2),
    )
    signals[JOINT_SIGNALS] = values[0]
    start_channels(channels, signals, 0.05)
    result = [(values[0], 0.0, 0.0, 0.0)]
    for dt, u in zip(np.diff(times), values[1:], strict=True):
        signals[JOINT_SIGNALS] = u
        update_channels(channels, signals, dt, BANDWIDTH, 0.05)
        motion = read_motion(channels, BANDWIDTH, 0.0)
        result.append((motion.q[0], motion.qd[0], motion.qdd[0], motion.direction[0]))
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
    (value, _, _, _), _ = filtered(times, values)
    at = np.rint((times - times[0]) * 1e5).astype(int)
    np.testing.assert_allclose(value, expected[at], atol=1e-9 * np.abs(values).max())


def test_the_direction_is_that_of_friction_after_the_filter():
    """The torque of dry friction goes through the filter; the tanh of the filtered rate is not."""
    times = 1e-3 * np.arange(2000)
    position = 0.05 * np.sin(12.0 * times)
    friction = np.sign(np.cos(12.0 * times))
    _, expected, _ = lsim(([BANDWIDTH**3], np.poly([-BANDWIDTH] * 3)), friction, times)
    (_, rate, _, direction), _ = filtered(times, position)
    late = times > 0.3
    assert np.abs(direction - expected)[late].max() < 0.25
    sudden = np.tanh(rate / FRICTION_SPEED)
    error, before = (np.std((each - expected)[late]) for each in (direction, sudden))
    assert error < 0.5 * before


def test_the_derivatives_are_those_of_the_filtered_value():
    """A line is followed with a lag; of a sine, each is the derivative of the one before."""
    rng = np.random.default_rng(8)
    times = irregular(rng)
    (value, rate, rise, _), _ = filtered(times, 3.0 * times)
    late = times > times[0] + 0.2
    np.testing.assert_allclose(
        value[late], 3.0 * (times[late] - 3.0 / BANDWIDTH), atol=1e-6
    )
    np.testing.assert_allclose(rate[late], 3.0, atol=1e-4)
    np.testing.assert_allclose(rise[late], 0.0, atol=1e-2)
    steps = 1e-4 * np.arange(6000)
    (value, rate, rise, _), _ = filtered(steps, np.sin(20.0 * steps))
    np.testing.assert_allclose(
        np.gradient(value, 1e-4)[1:-1], rate[1:-1], atol=2e-3 * 20.0
    )
    np.testing.assert_allclose(
        np.gradient(rate, 1e-4)[2:-2], rise[2:-2], atol=2e-3 * 400.0
    )


def test_the_rates_are_those_of_the_motion_at_the_root():
    """Of angular velocity and acceleration, specific force without the lever arm, and up."""
    phases, lever, steps = (
        np.arange(6.0),
        np.array([0.1, -0.2, 0.3]),
        1e-4 * np.arange(3000),
    )
    waves = np.sin(20.0 * steps[:, None] + phases)
    up = np.column_stack((1e-3 * waves[:, :2], np.ones(len(steps))))
    channels, found = np.zeros(JOINT_SIGNALS, CHANNEL), []
    start_channels(channels, np.hstack((waves, up))[0], 0.05)
    for signals in np.hstack((waves, up))[1:]:
        update_channels(channels, signals, 1e-4, BANDWIDTH, 0.05)
        motion = read_motion(channels, BANDWIDTH, 0.0)
        move_to_root(motion, lever)
        vectors = motion.omega, motion.omega_dot, motion.specific_force, motion.up
        found.append((np.array(vectors), motion.rates.copy()))
    values, rates = (np.array(each) for each in zip(*found, strict=True))
    expected = np.gradient(values, 1e-4, axis=0)
    late = slice(1500, -1)
    scale = np.abs(expected[late]).max(axis=(0, 2))[:, None]
    np.testing.assert_allclose(
        (rates / scale)[late], (expected / scale)[late], atol=5e-3
    )


@pytest.mark.parametrize("delay", [0.004, -0.004])
def test_a_known_delay_of_the_imu_is_taken_out_to_second_order(delay):
    steps = 1e-4 * np.arange(3000)
    channels, found = np.zeros(JOINT_SIGNALS, CHANNEL), {0.0: [], delay: []}
    waves = np.sin(60.0 * steps[:, None] + np.arange(JOINT_SIGNALS))
    start_channels(channels, waves[0], 0.05)
    for signals in waves[1:]:
        update_channels(channels, signals, 1e-4, BANDWIDTH, 0.05)
        for known, values in found.items():
            motion = read_motion(channels, BANDWIDTH, known)
            v = np.array((motion.omega, motion.omega_dot, motion.specific_force))
            values.append((v, v + delay * motion.rates[:3]))
    now = np.array([v for v, _ in found[0.0]])
    expected = np.roll(now, -round(delay / 1e-4), axis=0)[1500:-100]
    scale = np.abs(expected).max(axis=(0, 2))
    linear, second = (
        np.abs(np.array([p for _, p in values])[1500:-100] - expected).max(axis=(0, 2))
        / scale
        for values in found.values()
    )
    assert (second < 0.15 * linear).all()


def test_a_channel_settles_anew_after_a_value_that_is_not_known():
    times = 0.001 * np.arange(100)
    values = np.ones(100)
    values[60:62] = np.nan
    (value, _, _, _), channel = filtered(times, values)
    assert channel["settling"] == pytest.approx(0.05 - 0.038)
    np.testing.assert_allclose(value, 1.0)


# --- contact --------------------------------------------------------------------------------
def test_the_contact_point_is_the_lowest_of_the_ball(estimator, heavy_quadruped):
    rng = np.random.default_rng(9)
    motion, root = some_motion(estimator, heavy_quadruped[1], rng)
    rows, centers = (
        Rows(estimator, motion, root),
        Rows(estimator, motion, root, drop=0.03),
    )
    for each in (rows, centers):
        each.at(estimator._memory.x)
    down = rows.forces.point - centers.forces.point
    np.testing.assert_allclose(down, np.tile(-0.03 * root[3], (4, 1)), atol=1e-12)
