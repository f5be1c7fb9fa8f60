"""sesc_publisher and bad input over DDS: no crash, no made-up CoM, always how to fix it."""

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, Quaternion
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from com_estimation.nodes.com_output import center_of_mass_to_numpy
from com_estimation.nodes.sesc_publisher import SescPublisher
from com_model import ConfigError
from com_msgs.msg import CenterOfMass, ComJacobian
from com_ros.conversions import ns_to_stamp
from com_ros.exceptions import ParameterError

OK, DEGRADED, UNKNOWN = (
    CenterOfMass.STATUS_OK,
    CenterOfMass.STATUS_DEGRADED,
    CenterOfMass.STATUS_UNKNOWN,
)
NAN = math.nan
NAMES = ["l_hip", "l_knee", "r_hip", "r_knee"]
ZERO = [0.0] * 4
T0 = 1_000_000_000_000  # ns


def joints(q=ZERO, qd=(), effort=(), names=NAMES, t_ms=0):
    msg = JointState(
        name=list(names), position=list(q), velocity=list(qd), effort=list(effort)
    )
    msg.header.stamp = ns_to_stamp(T0 + t_ms * 1_000_000)
    return msg


def ask(world, com, msg):
    com.clear()
    world.send("joint_states", msg)
    world.spin_until(lambda: com and com[-1].header.stamp == msg.header.stamp, "com")
    return center_of_mass_to_numpy(com[-1])


def assert_unknown(values):
    assert values.status == UNKNOWN
    assert values.ground == CenterOfMass.GROUND_UNKNOWN
    assert values.contacts == ()
    for number in (values.position, values.velocity, values.gravity, values.projection):
        assert np.isnan(number).all()
    assert math.isnan(values.margin)


@pytest.fixture
def com(world):
    return world.collect(CenterOfMass, "com")


# --- joint_states ----------------------------------------------------------------------------
NO_COM = {
    "missing": (
        joints(ZERO[:3], names=NAMES[:3]),
        "joint_states lacks 1 of 4 joints: r_knee; it names l_hip, l_knee, r_hip; publish them, "
        "or list those that no driver reports in assumed_joints",
    ),
    "foreign": (
        joints([0.0], names=["wheel"]),
        "joint_states lacks 4 of 4 joints: l_hip, l_knee, r_hip, r_knee; it names wheel; ",
    ),
    "empty": (joints([], names=[]), "lacks 4 of 4 joints"),
    "duplicated": (
        joints([0.0] * 5, names=[*NAMES, "l_hip"]),
        "joint_states names l_hip more than once: a message may carry each joint once",
    ),
    "short": (
        joints(ZERO[:3]),
        "joint_states has 3 positions for 4 names: a message must carry one position for each name",
    ),
    "long": (joints([0.0] * 5), "joint_states has 5 positions for 4 names"),
    "no positions": (joints([], qd=ZERO), "joint_states has names and no positions"),
    "nan": (
        joints([0.0, NAN, 0.0, NAN]),
        "joint_states has a position that is not finite: l_knee, r_knee; check the joint's driver",
    ),
    "inf": (joints([math.inf, 0.0, 0.0, 0.0]), "a position that is not finite: l_hip"),
}


@pytest.mark.parametrize("case", NO_COM)
def test_joints_that_give_no_com(world, com, walker, walker_config, capfd, case):
    broken, reason = NO_COM[case]
    points = world.collect(PointStamped, "com/point")
    jacobians = world.collect(ComJacobian, "com/jacobian")
    world.start(SescPublisher, robot_description=walker, robot_config=walker_config)
    for _ in range(3):
        values = ask(world, com, broken)
        assert_unknown(values)
        assert reason in values.reason
        assert values.mass == pytest.approx(4.0)
        assert com[-1].header.frame_id == "base_link"
    assert not points
    assert not jacobians
    log = capfd.readouterr().err
    assert log.count("com is UNKNOWN: ") == 1  # one warning and how to fix it
    assert reason in log
    values = ask(world, com, joints(t_ms=1))
    assert (values.status, values.reason) == (OK, "")
    np.testing.assert_allclose(values.position, [0.05, 0, 0], atol=1e-15)


DOUBTFUL = {
    "velocity short": (
        joints(qd=[0.0] * 3, t_ms=10),
        "joint_states has 3 velocities for 4 names: a message must carry one for each name, or",
    ),
    "velocity nan": (
        joints(qd=[0.0, NAN, 0.0, 0.0], t_ms=10),
        "joint_states has a velocity that is not finite: l_knee; check the joint's driver",
    ),
    "stamp back": (
        joints(qd=ZERO, t_ms=-500),
        "the stamp of joint_states went back by 0.500 s: two drivers of one joint, a clock that "
        "jumped, or a recording that was started again",
    ),
    "stamp repeated": (
        joints(qd=ZERO),
        "joint_states repeats a stamp: two drivers of one joint",
    ),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_joints_of_which_not_all_is_right(world, com, walker, capfd, case):
    doubtful, reason = DOUBTFUL[case]
    world.start(SescPublisher, robot_description=walker)
    assert ask(world, com, joints(qd=ZERO)).status == OK
    values = ask(world, com, doubtful)
    assert values.status == DEGRADED
    assert reason in values.reason
    np.testing.assert_allclose(values.position, [0.05, 0, 0], atol=1e-15)
    assert np.isnan(values.velocity).all() == case.startswith("velocity")
    assert capfd.readouterr().err.count(f"com is DEGRADED: {values.reason}") == 1
    assert ask(world, com, joints(qd=ZERO, t_ms=20)).status == OK


def test_joints_without_a_stamp(world, com, walker):
    world.start(SescPublisher, robot_description=walker)
    msg = joints(qd=ZERO)
    msg.header.stamp = ns_to_stamp(0)
    assert ask(world, com, msg).status == OK  # its clock may not have started yet
    com.clear()
    values = ask(world, com, msg)
    assert values.status == DEGRADED
    assert (
        values.reason == "joint_states has no stamp: its driver must fill header.stamp"
    )


@pytest.mark.parametrize(
    "msg",
    [
        joints([9.0, *ZERO, NAN], names=["tool", *NAMES, "wheel"]),
        joints(names=NAMES[::-1]),
        joints(effort=[NAN, 1.0]),
        joints(qd=(), effort=()),
    ],
    ids=["extra", "permuted", "effort", "no velocity"],
)
def test_joints_that_are_right_for_all_that(world, com, walker, msg):
    world.start(SescPublisher, robot_description=walker)
    values = ask(world, com, msg)
    assert (values.status, values.reason) == (OK, "")
    np.testing.assert_allclose(values.position, [0.05, 0, 0], atol=1e-15)


def test_joint_states_that_never_come(world, walker, capfd):
    world.start(
        SescPublisher, namespace="lab", robot_description=walker, joint_timeout=0.1
    )
    world.spin_for(0.5)
    log = capfd.readouterr().err
    assert (
        log.count("no joint_states yet on /lab/joint_states: start the robot's driver")
        == 1
    )


def test_joint_states_that_stop(world, com, walker, capfd):
    heard = world.collect(DiagnosticArray, "/diagnostics")
    world.start(SescPublisher, robot_description=walker, joint_timeout=0.2)
    assert ask(world, com, joints()).status == OK
    world.spin_until(lambda: len(com) == 2, "UNKNOWN")
    assert com[1].header == com[0].header  # the last stamp that there was data for
    values = center_of_mass_to_numpy(com[1])
    assert_unknown(values)
    assert values.reason.startswith("/joint_states timed out, none for 0.")
    assert values.reason.endswith(" s: check its driver")
    world.spin_until(lambda: heard, "diagnostics")
    assert len(com) == 2  # told once
    (status,) = heard[-1].status
    assert (status.level, status.message) == (DiagnosticStatus.ERROR, values.reason)
    assert capfd.readouterr().err.count("timed out, none for") == 1
    assert ask(world, com, joints(t_ms=2000)).status == OK


# --- robot_description -----------------------------------------------------------------------
def test_a_description_that_never_comes(world, com, capfd):
    world.start(SescPublisher, namespace="lab", joint_timeout=0.2)
    world.topics.add("/lab/com")
    heard = world.collect(CenterOfMass, "/lab/com")
    world.publisher(JointState, "/lab/joint_states")
    world.spin_until(
        lambda: (world.send("/lab/joint_states", joints()), heard)[1], "com"
    )
    values = center_of_mass_to_numpy(heard[-1])
    assert_unknown(values)
    assert math.isnan(values.mass)
    assert heard[-1].header.frame_id == ""
    assert "waiting for a latched message on /lab/robot_description" in values.reason
    world.spin_for(0.3)
    log = capfd.readouterr().err
    assert log.count("no robot_description yet: waiting for a latched message on") == 1


BROKEN = {
    "no xml": "<robot name='x'",
    "no link": "<robot name='x'/>",
    "empty": "",
    "binary": "\x00\x01\x02",
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_description(world, com, walker, capfd, case):
    world.start(SescPublisher)
    world.latch("robot_description", String(data=BROKEN[case]))
    world.publisher(JointState, "joint_states")
    world.spin_until(
        lambda: "no usable robot_description" in ask(world, com, joints()).reason,
        "refusal",
    )
    assert_unknown(center_of_mass_to_numpy(com[-1]))
    world.latch("robot_description", String(data=walker))
    world.spin_until(
        lambda: ask(world, com, joints(t_ms=1)).status != UNKNOWN, "the good one"
    )
    capfd.readouterr()
    world.latch("robot_description", String(data=BROKEN[case]))
    world.spin_for(0.2)
    assert "refused: " in (log := capfd.readouterr().err)
    assert "keeping 'walker'" in log
    assert ask(world, com, joints(t_ms=2)).status == OK


def test_a_misspelt_inertial_is_told(world, com, walker, capfd):
    heard = world.collect(DiagnosticArray, "/diagnostics")
    misspelt = walker.replace("inertial>", "intertial>", 2)
    world.start(SescPublisher, robot_description=misspelt, joint_timeout=30.0)
    ask(world, com, joints())
    world.spin_until(lambda: heard, "diagnostics")
    (status,) = heard[-1].status
    assert (status.level, status.message) == (
        DiagnosticStatus.WARN,
        "the model has errors: audit it",
    )
    log = capfd.readouterr().err
    assert "model 'walker': link 'base_link'" in log
    assert "<intertial>" in log


def test_a_description_whose_inertials_are_all_misspelt_gives_no_com(
    world, com, walker
):
    world.start(
        SescPublisher, robot_description=walker.replace("inertial>", "intertial>")
    )
    values = ask(world, com, joints())
    assert_unknown(values)
    assert "<intertial>" in values.reason


def test_a_description_of_another_robot_than_the_configuration_s(
    world, com, walker, make_walker, walker_config
):
    world.start(SescPublisher, robot_description=walker, robot_config=walker_config)
    assert ask(world, com, joints()).status == OK
    world.latch("robot_description", String(data=make_walker("other", root="pelvis")))
    world.spin_for(0.2)
    values = ask(world, com, joints(t_ms=1))
    assert (values.status, com[-1].header.frame_id) == (OK, "base_link")


# --- imu -------------------------------------------------------------------------------------
def imu(t_ms=0, **orientation):
    msg = Imu(orientation=Quaternion(**orientation))
    msg.header.frame_id = "imu_link"
    msg.header.stamp = ns_to_stamp(T0 + t_ms * 1_000_000)
    return msg


def assert_no_gravity(values):
    assert values.status == DEGRADED
    assert values.ground == CenterOfMass.GROUND_UNKNOWN
    for number in (values.gravity, values.projection):
        assert np.isnan(number).all()
    assert math.isnan(values.margin)
    np.testing.assert_allclose(values.position, [0.05, 0, 0], atol=1e-15)


def test_an_imu_that_is_silent(world, com, walker, walker_config, capfd):
    world.start(
        SescPublisher,
        robot_description=walker,
        robot_config=walker_config,
        use_imu=True,
    )
    assert_no_gravity(ask(world, com, joints()))
    assert "imu" not in capfd.readouterr().err  # its first message may be on its way
    for t_ms in (300, 301, 302):
        values = ask(world, com, joints(t_ms=t_ms))
        assert_no_gravity(values)
        assert values.reason == (
            "/imu has not been received: "
            "start the imu driver, or set use_imu to false to assume level ground"
        )
    assert capfd.readouterr().err.count("/imu has not been received") == 1
    world.send("imu", imu(x=1.0, w=0.0, t_ms=310))
    world.spin_until(
        lambda: ask(world, com, joints(t_ms=320)).reason != values.reason, "imu"
    )
    assert ask(world, com, joints(t_ms=330)).status == OK
    values = ask(world, com, joints(t_ms=710))
    assert_no_gravity(values)
    assert values.reason.startswith("/imu is stale, 0.40 s old: start the imu driver")


@pytest.mark.parametrize(
    ("msg", "reason"),
    [
        (
            imu(w=0.0),
            "/imu: quaternion (x, y, z, w) = (0, 0, 0, 0) has length 0, not 1",
        ),
        (imu(w=NAN), "/imu: quaternion (x, y, z, w) = (0, 0, 0, nan)"),
        (
            imu(w=1.0),
            "gravity does not point into the ground under the feet: check how the imu",
        ),
        (
            imu(t_ms=5000, w=1.0),
            "/imu is 5.00 s ahead of joint_states (other clock, or overloaded node)",
        ),
    ],
    ids=["no orientation", "nan", "upside down", "another clock"],
)
def test_an_imu_that_is_wrong(world, com, walker, walker_config, msg, reason):
    world.start(
        SescPublisher,
        robot_description=walker,
        robot_config=walker_config,
        use_imu=True,
    )
    world.send("imu", msg)
    world.spin_for(0.1)
    values = ask(world, com, joints())
    assert values.status == DEGRADED
    assert values.reason.startswith(reason)
    assert np.isnan(values.projection).all()
    assert math.isnan(values.margin)


def test_an_imu_in_an_unknown_frame(world, com, walker):
    world.start(SescPublisher, robot_description=walker, use_imu=True, imu_link="imu")
    world.send("imu", imu(w=1.0))
    world.spin_for(0.1)
    values = ask(world, com, joints())
    assert_no_gravity(values)
    assert values.reason.startswith("frame of the imu: no link 'imu'")
    assert values.reason.endswith("set the parameter imu_link")


# --- parameters ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        (
            {"assumed_joints": ["l_hip"]},
            ParameterError,
            r"'assumed_positions' is \[\]: give 1, one for each of assumed_joints",
        ),
        ({"robot_config": "/nowhere/robot.yaml"}, ConfigError, "/nowhere/robot.yaml"),
        (
            {"display_rate_hz": -1.0},
            ParameterError,
            "'display_rate_hz' is -1.0: give a value",
        ),
        (
            {"joint_timeout": 0.0},
            ParameterError,
            "'joint_timeout' is 0.0: give a value",
        ),
    ],
)
def test_parameters_that_cannot_work(world, parameters, error, text):
    with pytest.raises(error, match=text):
        world.start(SescPublisher, **parameters)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (
            {"feet": ["l_sol"]},
            "'feet' is ['l_sol']: no link 'l_sol', did you mean 'l_sole'?",
        ),
        (
            {"assumed_joints": ["hip"], "assumed_positions": [0.0]},
            "'assumed_joints' is 'hip': valid: l_hip, l_knee, r_hip, r_knee",
        ),
    ],
)
def test_parameters_that_do_not_fit_the_model(world, com, walker, parameters, text):
    world.start(SescPublisher, robot_description=walker, **parameters)
    values = ask(world, com, joints())
    assert_unknown(values)
    assert text in values.reason
