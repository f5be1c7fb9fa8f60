"""Baselines: the base rows against inverse dynamics, and a trunk that differs from the URDF."""

from dataclasses import replace

import numpy as np
import pytest
from baselines.trunk_least_squares import (
    INERTIA_ORDER,
    BelievedUrdf,
    LeastSquaresOptions,
    RecursiveLeastSquares,
    foot_wrench,
    trunk_rows,
)
from scipy.spatial.transform import Rotation

from com_estimation.trunk.ground_reaction import LegGeometry
from com_estimation.trunk.interface import Sample
from com_model import RobotModel, quadruped_legs
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.status import Status

pytestmark = pytest.mark.slow

GRAVITY = 9.81
TRUE_MASS, TRUE_COM = 120.0, np.array([0.05, -0.03, 0.04])
ARM = np.array([0.1, 0.05, 0.02])  # of the IMU


def test_the_rows_are_what_the_trunk_adds_to_inverse_dynamics(heavy_quadruped):
    """Y theta = ID with trunk - ID without it, for any motion."""
    model, _ = heavy_quadruped
    model = true_model(model)
    rng = np.random.default_rng(3)
    b = model.bodies
    inertia = [b.inertia[0][place] for place in INERTIA_ORDER]
    theta = np.array([b.mass[0], *b.first_moment[0], *inertia])
    for _ in range(5):
        motion = [rng.normal(size=model.n_joints) for _ in range(3)]
        omega, omega_dot, felt = root = rng.normal(size=(3, 3)) * 3.0
        whole = Dynamics(model).inverse_dynamics(motion, root)[0]
        legs = Dynamics(model, trunk=False).inverse_dynamics(motion, root)[0]
        np.testing.assert_allclose(
            trunk_rows(felt, omega, omega_dot) @ theta, whole - legs, atol=1e-9
        )


def test_wrench_of_the_feet_is_about_the_origin():
    wrench = foot_wrench(
        np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), np.eye(3)[[2, 2]]
    )
    np.testing.assert_allclose(wrench, [0.0, 0.0, 2.0, 2.0, -1.0, 0.0])


def true_model(model):
    """The robot with another mass and centre of mass of its trunk."""
    com = " ".join(map(str, TRUE_COM))
    return RobotModel.from_urdf(
        model.xml.replace('<origin xyz="0 0 0"/><mass value="100.0"/>',
                          f'<origin xyz="{com}"/><mass value="{TRUE_MASS}"/>')
    )  # fmt: skip


def samples(robot, seconds, sway):
    """The true robot, its trunk turning about its resting origin by `sway` rad about x and y.

    Its legs do not move; forces at the feet are the smallest that Newton and Euler allow.
    """
    model, config = robot
    truth = true_model(model)
    legs = quadruped_legs(truth, config)
    geometry, dynamics = LegGeometry(truth, legs), Dynamics(truth)
    q, still = config.nominal_posture(truth), np.zeros(truth.n_joints)
    R_root_imu = Rotation.from_euler("z", np.pi / 2.0).as_matrix()
    axis, w = np.array([0.6, 0.8, 0.0]), 2.0 * np.pi * 0.5
    for time in np.arange(0.0, seconds, 0.0025):
        R = Rotation.from_rotvec(axis * sway * np.sin(w * time)).as_matrix()
        omega = axis * sway * w * np.cos(w * time)
        omega_dot = -axis * sway * w * w * np.sin(w * time)
        felt = GRAVITY * R[2]
        contacts = geometry.contacts(q, R[2])
        wrench, tau = dynamics.inverse_dynamics(
            (q, still, still), (omega, omega_dot, felt)
        )
        A = np.vstack([np.hstack([np.eye(3)] * 4),
                       np.hstack([np.cross(np.eye(3), p) for p in contacts.points])])  # fmt: skip
        forces = (np.linalg.pinv(A) @ wrench).reshape(4, 3)
        for leg, J, f in zip(legs, contacts.jacobians, forces, strict=True):
            tau[leg.joints] -= J.T @ f
        at_imu = felt + np.cross(omega_dot, ARM) + np.cross(omega, np.cross(omega, ARM))
        yield Sample(
            time=time,
            position=q,
            effort=tau,
            velocity=still,
            angular_velocity=R_root_imu.T @ omega,
            specific_force=R_root_imu.T @ at_imu,
            R_world_imu=R @ R_root_imu,
        )


def run(estimator, stream):
    return [e for e in map(estimator.update, stream) if e is not None]


def test_swaying_it_finds_mass_and_centre_of_mass_of_a_robot_with_heavy_legs(
    heavy_quadruped,
):
    estimates = run(
        RecursiveLeastSquares(*heavy_quadruped), samples(heavy_quadruped, 3.0, 0.15)
    )
    last = estimates[-1]
    assert last.status == Status.CONVERGED
    assert last.reason == ""
    assert last.mass == pytest.approx(TRUE_MASS, abs=0.2)
    np.testing.assert_allclose(last.com[:2], TRUE_COM[:2], atol=0.5e-3)
    assert last.com[2] == pytest.approx(TRUE_COM[2], abs=0.02)
    assert last.observable.all()
    np.testing.assert_allclose(last.offset_from_urdf, last.com, atol=1e-12)
    np.testing.assert_array_equal(last.covariance, last.covariance.T)
    assert np.linalg.eigvalsh(last.covariance).min() > 0.0
    middle = next(e for e in estimates if np.isfinite(e.mass))
    assert np.trace(middle.covariance) > np.trace(last.covariance)


def test_standing_still_it_finds_x_and_y_but_says_that_it_does_not_know_z(
    heavy_quadruped,
):
    last = run(
        RecursiveLeastSquares(*heavy_quadruped), samples(heavy_quadruped, 2.0, 0.0)
    )[-1]
    np.testing.assert_allclose(last.com[:2], TRUE_COM[:2], atol=0.5e-3)
    np.testing.assert_array_equal(last.observable, [True, True, False])
    assert np.sqrt(last.covariance[2, 2]) > 0.1


def test_light_legs_leave_the_weight_of_heavy_ones_out(heavy_quadruped):
    options = LeastSquaresOptions(forces="torque")
    estimator = RecursiveLeastSquares(*heavy_quadruped, options)
    last = run(estimator, samples(heavy_quadruped, 1.0, 0.0))[-1]
    assert abs(last.mass - TRUE_MASS) > 5.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"effort": np.full(12, np.nan)}, "not all efforts are known"),
        ({"specific_force": np.full(3, np.nan)}, "the accelerometer is not known"),
        ({"angular_velocity": np.full(3, np.nan)}, "the angular velocity is not known"),
    ],
)
def test_a_missing_input_freezes_the_estimate_until_it_is_back(
    heavy_quadruped, change, reason
):
    stream = list(samples(heavy_quadruped, 1.5, 0.1))
    estimator = RecursiveLeastSquares(*heavy_quadruped)
    run(estimator, stream[:300])
    before = estimator.latest
    run(estimator, (replace(s, **change) for s in stream[300:310]))
    lost = estimator.latest
    assert lost.status == Status.DEGRADED
    assert reason in lost.reason
    np.testing.assert_array_equal(lost.com, before.com)
    run(estimator, stream[310:])
    assert estimator.latest.status == Status.CONVERGED
    np.testing.assert_allclose(estimator.latest.com[:2], TRUE_COM[:2], atol=1e-3)


def test_without_any_input_it_stays_unknown(heavy_quadruped):
    estimator = RecursiveLeastSquares(*heavy_quadruped)
    assert estimator.latest.reason == "no sample has come"
    stream = samples(heavy_quadruped, 0.3, 0.0)
    run(estimator, (replace(s, effort=np.full(12, np.nan)) for s in stream))
    assert estimator.latest.status == Status.UNKNOWN
    assert np.isnan(estimator.latest.com).all()


def test_a_robot_that_feels_no_weight_is_not_believed(heavy_quadruped):
    """All efforts 0: the mass falls below nothing, or the forces do not carry the legs."""
    estimator = RecursiveLeastSquares(*heavy_quadruped)
    stream = samples(heavy_quadruped, 1.0, 0.0)
    run(estimator, (replace(s, effort=np.zeros(12)) for s in stream))
    assert estimator.latest.status == Status.UNKNOWN
    assert "the trunk's mass comes out as" in estimator.latest.reason


def test_reset_and_time_that_goes_back_start_from_the_urdf(heavy_quadruped):
    stream = list(samples(heavy_quadruped, 1.0, 0.1))
    estimator = RecursiveLeastSquares(*heavy_quadruped)
    first = [e.com for e in run(estimator, stream)]
    second = [e.com for e in run(estimator, stream)]
    np.testing.assert_array_equal(first, second)
    estimator.reset()
    assert estimator.latest.status == Status.UNKNOWN
    assert np.isnan(estimator.latest_forces.forces).all()


def test_the_urdf_is_believed_whatever_comes(heavy_quadruped):
    believed = BelievedUrdf(*heavy_quadruped)
    assert believed.latest.status == Status.UNKNOWN
    last = run(believed, samples(heavy_quadruped, 0.1, 0.1))[-1]
    np.testing.assert_array_equal(last.com, np.zeros(3))
    assert (last.mass, last.status) == (100.0, Status.DEGRADED)
    assert "believed as it is" in last.reason
    assert np.isnan(last.covariance).all()
    assert np.isnan(believed.latest_forces.forces).all()


def test_what_the_motion_does_not_tell_does_not_wind_up(heavy_quadruped):
    """After 20 memories of standing still, z is as little known as at the start, not less."""
    options = LeastSquaresOptions(memory=0.1, com_std=0.2)
    estimator = RecursiveLeastSquares(*heavy_quadruped, options)
    last = run(estimator, samples(heavy_quadruped, 2.0, 0.0))[-1]
    assert 0.1 < np.sqrt(last.covariance[2, 2]) < 0.21
    np.testing.assert_allclose(last.com[:2], TRUE_COM[:2], atol=0.5e-3)
