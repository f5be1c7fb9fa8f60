"""Physics seen through the sensors, against what mechanics and Pinocchio say."""

import itertools
from dataclasses import fields, replace

import mujoco
import numpy as np
import pinocchio
import pytest
from scipy.spatial.transform import Rotation

from com_model import RobotConfig, RobotModel, link_poses
from com_model.dynamics import GRAVITY
from com_simulation.exceptions import CommandError, DivergedError
from com_simulation.physics.motion import read_trajectory
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow
STANDING = [
    ("hoap2", None),
    ("talos", "talos_data/robots/talos_reduced.urdf"),
    ("icub", "icub_description/robots/icub.urdf"),
    ("anymal", "anymal_b_simple_description/robots/anymal.urdf"),
    ("solo12", "solo_description/robots/solo12.urdf"),
]
HANGING = [
    "ur_description/urdf/ur5_robot.urdf",
    "panda_description/urdf/panda.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "icub_description/robots/icub.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
    "solo_description/robots/solo12.urdf",
    "romeo_description/urdf/romeo.urdf",
    "tiago_pro_description/robots/tiago_pro.urdf",
]


def settle(simulation, seconds):
    for _ in range(round(seconds / simulation.sample_period)):
        reading = simulation.advance()
    return reading


@pytest.fixture(scope="module", params=STANDING, ids=[name for name, _ in STANDING])
def standing(request, robot_files):
    """A robot that has stood for four seconds: its world and what its sensors read."""
    robot, config, path = robot_files(*request.param)
    world = build_world(robot, config, urdf_path=path)
    return world, settle(Simulation(world, 0.01), 4.0)


def feet_in_world(world, reading):
    """(R (f, 3, 3), p (f, 3)) of the wrench frames."""
    R_root = Rotation.from_quat(reading.root_orientation).as_matrix()
    R, p = link_poses(world.robot, reading.position, R_root, reading.root_position)
    links = [world.robot.link_index(foot.wrench_frame) for foot in world.feet]
    return R[links], p[links]


def forces_in_world(world, reading):
    """(forces (f, 3), torques about the world's origin (f, 3))."""
    R, p = feet_in_world(world, reading)
    forces = np.einsum("fij,fj->fi", R, reading.wrenches[:, :3])
    torques = np.einsum("fij,fj->fi", R, reading.wrenches[:, 3:]) + np.cross(p, forces)
    return forces, torques


def com_in_world(reading):
    return reading.root_position + Rotation.from_quat(reading.root_orientation).apply(
        reading.com
    )


def test_it_stands_still_where_it_was_put(standing):
    world, reading = standing
    assert np.abs(reading.position - world.posture).max() < 0.02
    assert np.abs(reading.velocity).max() < 2e-3
    assert np.linalg.norm(reading.root_position - world.qpos[:3]) < 0.01


def test_feet_carry_the_weight(standing):
    world, reading = standing
    forces, _ = forces_in_world(world, reading)
    weight = world.robot.mass * GRAVITY
    np.testing.assert_allclose(forces.sum(axis=0), [0, 0, weight], atol=1e-4 * weight)
    assert (forces[:, 2] > 0.05 * weight).all()


def test_center_of_pressure_is_below_the_com(standing):
    world, reading = standing
    forces, torques = forces_in_world(world, reading)
    fz = forces[:, 2].sum()
    pressure = np.array([-torques[:, 1].sum(), torques[:, 0].sum()]) / fz
    np.testing.assert_allclose(pressure, com_in_world(reading)[:2], atol=2e-4)


def test_imu_at_rest_feels_gravity_upwards(standing):
    _, reading = standing
    up = Rotation.from_quat(reading.imu_orientation).inv().apply([0, 0, GRAVITY])
    np.testing.assert_allclose(reading.specific_force, up, atol=5e-3)
    np.testing.assert_allclose(reading.angular_velocity, 0.0, atol=2e-3)


def test_true_com_is_that_of_the_model_in_the_measured_posture(standing):
    world, reading = standing
    robot = world.robot
    R, p = link_poses(robot, reading.position)
    centers = p + np.einsum("lij,lj->li", R, robot.link_coms)
    expected = robot.link_masses @ centers / robot.mass
    np.testing.assert_allclose(reading.com, expected, atol=1e-6)
    down = Rotation.from_quat(reading.root_orientation).inv().apply([0, 0, -1])
    np.testing.assert_allclose(reading.gravity, down, atol=1e-12)


def pinocchio_gravity_torques(path, robot, q):
    oracle = pinocchio.buildModelFromUrdf(str(path))
    q_oracle = pinocchio.neutral(oracle)
    bodies, rows = robot.bodies, {}
    for b in range(1, bodies.count):
        joint = oracle.joints[oracle.getJointId(bodies.joint_names[b])]
        position = bodies.multiplier[b] * q[bodies.q_index[b]] + bodies.offset[b]
        angle = [np.cos(position), np.sin(position)] if joint.nq == 2 else [position]
        q_oracle[joint.idx_q : joint.idx_q + joint.nq] = angle
        rows[b] = joint.idx_v
    oracle.gravity.linear[:] = [0, 0, -GRAVITY]
    data = oracle.createData()
    torques = pinocchio.computeGeneralizedGravity(oracle, data, q_oracle)
    result = np.zeros(robot.n_joints)
    for b, row in rows.items():  # a mimic joint's load acts on its master
        result[bodies.q_index[b]] += bodies.multiplier[b] * torques[row]
    return result


@pytest.mark.parametrize("urdf", HANGING)
def test_a_hanging_robot_holds_still_against_gravity(urdf, examples):
    robot = RobotModel.from_file(examples[urdf])
    world = build_world(robot)
    reading = settle(Simulation(world, 0.01), 3.0)
    assert np.abs(reading.position - world.posture).max() < 2.1e-3
    free = (reading.position > robot.lower + 1e-6) & (
        reading.position < robot.upper - 1e-6
    )
    expected = pinocchio_gravity_torques(examples[urdf], robot, reading.position)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(reading.effort[free], expected[free], atol=1e-4 * scale)


def test_slope_turns_gravity_in_the_robot_not_in_the_world(robot_files):
    robot, config, path = robot_files("hoap2")
    slope = np.deg2rad(5.0)
    world = build_world(robot, config, urdf_path=path, ground_slope=slope)
    reading = settle(Simulation(world, 0.01), 2.0)
    forces, _ = forces_in_world(world, reading)
    weight = robot.mass * GRAVITY
    np.testing.assert_allclose(forces.sum(axis=0), [0, 0, weight], atol=1e-3 * weight)
    # uphill: the nose is higher, so that gravity points backwards in the robot
    assert reading.gravity[0] == pytest.approx(-np.sin(slope), abs=0.04)
    force = reading.specific_force
    level = Rotation.from_quat(reading.imu_orientation).apply(force)
    np.testing.assert_allclose(level, [0, 0, GRAVITY], atol=1e-2)


def test_newton_holds_while_the_robot_moves(hoap2):
    """m dv/dt of the CoM = sum of the foot forces + m g, from the readings alone."""
    simulation = Simulation(hoap2, 0.001)
    settle(simulation, 1.0)
    sway = hoap2.posture + 0.1 * np.sin(np.arange(len(hoap2.posture)))
    simulation.follow(
        read_trajectory(
            hoap2.robot.joint_names, hoap2.robot.joint_names, [0.5], [sway], [()]
        )
    )
    readings = [simulation.advance() for _ in range(200)]
    coms = np.array([com_in_world(reading) for reading in readings])
    accelerations = np.diff(coms, 2, axis=0) / 0.001**2
    assert np.abs(accelerations).max() > 0.5
    forces = np.array([forces_in_world(hoap2, r)[0].sum(axis=0) for r in readings])
    expected = forces / hoap2.robot.mass - [0, 0, GRAVITY]
    np.testing.assert_allclose(accelerations, expected[1:-1], atol=0.01)


def test_com_velocity_is_the_derivative_of_the_com_in_root_axes(hoap2):
    simulation = Simulation(hoap2, 0.001)
    simulation.command(hoap2.posture + 0.05)
    readings = [simulation.advance() for _ in range(60)]
    for before, now in itertools.pairwise(readings[20:]):
        slope = (now.com - before.com) / (now.time - before.time)
        np.testing.assert_allclose(now.com_velocity, slope, atol=1e-4)


def test_wrench_sign_and_frame(robot_files):
    robot, config, path = robot_files("hoap2")
    feet = (
        replace(config.feet[0], wrench_sign=-1),
        replace(config.feet[1], wrench_frame="RLEG6"),
    )
    plain = settle(Simulation(build_world(robot, config, urdf_path=path), 0.01), 1.0)
    other = replace(config, feet=feet)
    changed = settle(Simulation(build_world(robot, other, urdf_path=path), 0.01), 1.0)
    np.testing.assert_allclose(changed.wrenches[0], -plain.wrenches[0], atol=1e-9)
    # The ankle's frame is parallel to the sole's and 37 mm above it.
    force = plain.wrenches[1, :3]
    moved = plain.wrenches[1, 3:] + np.cross([0, 0, -0.037], force)
    np.testing.assert_allclose(changed.wrenches[1], [*force, *moved], atol=1e-9)


def test_commands_move_the_joints_and_limits_clip_them(arm):
    simulation = Simulation(build_world(arm), 0.002)
    simulation.command([5.0, 0.1])
    reading = settle(simulation, 2.0)
    np.testing.assert_allclose(reading.position, [1.0, 0.1], atol=5e-3)
    with pytest.raises(CommandError, match="got 1 joint commands, expected 2"):
        simulation.command([1.0])
    np.testing.assert_allclose(settle(simulation, 0.1).position, [1.0, 0.1], atol=5e-3)


def test_trajectory_does_not_depend_on_the_rate_of_the_readings(arm):
    paths = []
    for period in (0.001, 0.01):
        simulation = Simulation(build_world(arm), period)
        simulation.follow(
            read_trajectory(
                arm.joint_names, ["shoulder"], [0.5, 1.0], [[0.4], [0.1]], [[0], [0]]
            )
        )
        paths.append([simulation.advance() for _ in range(round(1.2 / period))])
    fast, slow = paths
    for reading in slow:
        twin = fast[round(reading.time / 0.001)]
        np.testing.assert_array_equal(reading.position, twin.position)
        np.testing.assert_array_equal(reading.effort, twin.effort)


LOUD = NoiseLevels(0.001, 0.01, 0.1, 0.5, 0.02, 0.003, 0.05, 0.004)


def run(world, seed, levels=LOUD):
    simulation = Simulation(world, 0.005, levels, seed)
    simulation.command(world.posture + 0.02)
    return [simulation.advance() for _ in range(100)]


def same(a, b):
    return all(
        np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
    )


def test_the_same_seed_gives_the_same_bits(hoap2, robot_files):
    robot, config, path = robot_files("hoap2")
    first = run(hoap2, 7)
    again = run(build_world(robot, config, urdf_path=path), 7)
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    assert not same(first[50], run(hoap2, 8)[50])


def test_reset_starts_the_same_run_again(hoap2):
    simulation = Simulation(hoap2, 0.005, LOUD, 3)
    first = [simulation.advance() for _ in range(20)]
    simulation.reset()
    assert simulation.time == 0.0
    assert all(same(a, simulation.advance()) for a in first)


def test_noise_has_the_given_deviations_and_leaves_the_truth_alone(hoap2):
    quiet = run(hoap2, 1, NoiseLevels())
    noisy = run(hoap2, 1)
    for name, std in (
        ("position", LOUD.position),
        ("velocity", LOUD.velocity),
        ("effort", LOUD.effort),
        ("angular_velocity", LOUD.gyro),
        ("specific_force", LOUD.accelerometer),
    ):
        errors = [
            getattr(a, name) - getattr(b, name)
            for a, b in zip(noisy, quiet, strict=True)
        ]
        assert np.std(errors) == pytest.approx(std, rel=0.2), name
    wrenches = np.array(
        [a.wrenches - b.wrenches for a, b in zip(noisy, quiet, strict=True)]
    )
    assert np.std(wrenches[..., :3]) == pytest.approx(LOUD.force, rel=0.2)
    assert np.std(wrenches[..., 3:]) == pytest.approx(LOUD.torque, rel=0.2)
    turns = [
        (
            Rotation.from_quat(b.imu_orientation).inv()
            * Rotation.from_quat(a.imu_orientation)
        )
        for a, b in zip(noisy, quiet, strict=True)
    ]
    assert np.std([turn.as_rotvec() for turn in turns]) == pytest.approx(0.004, rel=0.2)
    for a, b in zip(noisy, quiet, strict=True):
        for name in ("time", "com", "com_velocity", "gravity", "root_position"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_readings_are_not_changed_later(arm):
    simulation = Simulation(build_world(arm), 0.01)
    first = simulation.advance()
    kept = {f.name: np.copy(getattr(first, f.name)) for f in fields(first)}
    simulation.command([0.5, 0.1])
    settle(simulation, 0.2)
    assert all(
        np.array_equal(getattr(first, name), value) for name, value in kept.items()
    )
    assert first.time == 0.0
    assert first.wrenches.shape == (0, 6)


def test_divergence_is_an_error_and_no_number(arm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wild = {"stiffness": 1e9, "damping": 0.0, "armature": 0.0, "effort": 1e12}
    config = RobotConfig.from_dict({"name": "arm", "servo": {"default": wild}})
    world = build_world(arm, config, step=0.01)
    # the one in use bears a lot
    world.mj.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    simulation = Simulation(world, 0.01)
    simulation.command([0.5, 0.1])
    with pytest.raises(
        DivergedError, match=r"diverged at 0\.\d+ s: take a physics step below"
    ):
        settle(simulation, 1.0)
    assert not list(tmp_path.iterdir())


def test_a_robot_without_joints():
    robot = RobotModel.from_urdf(
        '<robot name="r"><link name="a"><inertial><mass value="1"/></inertial></link></robot>'
    )
    reading = Simulation(build_world(robot)).advance()
    assert reading.position.shape == (0,)
    np.testing.assert_allclose(reading.com, 0.0)
