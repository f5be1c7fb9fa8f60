"""The sway's fit: the stiffness of servos that lag and have noise, and how sure it is of it."""

import numpy as np
import pytest
from shipped_robot import shipped_robot

from com_control.exceptions import BipedError
from com_control.walking.ankle_sway import fit_ankles, plan_sway
from com_control.walking.biped import Biped
from com_control.walking.stabiliser import ankle_joints
from com_control.walking.walk_monitor import Reading
from com_control.walking.walker import Walker
from com_model.dynamics import GRAVITY

pytestmark = pytest.mark.slow

STIFFNESS, LAG, NOISE = np.array([120.0, 180.0]), 0.03, 2e-4  # N m/rad; s; rad


@pytest.fixture(scope="module")
def sway():
    config, model, posture, _ = shipped_robot("hoap2")
    biped = Biped.from_config(model, config)
    return biped, plan_sway(Walker(biped), posture)


def test_the_path_is_a_circle_of_1_cm_over_both_feet(sway):
    _, walk = sway
    com = walk.samples.com[:, :2] - walk.samples.com[0, :2]
    radius = np.linalg.norm(com, axis=1)
    assert radius.max() == pytest.approx(0.01, rel=1e-6)
    np.testing.assert_allclose(com.min(axis=0), -0.01, atol=1e-4)
    assert radius[[0, -1]].max() == 0.0
    assert walk.samples.stance.all()
    assert walk.steps == 0
    assert not walk.fed_back
    assert np.abs(walk.path.qd[[0, -1]]).max() == 0.0


def sampled(sway, noise, seed=0, wrenches=True):
    """A sway with half the weight on each foot, where the CoM is over it."""
    biped, walk = sway
    rng, samples, weight = np.random.default_rng(seed), [], biped.model.mass * GRAVITY
    middle = walk.samples.feet[0, :, :2, 3].mean(axis=0)
    legs = [
        [biped.model.joint_index(name) for name in ankle_joints(leg)]
        for leg in biped.legs
    ]
    height = [
        leg.points[5] @ leg.R_sole[:, 2] - leg.p_sole @ leg.R_sole[:, 2]
        for leg in biped.legs
    ]
    assert np.ptp(height) < 1e-9
    for i, t in enumerate(walk.path.time.tolist()):
        target, speed = walk.path.sample(t)
        at = walk.samples.com[i, :2] - middle
        read, q = np.zeros((2, 6)), target - LAG * speed
        read[:, 2], read[:, 3], read[:, 4] = (
            0.5 * weight,
            0.5 * weight * at[1],
            -0.5 * weight * at[0],
        )
        for joints in legs:  # the axes' signs: those of HOAP-2's ankles
            q[joints] -= (
                0.5
                * weight
                * np.array([-at[1], at[0]])
                * signs(biped, joints)
                / STIFFNESS
            )
        q += noise * rng.standard_normal(len(q))
        samples.append((Reading(t, q, read if wrenches else None), target))
    return samples, walk.plan.timing.com_height


def signs(biped, joints):
    """Of the servos' axes along x and y of the soles, as the robot stands."""
    for leg in biped.legs:
        if leg.joints[5] in joints or leg.joints[4] in joints:
            own = [int(np.flatnonzero(leg.joints == j)[0]) for j in joints]
            return np.sign([leg.axes[own[k]] @ leg.R_sole[:, k] for k in range(2)])
    raise AssertionError(joints)


def fit(sway, samples, height=1.0):
    """Stiffness and sigma, (2,) each, N m/rad."""
    found = fit_ankles(sway[0], samples, height)
    return np.array([one.stiffness for one in found]), np.array(
        [one.std for one in found]
    )


def test_it_finds_the_stiffness_behind_a_lag(sway):
    samples, height = sampled(sway, 0.0)
    found, weight_moment = (
        fit_ankles(sway[0], samples, height),
        sway[0].model.mass * GRAVITY * height,
    )
    for one, true, joint in zip(found, STIFFNESS, ("JOINT6", "JOINT5"), strict=True):
        assert one.stiffness == pytest.approx(true, rel=0.02)
        assert one.kappa == pytest.approx(one.stiffness / weight_moment)
        assert str(one).startswith(
            f"LLEG_{joint} and RLEG_{joint} {one.stiffness:.4g} ± "
        )


@pytest.mark.exhaustive
def test_its_sigma_is_the_scatter(sway):
    plain, _ = fit(sway, sampled(sway, 0.0)[0])
    fits = [fit(sway, sampled(sway, NOISE, seed)[0]) for seed in range(12)]
    scatter = np.array([(stiffness - plain) / std for stiffness, std in fits])
    assert 0.6 < np.sqrt(np.mean(scatter**2)) < 1.6
    assert max(std.max() for _, std in fits) < 0.01 * STIFFNESS.min()


def test_what_it_refuses(sway):
    with pytest.raises(
        BipedError, match="0 readings of the sway have both wrenches, 100"
    ):
        fit(sway, sampled(sway, 0.0, wrenches=False)[0])
    with pytest.raises(BipedError, match="0 readings of the sway"):
        fit(sway, [])
    with pytest.raises(
        BipedError, match="does not show how stiff LLEG_JOINT6 and RLEG_JOINT6"
    ):
        fit(sway, sampled(sway, 0.05)[0])
