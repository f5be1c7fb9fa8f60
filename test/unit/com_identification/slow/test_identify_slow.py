"""Slow motions: rows at the truth, identification of exact recordings, gates, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from slow_recording import hang, make_robot, sway

from com_identification.exceptions import WalkError
from com_identification.slow import rows
from com_identification.slow.identify import fit_rows, identify_slow, solve
from com_identification.slow.rows import SlowRobot
from com_identification.slow.system import make_system
from com_identification.walking.preparation import find_limbs
from com_identification.walking.unknowns import (
    PARAMETERS,
    Scale,
    corrected_urdf,
    to_eta,
)
from com_model import RobotModel, Sesc
from com_model.actuators import ActuatorModel, Actuators
from com_model.dynamics.link_frames import LinkFrames
from com_model.robots import load_robot

GROUPS = {
    "base": rows.BASE,
    "chain": rows.CLOSED,
    "level": rows.LEVEL,
    "hung": rows.HUNG,
}


@pytest.fixture(scope="module")
def robot():
    return make_robot(3)


@pytest.fixture(scope="module")
def swayed(robot):
    return sway(robot, 40.0)


@pytest.fixture(scope="module")
def hung(robot):
    return hang(robot, 40.0)


def at_truth(system, robot):
    """The unknowns as they are, but for constants of recordings."""
    u, errors, z = system.base, robot.errors, system.unknowns.mean.copy()
    z[: PARAMETERS * int(u.bodies.sum())] = to_eta(robot.true.bodies).ravel()
    gain = 1.0 / errors.gain
    mean = gain[u.legs].mean()
    z[u.joint_slice("gain")] = u.gain_directions.T @ (gain / mean - 1.0)
    for kind, values in (
        ("coulomb", errors.coulomb),
        ("load_friction", errors.load * errors.gain),
        ("torque_bias", errors.bias * gain),
        ("encoder_zero", errors.zero),
    ):
        z[u.joint_slice(kind)] = values
    own = len(u.mean)
    z[u.joint_slice("armature")] = 0.0
    z[u.joint_slice("viscous")] = 0.0
    z[own - 3 : own] = errors.mounting
    z[:own] = u.scaled(z[:own], 1.0 / mean)
    z[-robot.true.n_joints :] = errors.give / gain
    return z


def residuals(system, robot, log_constants):
    """Rms of each group of rows at the truth, constants of recordings fitted."""
    z = at_truth(system, robot)
    made = system.rows(z)
    free = slice(len(system.base.mean), len(z) - robot.true.n_joints)
    x = system.unknowns.coefficients(z)
    first = len(x) - 1 - robot.true.n_joints - (free.stop - free.start)
    columns = made.X[:, first : first + free.stop - free.start]
    kinematic = np.isin(made.joint, log_constants)
    if kinematic.any():
        step = np.linalg.lstsq(
            columns[kinematic], -(made.X[kinematic] @ x), rcond=None
        )[0]
        x[first : first + len(step)] += step
    left = made.X @ x
    chosen = {name: made.joint == group for name, group in GROUPS.items()}
    chosen["joints"] = made.joint >= 0
    return {
        name: float(np.sqrt(np.mean(left[own] ** 2)))
        for name, own in chosen.items()
        if own.any()
    }


def test_rows_of_a_sway_vanish_at_the_truth(robot, swayed):
    system = make_system([swayed], [False], robot.believed, robot.config)
    found = residuals(system, robot, [rows.CLOSED, rows.LEVEL])
    assert found["chain"] < 0.05
    assert found["level"] < 0.15
    assert found["base"] < 0.5
    assert found["joints"] < 0.5


def test_rows_of_a_sway_on_points_vanish_at_the_truth():
    robot = make_robot(3, name="scalf2")
    system = make_system([sway(robot, 40.0)], [False], robot.believed, robot.config)
    assert not system.robot.flat
    found = residuals(system, robot, [rows.CLOSED, rows.LEVEL])
    assert found["chain"] < 0.05
    assert found["level"] < 0.15
    assert found["base"] < 0.5


def test_a_quadruped_is_identified_from_a_sway():
    robot = make_robot(4, name="scalf2")
    log = sway(robot, 60.0)
    scale = Scale(robot.true.mass)
    result = identify_slow([log], [False], robot.believed, robot.config, scale)
    assert [gate.name for gate in result.gates if not gate.passed] == []
    eta = result.unknowns.eta(result.z)
    model = RobotModel.from_urdf(corrected_urdf(result.model, eta))
    assert com_error(robot, model) < 0.7 * com_error(robot, robot.believed)
    q = robot.config.nominal_posture(robot.true)
    com, C = result.com(q)
    error = com - Sesc(robot.true).com(q)
    assert error @ np.linalg.solve(C, error) / 3.0 < 3.0
    moved = log.position.copy()
    knee = robot.believed.joint_names.index("rf_kfe_joint")
    moved[len(moved) // 2 :, knee] += 0.05  # by 3 cm
    slipped = replace(log, position=moved)
    result = identify_slow([slipped], [False], robot.believed, robot.config, scale)
    failed = {gate.name: gate.text for gate in result.gates if not gate.passed}
    assert "a foot slipped" in failed["feet in place"]


@pytest.mark.parametrize("name", ["hoap3", "scalf2"])
def test_a_walk_is_no_sway(name):
    robot = make_robot(4, name=name)
    log = sway(robot, 30.0)
    lift = 0.1 * np.maximum(0.0, np.sin(4.0 * np.pi * log.time))  # two steps a second
    knee = {"hoap3": "R_LFE_R_KN_joint", "scalf2": "rf_kfe_joint"}[name]
    moved = log.position.copy()
    moved[:, robot.believed.joint_names.index(knee)] += lift
    walk = replace(log, position=moved)
    with pytest.raises(WalkError, match=r"stands on all feet.*--use walk"):
        make_system([walk], [False], robot.believed, robot.config)


def test_balls_roll_where_they_stand():
    """A foot's place is that of its ball less the way by which it has rolled."""
    believed, config = load_robot("scalf2")
    model = config.attach(believed)
    robot = SlowRobot(model, config, find_limbs(model, config), None)
    q0, radius = config.nominal_posture(model), config.feet[0].radius
    legs = [robot.limbs.joints[c] for c in range(4)]
    q, frames = np.array([q0, q0]), LinkFrames(model, [f.frame for f in config.feet])
    for sign, row in ((-1.0, q[0]), (1.0, q[1])):
        for leg in legs:  # hips and knees turn the shanks; the balls keep their height
            row[leg[1]] += 0.1 * sign
    _, p, _, ground = robot.feet(q)
    turn = [
        (Rotation.from_matrix(b) * Rotation.from_matrix(a).inv()).as_rotvec()
        for a, b in zip(*(frames.poses(row)[0] for row in q), strict=True)
    ]
    moved = frames.poses(q[1])[1] - frames.poses(q[0])[1]
    expected = moved - radius * np.cross(turn, ground[0][:, 2])
    np.testing.assert_allclose(p[1] - p[0], expected, atol=2e-3 * radius)


def test_rows_of_a_hanging_robot_vanish_at_the_truth(robot, hung):
    system = make_system([hung], [True], robot.believed, robot.config, robot.rope)
    found = residuals(system, robot, [])
    assert found["hung"] < 0.5
    assert found["joints"] < 0.6


def test_columns_are_derivatives(robot, swayed):
    """A known change of encoders, mounting or gears changes the rows as their columns say."""
    n = robot.believed.n_joints
    system = make_system([swayed], [False], robot.believed, robot.config)
    made = system.rows(system.unknowns.mean)
    chosen = np.isin(made.joint, [rows.CLOSED, rows.LEVEL])
    zero, rng = np.deg2rad(0.1), np.random.default_rng(0)
    off = zero * rng.standard_normal(n)
    moved = replace(swayed, position=swayed.position + off)
    other = make_system([moved], [False], robot.believed, robot.config)
    after = other.rows(other.unknowns.mean)
    at = rows.zero_columns(robot.believed)
    predicted = -(made.X[:, at] @ off)[chosen]
    found = (after.X[:, -1] - made.X[:, -1])[chosen]
    level = made.joint[chosen] == rows.LEVEL
    assert np.corrcoef(predicted[level], found[level])[0, 1] > 0.99
    np.testing.assert_allclose(found[level], predicted[level], atol=0.02)


def test_a_torque_that_is_off_by_its_noise_moves_its_rows_by_one(robot, swayed, hung):
    for log, hangs in ((swayed, False), (hung, True)):
        system = make_system([log], [hangs], robot.believed, robot.config, robot.rope)
        x = system.unknowns.coefficients(system.unknowns.mean)
        before = system.rows(system.unknowns.mean)
        joint = int(np.flatnonzero(~system.robot.legs)[0])
        off = np.zeros(robot.believed.n_joints)
        off[joint] = system.robot.noise.joint[joint]
        moved = [replace(log, effort=log.effort + off)]
        other = make_system(moved, [hangs], robot.believed, robot.config, robot.rope)
        after = other.rows(system.unknowns.mean)
        own = before.joint == joint
        change = np.abs((after.X - before.X)[own] @ x)
        np.testing.assert_allclose(change, 1.0, rtol=0.05)


def com_error(robot, model, samples=20):
    rng, sesc, true = np.random.default_rng(1), Sesc(model), Sesc(robot.true)
    posture = robot.config.nominal_posture(robot.true)
    off = rng.uniform(-0.3, 0.3, (samples, len(posture)))
    errors = [sesc.com(q) - true.com(q) for q in posture + off]
    return float(np.sqrt((np.array(errors) ** 2).sum(axis=1).mean()))


def test_sway_and_hang_find_the_com(robot, swayed, hung):
    scale = Scale(robot.true.mass, 0.01)
    before, found = com_error(robot, robot.believed), {}
    for name, logs, kinds in (
        ("sway", [swayed], [False]),
        ("both", [hung, swayed], [True, False]),
    ):
        result = identify_slow(
            logs, kinds, robot.believed, robot.config, scale, robot.rope
        )
        eta = result.unknowns.eta(result.z)
        found[name] = com_error(
            robot, RobotModel.from_urdf(corrected_urdf(result.model, eta))
        )
        failed = [gate.name for gate in result.gates if not gate.passed]
        assert failed == []
        assert result.total_mass[0] == pytest.approx(robot.true.mass, abs=1e-3)
        com, C = result.com(result.posture)
        error = com - Sesc(robot.true).com(result.posture)
        assert error @ np.linalg.solve(C, error) < 16.0
        if name == "sway":
            assert (
                "hang it for 60 s" in result.advice.text
                or result.advice.com_std.max() < 0.002
            )
    assert found["sway"] < 0.5 * before
    assert found["both"] < 0.25 * before


def test_hanging_needs_no_torques(robot, swayed):
    logs = [hang(robot, 40.0, efforts=False), swayed]
    result = identify_slow(
        logs,
        [True, False],
        robot.believed,
        robot.config,
        Scale(robot.true.mass),
        robot.rope,
    )
    assert result.accepted
    alone = solve(
        make_system(logs[:1], [True], robot.believed, robot.config, robot.rope)
    )[1]
    assert set(alone.joint.tolist()) <= {rows.HUNG, rows.TIED}


@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.8, False)])
def test_a_mass_that_the_torques_do_not_carry_is_refused(robot, swayed, factor, passes):
    scale = Scale(factor * robot.true.mass)
    result = identify_slow([swayed], [False], robot.believed, robot.config, scale)
    (gate,) = (gate for gate in result.gates if gate.name == "weighed mass")
    assert gate.passed == passes
    assert f"{scale.mass:.3g} kg" in gate.text


def test_a_foot_that_slips_is_named(robot, swayed):
    position = swayed.position.copy()
    hip = robot.believed.joint_names.index("WAIST_L_LR_joint")
    position[len(position) // 2 :, hip] += np.deg2rad(1.5)
    result = identify_slow(
        [replace(swayed, position=position)], [False], robot.believed, robot.config
    )
    assert not result.accepted
    assert "feet in place" in [gate.name for gate in result.gates if not gate.passed]


def test_what_is_missing_is_named(robot, swayed, hung):
    with pytest.raises(WalkError, match=r"--rope LINK X Y Z"):
        make_system([hung], [True], robot.believed, robot.config)
    effort = np.full_like(swayed.effort, np.nan)
    with pytest.raises(WalkError, match="report no torque"):
        make_system(
            [replace(swayed, effort=effort)], [False], robot.believed, robot.config
        )
    one = replace(robot.config, feet=robot.config.feet[:1])
    with pytest.raises(
        WalkError, match=r"1 feet, 1 of them flat: expected .* two flat soles"
    ):
        make_system([swayed], [False], robot.believed, one)
    short = swayed.between(0.0, 12.0)
    with pytest.raises(WalkError, match="expected 15 s or more"):
        make_system([short], [False], robot.believed, robot.config)
    unknown = np.full_like(swayed.specific_force, np.nan)
    blind = replace(swayed, angular_velocity=unknown, specific_force=unknown)
    with pytest.raises(WalkError, match="IMU"):
        make_system([blind], [False], robot.believed, robot.config)


def test_gains_that_torques_do_not_show_stay(robot, swayed):
    elbow = "L_SHR_L_EB_joint"
    drives = Actuators(ActuatorModel(), {elbow: ActuatorModel(torque_bias_std=1.0)})
    config = replace(robot.config, actuators=drives)
    system = make_system([swayed], [False], robot.believed, config)
    found, made, _ = solve(system)
    tied = made.joint == rows.TIED
    joints = np.flatnonzero(made.X[tied][:, system.base.gain_columns].any(axis=0))
    assert robot.believed.joint_names.index(elbow) in joints
    gains = system.base.joints(found.z[: len(system.base.mean)], "gain")
    np.testing.assert_allclose(gains[joints], 1.0, atol=5e-3)
    again = fit_rows(made, system.unknowns, found.z)
    np.testing.assert_allclose(
        again.z / system.unknowns.std, found.z / system.unknowns.std, atol=0.1
    )


OTHER_UNITS = {
    "degrees": ("position", np.rad2deg(1.0), "in degrees"),
    "degrees per second": ("angular_velocity", np.rad2deg(1.0), "deg/s"),
    "g": ("specific_force", 1.0 / 9.81, "gravity in g"),
    "currents": ("effort", 0.48, "motor currents"),
    "kgf cm": ("effort", 100.0 / 9.81, "kgf cm"),
    "reversed": ("effort", -1.0, "opposite sign"),
}
"""Channel, factor, and words of the refusal."""


@pytest.mark.parametrize("unit", OTHER_UNITS)
def test_another_unit_is_refused_by_its_name(robot, swayed, unit):
    channel, factor, words = OTHER_UNITS[unit]
    wrong = replace(swayed, **{channel: factor * getattr(swayed, channel)})
    with pytest.raises(WalkError, match=words):
        make_system([wrong], [False], robot.believed, robot.config)


@pytest.mark.parametrize("unit", ["degrees", "g"])
def test_of_a_hanging_robot_some_units_are_known(robot, hung, unit):
    """Its torques carry nothing that could be compared with the weight, and it hardly turns."""
    channel, factor, words = OTHER_UNITS[unit]
    wrong = replace(hung, **{channel: factor * getattr(hung, channel)})
    with pytest.raises(WalkError, match=words):
        make_system([wrong], [True], robot.believed, robot.config, robot.rope)
