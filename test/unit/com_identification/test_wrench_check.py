"""Faults of force sensors are named; true readings of wrong URDFs are not accused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_identification.feet.wrench_check import WrenchFault, diagnose
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import make_posture
from com_identification.regression.stances import FlatStance
from com_identification.settings import SensorNoise
from com_model import RobotConfig, RobotModel, find_robot
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose

pytestmark = pytest.mark.slow
NOISE = SensorNoise()
CONFIG = (
    Path(__file__).resolve().parents[3] / "src/robot_descriptions/config/hoap2.yaml"
)


def check(robot, posture, **keys):
    return diagnose(ObservationModel(*robot), posture, **keys)


@pytest.fixture(scope="module")
def stances(hoap2):
    """Standing postures on both soles, the CoM somewhere over them."""
    model, feet = hoap2
    rest, rng = (
        RobotConfig.from_file(CONFIG).nominal_posture(model),
        np.random.default_rng(0),
    )
    stance = FlatStance(ObservationModel(model, feet).statics, feet)
    found = []
    while len(found) < 6:
        start = rest + 0.15 * rng.normal(size=25)
        shift = np.array([0.02 * rng.uniform(-1, 1), (-1) ** len(found) * 0.025])
        Q, stands = stance.solve_all(start[None], stance.middles(start[None]) + shift)
        if stands[0] and stance.margin(Q[0]) > 0.01:
            found.append(Q[0])
    return found


@pytest.fixture(scope="module")
def robot(perturbed):
    return perturbed(np.random.default_rng(1), 0.003)[0]


@pytest.fixture
def read(robot):
    """read(q, load): noisy means of 100 readings."""
    rng = np.random.default_rng(2)
    return lambda q, load=None: robot.posture(
        q, load or load_fractions(robot, q), NOISE, rng, 100
    )


def load_fractions(robot, q):
    """Fractions of the weight on feet that need no sideways moments."""
    left, right = (robot.frame(q, name)[1] for name in ("l_sole", "r_sole"))
    fraction = (
        (robot.com(q) - left) @ (right - left) / ((right - left) @ (right - left))
    )
    return [1.0 - fraction, fraction]


def spoil(model, posture, wrenches):
    return make_posture(model, posture.q, wrenches, samples=posture.samples)


def faults(hoap2, posture, **keys):
    return [(f.fault, f.feet) for f in check(hoap2, posture, **keys)]


def test_true_readings_of_wrong_urdfs_are_not_accused(hoap2, perturbed, stances):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        robot, _, _ = perturbed(rng, 0.01, mass_std_fraction=0.05)
        for q in stances:
            posture = robot.posture(q, load_fractions(robot, q), NOISE, rng, 100)
            assert [str(f) for f in check(hoap2, posture)] == []


def test_a_foot_in_the_air_is_told(hoap2, read, stances):
    posture = read(stances[0], [1.0, 0.0])
    found = [f for f in check(hoap2, posture) if f.fault == WrenchFault.IN_AIR]
    assert [f.feet for f in found] == [("r_sole",)]
    assert "r_sole does not stand: it carries" in str(found[0])


def test_flipped_signs(hoap2, read, stances):
    model, _ = hoap2
    for q in stances:
        posture = read(q)
        flipped = check(hoap2, spoil(model, posture, -posture.wrenches))
        assert [(f.fault, f.feet) for f in flipped] == [
            (WrenchFault.SIGN, ("l_sole", "r_sole"))
        ]
        assert "change the sign of l_sole and r_sole (wrench.sign" in flipped[0].text
        one = posture.wrenches * np.array([[1.0], [-1.0]])
        assert faults(hoap2, spoil(model, posture, one)) == [
            (WrenchFault.SIGN, ("r_sole",))
        ]


def test_a_wrong_sign_in_the_configuration_is_the_same_fault(hoap2, read, stances):
    model, feet = hoap2
    feet = tuple(replace(foot, wrench_sign=-1) for foot in feet)
    found = check((model, feet), read(stances[0]))
    assert [f.fault for f in found] == [WrenchFault.SIGN]


def test_swapped_feet(hoap2, read, stances):
    model, named = hoap2[0], 0
    for q in stances:
        posture = read(q)
        fraction = posture.wrenches[0, 2] / posture.wrenches[:, 2].sum()
        if not 0.05 < fraction < 0.25 and not 0.75 < fraction < 0.95:
            continue  # it does not show
        named += 1
        found = check(hoap2, spoil(model, posture, posture.wrenches[::-1]))
        assert [(f.fault, f.feet) for f in found] == [
            (WrenchFault.SWAPPED, ("l_sole", "r_sole"))
        ]
        assert "exchange their wrench.topic" in found[0].text
    assert named >= 2


@pytest.mark.parametrize(
    "unit", ["kilogram-force", "millinewton", "pound-force", "newton millimetre"]
)
def test_units(hoap2, read, stances, unit):
    model, _ = hoap2
    scale = {
        "kilogram-force": np.full(6, 1 / 9.80665),
        "millinewton": np.full(6, 1e3),
        "pound-force": np.full(6, 1 / 4.4482216),
        "newton millimetre": np.repeat([1.0, 1e3], 3),
    }[unit]
    for q in stances:
        posture = read(q)
        found = check(hoap2, spoil(model, posture, posture.wrenches * scale))
        assert [f.fault for f in found] == [WrenchFault.UNIT]
        assert unit in found[0].text


@pytest.mark.parametrize(
    "euler", [("x", 90), ("y", -90), ("x", 180), ("z", 90), ("z", 180)]
)
def test_turned_sensors(hoap2, robot, stances, euler):
    """Those about the vertical show where the foot's centre of pressure is not in the middle."""
    model, feet = hoap2
    R = Rotation.from_euler(*euler, degrees=True).as_matrix()
    rng, named = np.random.default_rng(3), 0
    for q in stances:
        posture = robot.posture(q, load_fractions(robot, q), NOISE, rng, 100)
        turned = posture.wrenches.copy()
        turned[0] = np.concatenate((R.T @ turned[0, :3], R.T @ turned[0, 3:]))
        found = check((model, feet), spoil(model, posture, turned))
        assert {f.fault for f in found} <= {WrenchFault.AXES, WrenchFault.SIGN}
        named += len(found)
        if euler[0] != "z":
            assert found[0].feet == ("l_sole",)
            assert "the x, y and z of its sensor are along" in found[0].text
    assert named == len(stances) or euler[0] == "z"


def test_a_turn_about_the_vertical_shows_by_the_centre_of_pressure(
    hoap2, robot, read, stances
):
    model, feet = hoap2
    read_all = (read(q) for q in stances)
    posture = max(
        read_all, key=lambda each: abs(each.wrenches[0, 4] / each.wrenches[0, 2])
    )
    R = np.diag([-1.0, -1.0, 1.0])
    turned = np.hstack((posture.wrenches[:, :3] @ R, posture.wrenches[:, 3:] @ R))
    found = check((model, feet), spoil(model, posture, turned), com_std=0.01)
    center = posture.wrenches[0, 4] / posture.wrenches[0, 2]
    print(f"centre of pressure {-1e3 * center:.0f} mm before the frame")
    assert [f.fault for f in found] == [WrenchFault.AXES]
    assert "along -x, -y, z of the frame" in found[0].text


def test_an_offset_of_a_foot_in_the_air(hoap2, read, stances):
    model, _ = hoap2
    posture = read(stances[0], [1.0, 0.0])
    wrenches = posture.wrenches + np.array([[0] * 6, [4.0, -2.0, -3.0, 0, 0, 0]])
    found = check(hoap2, spoil(model, posture, wrenches))
    assert (WrenchFault.OFFSET, ("r_sole",)) in [(f.fault, f.feet) for f in found]
    text = next(f.text for f in found if f.fault == WrenchFault.OFFSET)
    assert "lift it into the air and tare" in text


def test_an_offset_under_load_or_help_from_outside(hoap2, read, stances):
    model, _ = hoap2
    posture = read(stances[0])
    heavy = spoil(
        model, posture, posture.wrenches + np.array([[0, 0, 12.0, 0, 0, 0], [0] * 6])
    )
    found = check(hoap2, heavy, com_std=0.05)
    assert [(f.fault, f.other_force) for f in found] == [(WrenchFault.WEIGHT, True)]
    assert "The feet carry 81.8" in found[0].text or "The feet carry 8" in found[0].text
    assert "the robot weighs 69.85 N by its URDF: tare the sensors" in found[0].text
    nonsense = np.random.default_rng(0).normal(0, 50, (2, 6))
    found = check(hoap2, spoil(model, posture, nonsense))
    assert [(f.fault, f.other_force) for f in found] == [(WrenchFault.UNKNOWN, True)]
    assert (
        "No wrong sign, axes, unit or exchange of feet alone explains that"
        in found[0].text
    )


def test_a_force_across_gravity_has_no_centre_of_pressure(hoap2, read, stances):
    posture = read(stances[0])
    builder = ObservationModel(*hoap2)
    links = [hoap2[0].link_index(foot.wrench_frame) for foot in hoap2[1]]
    R, _ = builder.statics.link_frames(builder.statics.poses(posture.q[None]), links)
    wrenches = np.zeros((2, 6))
    wrenches[:, :3] = R[0].transpose(0, 2, 1) @ np.array([35.0, 0.0, 0.0])
    odd = replace(posture, wrenches=wrenches, up=np.array([0.0, 0.0, 1.0]))
    with np.errstate(all="raise"):
        found = check(hoap2, odd)
    assert WrenchFault.IN_AIR not in {each.fault for each in found}
    assert "leans 90 deg against gravity" in found[0].text


def test_silent_and_dead_sensors(hoap2, read, stances):
    model, feet = hoap2
    posture = read(stances[0])
    half = posture.wrenches.copy()
    half[1] = np.nan
    assert check(hoap2, spoil(model, posture, half)) == ()
    half[0] *= -1.0
    assert [f.feet for f in check(hoap2, spoil(model, posture, half))] == [("l_sole",)]
    dead = check(hoap2, spoil(model, posture, np.zeros((2, 6))))
    assert [f.fault for f in dead] == [WrenchFault.WEIGHT]
    assert check((model, feet), make_posture(model, posture.q)) == ()
    assert check((model, ()), make_posture(model, posture.q)) == ()


def test_a_payload_on_feet_that_push_apart_is_no_exchange_of_sensors():
    """Exchanged in pairs, the readings of its tilted legs add up to the URDF's weight, too."""
    files = find_robot("go2")
    model, config = (
        RobotModel.from_file(files.urdf),
        RobotConfig.from_file(files.config),
    )
    q, up, apart = config.nominal_posture(model), [0.0, 0.0, 1.0], [0.3, 0.15, 0.0]
    wrenches = []
    for foot in config.feet:
        R, p = link_pose(model, q, foot.wrench_frame)
        force = (
            1.12 * model.mass * GRAVITY / 4.0 * (np.sign([*p[:2], 0.0]) * apart + up)
        )
        wrenches.append([*R.T @ force, 0.0, 0.0, 0.0])
    posture = make_posture(model, q, wrenches, up=up, samples=100)
    found = check((model, config.feet), posture)
    assert [(f.fault, f.other_force) for f in found] == [(WrenchFault.WEIGHT, True)]
    assert "176.7 N together, the robot weighs 157.8 N by its URDF" in str(found[0])
