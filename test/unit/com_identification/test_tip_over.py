"""A chain from tip-over postures ([Cotton] VI.B): what it determines, and what is to be refused."""

import numpy as np
import pytest
from baselines.muscolo import RankError
from baselines.tip_over_chain import chain_rows, edge_constraint, fit_chain, predict

from com_identification.exceptions import IdentificationError
from com_identification.regression.identify import identify
from com_identification.regression.postures import ComConstraint, make_posture
from com_identification.regression.priors import urdf_priors
from com_identification.regression.statics import Statics
from com_identification.settings import (
    FitSettings,
    IdentificationSettings,
    SensorNoise,
    SensorPriors,
)
from com_model import Foot, RobotModel, Sesc

SOLE = np.array([[0.1, 0.05], [0.1, -0.05], [-0.05, -0.05], [-0.05, 0.05]])
LEG = """<robot name="leg"><link name="foot"/>
<joint name="ankle" type="revolute"><parent link="foot"/><child link="shin"/>
  <origin xyz="0 0 0.1"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="9"/>
</joint><link name="shin"><inertial><origin xyz="0.01 0 0.2"/><mass value="2"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="knee" type="revolute"><parent link="shin"/><child link="thigh"/>
  <origin xyz="0 0 0.4"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="9"/>
</joint><link name="thigh"><inertial><origin xyz="-0.02 0 0.25"/><mass value="3"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


@pytest.fixture
def leg():
    foot = Foot("foot", "left", SOLE, 0.0, "", "foot", 1)
    return RobotModel.from_urdf(LEG), foot


def tip_over(model, edge, thigh):
    """The ankle's angle at which the CoM comes above the edge, the knee held: by bisection."""
    sesc, sign = Sesc(model), 1.0 if edge == "front" else -1.0
    x = SOLE[:, 0].max() if edge == "front" else SOLE[:, 0].min()
    low, high = -sign * 1.2, sign * 1.2
    for _ in range(80):
        middle = (low + high) / 2
        beyond = sign * (sesc.com([middle, thigh])[0] - x) > 0
        low, high = (low, middle) if beyond else (middle, high)
    return np.array([low, thigh])


@pytest.fixture
def tipped(leg):
    """Joint positions (16, 2) and constraints."""
    model, foot = leg
    edges = ["front", "back"] * 8
    Q = [
        tip_over(model, e, t)
        for e, t in zip(edges, np.linspace(-1.0, 1.0, 16), strict=True)
    ]
    return np.array(Q), [edge_constraint(foot, edge, 0.001) for edge in edges]


def test_the_chain_of_a_planar_leg_comes_back(leg, tipped):
    model, _ = leg
    fit = fit_chain(*chain_rows(model, *tipped))
    truth = Sesc(model).parameters
    assert fit.determined
    assert fit.rank == 5  # x and z of shin and thigh; of the foot x alone
    np.testing.assert_allclose(fit.residuals, 0.0, atol=1e-12)
    np.testing.assert_allclose(
        fit.parameters[1:, [0, 2]], truth[1:, [0, 2]], atol=1e-10
    )
    assert fit.parameters[0, 0] == pytest.approx(truth[0, 0], abs=1e-10)
    np.testing.assert_allclose(
        fit.parameters[:, 1], 0.0, atol=1e-12
    )  # not seen: the shortest


def test_no_number_of_postures_gives_eq_15_an_inverse(leg, tipped):
    """In print m = n postures and an inverse are enough; each axis hides something, though."""
    rows, right = chain_rows(leg[0], *tipped)
    assert rows.shape == (16, 9)
    assert np.linalg.matrix_rank(rows) == 5
    n = 2
    few = fit_chain(rows[:n], right[:n])
    assert few.rank == n
    assert not few.determined
    assert np.abs(few.parameters - Sesc(leg[0]).parameters).max() > 0.05


def test_joints_own_matrices_instead_of_their_products_do_not_fit(leg, tipped):
    """Eqs 13 to 15 print A_0 .. A_n, which elsewhere are the joints' own matrices."""
    Q, _ = tipped
    rows, right = chain_rows(leg[0], *tipped)
    own = rows.copy()
    own[:, 6] = np.cos(Q[:, 1])  # the thigh's, turned by the knee alone
    own[:, 8] = np.sin(Q[:, 1])
    assert np.abs(fit_chain(rows, right).residuals).max() < 1e-12
    assert np.abs(fit_chain(own, right).residuals).max() > 1e-3


def test_predicts_other_tip_over_postures_and_refuses_what_is_not_observable(
    leg, tipped
):
    model, foot = leg
    fit = fit_chain(*chain_rows(model, *tipped))
    other = np.array([tip_over(model, "front", 0.37)])
    rows, right = chain_rows(model, other, [edge_constraint(foot, "front", 0.001)])
    np.testing.assert_allclose(predict(fit, rows), right, atol=1e-10)
    sideways = chain_rows(model, other, [edge_constraint(foot, "left", 0.001)])[0]
    with pytest.raises(
        RankError, match="posture 0 asks for 100% that the fitted postures do not"
    ):
        predict(fit, sideways)


def test_few_postures_of_a_humanoid_fit_but_must_not_predict(hoap2, random_q):
    """Sixteen tip-over postures fit to rounding, whatever they are: an overfit."""
    model, _ = hoap2
    rng = np.random.default_rng(0)
    Q = np.array([random_q(rng) for _ in range(17)])
    side = [
        ComConstraint("l_sole", np.array([1.0, 0, 0]), o, 0.001)
        for o in rng.normal(0, 0.05, 17)
    ]
    rows, right = chain_rows(model, Q, side)
    fit = fit_chain(rows[:16], right[:16])
    assert np.abs(fit.residuals).max() < 1e-10
    assert not fit.determined
    with pytest.raises(RankError, match="use them together with the URDF"):
        predict(fit, rows[16:])


def test_together_with_the_urdf_they_correct_it(leg, tipped):
    """The same postures as constraints: wrong CoMs are found, and sideways the URDF stays."""
    model, foot = leg
    Q, constraints = tipped
    mass = model.bodies.mass
    shift = np.zeros((3, 3))
    shift[1:] = [[0.015, 0.01, -0.03], [-0.01, -0.02, 0.02]]
    theta = Statics(model).parameters.reshape(-1, 4)
    prior = urdf_priors(model, 0.03)
    start = prior.com + shift
    wrong = type(prior)(
        mass, start, prior.mass_std, prior.com_std, prior.com_low, prior.com_high
    )
    noise, sensors = SensorNoise(position=1e-5, tilt=0.0), SensorPriors.calibrated()
    postures = [
        make_posture(model, q, up=[0, 0, 1], constraints=(c,))
        for q, c in zip(Q, constraints, strict=True)
    ]
    fit = FitSettings(folds=4, use_imu=True)
    settings = IdentificationSettings(noise=noise, sensors=sensors, fit=fit)
    found = identify(model, [foot], postures, settings, wrong)
    truth = theta[1:, 1:] / theta[1:, :1]
    error = np.abs(found.com[1:] - truth)
    assert (error[:, [0, 2]] < 3.0 * found.com_std[1:, [0, 2]] + 1e-6).all()
    assert np.abs(start[1:, [0, 2]] - truth[:, [0, 2]]).max() > 0.02
    assert error[:, [0, 2]].max() < 0.01
    np.testing.assert_allclose(found.com[1:, 1], start[1:, 1], atol=1e-12)
    assert found.held_out.rms < 0.2 * found.prior_residual.rms


def test_on_sloping_ground_the_line_of_gravity_meets_the_edge(leg):
    _, foot = leg
    lean = 0.1
    limit = edge_constraint(foot, "front", 0.001, lean)
    com = np.array(
        [0.1 - 0.5 * np.tan(lean), 0.0, 0.5]
    )  # 0.5 m up: x is that much before the edge
    assert limit.normal @ com == pytest.approx(limit.offset)


def test_bad_edges_are_refused(leg):
    _, foot = leg
    with pytest.raises(
        IdentificationError, match="edge: expected one of front, back, left, right"
    ):
        edge_constraint(foot, "top", 0.001)
    point = Foot("foot", "left", np.zeros((0, 2)), 0.02, "", "foot", 1)
    with pytest.raises(IdentificationError, match="it has no edge to tip over"):
        edge_constraint(point, "front", 0.001)
    slider = LEG.replace('name="knee" type="revolute"', 'name="knee" type="prismatic"')
    with pytest.raises(IdentificationError, match="sliding joints"):
        chain_rows(RobotModel.from_urdf(slider), np.zeros((0, 2)), [])
