"""Issues and summary of a result, and what is put into messages."""

import math
from dataclasses import replace

import numpy as np
import pytest

from com_identification.feet.feet_reading import TotalCom
from com_identification.nodes.identification_conversions import numpy_to_total
from com_identification.regression.identify import identify
from com_identification.regression.postures import make_posture
from com_identification.regression.result import Residual, issues_of
from com_identification.report.comparison import summary


@pytest.fixture
def found(make_standing_robot):
    robot = make_standing_robot("biped3")
    postures = []
    for _ in range(8):
        Q, W = robot.read(*robot.random_posture(), 20)
        postures.append(make_posture(robot.model, Q.mean(0), W.mean(0), samples=20))
    return identify(robot.model, robot.config.feet, postures)


def test_a_good_result_has_no_issues(found):
    assert issues_of(found) == []
    assert "8 of 8 postures fit: residual of the feet's CoM 0." in summary(found)
    assert "of 20, total mass 18.6" in summary(found)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"variance_factor": 9.0, "cause": "a zero"},
            "by 3.0 times what the priors allow",
        ),
        (
            {"cause": "zero offsets: knee"},
            "far larger than its prior. Likeliest: zero offsets: kn",
        ),
        (
            {"held_out": Residual(0.05, 0.05, 0.05, 8)},
            r"50.00 mm, worse than by the URDF",
        ),
        ({"at_bound": ("l_foot",)}, "centre of mass of l_foot would be outside"),
        ({"outliers": (1, 2, 5)}, "3 of 8 postures are inconsistent with the others"),
    ],
)
def test_issues_of_a_result(found, change, text):
    held_out = change.get("held_out", found.held_out)
    good = replace(found.without_outliers, held_out=held_out)
    (issue,) = issues_of(replace(found, without_outliers=good, **change))
    assert text in issue


def test_the_first_sentence_says_how_much_better_than_the_urdf_it_is(found):
    better = replace(found, prediction_std=0.8e-3, prediction_shift=2.4e-3)
    assert summary(better).startswith(
        "In such postures the CoM is accurate to 0.80 mm (one sigma, horizontal), with the URDF "
        "only to 2.53 mm: 3.2 times better."
    )
    same = replace(found, prediction_std=0.8e-3, prediction_shift=0.4e-3)
    assert "not clearly better than the URDF; capture more postures" in summary(same)


def test_outliers_are_no_issue_of_the_others(found):
    far = replace(found, held_out=Residual(0.05, 0.05, 0.05, 8), outliers=(3,))
    assert issues_of(far) == []
    assert "7 of 8 postures fit" in summary(far)
    assert "50.00 mm" not in summary(far)


def test_what_no_posture_determines_is_nan():
    total = TotalCom(
        mass=7.0,
        mass_std=0.1,
        model_mass=7.1,
        offset=np.array([0.001, 0.002, 0.0]),
        offset_std=np.array([1e-4, 1e-4, np.inf]),
        residual_before=np.array([0.002, 0.004]),
        residual_after=np.array([0.001, 0.001]),
        postures=2,
        reasons=("the sensors drift",),
    )
    response = numpy_to_total(total)
    assert (response.offset.x, response.offset.y) == (0.001, 0.002)
    assert math.isnan(response.offset.z)
    assert math.isnan(response.offset_std.z)
    assert (response.distance_mean, response.distance_max) == (0.003, 0.004)
    assert (response.shifted_max, response.used) == (0.001, 2)
    assert response.issues == ["the sensors drift"]
