"""Foot wrenches without force sensors: exact torques, covariance, MuJoCo, missing readings."""

from dataclasses import replace

import numpy as np
import pytest

from com_control.trot.trot import GaitParameters, TrotGait
from com_estimation.trunk.interface import Sample
from com_estimation.whole_body import foot_forces as kernels
from com_estimation.whole_body.foot_forces import FootForceEstimator, drive_sizes
from com_model import ConfigError, RobotConfig
from com_model.actuators import ActuatorModel, Actuators
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses, link_pose
from com_model.robot_config import ground_wrenches
from com_model.robots import load_robot
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

PERIOD = 0.002


@pytest.fixture(scope="module", params=["hoap2", "talos", "scalf2"])
def robot(request):
    model, config = load_robot(request.param)
    return config.attach(model), replace(config, imu_link=None)


def standing(model, config, wrenches):
    """A sample of a robot that stands still, its wrenches (f, 6) N, N m in the wrench frames."""
    q, g = config.nominal_posture(model), np.array([0.0, 0.0, GRAVITY])
    R, p = body_poses(model.bodies, q)
    effort = np.zeros(model.n_joints)
    moments = model.bodies.mass[:, None] * p
    moments += np.einsum("bij,bj->bi", R, model.bodies.first_moment)
    for b in range(1, model.bodies.count):  # every body hangs on all joints above it
        joint = b
        while joint > 0:
            axis, i = R[joint] @ model.bodies.axis[joint], model.bodies.q_index[joint]
            arm = moments[b] - model.bodies.mass[b] * p[joint]
            effort[i] += model.bodies.multiplier[joint] * axis @ np.cross(arm, g)
            joint = model.bodies.parent[joint]
    for foot, wrench in zip(config.feet, wrenches, strict=True):
        R_foot, at = link_pose(model, q, foot.wrench_frame)
        force, moment = R_foot @ wrench[:3], R_foot @ wrench[3:]
        b = model.bodies.body_of_link[model.link_index(foot.wrench_frame)]
        while b > 0:
            axis = R[b] @ model.bodies.axis[b]
            load = axis @ (moment + np.cross(at - p[b], force))
            effort[model.bodies.q_index[b]] -= model.bodies.multiplier[b] * load
            b = model.bodies.parent[b]
    zero = np.zeros(3)
    return Sample(0.0, q, effort, np.zeros_like(q), zero, g, np.eye(3))


def balanced(model, config, on=None):
    """Wrenches (f, 6) in the wrench frames that carry the robot, on some of its feet."""
    q, feet = config.nominal_posture(model), config.feet
    R, p = body_poses(model.bodies, q)
    com = model.bodies.mass @ p + np.einsum("bij,bj->i", R, model.bodies.first_moment)
    needed = GRAVITY * np.array([0.0, 0.0, model.mass, com[1], -com[0], 0.0])
    on, columns = range(len(feet)) if on is None else on, []
    for c in on:
        R_foot, at = link_pose(model, q, feet[c].wrench_frame)
        # a point foot's force acts at its lowest point
        R_sole, middle = link_pose(model, q, feet[c].frame)
        point = middle + R_sole @ feet[c].center - [0.0, 0.0, feet[c].radius]
        size = 6 if len(feet[c].corners) else 3
        for i in range(size):
            unit = np.eye(6)[i]
            force, moment = unit[:3], unit[3:] + np.cross(point, unit[:3])
            local = unit[3:] + np.cross(point - at, force)
            columns.append(
                (c, np.r_[force, moment], np.r_[R_foot.T @ force, R_foot.T @ local])
            )
    scale = np.tile([1.0, 1.0, 1.0, 5.0, 5.0, 5.0], 2)[: len(columns)]
    scale = scale if len(feet[0].corners) else np.ones(len(columns))
    A = np.array([column for _, column, _ in columns]).T
    x = np.linalg.pinv(A / scale) @ needed / scale
    result = np.zeros((len(feet), 6))
    for value, (c, _, local) in zip(x, columns, strict=True):
        result[c] += value * local
    return result


def settle(estimator, sample, count=40):
    found = None
    for k in range(count):
        found = estimator.update(replace(sample, time=k * PERIOD))
    return found


def test_exact_torques_give_the_wrenches(robot):
    model, config = robot
    truth = balanced(model, config)
    found = settle(FootForceEstimator(model, config), standing(model, config, truth))
    weight = GRAVITY * model.mass
    assert found.problem == ""
    assert found.contact.all()
    np.testing.assert_allclose(found.wrenches[:, :3], truth[:, :3], atol=0.01 * weight)
    np.testing.assert_allclose(found.wrenches[:, 3:], truth[:, 3:], atol=0.003 * weight)
    np.testing.assert_allclose(found.forces.sum(axis=0)[2], weight, rtol=0.005)
    assert (found.force_std > 0.0).all()
    assert (np.linalg.eigvalsh(found.covariance[:, :3, :3]) > 0.0).all()


def test_a_foot_in_the_air_carries_nothing(robot):
    model, config = robot
    on = list(range(len(config.feet)))[1:]
    truth = balanced(model, config, on)
    found = settle(FootForceEstimator(model, config), standing(model, config, truth))
    # of three feet of a quadruped two, on the diagonal, carry all
    carried = found.forces[:, 2] > 0.12 * GRAVITY * model.mass
    assert found.contact.tolist() == carried.tolist()
    assert found.contact[on].sum() in (1, 2)
    assert abs(found.loads[0]) < 0.005 * GRAVITY * model.mass


def test_errors_of_torques_are_as_large_as_the_covariance_says(robot):
    model, config = robot
    truth = balanced(model, config)
    sample, rng = standing(model, config, truth), np.random.default_rng(3)
    drives = config.drives(model.joint_names, [[]] * 4, drive_sizes(model))
    std = [
        np.hypot(np.hypot(own.coulomb_std, own.torque_bias_std), own.coulomb)
        for own in drives
    ]
    errors = []
    for _ in range(60):
        effort = sample.effort + std * rng.standard_normal(len(std))
        found = settle(
            FootForceEstimator(model, config), replace(sample, effort=effort)
        )
        if found.contact.all():
            std_f = np.sqrt(np.einsum("cii->ci", found.covariance))[:, :3]
            errors.append((found.wrenches - truth)[:, :3] / std_f)
    assert len(errors) > 20
    assert 0.2 < np.mean(np.square(errors)) < 1.5


def test_the_weighed_mass_scales_the_loads(robot):
    model, config = robot
    sample = standing(model, config, balanced(model, config))
    estimator = FootForceEstimator(model, config, mass=1.05 * model.mass)
    total = settle(estimator, sample).loads.sum() / (GRAVITY * model.mass)
    assert 1.01 < total < 1.05


def test_the_compiled_kernel_is_the_python_function(robot):
    if not hasattr(kernels.update_wrenches, "py_func"):
        pytest.skip("nothing is compiled")
    model, config = robot
    sample = standing(model, config, balanced(model, config))
    rng = np.random.default_rng(1)
    both = FootForceEstimator(model, config), FootForceEstimator(model, config)
    both[1]._update = kernels.update_wrenches.py_func
    for k in range(30):
        noisy = replace(
            sample,
            time=k * PERIOD,
            position=sample.position + 1e-4 * rng.standard_normal(model.n_joints),
            effort=sample.effort * (1.0 + 0.1 * rng.standard_normal(model.n_joints)),
        )
        one, other = (estimator.update(noisy) for estimator in both)
    assert one.problem == ""
    np.testing.assert_allclose(one.wrenches, other.wrenches, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(one.contact, other.contact)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("effort", "efforts of the legs"),
        ("specific_force", "rates and accelerations"),
        ("R_world_imu", "orientation"),
        ("position", "positions"),
    ],
)
def test_what_is_missing_is_named_and_forgotten_later(name, text):
    model, config = load_robot("hoap2")
    config = replace(config, imu_link=None)
    sample = standing(config.attach(model), config, balanced(model, config))
    estimator = FootForceEstimator(model, config)
    assert settle(estimator, sample).problem == ""
    spoiled = replace(
        sample, time=1.0, **{name: np.full_like(getattr(sample, name), np.nan)}
    )
    found = estimator.update(replace(spoiled, time=40 * PERIOD))
    assert text in found.problem
    assert np.isnan(found.wrenches).all()
    assert np.isnan(found.forces).all()
    assert not found.contact.any()
    assert estimator.update(replace(spoiled, time=40 * PERIOD)) is None
    again = [estimator.update(replace(sample, time=k * PERIOD)) for k in range(41, 90)]
    assert again[0].problem
    assert not again[-1].problem
    estimator.reset()
    assert "settles" in estimator.update(sample).problem


def test_unknown_efforts_of_joints_that_move_no_foot_do_not_matter():
    model, config = load_robot("talos")
    config = replace(config, imu_link=None)
    sample = standing(config.attach(model), config, balanced(model, config))
    arms = [j for j, name in enumerate(model.joint_names) if "arm" in name]
    effort = sample.effort.copy()
    effort[arms] = np.nan
    found = settle(FootForceEstimator(model, config), replace(sample, effort=effort))
    assert found.problem == ""


def test_a_robot_without_feet_is_refused():
    model, _ = load_robot("hoap2")
    with pytest.raises(ConfigError, match=r"feet: has none.*com_setup"):
        FootForceEstimator(model, RobotConfig.from_dict({"name": "none"}))


def run(name, seconds, targets):
    """Loads by torques and of the simulator's contacts (N, f) over the weight, and contacts."""
    model, config = load_robot(name)
    without_friction = ActuatorModel(coulomb=0.0, viscous=0.0, load_friction=0.0)
    config = replace(config, actuators=Actuators(without_friction))
    world = build_world(model, config, step=2.5e-4, integrator="euler")
    simulation = Simulation(world, PERIOD)
    estimator = FootForceEstimator(model, config)
    imu = model.link_index(config.imu_link or model.root_link)
    R_root_imu = model.bodies.R_body_link[imu]
    weight, loads, truth, contact = GRAVITY * model.mass, [], [], []
    for k in range(round(seconds / PERIOD)):
        reading = simulation.advance()
        x, y, z, w = reading.imu_orientation
        row = 2.0 * np.array([x * z - y * w, y * z + x * w, 0.5 - x * x - y * y])
        sample = Sample(
            reading.time,
            reading.position,
            reading.effort,
            reading.velocity,
            reading.angular_velocity,
            reading.specific_force,
            np.array([np.zeros(3), np.zeros(3), row]),
        )
        found = estimator.update(sample)
        simulation.lead(*targets(k * PERIOD, world.posture))
        wrenches = ground_wrenches(reading.wrenches, config.feet)
        forces = [R @ w[:3] for R, w in zip(found.R_root_sensor, wrenches, strict=True)]
        up = R_root_imu @ row
        loads.append(found.loads / weight)
        truth.append(np.array(forces) @ up / weight)
        contact.append(found.contact)
    return np.array(loads), np.array(truth), np.array(contact)


def smooth(values, width=25):
    return np.apply_along_axis(np.convolve, 0, values, np.ones(width) / width, "valid")


def test_a_trot_in_mujoco():
    parameters = GaitParameters(frequency=2.0, swing_compensation=False)
    gait = TrotGait(*load_robot("go2"), parameters)
    begin = gait.step(0.0).position

    def targets(time, posture):
        if time < 1.5:
            return (posture + min(time, 1.0) * (begin - posture),)
        target = gait.step(time - 1.5)
        return target.position, target.velocity

    loads, truth, contact = run("go2", 4.5, targets)
    error = smooth(loads[500:]) - smooth(truth[500:])
    assert np.sqrt((error**2).mean()) < 0.04
    touching = truth > 0.05
    right = (contact & touching)[500:].sum()
    assert 2 * right / (contact[500:].sum() + touching[500:].sum()) > 0.95
    assert 0.3 < touching[1500:].mean() < 0.8  # it does trot


def test_a_humanoid_that_sways_in_mujoco():
    model, _ = load_robot("itu_biped")
    rolls = [
        j
        for j, n in enumerate(model.joint_names)
        if "ankle_roll" in n or "hip_roll" in n
    ]
    assert len(rolls) == 4

    def targets(time, posture):
        q = posture.copy()
        sway = 0.1 * min(time, 1.0) * np.sin(3.0 * time)
        for j in rolls:
            q[j] += sway if "ankle" in model.joint_names[j] else -sway
        return (q,)

    loads, truth, contact = run("itu_biped", 4.0, targets)
    assert np.ptp(truth[500:, 0]) > 0.15  # the weight does move
    error = smooth(loads[500:]) - smooth(truth[500:])
    assert np.sqrt((error**2).mean()) < 0.02
    assert contact[500:].all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda effort: 0.0 * effort,
        lambda effort: -effort,
        lambda effort: effort * np.where(np.arange(12) < 6, -1.0, 1.0),
    ],
    ids=["zeros", "other sign", "one side reversed"],
)
def test_torques_that_do_not_carry_the_robot_are_named(wrong):
    model, config = load_robot("go2")
    model = config.attach(model)
    sample = standing(model, config, balanced(model, config))
    estimator = FootForceEstimator(model, replace(config, imu_link=None))
    odd = replace(sample, effort=wrong(sample.effort))
    found = settle(estimator, odd, 600)
    assert "check unit and sign of effort" in found.problem
    assert np.isnan(found.wrenches).all()
    assert not found.contact.any()
    times = (found.time + PERIOD * (1 + np.arange(1500))).tolist()
    after = [estimator.update(replace(sample, time=time)) for time in times]
    assert after[-1].problem == "", "sound torques are believed again"
