"""What the readings say together: Newton's and Euler's equations, by an independent program."""

import itertools

import mujoco
import numpy as np
import pinocchio
import pytest

from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_simulation.exceptions import WorldError
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow
STEP = 1e-4


@pytest.fixture(scope="module")
def solo(robot_files):
    robot, _, path = robot_files("solo12", "solo_description/robots/solo12.urdf")
    servo = {"stiffness": 300.0, "damping": 3.0, "armature": 0.002, "effort": 50.0}
    feet = {
        foot: {"radius": 0.016} for foot in ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
    }
    bent = {
        f"{leg}_HFE": s * 0.8
        for leg, s in (("FL", 1), ("FR", 1), ("HL", -1), ("HR", -1))
    }
    bent |= {
        f"{leg}_KFE": s * -1.6
        for leg, s in (("FL", 1), ("FR", 1), ("HL", -1), ("HR", -1))
    }
    config = {
        "name": "solo",
        "feet": feet,
        "posture": bent,
        "servo": {"default": servo},
    }
    return robot, RobotConfig.from_dict(config), path


def hopping(solo, step=STEP, **options):
    """A robot that works its legs: its world, and a reading for each step of the physics."""
    robot, config, path = solo
    world = build_world(robot, config, urdf_path=path, step=step, **options)
    simulation = Simulation(world, step)
    readings, period = [], round(1e-3 / step)
    for k in range(round(0.3 / step)):
        readings.append(simulation.advance())
        if k % period == 0:
            phase = 2.0 * np.pi * 4.0 * k * step
            targets = world.posture + 0.25 * np.sin(phase + np.arange(12)) * min(
                1.0, 10.0 * k * step
            )
            simulation.motion.hold(simulation.time, targets)
            simulation.lead(targets)
    return world, readings[round(0.1 / step) :]


def residuals(world, readings, step=STEP):
    """What Newton-Euler lacks: (k, 6) at the base, (k, n) at the joints.

    Driven by differences of the velocities and by the accelerometer, which contains gravity.
    """
    robot = world.robot
    oracle = pinocchio.buildModelFromXML(robot.xml, pinocchio.JointModelFreeFlyer())
    oracle.gravity.linear[:] = 0.0
    data = oracle.createData()
    rows = [oracle.joints[oracle.getJointId(name)].idx_v for name in robot.joint_names]
    q, v, a = pinocchio.neutral(oracle), np.zeros(oracle.nv), np.zeros(oracle.nv)
    base, joints = [], []
    for now, then in itertools.pairwise(readings):
        q[np.array(rows) + 1], v[rows] = now.position, now.velocity
        a[rows] = (then.velocity - now.velocity) / step
        v[3:6] = now.angular_velocity
        a[3:6] = (then.angular_velocity - now.angular_velocity) / step
        a[:3] = now.specific_force
        pinocchio.computeJointJacobians(oracle, data, q)
        pinocchio.updateFramePlacements(oracle, data)
        lacking = pinocchio.rnea(oracle, data, q, v, a)
        for foot, wrench in zip(world.feet, now.wrenches, strict=True):
            frame = oracle.getFrameId(foot.wrench_frame)
            J = pinocchio.getFrameJacobian(oracle, data, frame, pinocchio.LOCAL)
            lacking -= J.T @ wrench
        base.append(lacking[:6])
        joints.append(lacking[rows] + world.servos.armature * a[rows] - now.effort)
    return np.array(base), np.array(joints)


def test_euler_readings_obey_newton_and_euler(solo):
    world, readings = hopping(solo, integrator="euler")
    base, joints = residuals(world, readings)
    weight = world.robot.mass * GRAVITY
    forces = np.array([reading.foot_forces[:, 2] for reading in readings])
    assert forces.sum(axis=1).max() > 1.5 * weight  # it does hop
    np.testing.assert_allclose(base, 0.0, atol=1e-4 * weight)
    np.testing.assert_allclose(joints, 0.0, atol=1e-3)
    assert np.abs([reading.effort for reading in readings]).max() > 1.0


@pytest.mark.parametrize("step", [STEP, 1e-3])
def test_efforts_of_the_stable_integrator_are_those_that_act(solo, step):
    world, readings = hopping(solo, step=step)
    _, joints = residuals(world, readings, step)
    np.testing.assert_allclose(joints, 0.0, atol=1e-3)


def test_friction_stands_between_the_effort_and_the_joint(solo):
    world, readings = hopping(solo, integrator="euler", joint_friction=0.1)
    base, joints = residuals(world, readings)
    weight = world.robot.mass * GRAVITY
    np.testing.assert_allclose(base, 0.0, atol=1e-4 * weight)
    speeds = np.array([reading.velocity for reading in readings[:-1]])
    fast = np.abs(speeds) > 0.5
    assert fast.sum() > 1000
    against = np.abs(joints[fast] + 0.1 * np.sign(speeds[fast])) < 1e-3
    assert against.mean() > 0.998  # all but those that a blow of the ground turns round
    assert np.abs(joints).max() < 0.102


def test_friction_grows_with_speed_and_load(solo):
    """Against the motion: C + v |qd| + mu |effort|, with the effort one step of 0.1 ms before."""
    coulomb, viscous, load = 0.05, 0.02, 0.25
    world, readings = hopping(
        solo,
        integrator="euler",
        joint_friction=coulomb,
        viscous_friction=viscous,
        load_friction=load,
    )
    _, joints = residuals(world, readings)
    speeds = np.array([reading.velocity for reading in readings[1:-1]])
    efforts = np.array([reading.effort for reading in readings[:-2]])
    fast = np.abs(speeds) > 0.5
    assert fast.sum() > 1000
    assert load * np.abs(efforts[fast]).max() > 0.2
    sizes = coulomb + viscous * np.abs(speeds) + load * np.abs(efforts)
    off = joints[1:][fast] + sizes[fast] * np.sign(speeds[fast])
    assert (np.abs(off) < 1e-3).mean() > 0.98


def test_forces_of_the_feet_in_root_axes(solo):
    world, readings = hopping(solo, integrator="euler")
    for reading in readings[::500]:
        sizes = np.linalg.norm(reading.wrenches[:, :3], axis=1)
        np.testing.assert_allclose(
            np.linalg.norm(reading.foot_forces, axis=1), sizes, atol=1e-9
        )
        total = reading.foot_forces.sum(axis=0)
        com_acceleration = total / world.robot.mass + GRAVITY * reading.gravity
        assert np.linalg.norm(com_acceleration) < 60.0
    standing = readings[0]
    upwards = -standing.foot_forces @ standing.gravity
    assert (upwards >= 0.0).all()


def test_friction_of_each_joint(arm):
    world = build_world(arm, joint_friction=[0.5, 2.0])
    assert world.mj.dof_frictionloss[world.joint_dof] == pytest.approx([0.5, 2.0])
    assert build_world(arm).mj.dof_frictionloss.max() == 0.0


def test_integrators(arm):
    assert build_world(arm, integrator="euler").mj.opt.integrator == (
        mujoco.mjtIntegrator.mjINT_EULER
    )
    assert build_world(arm).mj.opt.integrator != mujoco.mjtIntegrator.mjINT_EULER


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "rk4"}, "integrator is 'rk4': give one of auto, euler"),
        (
            {"trunk_com_offset": [0.1]},
            r"trunk_com_offset is \[0.1\]: give three finite numbers",
        ),
        (
            {"joint_friction": [1.0, 2.0, 3.0]},
            r"joint_friction has shape \(3,\): give one .* or 2",
        ),
        ({"joint_friction": -1.0}, "joint_friction: give finite numbers, 0 or more"),
        ({"joint_friction": np.nan}, "joint_friction: give finite numbers, 0 or more"),
        ({"load_friction": -0.1}, "load_friction: give finite numbers, 0 or more"),
    ],
)
def test_bad_options(arm, options, message):
    with pytest.raises(WorldError, match=message):
        build_world(arm, **options)


def test_targets_lead_straight_to_the_next_sample():
    robot = RobotModel.from_urdf(
        '<robot name="r"><link name="a"/><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/></joint><link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    simulation = Simulation(build_world(robot, step=0.001), 0.01)
    simulation.advance()
    simulation.lead([0.1])
    times = np.array([0.0, 0.005, 0.01, 0.02])
    np.testing.assert_allclose(
        simulation.motion.targets(times)[:, 0], [0.0, 0.05, 0.1, 0.1]
    )
    one_by_one = [simulation.motion.target(t) for t in times]
    np.testing.assert_array_equal(simulation.motion.targets(times), one_by_one)
