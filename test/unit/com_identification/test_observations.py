"""Equations of a posture: they hold for the truth, their slopes and their noise are right."""

from dataclasses import replace

import numpy as np
import pytest

from com_identification.exceptions import PostureError
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import ComConstraint, make_posture
from com_identification.regression.priors import urdf_priors
from com_identification.settings import SensorNoise, SensorPriors
from com_model.arrays import ShapeError

pytestmark = pytest.mark.slow
UP = np.array([0.05, -0.1, 1.0]) / np.linalg.norm([0.05, -0.1, 1.0])


@pytest.fixture
def case(hoap2, perturbed, random_q):
    """Builder, a robot with other masses and CoMs, its parameters, joint positions."""
    rng = np.random.default_rng(5)
    robot, mass, com = perturbed(rng, 0.01, mass_std_fraction=0.1)
    theta = np.column_stack((mass, mass[:, None] * com)).ravel()
    return ObservationModel(*hoap2), robot, theta, random_q(rng)


@pytest.mark.parametrize("up", [None, UP])
def test_equations_hold_for_the_truth(case, up):
    builder, robot, theta, q = case
    com = robot.com(q)
    known = ComConstraint(
        "base_link", np.array([0.0, 0.6, 0.8]), com @ [0.0, 0.6, 0.8], 0.001
    )
    posture = robot.posture(
        q, [1.0, 0.0] if up is None else [0.3, 0.7], effort=True, up=up
    )
    posture = make_posture(
        robot.model, q, posture.wrenches, posture.effort, up, constraints=(known,)
    )
    rows = builder.linearize(posture, theta, np.zeros(builder.errors.count))
    np.testing.assert_allclose(rows.residual, 0.0, atol=1e-9)
    assert rows.kinds == ("force",) * 3 + ("moment",) * 3 + ("torque",) * 25 + (
        "constraint",
    )
    wrong = builder.linearize(
        posture, builder.statics.parameters, np.zeros(builder.errors.count)
    )
    assert np.abs(wrong.residual).max() > 0.01
    # Linear in the parameters: what is missing is the columns times the difference. (The
    # constraint is over the mass, so nearly.)
    moved = wrong.bodies @ (theta - builder.statics.parameters)
    np.testing.assert_allclose(wrong.residual[:-1], moved[:-1], atol=1e-9)


def with_expected_wrenches(builder, posture, theta, errors, feet):
    """The posture with readings of these feet that fit the model with these errors exactly."""

    def residual(change):
        wrenches = posture.wrenches.copy()
        wrenches[feet] += change.reshape(-1, 6)
        rows = builder.linearize(replace(posture, wrenches=wrenches), theta, errors)
        return wrenches, rows.residual[np.isin(rows.kinds, ("force", "moment", "air"))]

    start = residual(np.zeros(6 * len(feet)))[1]
    slope = [residual(unit)[1] - start for unit in np.eye(6 * len(feet))]
    wrenches, rest = residual(np.linalg.solve(np.transpose(slope), -start))
    np.testing.assert_allclose(rest, 0.0, atol=1e-9)
    return replace(posture, wrenches=wrenches)


def test_gains_multiply_the_expected_wrench(case):
    """Gains and masses that are all smaller by the same factor must not shrink the residual."""
    _, robot, theta, q = case
    builder = ObservationModel(robot.model, robot.feet, sensors=SensorPriors())
    none, posture = np.zeros(builder.errors.count), robot.posture(q, [0.4, 0.6], up=UP)
    wrong = posture.wrenches + np.random.default_rng(4).normal(
        size=posture.wrenches.shape
    )
    rows = builder.linearize(replace(posture, wrenches=wrong), theta, none)
    assert np.abs(rows.residual[:6]).max() > 0.5
    gains = rows.errors[:6, builder.errors.kinds["wrench_gain"]].sum(axis=1)
    np.testing.assert_allclose(gains + rows.bodies[:6] @ theta, 0.0, atol=1e-9)


@pytest.mark.parametrize("where", ["tilted, by the IMU", "on the floor", "on one foot"])
def test_slopes_by_the_sensors_errors_are_finite_differences(case, where):
    _, robot, theta, q = case
    builder = ObservationModel(robot.model, robot.feet, sensors=SensorPriors())
    up = UP
    if where == "on one foot":  # of a knee bent, so that the other foot is in the air
        q = np.zeros_like(q)
        q[robot.model.joint_index("LLEG_JOINT4")] = 1.0
    if where != "tilted, by the IMU":
        normals = [robot.frame(q, name)[0][:, 2] for name in ("l_sole", "r_sole")]
        up = normals[1] if where == "on one foot" else sum(normals)
        up = up / np.linalg.norm(up)
    load = [0.0, 1.0] if where == "on one foot" else [0.4, 0.6]
    posture = robot.posture(q, load, effort=True, up=up)
    rng = np.random.default_rng(2)
    start = builder.errors.stds * rng.normal(size=builder.errors.count)
    for kind in ("effort_gain", "effort_offset", "compliance", "sole_compliance"):
        start[builder.errors.kinds[kind]] = 0.0
    feet = [0, 1] if where == "on one foot" else [1]
    posture = with_expected_wrenches(builder, posture, theta, start, feet)
    rows = builder.linearize(posture, theta, start)
    kinds = {"tilted, by the IMU": 0, "on the floor": 6, "on one foot": 9}
    assert len(rows.residual) == 6 + 25 + kinds[where]
    assert {kind for kind, _ in builder.errors.names} == set(builder.errors.kinds)
    for i, name in enumerate(builder.errors.names):
        if (
            name[0] == "effort_gain"
        ):  # taken at the expected effort; equal for the truth
            torque = (
                rows.kinds.index("torque")
                + i
                - builder.errors.kinds["effort_gain"].start
            )
            expected = posture.effort[torque - 6] - rows.residual[torque]
            assert -rows.errors[torque, i] == pytest.approx(expected, abs=1e-6)
            continue
        step = 1e-4 * builder.errors.stds[i]
        e = step * np.eye(len(start))[i]
        there = [
            builder.linearize(posture, theta, start + s * e).residual for s in (1, -1)
        ]
        slope = (there[0] - there[1]) / 2.0 / 1e-4  # in prior standard deviations
        expected = -rows.errors[:, i] * builder.errors.stds[i]
        np.testing.assert_allclose(expected, slope, atol=2e-4, err_msg=str(name))


def test_an_elastic_sole_sinks_where_its_load_is(case):
    """It leans towards the load by compliance times weight times distance from its middle."""
    _, robot, theta, q = case
    builder = ObservationModel(robot.model, robot.feet, sensors=SensorPriors())
    q = 0.05 * q
    q[robot.model.joint_index("LLEG_JOINT4")] = 1.0
    kind, errors = (
        builder.errors.kinds["sole_compliance"],
        np.zeros(builder.errors.count),
    )
    errors[kind] = [0.0, 0.0, *(3.0 * builder.errors.stds[kind][2:])]
    R, p = robot.frame(q, "r_sole")
    middle = np.append(robot.feet[1].corners.mean(axis=0), 0.0)
    up = np.array([0.0, 0.0, 1.0])  # in the sole's axes
    for _ in range(10):
        place = R.T @ (robot.com(q) - p)
        place = place - place[2] / up[2] * up - middle
        weight = builder.gravity * theta[::4].sum() * up[2] / np.linalg.norm(up)
        lean = errors[kind][[3, 2]] * weight * place[:2]  # along x by that about y
        up = np.append(-lean, 1.0)
    assert np.abs(lean).max() > 0.003
    assert lean @ place[:2] > 0.0
    read = robot.posture(q, [0.0, 1.0], up=R @ up / np.linalg.norm(up))
    for posture in (read, replace(read, up=np.full(3, np.nan))):
        rows = builder.linearize(posture, theta, errors)
        np.testing.assert_allclose(rows.residual, 0.0, atol=1e-6)
        stiff = builder.linearize(posture, theta, 0.0 * errors)
        assert np.abs(stiff.residual).max() > 0.01


def test_covariance_is_the_scatter_of_the_residuals(case):
    builder, robot, theta, q = case
    noise = SensorNoise(force=0.5, moment=0.025, effort=0.05, position=0.002)
    builder = ObservationModel(robot.model, robot.feet, noise)
    zero, rng = np.zeros(builder.errors.count), np.random.default_rng(0)
    residuals = [
        builder.linearize(
            robot.posture(q, [0.0, 1.0], noise, rng, 4, effort=True), theta, zero
        ).residual
        for _ in range(400)
    ]
    rows = builder.linearize(
        robot.posture(q, [0.0, 1.0], samples=4, effort=True), theta, zero
    )
    white = np.linalg.solve(
        np.linalg.cholesky(rows.covariance), np.transpose(residuals)
    )
    assert np.mean(white**2) == pytest.approx(1.0, abs=0.03)
    assert np.abs(white.mean(axis=1)).max() < 0.25
    assert np.abs(np.corrcoef(white) - np.eye(len(white))).max() < 0.25


def test_horizontal_forces_take_their_noise_out_of_the_moments(case):
    """The moment about the root's origin errs by its height times them; jointly it does not."""
    builder, robot, theta, q = case
    rows = builder.linearize(
        robot.posture(q, [1.0, 0.0]), theta, np.zeros(builder.errors.count)
    )
    moments = rows.covariance[3:, 3:]
    given = moments - rows.covariance[3:, :3] @ np.linalg.solve(
        rows.covariance[:3, :3], rows.covariance[:3, 3:]
    )
    assert np.trace(given) < 0.5 * np.trace(moments)


def test_feet_alone_determine_mass_and_projection(case):
    builder, robot, theta, q = case
    errors = np.zeros(builder.errors.count)
    mass, point, up, _ = builder.measured_com(robot.posture(q, [0.0, 1.0]), errors)
    np.testing.assert_allclose(up, robot.frame(q, "r_sole")[0][:, 2], atol=1e-12)
    across = point - robot.com(q)
    np.testing.assert_allclose(across - (across @ up) * up, 0.0, atol=1e-9)
    assert mass == pytest.approx(theta[::4].sum(), rel=1e-9)
    assert (
        builder.com_error(
            robot.posture(q, [0.0, 1.0]), theta, np.zeros(builder.errors.count)
        )
        < 1e-9
    )


def test_readings_that_cannot_be_used_are_refused(case):
    builder, robot, theta, q = case
    model, zero = robot.model, np.zeros(builder.errors.count)
    with pytest.raises(
        PostureError, match="1 wrenches for 2 feet: give one for each of l_sole"
    ):
        builder.linearize(make_posture(model, q, np.zeros((1, 6))), theta, zero)
    with pytest.raises(PostureError, match="there is nothing to identify from it"):
        builder.linearize(make_posture(model, q), theta, zero)
    with pytest.raises(PostureError, match="the direction of gravity is not known"):
        builder.linearize(
            make_posture(model, q, effort=np.zeros(model.n_joints)), theta, zero
        )
    with pytest.raises(PostureError, match="no position of BODY_JOINT1"):
        make_posture(model, np.where(np.arange(len(q)) == 0, np.nan, q))
    with pytest.raises(PostureError, match="up is not a unit vector"):
        make_posture(model, q, up=[0, 0, 2])
    with pytest.raises(ShapeError, match="The joints are"):
        make_posture(model, q[:3])
    with pytest.raises(PostureError, match="is not a unit vector"):
        ComConstraint("base_link", np.ones(3), 0.0, 0.1)


def test_a_foot_without_reading_takes_only_its_own_rows(case):
    builder, robot, theta, q = case
    posture = robot.posture(q, [1.0, 0.0], effort=True)
    wrenches = posture.wrenches.copy()
    wrenches[1] = np.nan
    rows = builder.linearize(
        make_posture(robot.model, q, wrenches, posture.effort),
        theta,
        np.zeros(builder.errors.count),
    )
    assert rows.kinds == ("torque",) * (25 - 7), (
        "not of the right leg, the waist and the root"
    )
    np.testing.assert_allclose(rows.residual, 0.0, atol=1e-9)


def test_priors_keep_their_own_copy_and_their_bounds(hoap2):
    model, _ = hoap2
    priors = urdf_priors(model, 0.02, shape_margin=0.02)
    with pytest.raises(ValueError, match="read-only"):
        priors.mass[0] = 1.0
    np.testing.assert_allclose(
        priors.parameters.reshape(-1, 4)[:, 1:], model.bodies.first_moment
    )
    G, g, owner = priors.limits()
    assert (G @ priors.parameters <= g).all(), "the URDF is within them"
    assert np.bincount(owner).tolist() == [27] * model.bodies.count, (
        "hulls and masses of all"
    )
    outside = priors.parameters.reshape(-1, 4).copy()
    outside[3, 1:] = outside[3, 0] * (priors.com_high[3, :3] + [0.001, 0.0, -0.001])
    assert set(owner[G @ outside.ravel() > g].tolist()) == {3}
    light = priors.parameters.reshape(-1, 4).copy()
    light[5] *= 0.04
    assert owner[G @ light.ravel() > g].tolist() == [5]
