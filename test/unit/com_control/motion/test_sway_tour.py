"""Slow motions planned from a URDF: feet stay, joints and CoM keep their limits."""

from dataclasses import replace

import numpy as np
import pytest

from com_control.exceptions import BipedError, MotionError
from com_control.motion.sway_tour import plan_hang, plan_sway
from com_control.walking.biped import Biped, sole_poses
from com_model import SupportPolygon
from com_model.robots import load_robot


@pytest.fixture(scope="module", params=["hoap3", "talos"])
def robot(request):
    model, config = load_robot(request.param)
    return config.attach(model), config


def test_a_sway_keeps_the_feet_and_the_limits(robot):
    model, config = robot
    tour = plan_sway(model, config, 30.0)
    q, biped = tour.motion.positions, Biped.from_config(model, config)
    assert tour.motion.joints == model.joint_names
    assert tour.margin >= 0.015
    assert (q >= model.lower).all()
    assert (q <= model.upper).all()
    speeds = np.abs(np.gradient(q, tour.motion.times, axis=0)).max(axis=0)
    assert (speeds < 1.0).all()
    poses = np.array([sole_poses(biped, row) for row in q])
    R = poses[:, 0, :, :3].transpose(0, 2, 1) @ poses[:, 1, :, :3]
    p = poses[:, 1, :, 3] - poses[:, 0, :, 3]
    p = np.einsum("kji,kj->ki", poses[:, 0, :, :3], p)
    assert np.ptp(p, axis=0).max() < 1e-5
    assert np.ptp(R, axis=0).max() < 1e-5
    # the pelvis pitches against the soles: what shows the height of the CoM
    pitch = np.arcsin(poses[:, 0, 0, 2])
    assert np.ptp(pitch) > tour.size * np.deg2rad(14.0)
    np.testing.assert_allclose(q[0], biped.posture, atol=0.05)


def test_another_seed_gives_another_motion(robot):
    model, config = robot
    one, other = (
        plan_sway(model, config, 20.0, seed).motion.positions for seed in (1, 2)
    )
    middle = slice(50, 150)
    assert np.abs(one[middle] - other[middle]).max() > 0.1


def test_hanging_moves_all_limbs_within_their_limits(robot):
    model, config = robot
    tour = plan_hang(model, config, 40.0)
    q = tour.motion.positions
    assert (q >= model.lower).all()
    assert (q <= model.upper).all()
    assert np.isnan(tour.margin)
    biped = Biped.from_config(model, config)
    legs = np.concatenate([leg.joints for leg in biped.legs])
    assert (np.ptp(q[:, legs], axis=0) > 0.1).all()
    assert np.abs(np.gradient(q, tour.motion.times, axis=0)).max() < 1.0


def test_every_seed_moves_every_limb_as_much():
    model, config = load_robot("hoap3")
    motions = [plan_hang(model, config, 60.0, seed).motion for seed in range(12)]
    spread = np.array([motion.positions.std(axis=0) for motion in motions])
    moved = spread.max(axis=0) > 1e-6
    assert (spread[:, moved] > 0.75 * spread[:, moved].max(axis=0)).all()


def test_what_is_not_possible_is_named():
    model, config = load_robot("hoap3")
    small = [replace(foot, corners=0.1 * foot.corners) for foot in config.feet]
    with pytest.raises(MotionError, match=r"edge of the feet.*feet apart"):
        plan_sway(model, replace(config, feet=tuple(small)), 10.0)
    with pytest.raises(BipedError):
        plan_sway(*load_robot("biped3"))


def test_the_support_polygon_is_that_of_both_soles(robot):
    model, config = robot
    tour, biped = plan_sway(model, config, 20.0), Biped.from_config(model, config)
    soles = sole_poses(biped, biped.posture)
    corners = [
        pose[:, :3] @ np.append(corner, 0.0) + pose[:, 3]
        for pose, foot in zip(
            soles, sorted(config.feet, key=lambda foot: foot.side), strict=True
        )
        for corner in foot.corners
    ]
    polygon = SupportPolygon.from_points(np.array(corners), soles[0, :, 2])
    center = soles[:, :, 3].mean(axis=0)
    assert tour.margin < polygon.margin(center) + 0.1
