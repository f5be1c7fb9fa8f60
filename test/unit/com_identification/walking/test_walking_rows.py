"""Rows of a walk: exact data leave no residual, columns are derivatives, Pinocchio agrees."""

from copy import copy

import numpy as np
import pinocchio as pin
import pytest
from numba import typeof

from com_identification.walking import kernels
from com_identification.walking.kernels import (
    BODY,
    IMU,
    PER_JOINT,
    EquationNoise,
    MotionSamples,
    with_theta,
)
from com_identification.walking.preparation import find_limbs
from com_identification.walking.rows import Windows, window_rows
from com_identification.walking.unknowns import theta_jacobian, to_eta, to_theta
from com_model import RobotModel
from com_model.dynamics.tree_kernels import tree_of
from com_model.robots import load_robot

SAMPLES, HALF = 24, 8


class Exact:
    """Motions that no robot makes, but that obey its equations by Pinocchio, friction included."""

    def __init__(self, name: str) -> None:
        model, config = load_robot(name)
        self.model = config.attach(model)
        self.limbs = find_limbs(self.model, config)
        self.rng = np.random.default_rng(4)
        n, self.feet = self.model.n_joints, len(self.limbs.body)
        eta = to_eta(self.model.bodies)
        eta += 0.05 * self.rng.standard_normal(eta.shape)
        self.theta = np.zeros((self.model.bodies.count, BODY))
        self.theta[self.model.bodies.mass > 0.0] = to_theta(eta)
        self.robot = with_theta(tree_of(self.model.bodies), self.theta)
        # armature, Coulomb, viscous, load friction, gain, bias
        self.joints = (
            self.rng.uniform(0.1, 0.5, (6, n)) + np.array([0, 0, 0, 0, 0.7, 0])[:, None]
        )
        draw, up = self.rng.standard_normal, self.rng.standard_normal((SAMPLES, 3))
        self.up = up / np.linalg.norm(up, axis=1, keepdims=True)
        self.q = config.nominal_posture(self.model) + 0.1 * draw((SAMPLES, n))
        self.qd, self.qdd = draw((SAMPLES, n)), 5.0 * draw((SAMPLES, n))
        self.omega, self.omega_dot = draw((2, SAMPLES, 3))
        self.force = draw((SAMPLES, 3)) + np.array([0.0, 0.0, 9.81])
        self.touching = np.arange(self.feet) < max(1, self.feet - 1)
        self.pin, self.order = self._pinocchio()
        self.motion = self.simulate()

    def _pinocchio(self) -> tuple[pin.Model, np.ndarray]:
        """The same robot in Pinocchio, and where our joints are in its velocities."""
        built, bodies = (
            pin.buildModelFromXML(self.model.xml, pin.JointModelFreeFlyer()),
            {},
        )
        built.gravity.setZero()
        for b, name in enumerate(self.model.bodies.joint_names):
            bodies[built.getJointId(name) if b else 1] = b
        for joint, b in bodies.items():
            m, h = self.theta[b, 0], self.theta[b, 1:4]
            xx, xy, xz, yy, yz, zz = self.theta[b, 4:]
            c = h / m
            about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            about -= m * (c @ c * np.eye(3) - np.outer(c, c))
            built.inertias[joint] = pin.Inertia(m, c, about)
        ids = [
            built.joints[built.getJointId(name)].idx_v
            for name in self.model.joint_names
        ]
        return built, np.array(ids)

    def simulate(self, zeros: float = 0.0) -> MotionSamples:
        """Torques that make the motion, and the motion as it is read."""
        n, tau = self.model.n_joints, np.empty_like(self.q)
        sign = np.tanh(self.qd)
        for k in range(SAMPLES):
            data, q = self.pin.createData(), pin.neutral(self.pin)
            q[self.order + 1] = self.q[k]
            v, a = np.zeros(6 + n), np.zeros(6 + n)
            v[3:6], v[self.order], a[self.order] = (
                self.omega[k],
                self.qd[k],
                self.qdd[k],
            )
            a[:3], a[3:6] = self.force[k], self.omega_dot[k]
            needed = pin.rnea(self.pin, data, q, v, a)
            jacobian = np.vstack(
                [self._jacobian(data, q, k, c) for c in range(self.feet)]
            )
            used = np.repeat(self.touching, self.limbs.size)
            jacobian = jacobian[used]
            forces = np.linalg.lstsq(jacobian[:, :6].T, needed[:6], rcond=None)[0]
            left = needed - jacobian.T @ forces
            assert np.abs(left[:6]).max() < 1e-9
            armature, coulomb, viscous, load, gain, bias = self.joints
            acting = left[self.order] + armature * self.qdd[k] + coulomb * sign[k]
            acting += viscous * self.qd[k] + bias
            tau[k] = acting / (gain - load * sign[k] * np.sign(acting))
        arrays = (self.q + zeros, self.qd, self.qdd, tau, sign)
        return MotionSamples(*arrays, self.omega, self.omega_dot, self.force, self.up)

    def _jacobian(self, data: pin.Data, q: np.ndarray, k: int, c: int) -> np.ndarray:
        """Of what the ground acts on, (size, 6 + n)."""
        joint = self.pin.getJointId(self.model.bodies.joint_names[self.limbs.body[c]])
        pin.computeJointJacobians(self.pin, data, q)
        J = pin.getJointJacobian(self.pin, data, joint, pin.LOCAL_WORLD_ALIGNED)
        arm = (
            data.oMi[joint].rotation @ self.limbs.point[c]
            - self.limbs.radius[c] * self.up[k]
        )
        J[:3] -= pin.skew(arm) @ J[3:]
        return J[: self.limbs.size[c]]

    def rows(
        self, motion: MotionSamples, k: int, touching: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the base with the touching feet eliminated (6, P), and of the joints (n, P)."""
        D = np.empty((6 + self.model.n_joints, len(self.coefficients)))
        A, B = (
            np.empty((self.feet, 6, self.limbs.joints.shape[1])),
            np.empty((self.feet, 6, 6)),
        )
        kernels.generalised_rows(
            self.robot, self.limbs, motion, k, touching, self.coefficients, (D, A, B)
        )
        base = D[:6].copy()
        for c in np.flatnonzero(touching):
            own = self.limbs.joints[c]
            base -= A[c, :, : (own >= 0).sum()] @ D[6 + own[own >= 0]]
        return base, D[6:]

    @property
    def coefficients(self) -> np.ndarray:
        """x (P,)."""
        errors = np.zeros(self.model.n_joints + IMU)
        return np.concatenate([self.theta.ravel(), self.joints.ravel(), errors])


@pytest.fixture(scope="module", params=["go2", "talos"])
def exact(request: pytest.FixtureRequest) -> Exact:
    return Exact(request.param)


def _window_rows(exact: Exact) -> np.ndarray:
    n, count = exact.model.n_joints, 2
    swing = exact.limbs.joints[~exact.touching]
    used = np.zeros((count, n), dtype=bool)
    used[:, swing[swing >= 0]] = True
    used[:, np.setdiff1d(np.arange(n), exact.limbs.joints)] = True
    height = 6 + int(used[0].sum())
    touching, start = np.tile(exact.touching, (count, 1)), HALF * np.arange(count)
    windows = Windows(start, HALF, touching, used, height * np.arange(count))
    X = np.full((count * height, len(exact.coefficients)), np.nan)
    noise = EquationNoise(1.0, 0.5, np.full(n, 0.2), np.full(n, 0.3))
    x = exact.coefficients
    window_rows(exact.robot, exact.limbs, exact.motion, noise, windows, 2, x, X)
    return X


def test_exact_data_leave_no_residual_in_the_rows_of_windows(exact: Exact) -> None:
    X, x = _window_rows(exact), exact.coefficients
    assert np.abs(X @ x).max() < 1e-9 * np.abs(X * x).sum(axis=1).max()
    wrong = x.copy()
    wrong[0] *= 1.01
    assert np.abs(X @ wrong).max() > 1e-4 * np.abs(X * x).sum(axis=1).max()


def test_straight_legs_leave_rows_that_know_it(exact: Exact) -> None:
    straight = copy(exact)
    straight.q = np.zeros_like(exact.q)  # no joint feels a force along such a leg
    straight.motion = straight.simulate()
    X, x = _window_rows(straight), exact.coefficients
    assert (
        np.abs(X @ x).max() < 0.2
    )  # standard deviations, with 1000 N that no joint feels


def test_a_foot_in_the_air_that_counts_as_touching_does_no_harm(exact: Exact) -> None:
    base, _ = exact.rows(exact.motion, 3, np.ones(exact.feet, dtype=bool))
    assert np.abs(base @ exact.coefficients).max() < 1e-8 * np.abs(base).max()
    none, _ = exact.rows(exact.motion, 3, np.zeros(exact.feet, dtype=bool))
    assert np.abs(none @ exact.coefficients).max() > 1.0


def test_columns_of_encoder_zeros_are_derivatives(exact: Exact) -> None:
    n, step, k = exact.model.n_joints, 1e-5, 2
    start = BODY * len(exact.robot.mass) + 6 * n
    loaded = np.unique(exact.limbs.joints[exact.touching])

    def rows(motion: MotionSamples) -> np.ndarray:
        """Of the base, and of the joints on which no ground acts."""
        base, joints = exact.rows(motion, k, exact.touching)
        return np.vstack([base, np.delete(joints, loaded[loaded >= 0], axis=0)])

    for j in range(n):
        residuals = []
        for sign in (1.0, -1.0):
            q = exact.motion.q.copy()
            q[k, j] += sign * step
            residuals.append(rows(exact.motion._replace(q=q)) @ exact.coefficients)
        slope = (residuals[0] - residuals[1]) / (2.0 * step)
        found = -rows(exact.motion)[:, start + j]  # one-sided differences, of 1e-6 rad
        np.testing.assert_allclose(
            found, slope, rtol=1e-4, atol=2e-6 * np.abs(slope).max() + 1e-6
        )


ARM = """
<joint name="lift" type="prismatic"><parent link="{root}"/><child link="lift"/>
  <origin xyz="0.1 0 0.1" rpy="0.3 0.2 0"/><axis xyz="0 0.6 0.8"/>
  <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
<joint name="turn" type="revolute"><parent link="lift"/><child link="turn"/>
  <origin xyz="0 0.1 0.1"/><axis xyz="1 0 0"/>
  <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
<joint name="slide" type="prismatic"><parent link="turn"/><child link="slide"/>
  <origin xyz="0.1 0.1 0"/><axis xyz="0 1 0"/><mimic joint="turn" multiplier="0.5" offset="0.1"/>
  <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
"""
LINK = """<link name="{}"><inertial><origin xyz="0.05 0.02 0.1"/><mass value="1.5"/>
  <inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0.001" ixz="0" iyz="0"/></inertial></link>"""


def test_columns_of_encoder_zeros_of_sliders_and_followers_are_derivatives() -> None:
    model, config = load_robot("go2")
    parts = ARM.format(root=model.root_link) + "".join(
        map(LINK.format, ("lift", "turn", "slide"))
    )
    model = config.attach(
        RobotModel.from_urdf(model.xml.replace("</robot>", f"{parts}</robot>"))
    )
    limbs, robot, rng = (
        find_limbs(model, config),
        tree_of(model.bodies),
        np.random.default_rng(5),
    )
    n, feet = model.n_joints, len(limbs.body)
    joints = rng.normal(size=(5, 1, n))
    motion = MotionSamples(
        *joints, *rng.normal(size=(3, 1, 3)), np.array([[0.0, 0.0, 1.0]])
    )
    x = rng.normal(size=BODY * len(robot.mass) + PER_JOINT * n + IMU)
    x[: BODY * len(robot.mass)] = to_theta(to_eta(model.bodies)).ravel()
    x[-n - IMU :] = 0.0

    def rows(q: np.ndarray) -> np.ndarray:
        D = np.empty((6 + n, len(x)))
        A, B = np.empty((feet, 6, limbs.joints.shape[1])), np.empty((feet, 6, 6))
        air = np.zeros(feet, dtype=bool)
        kernels.generalised_rows(
            robot, limbs, motion._replace(q=q), 0, air, x, (D, A, B)
        )
        return D

    found = -rows(motion.q)[:, -n - IMU : -IMU]
    for j, moved in enumerate(1e-5 * np.eye(n)):
        slope = (rows(motion.q + moved) - rows(motion.q - moved)) @ x / 2e-5
        np.testing.assert_allclose(found[:, j], slope, rtol=1e-4, atol=1e-4)


def test_columns_of_the_imu_are_derivatives(exact: Exact) -> None:
    step, k = 1e-5, 1
    base, joints = exact.rows(exact.motion, k, exact.touching)
    rows = np.vstack([base, joints])
    for i in range(IMU):
        error = np.eye(3)[i % 3]
        change = -error if i < 3 else np.cross(error, exact.force[k])
        force = exact.motion.force.copy()
        force[k] += step * change
        moved = np.vstack(
            exact.rows(exact.motion._replace(force=force), k, exact.touching)
        )
        slope = (moved - rows) @ exact.coefficients / step
        np.testing.assert_allclose(rows[:, i - IMU], slope, rtol=1e-5, atol=1e-5)


def test_log_cholesky_parameters_give_the_urdf_back_and_their_jacobian_is_one(
    exact: Exact,
) -> None:
    bodies = exact.model.bodies
    used, eta = bodies.mass > 0.0, to_eta(bodies)
    theta = to_theta(eta)
    np.testing.assert_allclose(theta[:, 0], bodies.mass[used])
    np.testing.assert_allclose(theta[:, 1:4], bodies.first_moment[used], atol=1e-12)
    inertia = bodies.inertia[used][:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    np.testing.assert_allclose(theta[:, 4:], inertia, rtol=1e-2, atol=1e-6)
    J, step = theta_jacobian(eta), 1e-6
    for k in range(10):
        change = step * np.eye(10)[k]
        slope = (to_theta(eta + change) - to_theta(eta - change)) / (2.0 * step)
        np.testing.assert_allclose(J[:, :, k], slope, atol=1e-6)


def test_a_robot_with_other_masses_takes_no_compilation_of_its_own(
    exact: Exact,
) -> None:
    """The kernels of a type take half a minute to compile."""
    robot = tree_of(exact.model.bodies)
    assert typeof(with_theta(robot, exact.theta)) == typeof(robot)
