"""The solver in data space: against dense posteriors, bounds, wrong scales, touched postures."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from com_identification.exceptions import IdentificationError
from com_identification.regression.posterior import (
    adapt,
    bound,
    condition,
    consistency,
    gross_error,
    held_out,
    likeliest_cause,
    prior_posterior,
    reweight,
    scale_noise,
    scores,
    tempering,
    widen,
)
from com_identification.regression.priors import BOUND_AXES, BodyPriors, loaded_priors
from com_identification.regression.rows import StackedObservations, select, whiten

BODIES, CONSTANT, STEPS, ROWS = 4, 3, 2, 5


def problem(postures=30, seed=0, **ratio):
    """Rows with errors drawn from their priors, times a ratio by class; the truth x (4,)."""
    rng = np.random.default_rng(seed)
    shape = (postures, ROWS)
    B, E, D = (rng.normal(size=(*shape, k)) for k in (BODIES, CONSTANT, STEPS))
    F, L = rng.normal(size=(*shape, ROWS)), 0.1 * np.eye(ROWS)
    x, e = rng.normal(size=BODIES), ratio.get("zeros", 1.0) * rng.normal(size=CONSTANT)
    steps = ratio.get("drift", 1.0) * rng.normal(size=(postures, STEPS))
    steps[0] = 0.0
    fresh = ratio.get("backlash", 1.0) * rng.normal(size=(postures, ROWS))
    z = B @ x + E @ e + np.einsum("prk,pk->pr", D, np.cumsum(steps, axis=0))
    z += np.einsum("prk,pk->pr", F, fresh) + rng.normal(size=shape) @ L
    rows = StackedObservations(
        z=z.ravel(),
        bodies=B.reshape(-1, BODIES),
        errors={"zeros": E.reshape(-1, CONSTANT)},
        drift=D.reshape(-1, STEPS),
        noise={"backlash": tuple(F)},
        white=tuple(np.tile(L @ L.T, (postures, 1, 1))),
        starts=np.arange(0, z.size + 1, ROWS),
        walk=np.arange(postures, dtype=float),
    )
    return rows, x


def nees(rows, found, x):
    off = found.x - x
    return off @ np.linalg.solve(found.covariance, off) / len(x)


def test_is_the_dense_posterior_of_all_unknowns():
    """Bodies, constant errors, each step of the drift and each backlash as columns."""
    rows, _ = problem(8)
    N, P = len(rows.z), len(rows.walk)
    steps, fresh = np.zeros((N, STEPS * (P - 1))), np.zeros((N, ROWS * P))
    for p, block in enumerate(rows.blocks):
        steps[block, : STEPS * p] = np.tile(rows.drift[block], p)
        fresh[block, ROWS * p : ROWS * p + ROWS] = rows.noise["backlash"][p]
    A = 10.0 * np.hstack(
        (rows.bodies, rows.errors["zeros"], steps, fresh)
    )  # noise of 0.1
    covariance = np.linalg.inv(A.T @ A + np.eye(A.shape[1]))
    best = covariance @ A.T @ (10.0 * rows.z)
    found = prior_posterior(rows)
    np.testing.assert_allclose(found.x, best[:BODIES], atol=1e-8)
    np.testing.assert_allclose(
        found.covariance, covariance[:BODIES, :BODIES], atol=1e-8
    )
    some = slice(BODIES, BODIES + CONSTANT)
    np.testing.assert_allclose(found.errors["zeros"], best[some], atol=1e-8)
    np.testing.assert_allclose(
        found.stds["zeros"], np.sqrt(np.diag(covariance)[some]), atol=1e-8
    )


def dense_noise(rows, scales):
    """N + B B^T of all rows, with covariances as large as these."""
    places = np.repeat(rows.walk, np.diff(rows.starts))
    total = scales["zeros"] * rows.errors["zeros"] @ rows.errors["zeros"].T
    total += (
        scales["drift"] * rows.drift @ rows.drift.T * np.minimum.outer(places, places)
    )
    for block, F, W in zip(
        rows.blocks, rows.noise["backlash"], rows.white, strict=True
    ):
        total[block, block] += W + scales["backlash"] * F @ F.T
    return total + rows.bodies @ rows.bodies.T


def test_posture_by_posture_is_the_dense_solution_in_data_space():
    """With two postures left out, so that the drift makes longer steps."""
    rows = select(problem(9, 6)[0], np.arange(9) % 5 != 2)
    scales = {"zeros": 2.0, "backlash": 0.5, "drift": 3.0}
    found, S = (
        condition(rows, scales, np.ones(7)),
        np.linalg.inv(dense_noise(rows, scales)),
    )
    np.testing.assert_allclose(found.a, S @ rows.z, atol=1e-9)
    np.testing.assert_allclose(found.gain, rows.bodies.T @ S, atol=1e-9)
    for block, part in zip(rows.blocks, found.inverse, strict=True):
        np.testing.assert_allclose(part, S[block, block], atol=1e-7)
    assert found.square == pytest.approx(rows.z @ S @ rows.z, rel=1e-9)
    assert found.evidence == pytest.approx(
        0.5 * (np.linalg.slogdet(S)[1] - rows.z @ S @ rows.z), rel=1e-9
    )
    information = found.root().T @ found.root() + np.eye(BODIES)
    np.testing.assert_allclose(np.linalg.inv(information), found.covariance, atol=1e-9)
    for c, (squared, trace, _) in scores(rows, found).items():
        N_c = dense_noise(rows, {**scales, c: scales[c] + 1.0}) - dense_noise(
            rows, scales
        )
        assert squared == pytest.approx(found.a @ N_c @ found.a, rel=1e-6)
        assert trace == pytest.approx(np.sum(S * N_c), rel=1e-6)


def test_standard_deviations_are_right():
    values = [
        nees(rows, prior_posterior(rows), x)
        for rows, x in (problem(12, s) for s in range(60))
    ]
    assert np.mean(values) == pytest.approx(1.0, abs=0.25)  # std 0.09


def test_scales_follow_the_data_and_stay_near_the_prior_without_any():
    rows, _ = problem(30, 1, backlash=3.0, drift=0.3)
    adapted = adapt(rows, prior_posterior(rows))
    scales = {c: np.sqrt(v) for c, v in adapted.scales.items()}
    assert scales["backlash"] == pytest.approx(3.0, rel=0.2)
    assert 0.5 <= scales["drift"] < 0.8, "towards 0.3, not below the floor"
    silent = replace(rows, errors={"zeros": 0.0 * rows.errors["zeros"]})
    assert adapt(silent, prior_posterior(silent)).scales["zeros"] == pytest.approx(
        1.0, abs=1e-6
    )


def test_adapted_scales_cover_errors_that_are_twice_the_priors():
    cases = [problem(12, s, zeros=2.0, backlash=2.0, drift=2.0) for s in range(40)]
    plain = np.mean([nees(rows, prior_posterior(rows), x) for rows, x in cases])
    adapted = np.mean(
        [nees(rows, adapt(rows, prior_posterior(rows)), x) for rows, x in cases]
    )
    print(f"NEES {plain:.2f}, adapted {adapted:.2f}")
    assert plain > 2.5
    assert adapted < 0.6 * plain


def test_scales_are_not_taken_for_known():
    """Adapted to few postures they are wrong; with errors as large as the priors that shows."""
    problems = [problem(8, seed) for seed in range(60)]
    cases = [(rows, adapt(rows, prior_posterior(rows)), x) for rows, x in problems]
    plain = np.array([nees(rows, adapted, x) for rows, adapted, x in cases])
    wide = np.array([nees(rows, widen(rows, adapted), x) for rows, adapted, x in cases])
    for each in (plain, wide):
        print(f"NEES {each.mean():.2f}, at most {each.max():.2f}")
    assert 0.6 < wide.mean() < 1.1
    assert wide.max() < 0.95 * plain.max()
    for rows, adapted, _ in cases:
        wider = widen(rows, adapted)
        ratios = [wider.scales[c] / adapted.scales[c] for c in adapted.scales]
        assert min(ratios) > 1.0
        assert max(ratios) <= 1.0 + np.sqrt(2.0 / 12.0)
        values = np.linalg.eigvalsh(wider.covariance - adapted.covariance)
        assert values.min() > -1e-9


def test_a_touched_posture_loses_its_weight():
    rows, x = problem(30, 3)
    z = rows.z.copy()
    z[7 * ROWS : 8 * ROWS] += 60.0
    touched = replace(rows, z=z)
    plain, robust = (
        prior_posterior(touched),
        reweight(touched, prior_posterior(touched)),
    )
    assert np.flatnonzero(robust.inflation > 2.0).tolist() == [7]
    assert nees(rows, robust, x) < 2.0 < nees(rows, plain, x)
    clean = reweight(rows, prior_posterior(rows))
    assert (clean.inflation < 2.0).all()
    value, limit = consistency(
        touched, prior_posterior(touched), robust.inflation < 2.0
    )
    assert value < limit, "outliers are no alarm"


def test_the_alarm_is_silent_within_the_priors_and_names_the_class_beyond_them():
    alarms = []
    for seed in range(40):
        rows, _ = problem(20, seed)
        value, limit = consistency(rows, prior_posterior(rows), np.ones(20, dtype=bool))
        alarms.append(value > limit)
        assert gross_error(prior_posterior(rows)) is None
    assert np.mean(alarms) <= 0.05
    rows, _ = problem(30, 0, backlash=4.0)
    found = prior_posterior(rows)
    value, limit = consistency(rows, found, np.ones(30, dtype=bool))
    assert value > limit
    name, ratio = likeliest_cause(rows, found)
    assert (name, ratio) == ("backlash", 4.0)


def test_one_gross_error_is_named_with_its_size():
    rows, _ = problem(30, 4)
    wrong = replace(rows, z=rows.z + 15.0 * rows.errors["zeros"][:, 1])
    name, size, place = gross_error(prior_posterior(wrong))
    assert (name, place) == ("zeros", 1)
    assert size == pytest.approx(15.0, abs=3.0)


def test_residuals_that_scatter_more_than_expected_temper_the_result():
    target = np.eye(BODIES)
    rows, _ = problem(60, 5)
    assert tempering(rows, prior_posterior(rows), target) < 1.4
    loose, _ = problem(60, 5, backlash=3.0)
    assert tempering(loose, prior_posterior(loose), target) > 2.0


def test_larger_noise_makes_worse_what_the_data_determine_and_nothing_else():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(90, 4)) * [1.0, 1.0, 1.0, 0.0]
    covariance = scale_noise(np.linalg.inv(A.T @ A + np.eye(4)), 9.0)
    expected = np.linalg.inv(A.T @ A / 9.0 + np.eye(4))
    np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-12)
    assert covariance[3, 3] == pytest.approx(1.0)  # the prior's


def test_leaving_postures_out_is_as_if_they_were_never_taken():
    rows, _ = problem(9)
    parts = list(held_out(rows, prior_posterior(rows), 3))
    kept = [p for p in range(9) if p % 3 != 1]
    z, B, E, D = (
        np.vstack(
            [
                np.atleast_2d(m.T).T[block]
                for p, block in enumerate(rows.blocks)
                if p in kept
            ]
        )
        for m in (rows.z, rows.bodies, rows.errors["zeros"], rows.drift)
    )
    alone = StackedObservations(
        z=z[:, 0],
        bodies=B,
        errors={"zeros": E},
        drift=D,
        noise={"backlash": tuple(rows.noise["backlash"][p] for p in kept)},
        white=tuple(rows.white[p] for p in kept),
        starts=np.arange(0, len(z) + 1, ROWS),
        walk=np.array(kept, dtype=float),
    )
    np.testing.assert_allclose(parts[1].x, prior_posterior(alone).x, atol=1e-9)


def test_bounds_give_the_best_point_inside():
    """Two bodies of unknown mass; one CoM bounded along all axes, both masses positive."""
    inf = np.full((2, len(BOUND_AXES)), np.inf)
    high = inf.copy()
    high[0] = 0.02
    priors = BodyPriors(
        np.array([2.0, 1.0]),
        np.zeros((2, 3)),
        np.array([0.5, 0.5]),
        np.full((2, 3), 0.05),
        -inf,
        high,
    )
    root = np.random.default_rng(1).normal(size=(8, 8))
    covariance = 0.1 * (root @ root.T + np.eye(8))
    x = np.array(
        [0.3, 1.5, -1.0, 0.2, -3.0, 0.5, 0.4, -0.2]
    )  # CoM outside, a negative mass
    found, at = bound(x, covariance, priors)
    assert at == (0, 1)
    G, g, _ = priors.limits()
    assert (G @ priors.values(found) <= g + 1e-9).all()
    P = np.linalg.inv(covariance)
    best = minimize(
        lambda y: (y - x) @ P @ (y - x),
        np.zeros(8),
        jac=lambda y: 2.0 * P @ (y - x),
        constraints={"type": "ineq", "fun": lambda y: g - G @ priors.values(y)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(found, best.x, atol=1e-4)
    inside, none = bound(np.zeros(8), covariance, priors)
    assert none == ()
    np.testing.assert_array_equal(inside, np.zeros(8))


def test_whitening_gives_unit_noise():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 4))
    L = np.array([[1.0, 0, 0], [50.0, 2.0, 0], [0.1, 0.3, 1e-3]])
    white = whiten(A, L @ L.T)
    np.testing.assert_allclose(
        white.T @ white, A.T @ np.linalg.inv(L @ L.T) @ A, rtol=1e-6
    )
    with pytest.raises(
        IdentificationError, match="give every sensor a standard deviation above 0"
    ):
        whiten(A, np.diag([1.0, 0.0, 1.0]))


def test_scales_multiply_variances():
    rows, _ = problem(6)
    double = condition(rows, {"zeros": 4.0, "backlash": 1.0, "drift": 1.0}, np.ones(6))
    same = replace(rows, errors={"zeros": 2.0 * rows.errors["zeros"]})
    np.testing.assert_allclose(double.x, prior_posterior(same).x, atol=1e-9)


# --- loads ------------------------------------------------------------------------------------
def test_a_load_that_the_feet_show_widens_the_prior_of_the_heaviest_body():
    count = len(BOUND_AXES)
    priors = BodyPriors(
        mass=np.array([1.0, 4.0]),
        com=np.zeros((2, 3)),
        mass_std=np.array([0.05, 0.2]),
        com_std=np.full((2, 3), 0.01),
        com_low=np.full((2, count), -np.inf),
        com_high=np.full((2, count), np.inf),
    )
    assert loaded_priors(priors, 0.5, 0.3) is priors  # the sensors may err by as much
    loaded = loaded_priors(priors, 1.0, 0.19)
    assert loaded.mass_std == pytest.approx([0.05, np.hypot(0.2, 0.9)])
    size = 0.9 / 4.0 * np.cbrt(4.0 / 1000.0)
    assert loaded.com_std[1] == pytest.approx(np.full(3, np.hypot(0.01, size)))
    known = replace(priors, mass_std=np.zeros(2))
    assert loaded_priors(known, 1.0, 0.19) is known
