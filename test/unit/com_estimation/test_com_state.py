"""ComObserver: position, velocity, gravity, ground, margin and status of a robot done by hand."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_estimation.whole_body.com_state import (
    Attitude,
    ComObserver,
    Ground,
    unknown_state,
)
from com_estimation.whole_body.stance import point_foot
from com_model import ShapeError, UnknownNameError
from com_model.robot_config import ground_wrenches
from com_model.status import Status

SQUARE = np.array([[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]])
STILL = np.zeros(6)
UNKNOWN_QD = np.full(6, np.nan)
R_ROOT_IMU = Rotation.from_euler("x", np.pi).as_matrix()


def sole(frame, **changes):
    return dataclasses.replace(point_foot(frame), corners=SQUARE, **changes)


SOLES = (sole("l_sole"), sole("r_sole"))


@pytest.fixture(scope="module")
def standing(walker):
    return ComObserver(walker, SOLES)


@pytest.fixture(scope="module")
def footless(walker):
    return ComObserver(walker)


def imu(R_world_root):
    return Attitude(False, R_world_root @ R_ROOT_IMU, "imu_link")


def isnan(*values):
    return all(np.isnan(value).all() for value in values)


def test_standing_on_two_feet(standing):
    state = standing.update(STILL, STILL)
    assert (state.status, state.reason) == (Status.OK, "")
    assert state.mass == pytest.approx(4.0)
    np.testing.assert_allclose(state.position, [0.05, 0, 0], atol=1e-15)
    np.testing.assert_array_equal(state.velocity, [0, 0, 0])
    np.testing.assert_allclose(state.gravity, [0, 0, -1], atol=1e-15)
    assert state.ground is Ground.FEET
    np.testing.assert_allclose(state.projection, [0.05, 0, -1], atol=1e-15)
    assert state.margin == pytest.approx(0.05)
    assert state.contacts == ("l_sole", "r_sole")
    assert len(state.support_polygon().vertices) == 4
    assert state.jacobian.shape == (3, 6)


def test_velocity(standing):
    qd = np.array(
        [0.0, 0, 0, 1.0, 0, 0]
    )  # r_hip turns about y: its leg's CoM, 0.5 m below
    np.testing.assert_allclose(
        standing.update(STILL, qd).velocity, [-0.125, 0, 0], atol=1e-15
    )
    qd[1] = np.nan
    state = standing.update(STILL, qd)
    assert isnan(state.velocity)
    assert state.status is Status.OK


def test_one_foot_raised(standing):
    state = standing.update(np.array([0, 0.1, 0, 0, 0, 0]), STILL)
    assert state.contacts == ("r_sole",)
    assert state.margin == pytest.approx(-0.05)  # beside the right foot


def test_forces_choose_the_feet_with_frame_and_sign(walker):
    feet = (sole("l_sole", wrench_sign=-1), sole("r_sole", wrench_frame="imu_link"))
    observer = ComObserver(walker, feet, contact_force=5.0)
    readings = np.array(
        [[0, 0, -20.0], [0, 0, -20.0]]
    )  # on the ground; in a frame upside down
    forces = ground_wrenches(readings, feet)
    assert observer.update(STILL, STILL, forces=forces).contacts == ("l_sole", "r_sole")
    assert observer.update(STILL, STILL, forces=-forces).status is Status.DEGRADED
    forces[1] = 0.0
    assert observer.update(STILL, STILL, forces=forces).contacts == ("l_sole",)


def test_no_foot_in_contact(standing):
    state = standing.update(STILL, STILL, forces=np.zeros((2, 3)))
    assert state.status is Status.DEGRADED
    assert state.reason == "no foot is in contact: there is no ground to project onto"
    assert (state.ground, state.contacts) == (Ground.UNKNOWN, ())
    assert isnan(state.gravity, state.projection, state.margin)
    np.testing.assert_allclose(state.position, [0.05, 0, 0], atol=1e-15)
    assert state.support_polygon() is None


def test_without_imu_the_ground_is_level_under_the_soles(standing):
    q = np.array([0.2, 0, 0, 0.2, 0, 0])  # both legs swing: the soles lean with them
    state = standing.update(q, STILL)
    R = Rotation.from_euler("y", 0.2).as_matrix()
    np.testing.assert_allclose(state.gravity, -R[:, 2], atol=1e-12)
    drop = state.projection - state.position
    np.testing.assert_allclose(np.cross(drop, state.gravity), 0, atol=1e-12)


def test_imu_on_level_ground_agrees_with_none(standing):
    q = np.array([0.2, 0, 0, 0.2, 0, 0])
    expected = standing.update(q, STILL)
    R_world_root = Rotation.from_euler("y", -0.2).as_matrix()
    state = standing.update(q, STILL, imu(R_world_root))
    assert state.status is Status.OK
    np.testing.assert_allclose(state.gravity, expected.gravity, atol=1e-12)
    np.testing.assert_allclose(state.projection, expected.projection, atol=1e-12)
    assert state.margin == pytest.approx(expected.margin, abs=1e-12)


def test_imu_on_a_slope(standing):
    slope = np.deg2rad(10)
    R_world_root = Rotation.from_euler("y", slope).as_matrix()  # downhill is ahead
    state = standing.update(STILL, STILL, imu(R_world_root))
    np.testing.assert_allclose(
        state.gravity, [np.sin(slope), 0, -np.cos(slope)], atol=1e-12
    )
    forward = 0.05 + np.tan(slope)  # the CoM is 1 m over the soles
    np.testing.assert_allclose(state.projection, [forward, 0, -1], atol=1e-12)
    assert state.margin == pytest.approx(0.1 - forward)
    assert state.contacts == ("l_sole", "r_sole")


def test_heading_does_not_matter(standing):
    yaw = Rotation.from_euler("z", 2.0).as_matrix()
    state = standing.update(STILL, STILL, imu(yaw))
    np.testing.assert_allclose(state.gravity, [0, 0, -1], atol=1e-12)


def test_imu_that_is_silent(standing):
    state = standing.update(
        STILL, STILL, Attitude(False, problem="imu is silent: start it")
    )
    assert (state.status, state.reason) == (Status.DEGRADED, "imu is silent: start it")
    assert state.ground is Ground.UNKNOWN
    assert isnan(state.gravity, state.projection, state.margin)
    assert state.contacts == ("l_sole", "r_sole")
    np.testing.assert_allclose(state.position, [0.05, 0, 0], atol=1e-15)


def test_imu_in_a_frame_that_is_not_the_robot_s(standing):
    state = standing.update(STILL, STILL, Attitude(False, np.eye(3), "imu"))
    assert state.status is Status.DEGRADED
    assert state.reason.startswith("frame of the imu: no link 'imu'")
    assert state.reason.endswith("set the parameter imu_link")
    assert isnan(state.gravity, state.projection, state.margin)
    assert (
        standing.update(STILL, STILL, Attitude(False, np.eye(3), "imu")).reason
        == state.reason
    )
    assert standing.update(STILL, STILL, imu(np.eye(3))).reason == ""


@pytest.mark.parametrize("angle", [0.0, np.pi / 2])
def test_imu_mounted_upside_down_without_saying_so(standing, angle):
    R_world_imu = Rotation.from_euler("x", angle).as_matrix()
    state = standing.update(STILL, STILL, Attitude(False, R_world_imu, "imu_link"))
    assert state.status is Status.DEGRADED
    assert "gravity does not point into the ground under the feet" in state.reason
    assert isnan(state.projection, state.margin)


def test_without_feet(footless):
    state = footless.update(STILL, STILL)
    assert (state.status, state.ground, state.contacts) == (Status.OK, Ground.ROOT, ())
    np.testing.assert_array_equal(state.gravity, [0, 0, -1])
    np.testing.assert_allclose(state.projection, [0.05, 0, 0], atol=1e-15)
    assert isnan(state.margin)
    assert state.support_polygon() is None


def test_without_feet_with_imu(footless):
    R = Rotation.from_euler("xy", [0.3, 0.2]).as_matrix()
    q = np.array([0.5, 0, 0, 0, 0, 0])
    state = footless.update(q, STILL, imu(R))
    assert state.ground is Ground.ROOT
    np.testing.assert_allclose(R @ state.gravity, [0, 0, -1], atol=1e-12)
    assert state.projection @ state.gravity == pytest.approx(0.0, abs=1e-15)
    silent = footless.update(q, STILL, Attitude(False, problem="silent"))
    assert (silent.ground, silent.status) == (Ground.UNKNOWN, Status.DEGRADED)
    assert isnan(silent.projection, silent.gravity)


def test_warnings_of_the_caller_degrade(footless):
    state = footless.update(STILL, STILL, warnings=["one", "two"])
    assert (state.status, state.reason) == (Status.DEGRADED, "one; two")


def test_positions_that_are_not_finite_give_no_com(footless):
    q = STILL.copy()
    q[2] = np.nan
    state = footless.update(q, STILL)
    assert (state.status, state.reason) == (
        Status.UNKNOWN,
        "joint positions are not finite",
    )
    assert isnan(
        state.position, state.velocity, state.gravity, state.projection, state.margin
    )
    assert state.jacobian is None
    assert state.mass == pytest.approx(4.0)


def test_unknown_state():
    state = unknown_state("why")
    assert isnan(
        state.mass, state.position, state.velocity, state.projection, state.margin
    )
    assert (state.status, state.reason, state.q) == (Status.UNKNOWN, "why", None)


def test_wrong_shape_and_unknown_foot(walker, footless):
    with pytest.raises(ShapeError, match=r"expected shape \(6,\)"):
        footless.update(np.zeros(5), STILL)
    with pytest.raises(UnknownNameError, match="no link 'paw'"):
        ComObserver(walker, [point_foot("paw")])
