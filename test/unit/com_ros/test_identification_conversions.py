"""Messages of the identification: round trips, and that their constants fit the maths."""

import math
from dataclasses import fields

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from com_identification.capture.options import CaptureStatus
from com_identification.feet.model_check import ModelCheckResult, Verdict
from com_identification.nodes.identification_conversions import (
    CapturedValues,
    captured_posture_to_numpy,
    model_check_to_numpy,
    numpy_to_captured_posture,
    numpy_to_model_check,
    numpy_to_proposed_posture,
    proposed_posture_to_numpy,
)
from com_identification.nodes.identification_result import (
    BodyValues,
    ResultValues,
    identification_result_to_numpy,
    numpy_to_identification_result,
)
from com_identification.planning.planner import PlannedPosture
from com_identification.settings import SensorPriors
from com_msgs.msg import (
    CapturedPosture,
    IdentificationResult,
    IdentificationState,
    ModelCheck,
    ProposedPosture,
)
from com_ros.exceptions import ConversionError

STAMP = Time(sec=12, nanosec=34)


def same(got, values):
    """All attributes alike, NaN like NaN."""
    for name in values.__dataclass_fields__:
        expected, actual = getattr(values, name), getattr(got, name)
        if hasattr(expected, "__dataclass_fields__"):
            same(actual, expected)
        elif isinstance(expected, np.ndarray) or (
            isinstance(expected, tuple) and expected and isinstance(expected[0], float)
        ):
            np.testing.assert_array_equal(actual, expected, err_msg=name)
        elif isinstance(expected, float):
            np.testing.assert_equal(actual, expected, err_msg=name)
        else:
            assert actual == expected, name


def test_constants_are_those_of_the_maths():
    for status in CaptureStatus:
        assert getattr(IdentificationState, status.name) == status
    for verdict in Verdict:
        assert getattr(ModelCheck, verdict.name) == verdict


def captured(rng):
    return CapturedValues(
        id=7,
        label="knees bent",
        samples=120,
        joint_names=("a", "b"),
        q=rng.normal(size=2),
        effort=np.array([math.nan, 1.5]),
        up=np.full(3, math.nan),
        feet=("l_sole", "r_sole", "hand"),
        in_contact=np.array([True, False, True]),
        wrenches=rng.normal(size=(3, 6)),
        mass=6.9,
        com_line=rng.normal(size=3),
        model_offset=np.array([0.003, -0.004, 0.0]),
        problems=("l_sole reads the weight upside down",),
    )


def test_captured_posture(over_the_wire):
    values = captured(np.random.default_rng(1))
    msg = over_the_wire(numpy_to_captured_posture(values, STAMP, "base_link"))
    assert (msg.header.stamp, msg.header.frame_id) == (STAMP, "base_link")
    assert msg.model_distance == pytest.approx(0.005, rel=1e-12)
    same(captured_posture_to_numpy(msg), values)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("joint_positions", "1 positions and 2 efforts for 2 joints; expected as many of each"),
        ("in_contact", "2 contacts and 3 wrenches for 3 feet; expected as many of each"),
    ],
)
def test_captured_posture_of_wrong_size(field, text):
    msg = numpy_to_captured_posture(captured(np.random.default_rng(1)), STAMP, "base_link")
    setattr(msg, field, list(getattr(msg, field))[:-1])
    with pytest.raises(ConversionError, match=text):
        captured_posture_to_numpy(msg)


def test_empty_captured_posture():
    values = captured_posture_to_numpy(CapturedPosture())
    assert values.wrenches.shape == (0, 6)
    assert (values.id, values.q.size) == (0, 0)


def test_proposed_posture(over_the_wire):
    values = PlannedPosture(np.array([0.1, -0.2]), ("l_sole",), 0.02, 3.5)
    msg = over_the_wire(numpy_to_proposed_posture(values, ["a", "b"]))
    got = proposed_posture_to_numpy(msg)
    assert got.joint_names == ("a", "b")
    same(got, values)
    with pytest.raises(ConversionError, match="0 positions for 1 joints; expected as many"):
        proposed_posture_to_numpy(ProposedPosture(joint_names=["a"]))


def test_model_check(over_the_wire):
    rng = np.random.default_rng(2)
    known = {item.name: 0.1 * i for i, item in enumerate(fields(ModelCheckResult))}
    vectors = ("up", "projection", "measured", "difference", "tilt_part", "model_part")
    known |= {name: rng.normal(size=3) for name in vectors}
    result = ModelCheckResult(
        **known
        | {"verdict": Verdict.WRONG_TILT, "reason": "not level", "tilt": math.nan, "sloped": True}
    )
    msg = over_the_wire(numpy_to_model_check(result, STAMP, "base_link"))
    assert (msg.header.stamp, msg.header.frame_id) == (STAMP, "base_link")
    values = model_check_to_numpy(msg)
    same(values, result)


def bodies(rng):
    vectors, numbers = rng.normal(size=(4, 2, 3)), rng.normal(size=(4, 2))
    vectors[0, 1] = vectors[2, 1] = math.nan  # a body without mass
    return BodyValues(
        names=("base_link", "tool"),
        mass=numbers[0],
        mass_std=numbers[1],
        com=vectors[0],
        com_std=vectors[1],
        prior_mass=numbers[2],
        prior_mass_std=numbers[3],
        prior_com=vectors[2],
        prior_com_std=vectors[3],
        trusted=np.array([True, False]),
        at_bound=np.array([False, True]),
    )


def test_result(over_the_wire):
    values = ResultValues(
        status=IdentificationResult.STATUS_DEGRADED,
        reason="capture more",
        robot="hoap2",
        postures=(3, 5, 6),
        bodies=bodies(np.random.default_rng(3)),
        total_mass=7.1,
        total_mass_std=0.02,
        model_mass=7.2,
        n_parameters=78,
        rank=52,
        n_improved=40,
        condition=1e4,
        unidentifiable=("slides along the axis of knee",),
        weakly_identifiable=("height of the foot",),
        residual=(1e-4, 2e-4, 3e-4),
        prior_residual=(1e-3, 2e-3, 3e-3),
        held_out=(math.nan, math.nan, math.nan),
        variance_factor=1.1,
        outliers=(5,),
        sensor_errors={(kind.name, "x"): (0.1, 0.2) for kind in fields(SensorPriors)},
    )
    msg = over_the_wire(numpy_to_identification_result(values, STAMP, "base_link"))
    assert (msg.header.stamp, msg.header.frame_id) == (STAMP, "base_link")
    assert msg.at_bound == ["tool"]
    same(identification_result_to_numpy(msg), values)


def test_a_result_that_is_not_known_is_nan():
    msg = numpy_to_identification_result(ResultValues(reason="nothing yet"), STAMP, "base_link")
    assert (msg.status, msg.reason) == (IdentificationResult.STATUS_UNKNOWN, "nothing yet")
    assert math.isnan(msg.total_mass)
    assert math.isnan(msg.held_out_rms)
    same(identification_result_to_numpy(msg), ResultValues(reason="nothing yet"))
