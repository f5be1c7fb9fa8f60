"""Quasi-static tip angles: the worlds of the thesis, and a rod whose angles are known."""

import numpy as np
import pinocchio
import pytest

from com_identification.exceptions import ProtocolError
from com_identification.tip_over import kernels
from com_identification.tip_over.protocol import TipProtocol
from com_identification.tip_over.quasi_static import JointErrors, QuasiStatic
from com_model import RobotConfig, RobotModel, Sesc, SupportPolygon, link_pose
from com_model.dynamics import GRAVITY

pytestmark = pytest.mark.slow

SAGITTAL = slice(0, 12)
TRUNK_MASS, TRUNK_X = 2.37622, -0.0634  # kg, m


def moved_trunk(model, x):
    moment = np.array(model.bodies.first_moment)
    moment[0, 0] += TRUNK_MASS * (x - TRUNK_X)
    return moment


@pytest.mark.parametrize(
    ("world", "trunk_x"), [("world3", -0.0973), ("world5", -0.0634)]
)
def test_the_worlds_of_the_thesis(simulation, model, table, trunk_x, world):
    """Twelve sagittal tests; its worlds' "exact" trunk is 34 mm too far back."""
    found = simulation.tip_angles(moment=moved_trunk(model, trunk_x))
    error = np.degrees(np.abs(found - table[world]))[SAGITTAL]
    assert error.mean() < 0.05
    assert error.max() < 0.15


def test_the_specification_tips_at_the_limit_of_the_joint(simulation, model):
    found = simulation.tip_angles(moment=moved_trunk(model, -0.0973))
    assert found[5] == model.upper[model.joint_index("BODY_JOINT1")]


def test_the_com_is_over_the_edge_where_it_tips(simulation, model, hoap2_config):
    """The same with SupportPolygon and Sesc in the root's frame."""
    sesc, feet = Sesc(model), {foot.frame: foot for foot in hoap2_config.feet}
    for case, angle in zip(simulation.cases, simulation.tip_angles(), strict=True):
        if angle in case.limits:
            continue
        q = case.start + angle * case.rate
        poses = [link_pose(model, q, frame) for frame in case.test.feet]
        corners = [feet[frame].corners for frame in case.test.feet]
        R, p = (np.array(part) for part in zip(*poses, strict=True))
        polygon = SupportPolygon.from_soles(R, p, corners)
        assert polygon.margin(sesc.com(q)) == pytest.approx(0.0, abs=1e-5)


def com_in_sole(model, q, frame):
    R, p = link_pose(model, q, frame)
    return R.T @ (Sesc(model).com(q) - p)


def test_loads_are_the_slopes_of_the_potential_energy(simulation, model):
    rng = np.random.default_rng(3)
    for test in (0, 5, 12, 15):
        case = simulation.cases[test]
        angle = rng.uniform(-0.2, 0.2)
        rigid = simulation.find_equilibrium(test, angle)
        weight = model.mass * GRAVITY

        def energy(q, case=case, weight=weight):
            heights = [com_in_sole(model, q, frame)[2] for frame in case.test.feet]
            return weight * np.mean(heights)

        q, step = case.start + angle * case.rate, 1e-5
        slopes = [
            (energy(q + step * e) - energy(q - step * e)) / (2 * step)
            for e in np.eye(model.n_joints)
        ]
        np.testing.assert_allclose(rigid.load, slopes, atol=2e-6)
        np.testing.assert_allclose(rigid.q, q, atol=1e-15)
        np.testing.assert_allclose(
            rigid.com, com_in_sole(model, q, case.test.feet[0]), atol=1e-3
        )  # left and right differ a little


def test_pitch_torques_of_a_pair_are_those_of_pinocchio(simulation, model):
    """Both legs the same: gravity's torque in one ankle is half of what the whole robot needs."""
    standing = simulation.find_equilibrium(8, -0.1)  # leg5 Front
    whole = model.mass * GRAVITY * standing.com[0]
    robot = pinocchio.buildModelFromXML(model.xml)
    data = robot.createData()
    assert robot.nq == model.n_joints
    ankles = [model.joint_index(f"{side}LEG_JOINT5") for side in "LR"]
    q = np.zeros(robot.nq)
    for name, value in zip(model.joint_names, standing.q, strict=True):
        q[robot.joints[robot.getJointId(name)].idx_q] = value
    pinocchio.framesForwardKinematics(robot, data, q)
    sole = data.oMf[robot.getFrameId("l_sole")]
    ankle = data.oMi[robot.getJointId("LLEG_JOINT5")]
    arm = sole.actInv(ankle.translation)[0]
    expected = (whole - model.mass * GRAVITY * arm) / 2
    # the feet's own weight is not carried by the ankles
    foot = 0.136753 * GRAVITY * 0.01
    np.testing.assert_allclose(np.abs(standing.load[ankles]), expected, atol=foot)


def test_compiled_kernels_do_what_they_say(simulation, model, monkeypatch):
    """Against the same code run by Python; compliance and backlash at work."""
    rng = np.random.default_rng(5)
    case, moment = simulation.cases[2], np.array(model.bodies.first_moment)
    n = model.n_joints
    joints = kernels.JointErrors(
        rng.normal(0, 0.02, n), np.full(n, 0.01), np.full(n, 0.005)
    )
    robot = kernels.TippingRobot(simulation.tree, moment, case.soles, joints)
    encoders = case.start - 0.3 * case.rate
    results = []
    for settle in (kernels.settle, getattr(kernels.settle, "py_func", kernels.settle)):
        state = kernels.RockingState(encoders + joints.offset, np.empty(3), np.empty(n))
        assert settle(encoders, robot, state)
        results.append(np.concatenate(state))
        for name in (
            "_compute_loads",
            "set_poses",
        ):  # alone they take seconds to compile
            function = getattr(kernels, name)
            monkeypatch.setattr(kernels, name, getattr(function, "py_func", function))
    np.testing.assert_allclose(*results, atol=1e-10)
    kernel, arguments = kernels.find_tip_angle, (case.start, case.rate, -0.4, robot)
    python = getattr(kernel, "py_func", kernel)
    np.testing.assert_allclose(
        python(*arguments), kernel(*arguments), atol=1e-8, rtol=0
    )


ROD = """<robot name="rod"><link name="sole"/>
<joint name="ankle" type="revolute"><parent link="sole"/><child link="rod"/>
  <origin xyz="0 0 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/>
</joint><link name="rod"><inertial><origin xyz="0 0 0.5"/><mass value="2"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
ROD_FEET = {
    "sole": {"corners": [[0.1, 0.05], [0.1, -0.05], [-0.05, -0.05], [-0.05, 0.05]]}
}
ROD_PROTOCOL = """
robot: rod
moves:
  Front: {joints: [ankle], turn: 1, falls: front, feet: [sole]}
  Back: {joints: [ankle], turn: -1, falls: back, feet: [sole]}
"""


@pytest.fixture
def rod(tmp_path):
    path = tmp_path / "rod.yaml"
    path.write_text(ROD_PROTOCOL)
    model = RobotModel.from_urdf(ROD)
    config = RobotConfig.from_dict({"name": "rod", "feet": ROD_FEET})
    return QuasiStatic.from_protocol(model, config, TipProtocol.from_file(path))


def of_rod(rod, tmp_path, protocol, urdf=ROD):
    path = tmp_path / "changed.yaml"
    path.write_text(protocol)
    config = RobotConfig.from_dict({"name": "rod", "feet": ROD_FEET})
    return QuasiStatic.from_protocol(
        RobotModel.from_urdf(urdf), config, TipProtocol.from_file(path)
    )


def errors(offset=0.0, compliance=0.0, backlash=0.0):
    return JointErrors(*np.array([[offset], [compliance], [backlash]]))


def test_a_rod_tips_where_its_middle_is_over_the_edge(rod):
    np.testing.assert_allclose(
        rod.tip_angles(), [np.arcsin(0.2), -np.arcsin(0.1)], atol=1e-8
    )


def test_joints_with_mirrored_axes_turn_the_other_way(rod, tmp_path):
    mirrored = of_rod(rod, tmp_path, ROD_PROTOCOL.replace("joints:", "opposite:"))
    assert mirrored.cases[0].limits == mirrored.cases[1].limits == (-1.0, 1.0)
    near = mirrored.tip_angles_near([-0.2, 0.1])
    np.testing.assert_allclose(near, [-np.arcsin(0.2), np.arcsin(0.1)], atol=1e-8)
    turned = ROD_PROTOCOL.replace("joints:", "opposite:").replace("front", "up")
    turned = turned.replace("back", "front").replace("up", "back")
    expected = [np.arcsin(0.1), -np.arcsin(0.2)]
    np.testing.assert_allclose(
        of_rod(rod, tmp_path, turned).tip_angles(), expected, atol=1e-8
    )


def test_angles_and_limits_count_from_the_start(rod, tmp_path):
    started = "postures: {bent: {ankle: -0.05}}\n" + ROD_PROTOCOL
    simulation = of_rod(rod, tmp_path, started)
    np.testing.assert_allclose(simulation.cases[0].limits, (-0.95, 1.05), atol=1e-12)
    expected = np.array([np.arcsin(0.2), -np.arcsin(0.1)]) + 0.05
    np.testing.assert_allclose(simulation.tip_angles(), expected, atol=1e-8)


def test_it_reports_whether_the_limit_comes_before_the_fall(rod, tmp_path):
    stiff = of_rod(
        rod, tmp_path, ROD_PROTOCOL, ROD.replace('upper="1"', 'upper="0.15"')
    )
    front, back = stiff.find_tips()
    assert (front.test, front.angle, front.falls) == ("Front", 0.15, False)
    assert back.angle == pytest.approx(-np.arcsin(0.1), abs=1e-8)
    assert back.falls


def test_a_joint_whose_range_begins_at_the_start(rod, tmp_path):
    """A fall within the first step that is looked at is found though 0 is a limit, too."""
    knee = ROD.replace('lower="-1" upper="1"', 'lower="0" upper="1"')
    near = ROD_PROTOCOL.replace(
        "{joints: [ankle], turn: -1", "{joints: [ankle], turn: 1"
    )
    shifted = 'xyz="0.0995 0 0.5"'
    simulation = of_rod(rod, tmp_path, near, knee.replace('xyz="0 0 0.5"', shifted))
    front, back = simulation.find_tips()
    assert front.falls
    assert 0.0 < front.angle < 0.0015
    assert not back.falls


def test_joints_without_limits_turn_half_round(rod, tmp_path):
    free = ROD.replace("revolute", "continuous")
    assert of_rod(rod, tmp_path, ROD_PROTOCOL, free).cases[0].limits == (-np.pi, np.pi)
    np.testing.assert_allclose(
        of_rod(rod, tmp_path, ROD_PROTOCOL, free).tip_angles(),
        rod.tip_angles(),
        atol=1e-9,
    )


def test_a_robot_that_is_down_already_has_no_angle(rod):
    front, _ = rod.find_tips(moment=np.array([[0.0, 0, 0], [0.3, 0, 1.0]]))
    assert np.isnan(front.angle)


def test_a_zero_offset_shifts_the_angle(rod):
    expected = np.array([np.arcsin(0.2), -np.arcsin(0.1)]) - 0.03
    np.testing.assert_allclose(rod.tip_angles(errors(0.03)), expected, atol=1e-8)


def test_a_soft_ankle_tips_earlier(rod):
    """At the edge the load is m g 0.1 m, so the encoder says so much less."""
    c, g = 0.02, 2 * GRAVITY
    expected = [np.arcsin(0.2) - c * g * 0.1, -np.arcsin(0.1) + c * g * 0.05]
    np.testing.assert_allclose(
        rod.tip_angles(errors(compliance=c)), expected, atol=1e-7
    )


def test_backlash_lies_on_the_side_of_the_load(rod):
    expected = [np.arcsin(0.2) - 0.005, -np.arcsin(0.1) + 0.005]
    np.testing.assert_allclose(
        rod.tip_angles(errors(backlash=0.01)), expected, atol=1e-6
    )


def test_joints_that_cannot_carry_the_robot(rod):
    """Gravity turns the rod by up to m g l = 9.8 N m a radian; a softer ankle lets it fall over."""
    com = rod.find_equilibrium(0, 0.0, errors(offset=0.01, compliance=0.2)).com
    assert kernels.edge_distance(com, rod.cases[0].soles.edges) < -0.1
    soft = errors(offset=0.01, compliance=2.0)
    assert np.isnan(rod.tip_angles_near([0.0, 0.0], soft)).all()
    with pytest.raises(
        ProtocolError, match="Front: the robot collapses: its joints are too soft"
    ):
        rod.find_equilibrium(0, 0.1, soft)


def test_negative_compliance_is_refused(rod):
    with pytest.raises(ProtocolError, match="compliance: expected numbers, 0 or more"):
        rod.tip_angles(errors(compliance=-0.1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[sole]", "[toe]"), "Front: no foot 'toe'; valid: sole"),
        (("[ankle]", "[knee]"), "no joint 'knee'"),
        (("falls: front", "falls: up"), "expected one of"),
        (("turn: 1", "turn: 2"), "expected 1 or -1"),
        (("turn: 1,", "turn: 1, opposite: [ankle],"), "'ankle' is among joints, too"),
        (
            ("moves:", "postures: {bent: {ankle: 1.5}}\nmoves:"),
            "Front, bent: ankle cannot be where",
        ),
        (("[ankle]", "[]"), "joints: expected at least one name"),
        (("falls: front, ", ""), "moves.Front.falls: is missing"),
        (("turn: 1", "spin: 1"), "unknown key 'spin'"),
    ],
)
def test_protocols_that_cannot_be_right_are_refused(rod, tmp_path, change, message):
    path = tmp_path / "bad.yaml"
    path.write_text(ROD_PROTOCOL.replace(*change, 1))
    config = RobotConfig.from_dict({"name": "rod", "feet": ROD_FEET})
    with pytest.raises(Exception, match=message):
        QuasiStatic.from_protocol(rod.model, config, TipProtocol.from_file(path))


def test_soles_that_do_not_lie_on_one_ground(model, hoap2_config, tmp_path):
    path = tmp_path / "bent.yaml"
    path.write_text(
        "robot: hoap2\npostures: {bent: {LLEG_JOINT5: 0.1}}\n"
        "moves: {a: {joints: [BODY_JOINT1], falls: front, feet: [l_sole, r_sole]}}"
    )
    with pytest.raises(
        ProtocolError, match="soles of l_sole, r_sole do not lie on one ground"
    ):
        QuasiStatic.from_protocol(model, hoap2_config, TipProtocol.from_file(path))


def test_leg6_gets_onto_one_foot(simulation, model, hoap2_config):
    """Once the weight has shifted the CoM is over the sole that stands; the other hangs at last."""
    cases = [case for case in simulation.cases if case.test.family == "leg6"]
    assert len(cases) == 4
    for case in cases:
        (stands,) = case.test.feet
        (hangs,) = {foot.frame for foot in hoap2_config.feet} - {stands}
        corners = next(
            foot.corners for foot in hoap2_config.feet if foot.frame == stands
        )
        np.testing.assert_array_equal(case.way[0], case.start)
        np.testing.assert_allclose(
            case.way[-1], case.start + case.test.begin * case.rate
        )
        assert case.test.begin * case.test.turn > 0.0
        _, *after = case.way
        for q in after:
            com = com_in_sole(model, q, stands)[:2]
            assert (
                np.minimum(com - corners.min(axis=0), corners.max(axis=0) - com).min()
                > 0.005
            )
        R, p = link_pose(model, case.way[-1], stands)
        lowest = [
            R.T
            @ (link_pose(model, case.way[-1], hangs)[1] - p + sign * 0.031 * R[:, 1])
            for sign in (1, -1)
        ]
        assert min(point[2] for point in lowest) > 0.005
