"""[Muscolo]: its listing, its 4x4 system, n links; each printed slip beside what is right."""

import numpy as np
import pytest
from baselines.muscolo import (
    Coefficients,
    FeetReadings,
    PlanarFoot,
    RankError,
    coefficients,
    four_by_four,
    links_from_heights,
    planar_links,
    tilted_pair,
)

G = 9.81
TEN = np.radians(10.0)
# Section 4.2: mm and kg; the waist's 0.94 kg count with the thigh.
FOOT, MASSES, LENGTHS = (
    PlanarFoot(6.72, 0.0, 26.32, 100.0),
    [0.95, 1.16 + 0.94],
    [400.0],
)


def total_com(masses, lengths, foot, links, tilts):
    """x and z of the total centre of mass, link by link from the ground up."""
    moment = foot.mass * np.array([foot.across, foot.along])
    joint = np.array([0.0, foot.height])
    for m, length, (r, along), phi in zip(
        masses, [*lengths, 0.0], links, tilts, strict=False
    ):
        up, across = (
            np.array([np.sin(phi), np.cos(phi)]),
            np.array([np.cos(phi), -np.sin(phi)]),
        )
        moment = moment + m * (joint + along * up + r * across)
        joint = joint + length * up
    return moment / (foot.mass + sum(masses))


def postures_b_and_c(links):
    return [
        total_com(MASSES, LENGTHS, FOOT, links, tilts)
        for tilts in ([TEN, TEN], [0.0, TEN])
    ]


def system(links):
    return four_by_four(MASSES, FOOT, LENGTHS[0], (TEN, TEN), *postures_b_and_c(links))


def listing(ma=6.72, la=26.32, ra=0.0):
    """The listing of section 4.2 line by line, with its undefined `mu` read as `ma`."""
    thb = thc = 10 * np.pi / 180
    mb, mc = 0.95, 1.16 + 0.94
    La, Lb, lb, lc = 100, 400, 200, 250
    mw = mb + mc
    m2 = ma + mw
    Z2b = (
        ma * la + mb * (La + lb * np.cos(thb)) + mc * (La + (Lb + lc) * np.cos(thb))
    ) / m2
    X2b = (mb * lb * np.sin(thb) + mc * (Lb + lc) * np.sin(thb)) / m2
    Z2c = (ma * la + mb * (La + lb) + mc * (La + Lb + lc * np.cos(thc))) / m2
    X2c = mc * lc * np.sin(thc) / m2
    lwb, lwc = (Z2b * m2 - ma * la) / mw - La, (Z2c * m2 - ma * la) / mw - La
    B = mw * (lwb + La) - mb * La - mc * Lb * np.cos(thb) - mc * La
    C = mw * (lwc + La) - mb * La - mc * (La + Lb)
    det_A = mb * mc * np.cos(thb) * (np.cos(thc) - 1)
    lb_validation = mc * (B * np.cos(thc) - C * np.cos(thb)) / det_A
    lc_validation = mb * (C * np.cos(thb) - B) / det_A
    return (lb_validation, lc_validation), (X2b, Z2b), (X2c, Z2c)


def test_the_listing_and_ours_give_200_and_250():
    by_listing, b, c = listing()
    ours = links_from_heights(*four_by_four(MASSES, FOOT, LENGTHS[0], (TEN, TEN), b, c))
    np.testing.assert_allclose(by_listing, [200, 250], atol=1e-9, rtol=0)
    np.testing.assert_allclose(ours, [200, 250], atol=1e-9, rtol=0)


def test_heights_alone_fail_for_a_link_whose_com_is_off_its_line():
    l_b, l_c = links_from_heights(*system([(7, 200), (-12, 250)]))
    assert (round(l_b), round(l_c)) == (280, 215)


def test_four_by_four_finds_what_is_off_the_line_too():
    found = np.linalg.solve(*system([(7, 200), (-12, 250)]))
    np.testing.assert_allclose(found, [7, 200, -12, 250], atol=1e-9, rtol=0)


def test_eq_36_as_printed_finds_neither():
    A, a = system([(7, 200), (-12, 250)])
    A[2, 2] *= -1.0  # printed: m_c (l_c sin - r_c cos)
    found = np.linalg.solve(A, a)
    assert (round(found[1]), round(found[3])) == (350, 182)
    # ... and nobody could see it in the paper's example, where r is 0.
    A, a = system([(0, 200), (0, 250)])
    A[2, 2] *= -1.0
    np.testing.assert_allclose(np.linalg.solve(A, a), [0, 200, 0, 250], atol=1e-9)


def test_noise_of_a_millimetre_grows_957_fold_in_the_listing_and_83_fold_in_the_full_system():
    A, _ = system([(0, 200), (0, 250)])
    m_2 = FOOT.mass + sum(MASSES)
    by_listing = m_2 * np.linalg.norm(np.linalg.inv(A[1::2, 1::2])[0])
    by_all = m_2 * np.linalg.norm(np.linalg.inv(A)[1])
    assert by_listing == pytest.approx(957, abs=1)
    assert by_all == pytest.approx(83, abs=1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("height", [True, False])
def test_n_links_come_back(n, height):
    rng = np.random.default_rng(n)
    links = rng.normal([0, 200], [20, 50], (n, 2))
    masses, lengths = rng.uniform(0.5, 3, n), rng.uniform(200, 400, n)
    foot = PlanarFoot(1.5, 8.0, 30.0, 90.0)
    tilts = rng.uniform(-0.5, 0.5, (n if height else 2 * n, n))
    com = np.array([total_com(masses, lengths, foot, links, phi) for phi in tilts])
    if not height:
        com[:, 1] = np.nan
    # Twice as many numbers from x alone are worse conditioned: rounding of 1e-13 mm grows.
    found = planar_links(masses, lengths, foot, tilts, com)
    np.testing.assert_allclose(found, links, atol=1e-9 if height else 1e-6, rtol=0)


def test_too_few_postures_are_refused_with_what_is_missing():
    phi = np.array([[0.1, 0.2, 0.3], [0.0, 0.3, 0.1]])
    with pytest.raises(
        RankError, match="2 postures determine 4 of 6 numbers of 3 links"
    ) as caught:
        planar_links([1, 1, 1], [300, 300], FOOT, phi, np.zeros((2, 2)))
    assert (caught.value.rank, caught.value.needed) == (4, 6)
    same = np.repeat(phi[:1], 5, axis=0)
    with pytest.raises(
        RankError, match="add postures in which each joint is bent differently"
    ):
        planar_links([1, 1, 1], [300, 300], FOOT, same, np.zeros((5, 2)))


# The first formulation, in metres.

ANKLES = PlanarFoot(13.44, 0.01, 0.02632, 0.1)
BODY, R_W, L_W = 5.16, 0.015, 0.5  # kg; m, of all above the ankles


def upper_body(tilt):
    """x and z of the total centre of mass with all above the ankles tilted."""
    x = R_W * np.cos(tilt) + L_W * np.sin(tilt)
    z = ANKLES.height + L_W * np.cos(tilt) - R_W * np.sin(tilt)
    feet = ANKLES.mass * np.array([ANKLES.across, ANKLES.along])
    return (feet + BODY * np.array([x, z])) / (ANKLES.mass + BODY)


def readings(com, slope=(0.0, 0.0), fraction=0.4, y=0.02, noise=None):
    """Two feet at y = -+0.2 m that carry a weight at com; slope: fx/fz and fy/fz of the weight."""
    weight = (ANKLES.mass + BODY) * G
    force = weight * np.array([slope[0], slope[1], 1.0])
    forces = np.array([(1 - fraction) * force, fraction * force])
    center = np.array([com[0], y, com[1]])
    arms = np.array([[0, -0.2, 0], [0, 0.2, 0]])
    rest = np.cross(center, force) - np.cross(arms, forces).sum(axis=0)
    moments = np.array([(1 - fraction) * rest, fraction * rest])
    if noise is not None:
        forces = forces + noise.normal(0, 0.5, (2, 3))
        moments = moments + noise.normal(0, 0.025, (2, 3))
    return FeetReadings(forces, moments, 0.2)


def find(slope, level, noise=None):
    mass = ANKLES.mass + BODY
    pair = [
        coefficients(readings(upper_body(tilt), slope, noise=noise), level)
        for tilt in (0, TEN)
    ]
    return tilted_pair(*pair, TEN, ANKLES, mass)


@pytest.mark.parametrize(
    ("slope", "level"), [((0, 0), True), ((0, 0), False), ((0.08, -0.03), False)]
)
def test_two_tilts_give_the_total_com(slope, level):
    found = find(slope, level)
    np.testing.assert_allclose([found.across, found.along], [R_W, L_W], atol=1e-12)
    np.testing.assert_allclose(found.com_a, upper_body(0.0), atol=1e-12)
    np.testing.assert_allclose(found.com_b, upper_body(TEN), atol=1e-12)


def test_coefficients_are_those_of_the_line_through_the_com():
    x, z = upper_body(TEN)
    c = coefficients(readings(upper_body(TEN), (0.08, -0.03)), level=False)
    assert c.alpha + c.beta * z == pytest.approx(x, abs=1e-12)
    assert c.gamma + c.delta * z == pytest.approx(0.02, abs=1e-12)
    assert (c.beta, c.delta) == (pytest.approx(0.08), pytest.approx(-0.03))


def test_the_motors_torques_as_m_2_move_the_com_by_tens_of_millimetres():
    """Eqs 3 and 8 taken by the letter: the ankles' torques balance the weight above them."""
    x, _ = upper_body(TEN)
    ankle = -(R_W * np.cos(TEN) + L_W * np.sin(TEN)) * BODY * G
    by_letter = coefficients(
        readings(upper_body(TEN)), internal_moment=(0.0, ankle, 0.0)
    )
    assert abs(by_letter.alpha - x) > 0.02
    assert coefficients(readings(upper_body(TEN))).alpha == pytest.approx(x, abs=1e-12)


def test_level_ground_said_beforehand_cuts_the_noise_several_fold():
    rng = np.random.default_rng(0)
    errors = {True: [], False: []}
    for _ in range(300):
        for level, kept in errors.items():
            kept.append(find((0, 0), level, rng).com_a - upper_body(0.0))
    rms = {
        level: np.sqrt(np.mean(np.square(kept), axis=0))
        for level, kept in errors.items()
    }
    print(
        {level: (1e3 * value).round(2) for level, value in rms.items()}, "mm, x and z"
    )
    assert (rms[False] > 3.0 * rms[True]).all()


def test_eq_18_needs_the_feet_in_the_total_mass():
    """The nomenclature has m_2 "without feet"; eq. 18 takes the feet's mass from it."""
    pair = [coefficients(readings(upper_body(tilt))) for tilt in (0, TEN)]
    assert tilted_pair(*pair, TEN, ANKLES, ANKLES.mass + BODY).along == pytest.approx(
        L_W
    )
    with pytest.raises(
        ValueError, match=r"not more than the foot's \(13.44 kg\): count the feet"
    ):
        tilted_pair(*pair, TEN, ANKLES, BODY)


def test_a_pair_of_different_shapes_gives_a_wrong_height():
    """Eqs 21 and 22 take posture c (thigh bent) with posture a (straight), and k = n + 1."""
    links = [(7e-3, 0.2), (-12e-3, 0.25)]
    foot, masses = PlanarFoot(6.72, 0.0, 0.02632, 0.1), [0.95, 2.1]
    mass = foot.mass + sum(masses)

    def line(shin, thigh):
        x, z = total_com(masses, [0.4], foot, links, [shin, thigh])
        return Coefficients(x, 0.0, 0.0, 0.0), z

    (a, _), (c, z_c), (c_tilted, z_tilted) = (
        line(0, 0),
        line(0, TEN),
        line(TEN, 2 * TEN),
    )
    by_letter = tilted_pair(a, c, TEN, foot, mass)
    assert abs(by_letter.com_b[1] - z_c) > 0.02
    same_shape = tilted_pair(c, c_tilted, TEN, foot, mass)
    assert same_shape.com_a[1] == pytest.approx(z_c, abs=1e-12)
    assert same_shape.com_b[1] == pytest.approx(z_tilted, abs=1e-12)


def test_both_formulations_together_from_the_feet_alone():
    """Each shape upright and tilted gives its total CoM; those give the links (eqs 21 to 27)."""
    links, masses = (
        np.array([[7e-3, 0.2], [-12e-3, 0.25], [3e-3, 0.1]]),
        [0.95, 1.4, 0.7],
    )
    foot, lengths = PlanarFoot(6.72, 2e-3, 0.02632, 0.1), [0.4, 0.5]
    mass, shapes = (
        foot.mass + sum(masses),
        np.array([[0, 0, 0], [0, 0.3, 0.3], [0, 0.2, -0.4]]),
    )
    com = []
    for shape in shapes:
        x, _ = zip(
            *(total_com(masses, lengths, foot, links, shape + t) for t in (0, TEN)),
            strict=True,
        )
        pair = (Coefficients(alpha, 0.0, 0.0, 0.0) for alpha in x)
        com.append(tilted_pair(*pair, TEN, foot, mass).com_a)
    found = planar_links(masses, lengths, foot, shapes, com)
    np.testing.assert_allclose(found, links, atol=1e-10)


def test_equal_postures_and_wrong_signs_are_refused():
    c = coefficients(readings(upper_body(0.0)))
    with pytest.raises(RankError, match="tilt the second one"):
        tilted_pair(c, c, 0.0, ANKLES, 18.6)
    good = readings(upper_body(0.0))
    with pytest.raises(
        ValueError, match="Give the force of the ground on the feet, z up"
    ):
        coefficients(FeetReadings(-good.forces, good.moments, 0.2))


def test_readings_keep_their_own_copy():
    forces = np.ones((2, 3))
    kept = FeetReadings(forces, np.zeros((2, 3)), 0.2)
    forces[:] = 9.0
    assert kept.forces.max() == 1.0
    with pytest.raises(ValueError, match="read-only"):
        kept.forces[0, 0] = 2.0
