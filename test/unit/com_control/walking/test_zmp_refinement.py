"""The ZMP of all bodies by Pinocchio, and walks that keep it where it belongs."""

import re

import numpy as np
import pinocchio
import pytest
from baselines.paper_walk import paper_walk
from scipy.spatial.transform import Rotation

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped
from com_control.walking.com_ik import ComIk
from com_control.walking.footsteps import WalkParameters
from com_control.walking.walk_joints import (
    RobotPath,
    correction,
    differences,
    ground_wrench,
    multi_body_zmp,
    refine,
    robot_path,
)
from com_control.walking.walk_plan import Timing
from com_model import RobotModel, Sesc
from com_model.dynamics.inverse_dynamics import Dynamics

QUICK = Timing(step_time=0.5, double_support=0.2, start_time=1.0, stop_time=1.0)
G = 9.81


class Rnea:
    """Wrench of the ground about the world's origin by Pinocchio."""

    def __init__(self, oracle):
        self.model, self.data = oracle.model, oracle.model.createData()
        names = oracle.biped.model.joint_names
        self.joints = [self.model.joints[self.model.getJointId(name)] for name in names]

    def configuration(self, q, R, p):
        full = pinocchio.neutral(self.model)
        full[:7] = pinocchio.SE3ToXYZQUAT(pinocchio.SE3(R, p))
        for joint, value in zip(self.joints, q, strict=True):
            if joint.nq == 2:  # continuous
                full[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            else:
                full[joint.idx_q] = value
        return full

    def wrench(self, full, v, a):
        base = pinocchio.rnea(self.model, self.data, full, v, a)[:6]
        place = pinocchio.XYZQUATToSE3(full[:7])
        return place.act(pinocchio.Force(base)).vector

    def of_samples(self, before, now, after, dt):
        """With velocities and accelerations by differences of three configurations."""
        one, two = (
            pinocchio.difference(self.model, *pair)
            for pair in ((before, now), (now, after))
        )
        return self.wrench(now, 0.5 * (one + two) / dt, (two - one) / dt**2)


def zmp_of(wrench, height=0.0):
    F, N = wrench[:3], wrench[3:]
    return np.array([height * F[0] - N[1], height * F[1] + N[0]]) / F[2]


@pytest.mark.parametrize("name", ["itu_biped", "talos", "icub"])
def test_the_wrench_of_the_ground_is_pinocchios(robots, name):
    biped, oracle = robots(name)
    rnea, rng = Rnea(oracle), np.random.default_rng(1)
    n, dt = biped.model.n_joints, 1e-3
    amplitude, phase = 0.2 * rng.uniform(-1, 1, n), rng.uniform(0, 6, n)
    axis, middle = np.array([0.48, 0.6, 0.64]), np.array([0.1, -0.2, 0.9])
    t = 0.3 + dt * np.arange(-3, 4)
    s, c = np.sin(3.0 * t), np.cos(3.0 * t)
    q = biped.posture + amplitude * np.sin(3.0 * t[:, None] + phase)
    R = Rotation.from_rotvec(0.4 * s[:, None] * axis).as_matrix()
    p = middle + 0.1 * np.column_stack((s, c, s))
    found = ground_wrench(Dynamics(biped.model), RobotPath(dt, q, R, p))[3]

    k, w = 3, 3.0
    v, a = np.zeros(rnea.model.nv), np.zeros(rnea.model.nv)
    speed, rise = (
        0.1 * w * np.array([c[k], -s[k], c[k]]),
        -0.1 * w * w * np.array([s[k], c[k], s[k]]),
    )
    v[:3], v[3:6] = R[k].T @ speed, 0.4 * w * c[k] * axis
    a[:3], a[3:6] = R[k].T @ rise - np.cross(v[3:6], v[:3]), -0.4 * w * w * s[k] * axis
    for i, joint in enumerate(rnea.joints):
        v[joint.idx_v] = w * amplitude[i] * np.cos(w * t[k] + phase[i])
        a[joint.idx_v] = -w * w * amplitude[i] * np.sin(w * t[k] + phase[i])
    expected = rnea.wrench(rnea.configuration(q[k], R[k], p[k]), v, a)
    np.testing.assert_allclose(found, expected, atol=1e-5 * biped.model.mass * G)


def test_at_rest_the_zmp_is_under_the_com(robots):
    biped, _ = robots("hoap2")
    R, p = (
        Rotation.from_euler("zyx", [0.3, 0.1, 0.05]).as_matrix(),
        np.array([0.4, -0.1, 0.5]),
    )
    path = RobotPath(
        0.01, np.tile(biped.posture, (3, 1)), np.tile(R, (3, 1, 1)), np.tile(p, (3, 1))
    )
    com = p + R @ Sesc(biped.model).com(biped.posture)
    for height in (0.0, 0.2):
        zmp = multi_body_zmp(Dynamics(biped.model), path, height)
        np.testing.assert_allclose(zmp, np.tile([*com[:2], height], (3, 1)), atol=1e-12)


def test_in_free_fall_there_is_no_zmp(robots):
    biped, _ = robots("itu_biped")
    t = 0.01 * np.arange(5.0)
    p = np.column_stack((0 * t, 0 * t, 1.0 - 0.5 * G * t**2))
    path = RobotPath(
        0.01, np.tile(biped.posture, (5, 1)), np.tile(np.eye(3), (5, 1, 1)), p
    )
    message = r"at 0\.0\d0 s the ground would carry .* N of a robot of 343\.8 N: there is no ZMP"
    with pytest.raises(PlanError, match=message):
        multi_body_zmp(Dynamics(biped.model), path)


def test_a_correction_moves_the_pendulums_zmp_back():
    plan = paper_walk(timing=QUICK)
    samples, rng = plan.sample(plan.grid(0.01)), np.random.default_rng(2)
    dt = samples.time[1]
    away = 0.01 * np.cumsum(rng.normal(size=(len(samples.time), 2)), axis=0)
    shift = correction(samples, away, np.array([1.0, 1.5]), dt)
    moved = (
        shift - np.array([1.0, 1.5]) * QUICK.com_height / G * differences(shift, dt)[1]
    )
    np.testing.assert_allclose(moved, -away, atol=1e-12)
    constant = np.full_like(away, 0.02)
    np.testing.assert_allclose(
        correction(samples, constant, np.ones(2), dt), -constant, atol=1e-12
    )


def test_a_refined_walk_has_the_planned_zmp_by_pinocchio(robots):
    biped, oracle = robots("itu_biped")
    plan = paper_walk(timing=QUICK)
    walk = refine(ComIk(biped), plan)
    assert not walk.reason
    assert walk.reason == ""
    assert len(walk.errors) <= 7
    assert walk.errors[0] > 0.1  # without refinement far out of the soles
    assert walk.errors[-1] <= 1e-4
    assert not walk.zmp.flags.writeable
    joints, dt, rnea = walk.joints, walk.joints.time[1], Rnea(oracle)
    path = robot_path(biped, joints, dt)
    full = [
        rnea.configuration(*at)
        for at in zip(path.q, path.R_root, path.p_root, strict=True)
    ]
    planned = plan.sample(joints.time)
    for i in range(1, len(full) - 1, 7):
        wrench = rnea.of_samples(*full[i - 1 : i + 2], dt)
        np.testing.assert_allclose(zmp_of(wrench), planned.zmp[i, :2], atol=2e-4)
        feet, com = oracle.place(joints.q[i], joints.R_pelvis[i], joints.pelvis[i])
        np.testing.assert_allclose(com, walk.samples.com[i], atol=2e-9)
        np.testing.assert_allclose(feet, planned.feet[i], atol=1e-9)
    np.testing.assert_array_equal(walk.samples.zmp, planned.zmp)
    np.testing.assert_allclose(
        walk.samples.com[[0, -1]], planned.com[[0, -1]], atol=1e-3
    )


@pytest.mark.parametrize(("length", "climb"), [(0.2, 0.05), (0.25, -0.03)])
def test_stairs(robots, length, climb):
    walk = WalkParameters(steps=4, step_length=length, climb=climb)
    found = refine(
        ComIk(robots("itu_biped")[0]), paper_walk(walk, Timing(step_time=0.8))
    )
    assert not found.reason
    assert found.errors[0] > 0.02


def test_turns(robots):
    walk = WalkParameters(steps=8, step_length=0.15, turn=0.3)
    found = refine(
        ComIk(robots("itu_biped")[0]), paper_walk(walk, Timing(step_time=0.7))
    )
    assert not found.reason


@pytest.mark.parametrize(
    ("name", "length"), [("talos", 0.2), ("hoap2", 0.04), ("offset", 0.2)]
)
def test_humanoids(humanoid, stance_of, name, length):
    biped, _ = humanoid(name)
    half, height = stance_of(biped, 0.97)
    timing = Timing(
        step_time=0.6,
        com_height=height,
        step_height=0.1 * height,
        min_width=half,
        start_time=1.0,
    )
    plan = paper_walk(
        WalkParameters(steps=3, step_length=length, half_width=half), timing
    )
    ik = ComIk(biped)
    assert ik.closed == (name != "offset")
    found = refine(ik, plan)
    assert not found.reason
    assert found.joints.com_errors.max() <= 1e-9


def test_without_passes_the_error_is_reported(robots):
    plan = paper_walk(timing=QUICK)
    found = refine(ComIk(robots("itu_biped")[0]), plan, passes=0)
    assert found.reason
    assert len(found.errors) == 1
    assert found.reason == (
        f"the ZMP stays {1e3 * found.errors[0]:.3g} mm from the planned one after 0 passes, "
        "0.1 mm were wanted"
    )
    np.testing.assert_array_equal(found.samples.com, plan.sample(found.joints.time).com)
    with pytest.raises(PlanError, match="passes is -1: give 0 or more"):
        refine(ComIk(robots("itu_biped")[0]), plan, passes=-1)


def test_a_walk_out_of_reach_is_refused(robots):
    with pytest.raises(PlanError, match="leg is too short"):
        refine(ComIk(robots("itu_biped")[0]), paper_walk(timing=Timing(com_height=0.8)))


def test_a_correction_beyond_the_limits_ends_the_refinement(robots):
    model, config = robots("itu_biped")[0].model, robots("itu_biped")[1].config
    start = model.xml.index('<joint name="r_knee_joint"')
    narrow = re.sub(r'upper="[^"]*"', 'upper="1.525"', model.xml[start:], count=1)
    biped = Biped.from_config(RobotModel.from_urdf(model.xml[:start] + narrow), config)
    plan = paper_walk(timing=QUICK)
    found = refine(ComIk(biped), plan)
    assert found.reason
    assert len(found.errors) == 1
    assert re.fullmatch(
        r"a correction of the CoM leads out of reach: the walk is not feasible at \d\.\d+ s: "
        r"r_knee_joint would be at 1\.5\d+ rad, its limits are 0\.\d+ to 1\.525; .*",
        found.reason,
    ), found.reason
    np.testing.assert_array_equal(found.samples.com, plan.sample(found.joints.time).com)
