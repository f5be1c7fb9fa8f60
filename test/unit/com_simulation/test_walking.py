"""Contact, soles and walks in the physics, played back without any feedback."""

import importlib
import re
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from PIL import Image
from walk_playback import WalkTargets, measured_zmp, play, starting_at, with_soles

from com_control.walking.walk import WalkRequest, make_plan
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import plan_steps
from com_demos.pictures import FilmRow, draw_film
from com_model import RobotConfig, RobotModel, Sesc, link_pose
from com_model.robot_config import WalkingSizes
from com_model.setup import describe, to_yaml
from com_model.setup.check import with_steps
from com_simulation.drawing.shapes import robot_shape
from com_simulation.exceptions import CommandError, WorldError
from com_simulation.physics.standing import time_of_fall, try_standing
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow
G = 9.81


@pytest.fixture(scope="module")
def lab():
    return importlib.import_module("walk_scenarios")


@pytest.fixture(scope="module")
def biped(robot_files):
    return robot_files("itu_biped")


def settled(world):
    data = mujoco.MjData(world.mj)
    data.qpos[:], data.ctrl[:] = world.qpos, world.posture
    mujoco.mj_step(world.mj, data, 2000)
    return data


def standing(robot, config, **changes):
    """Targets that stay in the posture for a second."""
    q = np.tile(config.nominal_posture(robot), (101, 1))
    values = {
        "time": 0.01 * np.arange(101),
        "q": q,
        "qd": 0 * q,
        "root": np.array([2.0, 1.0, 0.8]),
    }
    return WalkTargets(**(values | changes))


def test_soft_contact_is_that_of_the_paper(biped):
    robot, config, _ = biped
    depths = {}
    for contact in ("soft", "stiff"):
        data = settled(build_world(robot, config, contact=contact))
        assert data.ncon == 8
        depths[contact] = -data.contact.dist.mean()
    assert robot.mass * G / 8 / depths["soft"] == pytest.approx(6e4, rel=0.1)
    assert depths["stiff"] < 0.05 * depths["soft"]


def test_balls_carry_soles_of_any_size(biped):
    robot, config, _ = biped
    small = with_soles(config, 0.08, 0.03)
    world = build_world(robot, small, sole_balls=0.01)
    assert world.notes == ("feet carried by balls at their soles: l_sole, r_sole",)
    data = settled(world)
    for foot in small.feet:
        frame = data.xmat[1].reshape(3, 3), data.xpos[1]
        R, p = link_pose(robot, data.qpos[world.joint_qpos], foot.frame, *frame)
        places = (data.contact.pos - p) @ R
        near = places[np.abs(places[:, 1]) < 0.04, :2]
        assert len(near) == 4
        np.testing.assert_allclose(np.sort(np.abs(near)), [[0.03, 0.08]] * 4, atol=1e-3)


def test_what_there_is_not_is_refused(biped):
    robot, config, _ = biped
    with pytest.raises(WorldError, match="contact is 'wet': give one of stiff, soft"):
        build_world(robot, config, contact="wet")
    with pytest.raises(
        WorldError, match=r"sole_balls is -1\.0: give a radius in m, 0 for none"
    ):
        build_world(robot, config, sole_balls=-1.0)


def test_standing_is_recorded_in_the_plans_coordinates(biped):
    robot, config, _ = biped
    record = play(build_world(robot, config), standing(robot, config), rest=0.5)
    assert not record.fell
    assert len(record.time) == 151
    np.testing.assert_array_equal(record.root[0, :2], [2.0, 1.0])
    com = Sesc(robot).com(config.nominal_posture(robot))
    assert com[0] > 0.02  # not below the root link's origin
    np.testing.assert_allclose(record.com[0, :2], [2.0 + com[0], 1.0], atol=1e-9)
    np.testing.assert_allclose(record.com, [[2.0 + com[0], 1.0, 0.45]] * 151, atol=2e-3)
    zmp = measured_zmp(build_world(robot, config), record)
    np.testing.assert_allclose(zmp[-1, :2], record.com[-1, :2], atol=1e-4)
    assert not record.com.flags.writeable


def test_the_plan_may_look_elsewhere(biped):
    robot, config, _ = biped
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    world = build_world(robot, config)
    one, other = (
        play(world, standing(robot, config, R_root=R), rest=0.0)
        for R in (np.eye(3), quarter)
    )
    place = other.root[0]
    np.testing.assert_allclose(
        other.com - place, (one.com - place) @ quarter.T, atol=1e-12
    )
    np.testing.assert_allclose(other.R_root[0], quarter, atol=1e-12)
    zmp = [
        measured_zmp(world, record)[-1] - [*place[:2], 0.0] for record in (one, other)
    ]
    np.testing.assert_allclose(zmp[1], quarter @ zmp[0], atol=1e-9)


def test_targets_are_met_in_time(biped):
    """A squat: the joints are where they are to be when they are to be there."""
    robot, config, _ = biped
    targets = standing(robot, config)
    fraction = np.sin(np.pi * targets.time)[:, None] ** 2
    bend = 0.3 * np.sign(np.round(config.nominal_posture(robot), 3))
    knees = np.array(["knee" in name for name in robot.joint_names])
    q = targets.q + fraction * bend * np.where(knees, 2.0, 1.0)
    qd = np.gradient(q, targets.time, axis=0)
    record = play(build_world(robot, config), standing(robot, config, q=q, qd=qd))
    assert np.abs(q).max() > 1.5
    moving = slice(20, 80)
    assert np.abs(record.position[moving] - q[moving]).max() < 0.006


def test_a_robot_that_leans_too_far_falls(biped):
    robot, config, _ = biped
    targets = standing(robot, config)
    ankles = np.array(["ankle_pitch" in name for name in robot.joint_names])
    q = targets.q + np.outer(np.linspace(0.0, 0.6, 101), ankles)
    record = play(build_world(robot, config), standing(robot, config, q=q), rest=3.0)
    assert record.fell
    assert record.time[-1] == record.fell_at < 4.0


def test_targets_that_are_no_walk_are_refused(biped):
    robot, config, _ = biped
    world, q = build_world(robot, config), standing(robot, config).q.copy()
    q[50, 3] = np.nan
    for wrong in ({"q": q}, {"time": np.zeros(101)}):
        with pytest.raises(CommandError, match="finite numbers, and times that rise"):
            play(world, standing(robot, config, **wrong))


def test_a_refined_walk_stays_on_its_feet(lab, tmp_path):
    """Quick steps, which the pendulum alone does not walk; and their film."""
    robot, records = lab.itu_biped(), {}
    plan = lab.paper_plan(0.5)
    for method in ("exact", "refined"):
        walk = lab.walk_by(method, robot, plan)
        world = lab.world_for(robot, walk, "stiff")
        records[method] = lab.simulate(world, walk)
        if method == "refined":
            away = lab.com_error(walk, records[method])
            assert lab.fell_at_step(walk, records[method]) is None
            assert away.mean() < 0.010
            assert away.max() < 0.020
            zmp = measured_zmp(world, records[method])
            swings = np.isfinite(zmp).all(axis=1)[: len(walk.zmp)]
            error = np.linalg.norm(
                (zmp[: len(walk.zmp)] - walk.zmp)[swings, :2], axis=1
            )
            assert np.median(error) < 0.02
        else:
            assert 1 <= lab.fell_at_step(walk, records[method]) <= 6
    prints = np.zeros((1, 4, 3))
    strips = [FilmRow(name, record, prints) for name, record in records.items()]
    shape = robot_shape(robot.model, robot.path)
    draw_film(robot.model, shape, strips, (0.0, 3.0, 5.5, 7.0), tmp_path / "film.png")
    with Image.open(tmp_path / "film.png") as image:
        pixels = np.asarray(image.convert("L"), dtype=float)
    height, width = pixels.shape
    panels = pixels[: 2 * (height // 2), : 4 * (width // 4)]
    panels = panels.reshape(2, height // 2, 4, width // 4).transpose(0, 2, 1, 3)
    drawn = (panels < 250).mean(axis=(2, 3)) > 0.03
    np.testing.assert_array_equal(drawn, [[True, True, True, False], [True] * 4])


def test_talos_walks(lab):
    """A real humanoid, with the servos of its configuration: feet, arms and all."""
    robot = lab.load_robot("talos", "talos_data/robots/talos_reduced.urdf")
    request = WalkRequest(steps=3, step_length=0.2, step_time=0.8, double_support=0.25)
    stance = find_stance(robot.biped, robot.biped.posture)
    walk = lab.walk_by("refined", robot, make_plan(request, robot.biped, stance))
    record = lab.simulate(lab.world_for(robot, walk, "stiff", None), walk)
    assert lab.fell_at_step(walk, record) is None
    away = lab.com_error(walk, record)
    assert away.mean() < 0.010
    assert away.max() < 0.020
    assert record.com[-1, 0] - record.com[0, 0] == pytest.approx(0.4, abs=0.02)


def test_the_first_posture_of_a_walk_is_the_worlds(biped):
    robot, config, _ = biped
    q = config.nominal_posture(robot) + 0.01
    world = build_world(robot, starting_at(config, robot, q))
    np.testing.assert_allclose(world.posture, q)


def test_a_biped_without_ankle_roll_stands_and_walks_by_its_own_configuration(
    tmp_path, biped
):
    # as Unitree's H1: five joints a leg; nothing is edited
    robots = importlib.import_module("any_robot")
    xml = biped[0].xml
    for side in "lr":
        name = f'<joint name="{side}_ankle_roll_joint" type='
        assert f'{name}"revolute"' in xml
        xml = xml.replace(f'{name}"revolute"', f'{name}"fixed"')
    file = tmp_path / "five.urdf"
    file.write_text(xml)
    result = robots.configure(file)
    assert (result.kind, result.refused) == ("humanoid", "")
    (tmp_path / "five.yaml").write_text(result.text)
    config = RobotConfig.from_file(tmp_path / "five.yaml")
    model = config.attach(RobotModel.from_file(file))
    assert try_standing(model, config, file).problem == ""
    assert robots.walk(model, config, file) == ""


@pytest.mark.parametrize(
    ("stiffness", "speed", "quicker", "issue"),
    [
        (1.0, 12, 1.0, ""),
        (0.15, 12, 0.75, ""),  # rocks on its soles with other steps
        (0.08, 12, 1.0, "without feedback it falls"),
        (1.0, 0.1, None, "it does not walk: .* rad/s, its limit is 0.10"),
    ],
)
def test_com_setup_writes_steps_that_can_be_walked(
    tmp_path, robot_files, stiffness, speed, quicker, issue
):
    robot, _, file = robot_files("itu_biped")
    assert 'velocity="12"' in robot.xml
    xml = robot.xml.replace('velocity="12"', f'velocity="{speed}"')
    robot = RobotModel.from_urdf(xml)
    setup = describe(robot, file)
    (tmp_path / "robot.yaml").write_text(to_yaml(setup))

    def load(_urdf, path):
        config = RobotConfig.from_file(path)
        softer = {
            name: replace(
                gains,
                stiffness=stiffness * gains.stiffness,
                damping=stiffness**0.5 * gains.damping,
            )
            for name, gains in config.servo.joints.items()
        }
        return robot, replace(config, servo=replace(config.servo, joints=softer))

    found, note = with_steps(setup, load, file, tmp_path / "robot.yaml")
    own = [text for key, text in found.issues if (key, text) not in setup.issues]
    assert bool(own) == bool(issue) == (not note)
    assert not issue or re.search(issue, own[0])
    if quicker is None:
        assert found.gait == {}
        return
    before, after = (each.gait["walking"] for each in (setup, found))
    assert after["step_time"] == round(quicker * before["step_time"], 2)
    _, config = load(file, tmp_path / "robot.yaml")
    config = replace(config, walking=WalkingSizes(**after))
    fall = time_of_fall(robot, config, plan_steps(robot, config, 4).path, file)
    assert np.isfinite(fall) == bool(issue)
