"""The legs of a quadruped: order, joints, hips, balls, and what is said of robots without."""

import dataclasses

import numpy as np
import pytest

from com_model import ConfigError, RobotConfig, RobotModel, link_poses, quadruped_legs

NAMES = ("left_front", "right_front", "left_hind", "right_hind")
PLACES = {"LF": (1, 1), "RF": (-1, 1), "LH": (1, -1), "RH": (-1, -1)}


def joint(name, parent, child, xyz, axis, extra="", kind="continuous"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{extra}</joint><link name="{child}"/>'
    )


def leg(prefix, root="trunk", knee="", kind="continuous"):
    """HAA, HFE, KFE, and a foot frame that is turned by a quarter about x and 0.1 m below."""
    lateral, longitudinal = PLACES[prefix]
    shank = f"{prefix}_shank"
    return (
        joint(
            f"{prefix}_HAA",
            root,
            f"{prefix}_hip",
            f"{longitudinal} {lateral} 0.5",
            "1 0 0",
        )
        + joint(f"{prefix}_HFE", f"{prefix}_hip", f"{prefix}_thigh", "0 0.1 0", "0 1 0")
        + joint(
            f"{prefix}_KFE", f"{prefix}_thigh", shank, "0 0 -0.4", "0 1 0", knee, kind
        )
        + f'<joint name="{prefix}_fixed" type="fixed"><parent link="{shank}"/>'
        f'<child link="{prefix}_foot"/><origin xyz="0 0 -0.1" rpy="1.5707963267948966 0 0"/>'
        f'</joint><link name="{prefix}_foot"/>'
    )


def robot(*parts, start=""):
    trunk = '<link name="trunk"><inertial><mass value="9"/></inertial></link>'
    return RobotModel.from_urdf(
        f'<robot name="r">{start}{trunk}{"".join(parts)}</robot>'
    )


FEET = {
    "RH_foot": {"side": "right", "end": "hind"},
    "LF_foot": {
        "side": "left",
        "end": "front",
        "radius": 0.03,
        "center": [0.01, 0.02, 0.0],
    },
    "RF_foot": {"side": "right", "end": "front"},
    "LH_foot": {"side": "left", "end": "hind"},
}


def config(feet):
    return RobotConfig.from_dict({"name": "r", "feet": feet})


def problem(model, feet):
    with pytest.raises(ConfigError) as error:
        quadruped_legs(model, config(feet))
    return str(error.value)


@pytest.fixture(scope="module")
def model():
    """Legs stand in the URDF in another order than in the result."""
    return robot(leg("RH"), leg("LH"), leg("LF"), leg("RF"))


def test_order_and_places(model):
    legs = quadruped_legs(model, config(FEET))
    assert tuple(leg.name for leg in legs) == NAMES
    assert [(leg.lateral, leg.longitudinal) for leg in legs] == [
        (1, 1),
        (-1, 1),
        (1, -1),
        (-1, -1),
    ]
    assert [leg.foot.frame[:2] for leg in legs] == ["LF", "RF", "LH", "RH"]
    assert [leg.foot_index for leg in legs] == [1, 2, 3, 0]
    for leg in legs:
        names = [model.joint_names[i] for i in leg.joints]
        assert names == [f"{leg.foot.frame[:2]}_{end}" for end in ("HAA", "HFE", "KFE")]
        np.testing.assert_array_equal(leg.hip, [leg.longitudinal, leg.lateral, 0.5])


def test_the_ball_is_where_the_foot_frame_says(model):
    first, *others = quadruped_legs(model, config(FEET))
    np.testing.assert_allclose(first.ball, [0.01, 0, -0.1 + 0.02], atol=1e-12)
    assert (first.radius, first.foot.radius) == (0.03, 0.03)
    for leg in others:
        np.testing.assert_allclose(leg.ball, [0, 0, -0.1], atol=1e-12)
        assert leg.radius == 0.0
    q = np.random.default_rng(1).normal(size=model.n_joints)
    R, p = link_poses(model, q)
    foot, shank = model.link_index("LF_foot"), model.link_index("LF_shank")
    by_foot = p[foot] + R[foot] @ first.foot.center
    np.testing.assert_allclose(p[shank] + R[shank] @ first.ball, by_foot, atol=1e-12)
    assert model.bodies.names[first.body] == "LF_shank"


def test_a_leg_is_frozen(model):
    leg = quadruped_legs(model, config(FEET))[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        leg.radius = 1.0
    for array in (leg.joints, leg.hip, leg.ball):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_foot_that_is_missing(model):
    feet = FEET | {"LH_foot": {"side": "left"}}
    expected = "no foot has side left and end hind: give side and end of the four feet"
    assert problem(model, feet) == f"robot configuration: feet: {expected}"


def test_two_feet_in_one_place(model):
    feet = FEET | {
        "RF_foot": {"side": "right", "end": "hind"},
        "RF_hip": FEET["RF_foot"],
    }
    expected = "RH_foot, RF_foot all have side right and end hind: leave one of them"
    assert problem(model, feet) == f"robot configuration: feet: {expected}"


def test_a_flat_sole(model):
    feet = FEET | {
        "RF_foot": FEET["RF_foot"] | {"corners": [[0.1, 0.1], [0, 0], [0.1, 0]]}
    }
    expected = "a leg of three joints ends in a point foot: give radius, not corners"
    assert (
        problem(model, feet) == f"robot configuration: feet.RF_foot.corners: {expected}"
    )


def test_a_leg_of_two_joints(model):
    feet = FEET | {"RF_foot": {}, "RF_thigh": FEET["RF_foot"]}
    expected = (
        "its leg has 2 moving joints (RF_HAA, RF_HFE); only legs with 3 are supported: "
        "hip abduction, hip flexion, knee"
    )
    assert problem(model, feet) == f"robot configuration: feet.RF_thigh: {expected}"


def test_a_foot_on_the_trunk(model):
    feet = FEET | {"RF_foot": {}, "trunk": FEET["RF_foot"]}
    assert "feet.trunk: its leg has 0 moving joints (none); only" in problem(
        model, feet
    )


def test_a_knee_that_follows_the_hip():
    knee = leg("RF", knee='<mimic joint="RF_HFE"/>')
    model = robot(leg("LF"), knee, leg("LH"), leg("RH"))
    assert (
        "feet.RF_foot: its leg has 3 moving joints (RF_HAA, RF_HFE, RF_KFE), of which 1 follow "
        "others; only legs with 3 are supported" in problem(model, FEET)
    )


def test_a_spine_between_the_legs():
    spine = joint("spine", "trunk", "rear", "-0.5 0 0", "0 1 0")
    model = robot(
        leg("LF"), leg("RF"), spine, leg("LH", root="rear"), leg("RH", root="rear")
    )
    expected = (
        "spine also moves foot 'RH_foot': the root link must be the trunk from which all four "
        "legs start"
    )
    assert problem(model, FEET) == f"robot configuration: feet.LH_foot: {expected}"


def test_a_configuration_of_another_robot(model):
    feet = FEET | {"tail": {}}
    assert "feet.tail: no link 'tail'" in problem(model, feet)
