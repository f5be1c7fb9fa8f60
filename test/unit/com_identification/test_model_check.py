"""Model against feet at rest: CoM, mass, the IMU's part apart, sloped ground, bad sensors."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_identification.feet.feet_reading import ModelCheck, ModelVerdict
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import make_posture
from com_identification.regression.stances import FlatStance
from com_identification.settings import SensorNoise
from com_identification.store.results import corrected_inertials
from com_model import RobotConfig
from com_model.urdf.editing import edit_inertials

CONFIG = (
    Path(__file__).resolve().parents[3] / "src/robot_descriptions/config/hoap2.yaml"
)
NOISE = SensorNoise()
BOTH = [0.5, 0.5]


@pytest.fixture(scope="module")
def stance(hoap2):
    """A posture on level soles, the CoM in their middle."""
    model, feet = hoap2
    flat = FlatStance(ObservationModel(model, feet).statics, feet)
    rest = RobotConfig.from_file(CONFIG).nominal_posture(model)
    return flat.solve_all(rest[None], flat.middles(rest[None]))[0][0]


@pytest.fixture(scope="module")
def robot_with(hoap2, perturbed):
    """robot_with(shift, fraction): the trunk's CoM moved, all masses larger by a fraction."""
    model, feet = hoap2
    kind = type(perturbed(np.random.default_rng(0), 0.0)[0])

    def make(shift=(0.0, 0.0, 0.0), fraction=0.0):
        bodies = model.bodies
        com = bodies.first_moment / bodies.mass[:, None]
        com[0] += shift
        inertials = corrected_inertials(model, bodies.mass * (1.0 + fraction), com)
        return kind(edit_inertials(model.xml, inertials), model, feet)

    return make


def read(robot, q, seed=0, **keys):
    return robot.posture(q, BOTH, NOISE, np.random.default_rng(seed), 100, **keys)


def test_a_true_model_agrees(hoap2, robot_with, stance):
    check, squares = ModelCheck(*hoap2), []
    for seed in range(20):
        found = check.update(read(robot_with(), stance, seed))
        assert found.verdict == ModelVerdict.CONSISTENT
        assert "within 3.0 mm" in found.reason
        assert np.isnan(found.tilt)
        np.testing.assert_allclose(found.tilt_part, 0.0, atol=1e-12)
        assert abs(found.mass - found.model_mass) < 5.0 * found.mass_std
        squares.append(found.model_part @ found.model_part / 2.0 / found.model_std**2)
    print(f"squared errors over variances {np.mean(squares):.2f}")
    assert 0.5 < np.mean(squares) < 1.7


def test_a_wrong_com_is_found_with_its_vector(hoap2, robot_with, stance):
    robot = robot_with((0.02, -0.012, 0.0))
    found = ModelCheck(*hoap2).update(read(robot, stance))
    shift = hoap2[0].bodies.mass[0] / hoap2[0].mass * np.array([0.02, -0.012, 0.0])
    up = found.up
    expected = -(shift - (shift @ up) * up)
    assert found.verdict == ModelVerdict.WRONG_COM
    np.testing.assert_allclose(found.model_part, expected, atol=5.0 * found.model_std)
    np.testing.assert_allclose(
        found.difference, found.tilt_part + found.model_part, atol=1e-15
    )
    assert (
        f"{1e3 * np.linalg.norm(found.model_part):.1f} mm off: identify" in found.reason
    )
    for point in (found.projection, found.measured):
        sole = robot.frame(stance, "l_sole")
        assert (sole[0].T @ (point - sole[1]))[2] == pytest.approx(0.0, abs=2e-5)


def test_a_wrong_mass_is_found(hoap2, robot_with, stance):
    found = ModelCheck(*hoap2).update(read(robot_with(fraction=0.04), stance))
    assert found.verdict == ModelVerdict.WRONG_MASS
    assert found.mass == pytest.approx(1.04 * 7.1200448, rel=3e-3)
    assert "The feet carry 7.40" in found.reason
    assert "the model has 7.12 kg: weigh the robot" in found.reason


def tilted(robot, q, degrees):
    R = robot.frame(q, "l_sole")[0]
    return R @ Rotation.from_euler("y", degrees, degrees=True).apply([0.0, 0.0, 1.0])


def test_a_tilted_imu_is_told_apart_from_the_model(hoap2, robot_with, stance):
    """Level ground: soles and forces agree, the IMU does not; its part is height times angle."""
    robot = robot_with()
    true = read(robot, stance)
    up = tilted(robot, stance, 3.0)
    posture = make_posture(robot.model, true.q, true.wrenches, up=up, samples=100)
    found = ModelCheck(*hoap2).update(posture)
    assert found.verdict == ModelVerdict.WRONG_TILT
    assert np.degrees(found.tilt) == pytest.approx(3.0, abs=0.1)
    assert not found.sloped
    R, p = robot.frame(stance, "l_sole")
    height = (R.T @ (robot.com(stance) - p))[2]
    assert np.linalg.norm(found.tilt_part) == pytest.approx(
        height * np.tan(np.radians(3.0)), rel=0.03
    )
    assert np.linalg.norm(found.model_part) < 5.0 * found.model_std
    assert "The IMU leans 3.0 deg against soles and forces" in found.reason


def test_sloped_ground_is_not_the_imus_fault(hoap2, robot_with, stance):
    """The forces side with the IMU: projection and centre of pressure agree along true gravity."""
    robot = robot_with()
    up = tilted(robot, stance, 4.0)
    found = ModelCheck(*hoap2).update(read(robot, stance, up=up))
    assert (found.verdict, found.sloped) == (ModelVerdict.CONSISTENT, True)
    assert np.degrees(found.tilt) == pytest.approx(4.0, abs=0.2)
    assert np.degrees(found.force_tilt) < 0.3
    assert np.linalg.norm(found.difference) < 5.0 * found.model_std
    off = ModelCheck(*hoap2).update(read(robot_with((0.02, 0.0, 0.0)), stance, up=up))
    assert off.verdict == ModelVerdict.WRONG_COM


def test_bad_readings_are_told(hoap2, robot_with, stance):
    model = hoap2[0]
    check, posture = ModelCheck(*hoap2), read(robot_with(), stance)
    flipped = make_posture(model, posture.q, -posture.wrenches, samples=100)
    found = check.update(flipped)
    assert found.verdict == ModelVerdict.WRONG_WRENCH
    assert "change the sign of l_sole and r_sole" in found.reason
    half = posture.wrenches.copy()
    half[0] = np.nan
    cases = [
        (None, "The robot is moving: keep it stationary"),
        (make_posture(model, posture.q, half), "The wrenches of all feet are needed"),
        (make_posture(model, posture.q), "The wrenches of all feet are needed"),
        (
            make_posture(model, posture.q, np.zeros((2, 6))),
            "direction of gravity|all feet",
        ),
        (make_posture(model, posture.q, half[:1]), "wrenches"),
    ]
    for bad, text in cases:
        found = check.update(bad)
        assert found.verdict == ModelVerdict.UNKNOWN
        assert np.isnan(found.difference).all()
        assert np.isnan(found.mass)
        assert found.model_mass == model.mass
        assert any(part in found.reason for part in text.split("|")), found.reason
    with pytest.raises(ValueError, match="read-only"):
        check.update(posture).difference[0] = 1.0
