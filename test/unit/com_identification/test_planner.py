"""Planned postures: the robot can take them, and they are more informative than random ones."""

import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from com_identification.exceptions import IdentificationError
from com_identification.planning.feasible import SelfCollision
from com_identification.planning.planner import PosturePlanner
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import SensorPrediction
from com_identification.regression.priors import body_priors, urdf_priors
from com_identification.regression.rows import whiten
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics, prediction_rows
from com_identification.settings import (
    CRITERIA,
    IdentificationSettings,
    PlanOptions,
    SensorNoise,
    SensorPriors,
)
from com_model import ConfigError, RobotConfig, RobotModel, SupportPolygon

pytestmark = pytest.mark.slow

DESCRIPTIONS = Path(__file__).resolve().parents[3] / "src/robot_descriptions"
NOISE = SensorNoise(force=0.5, moment=0.025, effort=0.02, position=np.radians(0.05))
DUMBBELL = """<robot name="two_arms"><link name="base"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
{arms}</robot>"""
ARM = """<joint name="{n}" type="prismatic"><parent link="base"/><child link="{n}_arm"/>
  <origin xyz="{x} 0 0.5" rpy="0 0 {turn}"/><axis xyz="1 0 0"/>
  <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
<link name="{n}_arm"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry>{shape}</geometry></collision></link>"""


def settings_of(margin=0.015, most_tilt=np.pi, one_foot=0.0, **plan):
    plan = PlanOptions(margin=margin, most_tilt=most_tilt, one_foot=one_foot, **plan)
    return IdentificationSettings(
        noise=NOISE, sensors=SensorPriors.calibrated(), plan=plan
    )


@pytest.fixture(scope="module")
def rest(hoap2):
    names = {"LLEG_JOINT3": -0.28, "LLEG_JOINT4": 0.66, "LLEG_JOINT5": -0.38}
    names |= {f"R{name[1:]}": value for name, value in names.items()}
    names |= {
        "LARM_JOINT1": 1.4,
        "RARM_JOINT1": 1.4,
        "LARM_JOINT2": 0.1,
        "RARM_JOINT2": -0.1,
    }
    q = hoap2[0].neutral.copy()
    for name, value in names.items():
        q[hoap2[0].joint_index(name)] = value
    return q


@pytest.fixture(scope="module")
def planner(hoap2, rest):
    priors = urdf_priors(hoap2[0], 0.005)
    return PosturePlanner(*hoap2, rest, settings_of(candidates=120), priors)


@pytest.fixture(scope="module")
def planned(planner):
    return planner.propose(15)


@pytest.fixture(scope="module")
def small(hoap2, rest):
    return PosturePlanner(*hoap2, rest, settings_of(candidates=20))


def test_one_foot_adds_each_sole_alone(hoap2, rest):
    def stances(**plan):
        planner = PosturePlanner(
            *hoap2, rest, settings_of(**plan), urdf_priors(hoap2[0], 0.005)
        )
        return list(planner.feasible.stances)

    assert stances() == [(0, 1)]
    assert stances(one_foot=0.5) == [(0, 1), (0,), (1,)]
    assert stances(one_foot=0.5, stands=((1,),)) == [(1,)]
    assert stances(one_foot=0.5, keep_feet=True) == [(0, 1)]
    assert PlanOptions().alone == 0.5
    with pytest.raises(
        ConfigError, match=r"one_foot is 2\.0: give a number from 0 to 1"
    ):
        PlanOptions(one_foot=2.0)


@pytest.mark.exhaustive
def test_the_robot_can_stand_in_them(hoap2, perturbed, planned):
    model, feet = hoap2
    robot = perturbed(np.random.default_rng(0), 0.0)[0]
    middle, half = (
        (model.lower + model.upper) / 2,
        0.95 * (model.upper - model.lower) / 2,
    )
    assert len(planned) == 15
    for posture in planned:
        assert (np.abs(posture.q - middle) <= half + 1e-9).all()
        frames = [robot.frame(posture.q, foot.frame) for foot in feet]
        R, p = (np.array(part) for part in zip(*frames, strict=True))
        polygon = SupportPolygon.from_soles(R, p, [foot.corners for foot in feet])
        margin = polygon.margin(robot.com(posture.q))
        assert margin == pytest.approx(posture.margin, abs=1e-9)
        assert margin >= 0.015
        assert posture.feet == ("l_sole", "r_sole")


def test_it_does_not_touch_itself_in_them(hoap2, rest, planned):
    """MuJoCo with the exact shapes as the oracle; neighbours and what touches at rest left out."""
    spec = mujoco.MjSpec.from_string(hoap2[0].xml.replace("<mesh", "<!-- mesh"))
    model = spec.compile()
    data = mujoco.MjData(model)

    def touching(q):
        for name, value in zip(hoap2[0].joint_names, q, strict=True):
            data.qpos[model.joint(name).qposadr[0]] = value
        mujoco.mj_forward(model, data)
        return {
            frozenset(model.geom_bodyid[c.geom].tolist())
            for c in data.contact
            if c.dist < 0
        }

    allowed = touching(rest)
    for posture in planned:
        assert touching(posture.q) <= allowed
    checker = SelfCollision(Statics(hoap2[0]), rest)
    rng, seen = np.random.default_rng(0), 0
    for _ in range(60):
        q = rng.uniform(hoap2[0].lower, hoap2[0].upper)
        if touching(q) - allowed:
            seen += 1
            assert checker.touching(q[None])[0], (
                "boxes around shapes touch wherever the shapes do"
            )
    assert seen > 5


def test_the_most_informative_come_first(planned):
    gains = [posture.gain for posture in planned]
    assert np.all(np.diff(gains) < 0.2 * gains[0])
    assert gains[0] > 3.0 * gains[-1]
    assert {posture.efficiency for posture in planned} == {planned[0].efficiency}
    assert 0.8 < planned[0].efficiency <= 1.0


@pytest.mark.exhaustive
def test_same_seed_gives_the_same_postures(hoap2, rest, small):
    again, first = (
        PosturePlanner(*hoap2, rest, settings_of(candidates=20)),
        small.propose(3),
    )
    for planner in (
        again,
        small,
    ):  # and what was drawn before is not changed by choosing
        for one, two in zip(first, planner.propose(3), strict=True):
            np.testing.assert_array_equal(one.q, two.q)


def test_progress_moves_and_is_in_words(hoap2, rest):
    planner, reported = (
        PosturePlanner(*hoap2, rest, settings_of(candidates=20, refinements=2)),
        [],
    )
    planner.propose(3, progress=lambda *step: reported.append(step))
    fractions, steps = zip(*reported, strict=True)
    assert list(fractions) == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert len(set(fractions)) == len(fractions), (
        "each report is of something that was done"
    )
    assert steps[0] == "0 of 20 postures found in which the robot can stand"
    assert steps[-2:] == ("improving posture 3 of 3, round 2 of 2", "done")


@pytest.mark.exhaustive
def test_what_was_taken_is_not_proposed_again(small, perturbed):
    robot = perturbed(np.random.default_rng(0), 0.0)[0]
    first = small.propose(6)
    taken = [robot.posture(p.q, [0.5, 0.5], NOISE, samples=100) for p in first]
    then = small.propose(3, taken)
    assert then[0].gain < 0.6 * first[0].gain
    assert not any(np.allclose(p.q, old.q) for p in then for old in first)


def test_planned_postures_are_more_informative_than_as_many_random_ones(
    hoap2, planner, planned, perturbed
):
    """Mean (geometric) std of the 51 combinations that postures on both feet determine."""
    model, feet = hoap2
    rng = np.random.default_rng(1)
    robot = perturbed(rng, 0.0)[0]
    priors, statics = urdf_priors(model, 0.005), Statics(model)
    factor = priors.factor
    Q = np.array([entry[0] for entry in planner.feasible.sample(120, anywhere=True)])
    R, _ = statics.link_frames(statics.poses(Q), [model.link_index("l_sole")])
    rows = R[:, 0].transpose(0, 2, 1) @ statics.first_moment(statics.poses(Q)) @ factor
    _, s, Vt = np.linalg.svd(rows[:, :2].reshape(-1, 78), full_matrices=False)
    observable = Vt[s > 1e-9 * s[0]]
    assert len(observable) == 51

    builder = ObservationModel(model, feet, NOISE)
    zero = np.zeros(builder.errors.count)

    def std(postures):
        information = np.eye(78)
        for q in postures:
            rows = builder.linearize(
                robot.posture(q, [0.5, 0.5], samples=100), statics.parameters, zero
            )
            A = whiten(rows.bodies @ factor, rows.covariance)
            information += A.T @ A
        scatter = observable @ np.linalg.inv(information) @ observable.T
        return np.exp(np.linalg.slogdet(scatter)[1] / 2 / len(observable))

    by_plan = std([posture.q for posture in planned[:15]])
    by_chance = [std(Q[rng.permutation(len(Q))[:15]]) for _ in range(5)]
    print(
        f"15 planned {by_plan:.3f}, 15 random {np.mean(by_chance):.3f} of the prior's std"
    )
    assert by_plan < 0.95 * np.min(by_chance)


@pytest.mark.exhaustive
def test_prediction_as_the_criterion_predicts_better(hoap2, rest):
    """Mean variance of the predicted CoM over other postures, which is what it makes small."""
    priors = urdf_priors(hoap2[0], 0.005)
    variances = {}
    for criterion in CRITERIA:
        settings = settings_of(candidates=60, refinements=2, criterion=criterion)
        planner = PosturePlanner(*hoap2, rest, settings, priors)
        statics = Statics(hoap2[0])
        factor = priors.factor
        builder = ObservationModel(*hoap2, NOISE)
        zero = np.zeros(builder.errors.count)
        information = np.eye(78)
        for planned in planner.propose(8):
            up = FlatStance(statics, hoap2[1]).up_directions(planned.q[None])[0]
            prediction = SensorPrediction(statics, hoap2[1], statics.parameters, 9.81)
            posture = prediction.posture(
                planned.q, up, (0, 1), efforts=False, samples=100
            )
            rows = builder.linearize(posture, statics.parameters, zero)
            A = whiten(rows.bodies @ factor, rows.covariance)
            information += A.T @ A
        Q = np.array([entry[0] for entry in planner.feasible.sample(60)])
        up = FlatStance(statics, hoap2[1]).up_directions(Q)
        C = prediction_rows(statics, statics.poses(Q), up, statics.parameters) @ factor
        scatter = C @ np.linalg.inv(information) @ C.transpose(0, 2, 1)
        variances[criterion] = float(np.trace(scatter, axis1=1, axis2=2).mean())
    print({name: f"{1e3 * np.sqrt(value):.3f} mm" for name, value in variances.items()})
    assert variances["prediction"] < 0.95 * variances["parameters"]
    with pytest.raises(
        ConfigError, match="criterion is 'best': give parameters or prediction"
    ):
        PlanOptions(criterion="best")


def test_zeros_read_in_the_air_help_where_both_feet_stand(hoap2, rest):
    """As much as priors that are narrower by a reading whose error is ten steps of the drift."""
    drift = {"force_drift": 0.002, "moment_drift": 1e-4}
    wide = {"force_bias": 0.02, "moment_bias": 0.002}
    narrow = {
        kind: (value**-2 + 0.1 * drift[kind.replace("bias", "drift")] ** -2) ** -0.5
        for kind, value in wide.items()
    }
    settings = settings_of(candidates=20, refinements=0)
    settings = replace(settings, sensors=SensorPriors.calibrated(**wide, **drift))
    planner = PosturePlanner(*hoap2, rest, settings)
    gravity = settings.fit.gravity
    planned, pool = planner.propose(6), planner.feasible.sample(20)
    assert planned[0].zeroed_std == planned[-1].zeroed_std
    priors, statics = body_priors(hoap2[0], settings), Statics(hoap2[0])
    prediction = SensorPrediction(statics, hoap2[1], statics.parameters, gravity)

    def up_of(q):
        return FlatStance(statics, hoap2[1]).up_directions(q[None])[0]

    def std(sensors):
        sensors = SensorPriors.calibrated(**sensors, **drift)
        builder = ObservationModel(*hoap2, NOISE, gravity, sensors)
        used = builder.errors.stds > 0.0
        information = np.eye(priors.count + used.sum())
        for posture in planned:
            q, feet = posture.q, tuple(range(len(posture.feet)))
            read = prediction.posture(q, up_of(q), feet, efforts=False, samples=100)
            rows = builder.linearize(read, statics.parameters, np.zeros(len(used)))
            A = np.hstack(
                (
                    rows.bodies @ priors.factor,
                    (rows.errors * builder.errors.stds)[:, used],
                )
            )
            A = whiten(A, rows.total_noise + 10.0 * rows.drift @ rows.drift.T)
            information += A.T @ A
        P = np.linalg.inv(information)[: priors.count, : priors.count]
        Q = np.array([entry[0] for entry in pool])
        up = np.array([up_of(q) for q in Q])
        C = (
            prediction_rows(statics, statics.poses(Q), up, statics.parameters)
            @ priors.factor
        )
        return float(
            np.sqrt(np.trace(C @ P @ C.transpose(0, 2, 1), axis1=1, axis2=2).mean())
        )

    before, after = std(wide), std(narrow)
    assert planned[-1].prediction_std == pytest.approx(before, rel=1e-3)
    assert planned[-1].zeroed_std == pytest.approx(after, rel=1e-3)
    assert after < 0.9 * before


def test_zeros_of_calibrated_sensors_are_not_worth_reading(small):
    last = small.propose(3)[-1]
    assert last.zeroed_std == pytest.approx(last.prediction_std, rel=1e-9)


def test_impossible_requests_are_refused_with_the_reasons(hoap2, rest):
    settings = settings_of(candidates=10, margin=0.2)
    planner = PosturePlanner(*hoap2, rest, settings)
    with pytest.raises(IdentificationError, match=r"0 postures of 300 .* margin"):
        planner.propose(5)


def test_a_planar_robot_stands_as_it_can():
    """The three-link biped cannot move its CoM sideways."""
    config = RobotConfig.from_file(DESCRIPTIONS / "config" / "biped3.yaml")
    model = RobotModel.from_file(config.urdf)
    settings = settings_of(candidates=30, refinements=2)
    planner = PosturePlanner(model, config.feet, model.neutral, settings)
    found = planner.propose(6)
    assert len(found) == 6
    assert all(posture.margin >= 0.015 for posture in found)
    assert found[0].gain > 1.0


@pytest.mark.exhaustive
def test_one_foot_may_stand_alone(hoap2, rest):
    settings = settings_of(candidates=8, margin=0.005, stands=((0,), (1,)))
    found = PosturePlanner(*hoap2, rest, settings).propose(6)
    assert {posture.feet for posture in found} == {("l_sole",), ("r_sole",)}
    assert all(posture.margin >= 0.005 for posture in found)


def test_half_of_them_are_on_one_foot_unless_told(hoap2, rest):
    plan = replace(PlanOptions(), candidates=12, refinements=0, margin=0.015)
    settings = replace(settings_of(), plan=plan)
    found = PosturePlanner(*hoap2, rest, settings).propose(6)
    assert sum(len(posture.feet) == 1 for posture in found) == 3


@pytest.fixture(scope="module")
def kept(hoap2, rest):
    settings = settings_of(candidates=12, refinements=2, keep_feet=True)
    planner = PosturePlanner(*hoap2, rest, settings)
    return planner, planner.propose(6)


def sole_places(robot, q):
    (R, p), (R_r, p_r) = robot.frame(q, "l_sole"), robot.frame(q, "r_sole")
    return np.column_stack((R.T @ R_r, R.T @ (p_r - p)))


def test_soles_stay_where_they_are_at_rest(kept, rest, perturbed):
    robot = perturbed(np.random.default_rng(0), 0.0)[0]
    assert len(kept[1]) == 6
    for posture in kept[1]:
        places = sole_places(robot, posture.q)
        np.testing.assert_allclose(places, sole_places(robot, rest), atol=1e-9)
        assert np.abs(posture.q - rest).max() > 0.3


def test_a_robot_moves_between_them_without_a_step(kept, rest, perturbed, hoap2):
    """Pinocchio: soles in place and CoM within the polygon all the way."""
    planner, postures = kept
    robot, feet = perturbed(np.random.default_rng(0), 0.0)[0], hoap2[1]
    found = 0
    for posture in postures:
        path = planner.feasible.path_between(rest, posture.q)
        if path is None:
            continue
        found += 1
        np.testing.assert_array_equal(path[[0, -1]], [rest, posture.q])
        assert np.abs(np.diff(path, axis=0)).max() <= 0.05
        for q in path:
            np.testing.assert_allclose(
                sole_places(robot, q), sole_places(robot, rest), atol=1e-9
            )
            frames = [robot.frame(q, foot.frame) for foot in feet]
            R, p = (np.array(part) for part in zip(*frames, strict=True))
            polygon = SupportPolygon.from_soles(R, p, [foot.corners for foot in feet])
            assert polygon.margin(robot.com(q)) >= 0.015 - 1e-9
    assert found >= 3


def test_there_is_no_way_where_a_foot_would_have_to_step(kept, planned, rest):
    assert kept[0].feasible.path_between(rest, planned[0].q) is None


def test_ways_keep_all_feet_whatever_stands_are_planned(hoap2, rest, kept):
    settings = settings_of(stands=((0,),), margin=0.005)
    planner = PosturePlanner(*hoap2, rest, settings)
    ways = [planner.feasible.path_between(rest, posture.q) for posture in kept[1]]
    assert any(way is not None for way in ways)


def test_what_the_motors_cannot_hold_is_not_proposed(hoap2, rest, perturbed):
    """Standing on one leg, HOAP-2 needs up to 3 N m or so; here its motors have 2 N m."""
    model, feet = hoap2
    robot = perturbed(np.random.default_rng(0), 0.0)[0]
    weak = RobotModel.from_urdf(re.sub(r'effort="[0-9.]+"', 'effort="2"', model.xml))

    def largest_effort(fraction):
        settings = settings_of(
            candidates=16, stands=((0,),), margin=0.005, effort_fraction=fraction
        )
        pool = PosturePlanner(weak, feet, rest, settings).feasible.sample(16)
        return max(np.abs(robot.read(q, [1.0, 0.0])[1]).max() for q, _, _ in pool)

    assert largest_effort(1.0) <= 2.0 < largest_effort(0.0)
    settings = settings_of(candidates=5, stands=((0,),), effort_fraction=0.05)
    with pytest.raises(IdentificationError, match=r"[1-9][0-9]* effort limits"):
        PosturePlanner(weak, feet, rest, settings).propose(5)
    with pytest.raises(
        ConfigError, match="effort_fraction is nan: give a number from 0"
    ):
        PlanOptions(effort_fraction=float("nan"))


@pytest.mark.parametrize(
    ("shape", "touch_at"),
    [('<box size="0.4 0.1 0.1"/>', 0.3), ('<sphere radius="0.2"/>', 0.3)],
)
def test_boxes_touch_where_they_do(shape, touch_at):
    """Two arms 1 m apart on one line, each reaching 0.2 m; the left one comes nearer."""
    arms = ARM.format(n="left", x=0.5, turn=0, shape=shape)
    arms += ARM.format(n="right", x=-0.5, turn=np.pi / 2, shape=shape)
    if "box" in shape:
        touch_at = 1.0 - 0.2 - 0.05  # the right one stands across
    else:
        touch_at = 1.0 - 0.4
    checker = SelfCollision(
        Statics(RobotModel.from_urdf(DUMBBELL.format(arms=arms))), np.zeros(2)
    )
    assert not checker.touching(np.array([[-touch_at + 1e-6, 0.0]]))[0]
    assert checker.touching(np.array([[-touch_at - 1e-6, 0.0]]))[0]
    assert checker.unchecked == ()


def test_links_of_meshes_count_as_boxes_of_their_inertia(hoap2, rest):
    """The arms of the test before, 1 kg each, with a mesh in the place of the box."""
    solid = f'ixx="{0.02 / 12:.9f}" iyy="{0.17 / 12:.9f}" izz="{0.17 / 12:.9f}"'
    mesh = ARM.replace('ixx="1" iyy="1" izz="1"', solid)
    places = {"left": (0.5, 0), "right": (-0.5, np.pi / 2)}
    arms = "".join(
        mesh.format(n=name, x=x, turn=turn, shape='<mesh filename="arm.stl"/>')
        for name, (x, turn) in places.items()
    )
    checker = SelfCollision(
        Statics(RobotModel.from_urdf(DUMBBELL.format(arms=arms))), np.zeros(2)
    )
    assert checker.approximated == ("left_arm", "right_arm")
    assert not checker.touching(np.array([[-0.75 + 1e-6, 0.0]]))[0]
    assert checker.touching(np.array([[-0.75 - 1e-6, 0.0]]))[0]
    named = SelfCollision(Statics(hoap2[0]), rest)
    assert "RLEG1" in named.approximated
    assert "LLEG4" not in named.approximated


@pytest.mark.parametrize("inertia", [0, 1])
def test_links_without_shape_and_inertia_are_named(inertia):
    """Of 1 kg, 1 kg m^2 is a placeholder: a box of 2.4 m, lighter than foam."""
    arms = ARM.format(n="left", x=0.5, turn=0, shape='<mesh filename="arm.stl"/>')
    given = " ".join(f'{axis}="{inertia}"' for axis in ("ixx", "iyy", "izz"))
    point = arms.replace('ixx="1" iyy="1" izz="1"', given)
    checker = SelfCollision(
        Statics(RobotModel.from_urdf(DUMBBELL.format(arms=point))), np.zeros(1)
    )
    assert checker.unchecked == ("left_arm",)
    assert checker.approximated == ()


def test_the_root_leans_no_further_than_is_allowed(hoap2, rest):
    model, feet = hoap2

    def most(limit):
        settings = settings_of(candidates=16, most_tilt=limit)
        planner = PosturePlanner(model, feet, rest, settings)
        stance = FlatStance(Statics(model), feet)
        ups = [
            stance.up_directions(q[None])[0] for q, _, _ in planner.feasible.sample(16)
        ]
        return max(
            np.arccos(np.clip(ups @ stance.up_directions(rest[None])[0], -1.0, 1.0))
        )

    assert most(0.3) <= 0.3 + 1e-6
    assert most(np.pi) > 0.4
    with pytest.raises(ConfigError, match=r"most_tilt is 0\.0: give a number"):
        PlanOptions(most_tilt=0.0)
