"""The CoM on the soles, against the robot's true one by Pinocchio."""

from dataclasses import replace

import numpy as np
import pytest

from com_identification.report.comparison import compare_postures
from com_model import RobotModel, Sesc
from com_model.dynamics.link_frames import LinkFrames

pytestmark = pytest.mark.slow


def on_sole(scene, com, q):
    R, p = LinkFrames(scene.model, [scene.feet[0].frame]).poses(q)
    return (R[0].T @ (com - p[0]))[:2]


def test_places_on_the_sole(scene, postures, fits):
    truth, urdf = Sesc(RobotModel.from_urdf(scene.xml)), Sesc(scene.model)
    for posture, fit in zip(postures, fits, strict=True):
        assert fit.sole == 0
        np.testing.assert_allclose(
            fit.measured, on_sole(scene, truth.com(posture.q), posture.q), atol=1e-9
        )
        np.testing.assert_allclose(
            fit.before, on_sole(scene, urdf.com(posture.q), posture.q), atol=1e-9
        )
        gap = np.linalg.norm(fit.before - fit.measured)
        assert abs(fit.error_before - gap) < 1e-9
        assert np.linalg.norm(fit.after - fit.measured) < 0.2 * gap
        assert abs(fit.mass - scene.model.mass) < 1e-6


def test_feet_that_stand(fits):
    assert fits[0].standing == ("l_sole", "r_sole")
    assert fits[39].standing == ("l_sole",)
    assert fits[3].label == "p3"


def test_without_wrenches_there_is_no_place(scene, postures, found):
    R, _ = LinkFrames(scene.model, ["l_sole"]).poses(postures[0].q)
    unread = replace(postures[0], wrenches=np.full((2, 6), np.nan), up=R[0][:, 2])
    blind = [unread, *postures[1:]]
    fit = compare_postures(scene.model, scene.feet, blind, found, 9.81)[0]
    assert fit.sole == -1
    assert np.isnan([fit.mass, *fit.measured, *fit.before, *fit.after]).all()
