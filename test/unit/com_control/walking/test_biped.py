"""Which legs are found, what their mass is, and what is refused."""

import dataclasses

import numpy as np
import pytest

from com_control.walking.biped import Biped
from com_control.walking.closed_form_ik import fits_closed_form
from com_control.walking.com_ik import ClosedFormSolver
from com_control.walking.newton_ik import NewtonSolver
from com_model import ConfigError, RobotConfig, RobotModel, Sesc
from com_model.dynamics.kinematics import body_poses

ROBOTS = ["itu_biped", "hoap2", "talos", "icub", "romeo"]


@pytest.mark.parametrize("name", ROBOTS)
def test_parts_add_up_to_the_robot(robots, name):
    biped, _ = robots(name)
    q = biped.posture.copy()
    for leg in biped.legs:
        q[leg.joints] = 0.0
    mass, moment = upper_body(biped, biped.posture)
    mass += sum(leg.masses.sum() for leg in biped.legs)
    moment = moment + sum(leg.moments.sum(axis=0) for leg in biped.legs)
    R, p = biped.root_in_pelvis()
    assert mass == pytest.approx(biped.model.mass, rel=1e-12)
    np.testing.assert_allclose(
        moment / mass, p + R @ Sesc(biped.model).com(q), atol=1e-12
    )


def test_legs_are_left_and_right(robots):
    biped, _ = robots("itu_biped")
    assert [leg.side for leg in biped.legs] == ["left", "right"]
    assert [leg.joint_names[0] for leg in biped.legs] == [
        "l_hip_yaw_joint",
        "r_hip_yaw_joint",
    ]
    assert biped.legs[0].masses.tolist() == [1, 1, 5, 5, 1, 3]


def test_the_pelvis_is_below_a_waist_above_the_legs(robots):
    biped, _ = robots("hoap2")  # its root is the trunk
    assert biped.model.bodies.joint_names[biped.pelvis] == "BODY_JOINT1"
    q = biped.posture.copy()
    q[biped.model.joint_index("BODY_JOINT1")] = 0.4
    R, _ = biped.root_in_pelvis(q)
    assert np.arccos(R[2, 2]) == pytest.approx(0.4, abs=1e-12)


def test_arrays_are_read_only(robots):
    biped, _ = robots("itu_biped")
    for thing in (biped, biped.legs[0]):
        for field in dataclasses.fields(thing):
            value = getattr(thing, field.name)
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable, field.name


def test_a_quadruped_is_refused(robots):
    configs = robots("itu_biped")[1].config.urdf.parents[1] / "config"
    config = RobotConfig.from_file(configs / "scalf2.yaml")
    model = RobotModel.from_file(config.urdf)
    with pytest.raises(
        ConfigError,
        match=r"has side left: a robot on two legs has one foot on each side",
    ):
        Biped.from_config(model, config)


def upper_body(biped, q):
    """Mass and first moment about the pelvis' origin of all but the legs, body by body."""
    bodies = biped.model.bodies
    R, p = body_poses(bodies, q)
    moments = np.einsum("bij,bj->bi", R, bodies.first_moment) + bodies.mass[:, None] * p
    own = np.ones(bodies.count, dtype=bool)
    for leg in biped.legs:
        first = bodies.joint_names.index(leg.joint_names[0])
        own[first : bodies.subtree_end[first]] = False
    mass, moment = bodies.mass[own].sum(), moments[own].sum(axis=0)
    return mass, R[biped.pelvis].T @ (moment - mass * p[biped.pelvis])


@pytest.mark.parametrize("name", ROBOTS)
def test_the_upper_body_by_its_chain(robots, name):
    biped, _ = robots(name)
    solver = (
        ClosedFormSolver(biped)
        if all(map(fits_closed_form, biped.legs))
        else NewtonSolver(biped)
    )
    rng = np.random.default_rng(1)
    low, high = np.maximum(biped.model.lower, -3.0), np.minimum(biped.model.upper, 3.0)
    for q in rng.uniform(low, high, (5, biped.model.n_joints)):
        mass, moment = upper_body(biped, q)
        solver.set_upper_body(q)
        np.testing.assert_allclose(
            biped.model.mass * solver.robot["upper_moment"][0], moment, atol=1e-11
        )
    if all(map(fits_closed_form, biped.legs)):
        fraction = solver.robot["upper_fraction"][0]
        assert fraction * biped.model.mass == pytest.approx(mass, abs=1e-11)
