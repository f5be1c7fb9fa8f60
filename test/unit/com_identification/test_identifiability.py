"""What is identifiable from postures: ranks, and what is lost in words."""

import numpy as np
import pytest
from identification_ranks import com_rank

from com_identification.regression.priors import urdf_priors
from com_identification.regression.result import examine, rank_of
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def statics(hoap2):
    return Statics(hoap2[0])


@pytest.fixture(scope="module")
def factor(hoap2):
    priors = urdf_priors(hoap2[0], 0.02)
    return priors.factor


@pytest.fixture(scope="module")
def free(hoap2):
    model, rng = hoap2[0], np.random.default_rng(0)
    return rng.uniform(model.lower, model.upper, (60, model.n_joints))


@pytest.fixture(scope="module")
def double(hoap2, statics):
    """Postures with both soles flat on one ground, feet turned out as it comes."""
    model, feet = hoap2
    stance, rng, found = FlatStance(statics, feet), np.random.default_rng(1), []
    while len(found) < 50:
        Q, stands = stance.solve_all(0.7 * rng.uniform(model.lower, model.upper)[None])
        found += list(Q[stands])
    return np.array(found)


def test_there_are_78_unknowns_of_known_masses(factor):
    assert factor.shape[1] == 78


@pytest.mark.parametrize(("heights", "rank"), [(False, 52), (True, 53)])
def test_rank_with_free_joints(statics, factor, free, hoap2, heights, rank):
    sole = hoap2[0].link_index("l_sole")
    assert com_rank(statics, free, sole, heights, factor) == rank


@pytest.mark.parametrize(("heights", "rank"), [(False, 51), (True, 52)])
def test_rank_on_both_feet(statics, factor, double, hoap2, heights, rank):
    sole = hoap2[0].link_index("l_sole")
    assert com_rank(statics, double, sole, heights, factor) == rank


def rows_of(statics, Q, feet, efforts=False):
    """Moments about the left sole on level ground, and torques."""
    poses = statics.poses(Q)
    R, _ = statics.link_frames(poses, [statics.model.link_index(feet[0].frame)])
    up = R[:, 0, :, 2]
    parts = [statics.root_wrench(poses, 9.81 * up)]
    if efforts:
        parts.append(statics.torques(poses, 9.81 * up))
    return np.concatenate(parts, axis=1), up


def report(statics, factor, Q, feet, efforts=False):
    rows, up = rows_of(statics, Q, feet, efforts)
    root = np.linalg.qr(np.vstack(rows) @ factor, mode="r")
    return examine(statics, root, factor, 0, Q, up)


def test_what_both_feet_do_not_determine_in_words(statics, factor, double, hoap2):
    found = report(statics, factor, double, hoap2[1])
    assert (found.unknowns, found.rank) == (78, 51)
    assert len(found.lost) == 27
    assert "LLEG4 and LLEG3: slides along the axis of LLEG_JOINT4" in found.lost
    assert "BODY2 and BODY1: slides along the axis of BODY_JOINT1" in found.lost
    heights = [text for text in found.lost if "height of its centre of mass" in text]
    assert [text.split(":")[0] for text in heights] == ["RLEG6", "LLEG6"]


def test_words_are_true(statics, factor, free, hoap2):
    """A slide of 10 mm along a joint's axis changes no reading; across it, it does."""
    rows, _ = rows_of(statics, free, hoap2[1], efforts=True)
    bodies = statics.bodies
    for j in range(1, bodies.count):
        p, a = bodies.parent[j], bodies.axis[j]
        for direction, seen in ((a, False), (np.roll(a, 1), True)):
            change = np.zeros((bodies.count, 4))
            change[j, 1:], change[p, 1:] = (
                0.01 * direction,
                -0.01 * bodies.R[j] @ direction,
            )
            assert (np.abs(rows @ change.ravel()).max() > 1e-6) == seen


def test_efforts_determine_what_parallel_feet_hide(statics, factor, hoap2):
    """Bodies that never rotate relative to each other: feet determine the sum, efforts more.

    The legs bend in vertical planes with level soles: feet and pelvis keep their orientation.
    """
    model, feet = hoap2
    rng, Q = np.random.default_rng(2), []
    for _ in range(40):
        q = 0.6 * rng.uniform(model.lower, model.upper)
        for side in "LR":
            i = model.joint_index(f"{side}LEG_JOINT3")
            q[[i - 2, i - 1, i + 3]] = 0.0
            q[i + 2] = -q[i] - q[i + 1]  # hip, knee and ankle pitch turn the same way
        Q.append(q)
    feet_only = report(statics, factor, np.array(Q), feet)
    with_efforts = report(statics, factor, np.array(Q), feet, efforts=True)
    together = "BODY2 and LLEG5: only together along x (they do not rotate relative to each other)"
    assert together in feet_only.lost
    assert together not in with_efforts.lost
    assert (feet_only.rank, with_efforts.rank) == (36, 42)
    assert len(with_efforts.lost) == 78 - with_efforts.rank


def test_efforts_determine_what_soles_that_stay_hide(statics, factor, hoap2):
    """Soles that never step keep their orientation: left and right shin and foot mix."""
    model, feet = hoap2
    stance, rng = FlatStance(statics, feet, model.neutral), np.random.default_rng(4)
    Q, found = stance.solve_all(
        0.6 * rng.uniform(model.lower, model.upper, (300, model.n_joints))
    )
    Q = Q[found][:60]
    assert len(Q) == 60
    feet_only = report(statics, factor, Q, feet)
    with_efforts = report(statics, factor, Q, feet, efforts=True)
    assert (feet_only.rank, with_efforts.rank) == (48, 51)
    together = "RLEG6 and LLEG6: only together along y (they do not rotate relative to each other)"
    assert together in feet_only.lost
    assert together not in with_efforts.lost


def test_efforts_determine_nothing_more_in_varied_postures_but_need_fewer(
    statics, factor, double, hoap2
):
    feet = hoap2[1]
    assert report(statics, factor, double, feet, efforts=True).rank == 51
    assert report(statics, factor, double[:12], feet).rank == 24
    few = report(statics, factor, double[:12], feet, efforts=True)
    assert few.rank == 51


def test_no_efforts_nor_feet_distinguish_masses_at_a_joint(hoap2, statics, free):
    priors = urdf_priors(hoap2[0], 0.02, mass_std_fraction=0.1)
    factor = priors.factor
    assert factor.shape[1] == 104
    found = report(statics, factor, free, hoap2[1], efforts=True)
    exchanged = [text for text in found.lost if "mass at the origin of" in text]
    assert len(exchanged) == 25
    assert found.rank == 104 - len(found.lost)


def test_what_is_weakly_observable_is_named_too(statics, factor, double, hoap2):
    rows, up = rows_of(statics, double, hoap2[1])
    faint = np.linalg.qr(1e-3 * np.vstack(rows) @ factor, mode="r")
    found = examine(statics, faint, factor, 0, double, up)
    assert found.rank == 51
    assert found.weak, (
        "at a thousandth of the weight some combinations stay as the prior has them"
    )
    assert not set(found.weak) & set(found.lost)


def test_joints_that_were_not_moved_are_named(statics, factor, free, hoap2):
    still = free.copy()
    neck = hoap2[0].joint_index("HEAD_JOINT2")
    still[:, neck] = 0.3
    found = report(statics, factor, still, hoap2[1])
    assert any(
        text.startswith("HEAD1 and HEAD2: only together along")
        and "do not rotate" in text
        for text in found.lost
    )
    assert len(found.lost) == 78 - found.rank


def test_nothing_has_no_rank():
    assert rank_of(np.zeros((3, 5)), np.ones(5)) == 0
