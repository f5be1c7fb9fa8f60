"""Feet as a link and a sole frame: the same robot as with sole links in its URDF."""

import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from com_control.walking.biped import Biped
from com_identification.planning.planner import PosturePlanner
from com_identification.regression.priors import body_priors
from com_identification.settings import IdentificationSettings
from com_identification.store.results import corrected_inertials
from com_model import (
    ConfigError,
    Frame,
    RobotConfig,
    RobotModel,
    UnknownNameError,
    UrdfError,
    link_pose,
)
from com_model.urdf.editing import edit_inertials
from com_simulation.physics.true_errors import TrueErrors, with_true_errors
from com_simulation.physics.world_builder import build_world

ROBOTS = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
SOLE = re.compile(
    r'  <link name="(._sole)" ?/>\n  <joint name="._sole_fixed".*?</joint>\n', re.S
)


@pytest.fixture(scope="module")
def linked():
    """HOAP-2 as it ships, with sole links."""
    config = RobotConfig.from_file(ROBOTS / "config" / "hoap2.yaml")
    return RobotModel.from_file(config.urdf), config


@pytest.fixture(scope="module")
def mounted(linked):
    """HOAP-2 without sole links; its configuration mounts the frames."""
    model = linked[0]
    xml = model.xml
    data = yaml.safe_load((ROBOTS / "config" / "hoap2.yaml").read_text())
    del data["urdf"]
    for element in SOLE.finditer(model.xml):
        xml = xml.replace(element[0], "")
        values = dict(
            re.findall(r'(xyz|rpy|link)="([^"]*)"', element[0].split("<child")[0])
        )
        foot = data["feet"][element[1]]
        foot["link"] = values["link"]
        for key in {"xyz", "rpy"} & set(values):
            foot[key] = [float(number) for number in values[key].split()]
    bare = RobotModel.from_urdf(xml)
    assert not {"l_sole", "r_sole"} & set(bare.link_names)
    return bare, RobotConfig.from_dict(data)


def test_the_model_is_that_with_sole_links(linked, mounted):
    model, _ = linked
    bare, config = mounted
    whole = config.attach(bare)
    assert sorted(whole.link_names) == sorted(model.link_names)
    assert whole.mass == model.mass
    np.testing.assert_array_equal(whole.bodies.inertia, model.bodies.inertia)
    q = config.nominal_posture(whole)
    for foot in config.feet:
        ours, theirs = (link_pose(m, q, foot.frame) for m in (whole, model))
        np.testing.assert_allclose(
            np.column_stack(ours), np.column_stack(theirs), atol=1e-15
        )
    assert config.attach(whole) is whole
    assert bare.frames == ()
    assert [frame.name for frame in whole.frames] == ["l_sole", "r_sole"]


def test_what_is_written_has_no_frames(mounted):
    bare, config = mounted
    whole = config.attach(bare)
    inertials = corrected_inertials(
        whole, whole.bodies.mass, whole.bodies.first_moment * 0.0
    )
    written = edit_inertials(whole.xml, inertials)
    assert "_sole" not in written
    true = with_true_errors(whole, TrueErrors(com=0.001))
    assert true.frames == whole.frames
    assert "_sole" not in true.xml


def test_identification_begins_as_with_sole_links(linked, mounted):
    bare, config = mounted
    whole = config.attach(bare)
    ours, theirs = (
        body_priors(model, IdentificationSettings()) for model in (whole, linked[0])
    )
    np.testing.assert_allclose(ours.mass, theirs.mass)
    elsewhere = pickle.loads(pickle.dumps(whole))  # in the process that computes
    assert elsewhere.link_names == whole.link_names
    assert (
        PosturePlanner(elsewhere, config.feet, config.nominal_posture(whole)).feet
        == config.feet
    )


def test_walking_takes_either_model(linked, mounted):
    bare, config = mounted
    ours, theirs = Biped.from_config(bare, config), Biped.from_config(*linked)
    for one, other in zip(ours.legs, theirs.legs, strict=True):
        np.testing.assert_allclose(one.p_sole, other.p_sole, atol=1e-15)


def test_the_simulated_robot_stands_as_with_sole_links(linked, mounted):
    worlds = [build_world(model, config) for model, config in (linked, mounted)]
    ours, theirs = worlds[1].mj, worlds[0].mj
    assert ours.ngeom == theirs.ngeom
    np.testing.assert_allclose(worlds[1].qpos, worlds[0].qpos, atol=1e-12)
    np.testing.assert_allclose(ours.site_pos, theirs.site_pos, atol=1e-12)


def test_a_mounted_sole_without_shapes_gets_its_own(mounted):
    bare, config = mounted
    xml = re.sub(r"<collision.*?</collision>", "", bare.xml, flags=re.S)
    world = build_world(RobotModel.from_urdf(xml), config)
    assert any("l_sole, r_sole" in note for note in world.notes)


def foot(**keys):
    return RobotConfig.from_dict({"name": "r", "feet": {"sole": keys}}).feet[0]


def test_the_keys_of_a_mounted_foot():
    given = foot(
        link="ankle", xyz=[0.0, 0.1, -0.2], rpy=[0.0, 0.0, 1.0], size=[0.2, 0.1]
    )
    assert given.mount == Frame("sole", "ankle", (0.0, 0.1, -0.2), (0.0, 0.0, 1.0))
    np.testing.assert_array_equal(
        given.corners, [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]]
    )
    assert given.wrench_frame == "ankle"
    assert foot(link="ankle", wrench={"frame": "sole"}).wrench_frame == "sole"
    assert foot(radius=0.02).mount is None


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"xyz": [0, 0, 1]}, "link: give the link that xyz and rpy are measured in"),
        ({"link": "a", "xyz": [0, 0]}, "xyz: expected 3 numbers, got a list"),
        ({"size": [0.1, -0.1]}, "size: expected length and width, both more than 0"),
        (
            {"size": [0.1, 0.1], "corners": [[0, 0]]},
            "size: give corners or size, not both",
        ),
        (
            {"size": [0.1, 0.1], "radius": 0.1},
            "feet.sole: give corners or size (a flat sole) or",
        ),
    ],
)
def test_mistakes_in_a_foot(keys, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        foot(**keys)


def test_mounts_that_do_not_fit_the_robot(linked, mounted):
    model, config = linked[0], mounted[1]
    with pytest.raises(ConfigError, match=r"feet: .*'l_sole'.* a link of this name"):
        config.attach(model)
    left = config.feet[0]
    for link in ("ankle", "r_sole"):
        wrong = replace(config, feet=(replace(left, mount=Frame("l_sole", link)),))
        with pytest.raises(ConfigError, match=f"feet.l_sole.link: no link '{link}'"):
            wrong.attach(mounted[0])
    with pytest.raises(UnknownNameError, match="no link 'ankle'"):
        RobotModel.from_urdf(model.xml, [Frame("sole", "ankle")])
    with pytest.raises(UrdfError, match="Give the frame another name"):
        RobotModel.from_urdf(model.xml, [Frame("l_sole", "base_link")])


def test_kind_trunk_and_sizes():
    config = RobotConfig.from_dict(
        {
            "name": "r",
            "kind": "humanoid",
            "trunk": "torso",
            "walking": {"step_width": 0.2, "com_height": 0.6},
            "trot": {"frequency": 2.0},
        }
    )
    assert (config.kind, config.trunk) == ("humanoid", "torso")
    assert (config.walking.step_width, config.walking.step_length) == (0.2, None)
    assert (config.trot.frequency, config.trot.body_height) == (2.0, None)
    with pytest.raises(
        ConfigError, match="kind: expected one of humanoid, quadruped, other"
    ):
        RobotConfig.from_dict({"name": "r", "kind": "biped"})
    with pytest.raises(
        ConfigError, match="unknown key 'step_heigth'; did you mean 'step_height'"
    ):
        RobotConfig.from_dict({"name": "r", "trot": {"step_heigth": 0.1}})
