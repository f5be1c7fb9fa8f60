"""Total mass and offset of the CoM by the feet alone; bad postures."""

import numpy as np
import pytest

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.feet.feet_reading import identify_total
from com_identification.regression.postures import make_posture
from com_identification.settings import SensorNoise
from com_identification.store.results import corrected_inertials
from com_model.urdf.editing import edit_inertials

NOISE = SensorNoise()
LEFT = [1.0, 0.0]


@pytest.fixture(scope="module")
def shifted(hoap2, perturbed):
    """The trunk's CoM is off by (12, -8, 5) mm, nothing else; and the shift of the whole."""
    model, feet = hoap2
    bodies = model.bodies
    com = bodies.first_moment / bodies.mass[:, None]
    com[0] += [0.012, -0.008, 0.005]
    xml = edit_inertials(model.xml, corrected_inertials(model, bodies.mass, com))
    robot = type(perturbed(np.random.default_rng(0), 0.0)[0])(xml, model, feet)
    return robot, np.array([0.012, -0.008, 0.005]) * bodies.mass[0] / model.mass


def test_total_finds_a_shift_of_the_trunk(hoap2, shifted, random_q):
    robot, shift = shifted
    nees = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        postures = [
            robot.posture(random_q(rng), LEFT, NOISE, rng, 100) for _ in range(6)
        ]
        found = identify_total(*hoap2, postures)
        assert found.postures == 6
        assert np.isfinite(found.offset_std).all(), "the root is tilted in each"
        nees.append(np.mean(((found.offset - shift) / found.offset_std) ** 2))
        assert np.linalg.norm(found.offset - shift) < 1e-3
        assert found.residual_before.mean() > 4.0 * found.residual_after.mean()
        assert abs(found.mass - 7.1200448) < 5.0 * found.mass_std
        assert found.mass_std < 0.02
    print(f"squared errors over variances {np.mean(nees):.2f}")
    assert 0.3 < np.mean(nees) < 2.0


def test_one_horizontal_posture_determines_two_components(hoap2, shifted):
    robot, shift = shifted
    q = np.zeros(25)
    posture = robot.posture(q, [0.5, 0.5], NOISE, np.random.default_rng(1), 100)
    found = identify_total(*hoap2, [posture])
    R = robot.frame(q, "l_sole")[0]
    np.testing.assert_allclose(R[:, 2], [0, 0, 1], atol=1e-9)
    assert list(np.isinf(found.offset_std)) == [False, False, True]
    assert found.offset[2] == pytest.approx(0.0, abs=1e-4)
    np.testing.assert_allclose(found.offset[:2], shift[:2], atol=1e-3)
    assert np.abs((found.offset - shift)[:2] / found.offset_std[:2]).max() < 4.0


def test_total_sees_a_wrong_mass_and_wrong_sensors(hoap2, perturbed, random_q):
    rng = np.random.default_rng(4)
    robot, mass, _ = perturbed(rng, 0.003, mass_std_fraction=0.05)
    postures = [robot.posture(random_q(rng), LEFT, NOISE, rng, 100) for _ in range(4)]
    found = identify_total(*hoap2, postures)
    assert found.model_mass == pytest.approx(7.1200448)
    assert abs(found.mass - mass.sum()) < 4.0 * found.mass_std
    flipped = [make_posture(hoap2[0], p.q, -p.wrenches, samples=100) for p in postures]
    wrong = identify_total(*hoap2, flipped)
    assert wrong.mass < 0.0
    assert wrong.reasons[0].startswith("Posture 0: ")
    assert "change the sign of" in wrong.reasons[0]


def test_total_needs_wrenches(hoap2, shifted, random_q):
    robot, _ = shifted
    model = hoap2[0]
    good = robot.posture(np.zeros(25), [0.5, 0.5], NOISE, np.random.default_rng(0), 100)
    half = good.wrenches.copy()
    half[1] = np.nan
    half_known = make_posture(model, good.q, half)
    with pytest.raises(
        IdentificationError, match="no posture has the wrenches of all feet"
    ):
        identify_total(*hoap2, [half_known])
    with pytest.raises(IdentificationError, match="no posture has"):
        identify_total(*hoap2, [])
    assert identify_total(*hoap2, [half_known, good]).postures == 1
    assert identify_total(*hoap2, [good, make_posture(model, good.q)]).postures == 1
    with pytest.raises(PostureError, match=r"posture 1: 1 wrenches for 2 feet"):
        identify_total(*hoap2, [good, make_posture(model, good.q, good.wrenches[:1])])
    assert identify_total(*hoap2, [good]).reasons == ()
