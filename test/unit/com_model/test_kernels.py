"""What numba compiles against the same as plain Python; sine and cosine; the packed frames."""

import importlib
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import com_model.sesc
from com_model import RobotModel, Sesc
from com_model.sesc import batch_kernels, kernels
from com_model.sesc.sesc import pack

pytestmark = pytest.mark.slow
ROBOTS = ["pr2_description/urdf/pr2.urdf", "icub_description/robots/icub.urdf"]


@pytest.fixture(scope="module")
def plain():
    """The kernels without their compiler: numpy and Python."""
    names = [f"com_model.sesc.{name}" for name in ("kernels", "batch_kernels")]
    compiled = {name: sys.modules.pop(name) for name in names}
    enabled, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True
    try:
        functions = {
            k: v
            for name in names
            for k, v in vars(importlib.import_module(name)).items()
        }
    finally:
        numba.config.DISABLE_JIT = enabled
        for name, module in compiled.items():
            sys.modules[name] = module
            setattr(com_model.sesc, name.rpartition(".")[2], module)
    return SimpleNamespace(**functions)


@pytest.mark.parametrize("name", ROBOTS)
def test_one_configuration_compiled_and_plain(name, plain, example_models):
    model, rng = example_models[name], np.random.default_rng(0)
    robot, n = pack(model.bodies), model.n_joints
    q, R, p = (
        rng.uniform(-3, 3, n),
        Rotation.random(random_state=rng).as_matrix(),
        rng.normal(size=3),
    )
    results = []
    for module in (kernels, plain):
        com, jacobian = np.empty(3), np.empty((3, 6 + n))
        assert module.com_and_jacobian_of_placed(q, robot.copy(), R, p, com, jacobian)
        alone, fixed = np.empty(3), np.empty((3, n))
        module.com_and_jacobian_of_one(q, robot.copy(), alone, fixed)
        again, moved = np.empty(3), np.empty(3)
        module.com_of_one(q, robot.copy(), again)
        assert module.com_of_placed(q, robot.copy(), R, p, moved)
        results.append((com, jacobian, alone, fixed, again, moved))
    for compiled, expected in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ROBOTS)
def test_many_configurations_compiled_and_plain(name, plain, example_models):
    model, rng = example_models[name], np.random.default_rng(1)
    robot, n, count = pack(model.bodies), model.n_joints, 3
    Q, R, p = rng.uniform(-3, 3, (count, n)), np.eye(3), rng.normal(size=3)
    Q[1, 4] = 2.0e5
    results = []
    for module in (batch_kernels, plain):
        com, jacobian, alone = (
            np.empty((count, 3)),
            np.empty((count, 3, n)),
            np.empty((count, 3)),
        )
        assert module.com_and_jacobian_of_many(Q, robot, R, p, com, jacobian)
        without = np.empty((count, 0, 0))
        assert module.com_and_jacobian_of_many(Q, robot, R, p, alone, without)
        results.append((com, jacobian, alone))
    for compiled, expected in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("largest", [1.0, 10.0, 1e3, 1e4, 1e5])
def test_sine_and_cosine(largest):
    angles = np.random.default_rng(2).uniform(-largest, largest, 100_000)
    angles[:9] = np.arange(-4, 5) * np.pi / 4
    sines, cosines = np.empty_like(angles), np.empty_like(angles)
    kernels.fill_sincos(angles, sines, cosines)
    assert np.abs(sines - np.sin(angles)).max() < 1.7e-16
    assert np.abs(cosines - np.cos(angles)).max() < 1.7e-16


def test_sine_and_cosine_far_out_and_of_no_number():
    angles = np.array([1e6, -1e12, 1e300, np.nan, np.inf, -np.inf, 0.0, -0.0])
    sines, cosines = np.empty_like(angles), np.empty_like(angles)
    kernels.fill_sincos(angles, sines, cosines)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(sines, np.sin(angles), atol=2e-16)
        np.testing.assert_allclose(cosines, np.cos(angles), atol=2e-16)


def test_small_angles_keep_their_relative_accuracy():
    angles = 10.0 ** np.arange(-300, 0.0)
    sines, cosines = np.empty_like(angles), np.empty_like(angles)
    kernels.fill_sincos(angles, sines, cosines)
    np.testing.assert_allclose(sines, np.sin(angles), rtol=3e-16)


def test_joints_of_packed_robots_turn_about_z(example_models):
    """Chained bodies are reached by a turn about x alone, then about z, whatever their axes."""
    for model in example_models.values():
        robot, bodies = pack(model.bodies), model.bodies
        for k in range(1, bodies.count):
            C = robot[kernels.ALIGN : kernels.ALIGN + 9, k].reshape(3, 3)
            np.testing.assert_allclose(C @ C.T, np.eye(3), atol=1e-14)
            if not robot[kernels.CHAINED, k]:
                continue
            slides = robot[kernels.TURN, k] == 0.0
            angle = robot[kernels.OFFSET, k] - (0.0 if slides else bodies.offset[k])
            tilt = np.arctan2(robot[kernels.SIN_TILT, k], robot[kernels.COS_TILT, k])
            expected = Rotation.from_euler("XZ", [tilt, angle]).as_matrix()
            np.testing.assert_allclose(C, expected, atol=3e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-18, 1e-15, 1e-12, 1e-8, 1e-4])
def test_nearly_parallel_axes_lose_nothing(angle):
    """The common normal of two axes says little when they are nearly parallel."""
    chain = "".join(
        f"""<link name="l{i}">
        <inertial><origin xyz="0.1 0.2 {i}"/><mass value="1"/></inertial></link>
        <joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>
        <origin xyz="0.3 0 0.1" rpy="{angle} {-angle} 0.5"/><axis xyz="0 0 1"/></joint>"""
        for i in range(6)
    )
    model = RobotModel.from_urdf(f'<robot name="r">{chain}<link name="l6"/></robot>')
    q = np.random.default_rng(3).uniform(-3, 3, 6)
    sesc = Sesc(model)
    np.testing.assert_allclose(sesc.com(q), sesc.chain(q)[-1], atol=3e-15)
