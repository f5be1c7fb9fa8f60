"""Workspaces of the centre of mass: against a pendulum's sphere, and one by one."""

from pathlib import Path

import numpy as np
import pytest

from com_demos.com_workspace import Workspace, sample_coms, sample_postures
from com_demos.two_joint_human import RATIOS, WINTER_LEGS, TwoJointHuman, human_png
from com_model import ComModelError, GeometryError, RobotModel, Sesc, UnknownNameError

pytestmark = pytest.mark.slow

HOAP2 = Path(__file__).resolve().parents[3] / "src/robot_descriptions/urdf/hoap2.urdf"
JOINT = (
    '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
    '<axis xyz="{3}"/></joint>'
)
INERTIAL = (
    '<inertial><origin xyz="0 0 {}"/><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
)
BALL = (
    '<robot name="ball"><link name="base"/>'
    + JOINT.format("yaw", "base", "mid", "0 0 1")
    + '<link name="mid"/>'
    + JOINT.format("pitch", "mid", "rod", "0 1 0")
    + f'<link name="rod">{INERTIAL.format(0.5)}</link></robot>'
)


@pytest.fixture(scope="module")
def hoap2():
    return RobotModel.from_file(HOAP2)


@pytest.fixture(scope="module")
def sphere():
    """The CoM of a rod on two joints that turn all the way round: a sphere of 0.5 m."""
    return Workspace.from_points(sample_coms(RobotModel.from_urdf(BALL), 20_000))


def test_a_rod_reaches_a_sphere(sphere):
    np.testing.assert_allclose(np.linalg.norm(sphere.points, axis=1), 0.5, atol=1e-12)
    assert sphere.volume == pytest.approx(4 / 3 * np.pi * 0.125, rel=0.01)
    np.testing.assert_allclose(
        sphere.reach(np.vstack((np.eye(3), -np.eye(3)))), 0.5, atol=0.002
    )
    np.testing.assert_allclose(
        sphere.margin([[0, 0, 0], [0.3, 0, 0], [0, 0.7, 0]]),
        [0.5, 0.2, -0.2],
        atol=0.01,
    )


def test_samples_are_centres_of_mass_within_the_limits(hoap2):
    """Each sample again one by one, from the same random numbers."""
    points = sample_coms(hoap2, 50, seed=3)
    (source,) = np.random.SeedSequence(3).spawn(1)
    U = np.random.Generator(np.random.SFC64(source)).random((50, hoap2.n_joints))
    Q = hoap2.lower + U * (hoap2.upper - hoap2.lower)
    np.testing.assert_allclose(points, [Sesc(hoap2).com(q) for q in Q], atol=1e-14)


def test_postures_are_those_of_the_samples(hoap2):
    Q = sample_postures(hoap2, 30_000, seed=3)  # more than are sampled at once
    np.testing.assert_array_equal(
        Sesc(hoap2).com_batch(Q), sample_coms(hoap2, 30_000, seed=3)
    )


def test_joints_that_rest_do_not_move_the_com(hoap2):
    rest = np.array(hoap2.neutral)
    rest[hoap2.joint_index("BODY_JOINT1")] = 0.3
    points = sample_coms(hoap2, 100, ["HEAD_JOINT1", "HEAD_JOINT2"], rest)
    assert np.ptp(points, axis=0).max() < 0.002
    assert np.abs(points - Sesc(hoap2).com(rest)).max() < 0.002


def test_threads_and_odd_counts_fill_every_row(hoap2):
    points = sample_coms(hoap2, 5003, threads=3)
    assert points.shape == (5003, 3)
    assert len(np.unique(points, axis=0)) == 5003
    np.testing.assert_array_equal(points, sample_coms(hoap2, 5003))


def test_bad_arguments_are_refused(hoap2, sphere):
    with pytest.raises(ComModelError, match="count: expected 1 or more, got 0"):
        sample_coms(hoap2, 0)
    with pytest.raises(UnknownNameError, match="no joint 'tail'"):
        sample_coms(hoap2, 5, ["tail"])
    with pytest.raises(GeometryError, match="5 points do not fill a volume"):
        Workspace.from_points(np.zeros((5, 3)))
    with pytest.raises(GeometryError, match="not finite"):
        Workspace.from_points(np.full((5, 3), np.nan))
    with pytest.raises(GeometryError, match="vectors other than zero"):
        sphere.reach([[0, 0, 0]])


def test_the_human_of_two_links_against_its_jacobian():
    """Where every posture is above the foot: r_1 r_2 times the integral of |sin b|."""
    human = TwoJointHuman(ankle=(-0.5, 0.5), hip=(0.0, 1.5), foot=(-9.0, 9.0))
    r1, r2 = human.radii(0.5)
    exact = r1 * r2 * 1.0 * (1.0 - np.cos(1.5))
    assert len(human.workspace(0.5, 0.002)) * 0.002**2 == pytest.approx(exact, rel=0.03)


def test_the_largest_workspace_has_nearly_winters_lengths():
    """The least is that of a human without legs or body."""
    human = TwoJointHuman()
    fractions = np.arange(0.05, 1.0, 0.025)
    areas = human.areas(fractions)
    assert fractions[np.argmax(areas)] == pytest.approx(WINTER_LEGS, abs=0.05)
    assert np.argmin(areas) in (0, len(areas) - 1)


def test_the_picture_of_a_smaller_human():
    human = TwoJointHuman(1.7)
    areas = human.areas(RATIOS)
    assert RATIOS[areas.argmax()] == pytest.approx(0.57, abs=0.03)
    assert human_png(human, areas).startswith(b"\x89PNG")
