"""The zero of a sensor of the foot that carries the whole robot; the truth is Pinocchio's."""

from dataclasses import replace

import numpy as np
import pytest

from com_identification.exceptions import CaptureRefused
from com_identification.feet.feet_reading import estimate_wrench_bias
from com_identification.regression.observations import ObservationModel
from com_identification.regression.priors import urdf_priors

OFFSET = np.array([2.0, -1.0, 5.0, 0.1, 0.2, -0.1])


@pytest.fixture
def robot(perturbed):
    return perturbed(np.random.default_rng(1), 0.0)[0]


def test_what_is_read_too_much_on_one_foot(robot, random_q):
    q = random_q(np.random.default_rng(2))
    posture = robot.posture(q, (1.0, 0.0))
    posture = replace(posture, wrenches=posture.wrenches + np.outer([1.0, 0.0], OFFSET))
    observations = ObservationModel(robot.model, robot.feet)
    found = estimate_wrench_bias(
        observations, posture, 0, urdf_priors(robot.model, 0.02)
    )
    np.testing.assert_allclose(found, OFFSET, atol=1e-9)


def test_two_feet_that_share_the_weight_are_refused(robot, random_q):
    posture = robot.posture(random_q(np.random.default_rng(2)), (0.5, 0.5))
    observations = ObservationModel(robot.model, robot.feet)
    with pytest.raises(
        CaptureRefused, match=r"r_sole carries load, too, .* lift it, so that l_sole"
    ):
        estimate_wrench_bias(observations, posture, 0, urdf_priors(robot.model, 0.02))
