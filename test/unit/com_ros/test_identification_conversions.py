"""Messages of the identification, and that their constants fit the maths."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from com_identification.feet.feet_reading import ModelCheckResult, ModelVerdict
from com_identification.nodes.identification_conversions import (
    no_result,
    numpy_to_captured_posture,
    numpy_to_identification_result,
    numpy_to_model_check,
    numpy_to_proposed_posture,
)
from com_identification.planning.planner import PlannedPosture
from com_identification.regression.identify import identify
from com_identification.regression.postures import make_posture
from com_identification.store.results import trusted_bodies
from com_msgs.msg import IdentificationResult
from com_ros.conversions import point_to_numpy, vector3_to_numpy, wrench_to_numpy

STAMP = Time(sec=12, nanosec=34)


@pytest.fixture
def check():
    rng = np.random.default_rng(2)
    known = {item.name: 0.1 * i for i, item in enumerate(fields(ModelCheckResult))}
    vectors = ("up", "projection", "measured", "difference", "tilt_part", "model_part")
    known |= {name: rng.normal(size=3) for name in vectors}
    known |= {
        "verdict": ModelVerdict.WRONG_TILT,
        "reason": "not level",
        "tilt": math.nan,
    }
    return ModelCheckResult(**known | {"sloped": True})


@pytest.fixture
def robot(make_standing_robot):
    return make_standing_robot("biped3")


def postures(robot, count):
    for _ in range(count):
        Q, W = robot.read(*robot.random_posture(), 20)
        yield make_posture(
            robot.model, Q.mean(0), W.mean(0), samples=20, label="knees bent"
        )


def test_captured_posture(over_the_wire, robot, check):
    (posture,) = postures(robot, 1)
    check = replace(check, up=np.array([0.0, 0.0, 1.0]), mass=6.9)
    com = check.measured + np.array([0.003, -0.004, 0.5])
    loaded = np.array([True, False])
    msg = over_the_wire(
        numpy_to_captured_posture(posture, ["l_sole", "r_sole"], loaded, check, com)
    )
    np.testing.assert_array_equal(msg.joint_positions, posture.q)
    np.testing.assert_array_equal(msg.joint_efforts, posture.effort)  # NaN: not known
    np.testing.assert_array_equal(vector3_to_numpy(msg.up), posture.up)
    np.testing.assert_array_equal(
        [wrench_to_numpy(w) for w in msg.wrenches], posture.wrenches
    )
    assert (msg.label, msg.samples, msg.feet) == (
        "knees bent",
        20,
        ["l_sole", "r_sole"],
    )
    assert (list(msg.in_contact), msg.mass) == ([True, False], 6.9)
    np.testing.assert_allclose(
        vector3_to_numpy(msg.model_offset), [0.003, -0.004, 0.0], atol=1e-15
    )
    above = check.measured + np.array([0.0, 0.0, 0.5])
    np.testing.assert_allclose(point_to_numpy(msg.com_line), above)
    assert msg.model_distance == pytest.approx(0.005, rel=1e-12)
    assert msg.problems == []
    wrong = replace(check, verdict=ModelVerdict.WRONG_WRENCH)
    assert numpy_to_captured_posture(posture, [], loaded, wrong, com).problems == [
        "not level"
    ]


def test_proposed_posture(over_the_wire):
    values = PlannedPosture(np.array([0.1, -0.2]), ("l_sole",), 0.02, 3.5, 0.001)
    msg = over_the_wire(numpy_to_proposed_posture(values, ["a", "b"]))
    assert (msg.joint_names, list(msg.joint_positions)) == (["a", "b"], [0.1, -0.2])
    assert (msg.feet, msg.margin, msg.information_gain) == (["l_sole"], 0.02, 3.5)


def test_model_check(over_the_wire, check):
    msg = over_the_wire(numpy_to_model_check(check, STAMP, "base_link"))
    assert (msg.header.stamp, msg.header.frame_id) == (STAMP, "base_link")
    assert (msg.verdict, msg.reason, msg.sloped) == (
        ModelVerdict.WRONG_TILT,
        "not level",
        True,
    )
    for name in ("up", "difference", "tilt_part", "model_part"):
        np.testing.assert_array_equal(
            vector3_to_numpy(getattr(msg, name)), getattr(check, name)
        )
    np.testing.assert_array_equal(
        point_to_numpy(msg.model_projection), check.projection
    )
    np.testing.assert_array_equal(
        point_to_numpy(msg.measured_projection), check.measured
    )
    assert msg.model_part_std == check.model_std
    for name in ("tilt", "force_tilt", "mass", "mass_std", "model_mass"):
        np.testing.assert_equal(getattr(msg, name), getattr(check, name))


def test_result(over_the_wire, robot):
    found = identify(robot.model, robot.config.feet, list(postures(robot, 8)))
    found = replace(
        found,
        outliers=(1,),
        at_bound=(found.bodies[1],),
        sensor_errors={"force_bias": {"l_sole x": 0.1, "l_sole y": 0.1}},
        sensor_stds={"force_bias": {"l_sole x": 0.2, "l_sole y": 0.9}},
        sensor_prior_stds={"force_bias": {"l_sole x": 1.0, "l_sole y": 1.0}},
    )
    msg = over_the_wire(numpy_to_identification_result(found, range(11, 19)))
    assert msg.status == IdentificationResult.STATUS_DEGRADED
    assert "would be outside of the link's shape" in msg.reason
    assert (list(msg.postures), list(msg.outliers)) == (list(range(11, 19)), [12])
    assert [body.name for body in msg.bodies] == list(found.bodies)
    assert [body.trusted for body in msg.bodies] == trusted_bodies(found).tolist()
    assert [body.name for body in msg.bodies if body.at_bound] == list(msg.at_bound)
    for i, body in enumerate(msg.bodies):
        for name in ("mass", "mass_std", "prior_mass", "prior_mass_std"):
            assert getattr(body, name) == getattr(found, name)[i]
        for name in ("com", "prior_com"):
            np.testing.assert_array_equal(
                point_to_numpy(getattr(body, name)), getattr(found, name)[i]
            )
            np.testing.assert_array_equal(
                vector3_to_numpy(getattr(body, f"{name}_std")),
                getattr(found, f"{name}_std")[i],
            )
    good, what = found.without_outliers, found.identifiability
    for name in ("residual", "prior_residual", "held_out"):
        distances = getattr(good, name)
        assert getattr(msg, f"{name}_mean") == distances.mean
        assert getattr(msg, f"{name}_rms") == distances.rms
        assert getattr(msg, f"{name}_max") == distances.maximum
    assert (msg.total_mass, msg.total_mass_std) == (
        found.total_mass,
        found.total_mass_std,
    )
    assert (msg.n_parameters, msg.rank, msg.n_improved) == (
        what.unknowns,
        what.rank,
        what.informed,
    )
    assert (msg.condition, msg.variance_factor) == (
        what.condition,
        found.variance_factor,
    )
    assert msg.unidentifiable == list(what.lost)
    assert msg.weakly_identifiable == list(what.weak)
    (error,) = msg.sensor_errors
    assert (error.kind, error.name, error.value, error.std) == (
        "force_bias",
        "l_sole x",
        0.1,
        0.2,
    )


def test_a_result_that_is_not_known_is_nan(over_the_wire):
    msg = over_the_wire(no_result("nothing yet"))
    assert (msg.status, msg.reason) == (
        IdentificationResult.STATUS_UNKNOWN,
        "nothing yet",
    )
    for name in (
        "total_mass",
        "held_out_rms",
        "residual_mean",
        "condition",
        "variance_factor",
    ):
        assert math.isnan(getattr(msg, name))
