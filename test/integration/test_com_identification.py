"""com_identification over DDS: capture, refuse, identify, propose, tare, keep, write."""

from functools import partial

import numpy as np
import pytest
from identification_bench import POSTURE, SAMPLES, Scenario
from rclpy.action import ActionClient
from scipy.spatial.transform import Rotation
from std_srvs.srv import Trigger

from com_identification.nodes.com_identification import ComIdentification
from com_identification.nodes.identification_conversions import causes_to_evidence
from com_model import Sesc
from com_msgs import action, srv
from com_msgs.msg import CentroidalDiagnosis, Culprit, IdentificationResult, WalkState
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    point_to_numpy,
    rotation_to_quaternion,
    vector3_to_numpy,
)


@pytest.fixture
def robot(make_standing_robot):
    return make_standing_robot("biped3")


@pytest.fixture
def scenario(world, robot, tmp_path):
    return Scenario(world, robot, tmp_path)


def test_postures_are_captured_and_stored(scenario, world):
    q, load = scenario.robot.random_posture()
    answer = scenario.capture(q, load, label="first")
    assert answer.success, answer.message
    values = answer.posture
    assert (values.id, values.label) == (1, "first")
    assert values.samples >= SAMPLES
    np.testing.assert_allclose(values.joint_positions, q, atol=5e-4)
    assert list(values.in_contact) == (load > 0).tolist()
    assert values.mass == pytest.approx(scenario.robot.model.mass, abs=0.05)
    truth, urdf = scenario.robot.com(q), scenario.robot.com(q, scenario.robot.model.xml)
    up = scenario.robot.frame(
        q, scenario.robot.config.feet[int(np.argmax(load))].frame
    )[0][:, 2]
    gap = urdf - truth
    offset = vector3_to_numpy(values.model_offset)
    np.testing.assert_allclose(offset, gap - (gap @ up) * up, atol=5e-4)
    np.testing.assert_allclose(
        point_to_numpy(values.com_line), urdf - offset, atol=1e-4
    )
    assert answer.posture.header.frame_id == "base_link"
    assert answer.posture.header.stamp == ns_to_stamp(scenario.time_ns)

    scenario.fill(2)
    stored = scenario.call(srv.GetPostures, "get_postures")
    assert [posture.id for posture in stored.postures] == [1, 2, 3]
    assert repr(stored.postures[0]) == repr(answer.posture)
    removed = scenario.call(srv.RemovePosture, "remove_posture", id=2)
    assert (removed.success, removed.message) == (True, "removed posture 2; 2 are left")
    refused = scenario.call(srv.RemovePosture, "remove_posture", id=2)
    assert not refused.success
    assert "2" in refused.message
    assert "1, 3" in refused.message
    reset = scenario.call(Trigger, "reset")
    assert reset.success
    assert "no postures are stored; the previous ones are in" in reset.message
    assert scenario.call(srv.GetPostures, "get_postures").postures == []


def test_refusals_say_why(scenario):
    for endless in (np.inf, np.nan, -1.0, 1e9):
        answer = scenario.call(srv.CapturePosture, "capture_posture", timeout=endless)
        assert "give 0 to 3600 s" in answer.message
    nothing = scenario.call(srv.CapturePosture, "capture_posture", timeout=0.2)
    assert not nothing.success
    assert nothing.reasons
    q, load = scenario.robot.random_posture()
    moving = scenario.capture(
        q, load, spoil=lambda Q, W: (Q + np.linspace(0, 1, len(Q))[:, None], W)
    )
    assert not moving.success
    assert "keep the robot stationary" in moving.message
    answer = scenario.capture(
        q, load, without=("l_sole",), count=150
    )  # longer than capture.lag
    assert not answer.success
    assert any("l_sole" in reason for reason in answer.reasons), answer.reasons
    frozen = scenario.capture(
        q, load, spoil=lambda Q, W: (Q, np.broadcast_to(W[0], W.shape))
    )
    assert not frozen.success
    assert any("l_sole" in reason for reason in frozen.reasons), frozen.reasons
    hanging = scenario.capture(q, load, spoil=lambda Q, W: (Q, W - W.mean(axis=0)))
    assert not hanging.success
    assert "put it on its feet" in hanging.message
    nan = scenario.capture(q, load, spoil=lambda Q, W: (Q, W * np.nan))
    assert not nan.success
    assert scenario.capture(q, load).success  # and none of it does harm


def test_a_missing_joint_is_named(scenario):
    names = list(scenario.robot.model.joint_names)[:-1]
    stamp = ns_to_stamp(scenario.time_ns)
    scenario.world.send(
        "joint_states", numpy_to_joint_state(names, np.zeros(3), stamp=stamp)
    )
    answer = scenario.call(srv.CapturePosture, "capture_posture", timeout=0.2)
    assert not answer.success
    assert scenario.robot.model.joint_names[-1] in answer.message


def test_a_sensor_with_the_wrong_sign_is_named(scenario):
    q, load = POSTURE
    answer = scenario.capture(q, load, spoil=lambda Q, W: (Q, -W))
    assert answer.success
    assert any("sign" in problem for problem in answer.posture.problems), (
        answer.posture.problems
    )


def test_links_are_identified_and_written(world, robot, tmp_path):
    # eight postures do not tell a cable's pull from a displaced CoM
    untouched = {"sensors__pull": 0.0, "sensors__pull_moment": 0.0}
    scenario = Scenario(world, robot, tmp_path, **untouched)
    world.spin_until(lambda: scenario.results, "that there is no result")
    assert "capture postures and call identify_links" in scenario.results[0].reason
    assert not scenario.call(
        srv.IdentifyLinks, "identify_links"
    ).success  # nothing is stored
    scenario.fill(8)
    total = scenario.call(srv.IdentifyTotalCom, "identify_total_com")
    assert total.success, total.message
    assert total.mass == pytest.approx(scenario.robot.model.mass, abs=0.05)
    assert total.used == 8

    answer = scenario.call(srv.IdentifyLinks, "identify_links")
    assert answer.success, answer.message
    result = answer.result
    assert result.residual_rms < 0.3 * result.prior_residual_rms
    assert list(result.postures) == list(range(1, 9))
    assert result.rank <= result.n_parameters == 20
    assert any("slides along the axis" in text for text in result.unidentifiable)
    world.spin_until(lambda: len(scenario.results) == 2, "the result")
    assert repr(scenario.results[-1]) == repr(answer.result)

    written = scenario.call(srv.ExportUrdf, "export_urdf", name="corrected")
    assert written.success, written.message
    path = scenario.directory / "export" / "corrected.urdf"
    assert written.path == str(path)
    assert scenario.robot.error(path.read_text()) < 0.3 * scenario.robot.error(
        scenario.robot.model.xml
    )
    again = scenario.call(srv.ExportUrdf, "export_urdf", name="corrected")
    assert not again.success
    assert "exists already" in again.message
    for name in ("../corrected", "/tmp/corrected", ".hidden"):
        escaping = scenario.call(srv.ExportUrdf, "export_urdf", name=name)
        assert not escaping.success
        assert "plain file name" in escaping.message

    saved = scenario.call(srv.SavePostures, "save", name="monday")
    assert saved.success, saved.message
    assert (scenario.directory / "store" / "monday.yaml").read_text()
    assert scenario.call(Trigger, "reset").success
    world.spin_until(
        lambda: len(scenario.results) == 3, "that there is no result any more"
    )
    assert scenario.results[-1].status == IdentificationResult.STATUS_UNKNOWN
    loaded = scenario.call(srv.LoadPostures, "load", name="monday")
    assert loaded.success, loaded.message
    assert loaded.count == 8
    assert (
        "there are monday"
        in scenario.call(srv.LoadPostures, "load", name="sunday").message
    )


def test_redundant_postures_are_answered_with_one_that_helps(scenario):
    q, load = POSTURE
    for _ in range(3):
        assert scenario.capture(q, load).success
    answer = scenario.call(srv.IdentifyLinks, "identify_links")
    assert answer.success
    assert "redundant" in answer.message, answer.message
    (helpful,) = answer.helpful
    assert np.abs(np.array(helpful.joint_positions) - q).max() > 0.05


def test_actions_report_progress_and_can_be_cancelled(scenario, world):
    scenario.fill(6)
    client = ActionClient(
        world.node, action.IdentifyLinks, "com_identification/identify_links"
    )
    world.spin_until(client.server_is_ready, "the action")
    feedback = []
    sent = client.send_goal_async(
        action.IdentifyLinks.Goal(), feedback_callback=feedback.append
    )
    world.spin_until(sent.done, "the goal")
    busy = scenario.call(action.ProposePostures, "propose_postures")
    assert not busy.success
    assert "identify_links is running: wait for its end, or cancel it" in busy.message
    ended = sent.result().get_result_async()
    world.spin_until(ended.done, "the result", timeout=250.0)
    assert ended.result().result.success, ended.result().result.message
    assert feedback
    states = [state for state in scenario.state if state.job]
    assert {state.job for state in states} == {"identify_links"}

    proposer = ActionClient(
        world.node, action.ProposePostures, "com_identification/propose_postures"
    )
    world.spin_until(proposer.server_is_ready, "the action")
    sent = proposer.send_goal_async(action.ProposePostures.Goal(count=50))
    world.spin_until(sent.done, "the goal")
    cancelled = sent.result().cancel_goal_async()
    world.spin_until(cancelled.done, "the cancelling")
    ended = sent.result().get_result_async()
    world.spin_until(ended.done, "the end")
    assert ended.result().result.message == "cancelled"
    assert scenario.call(action.ProposePostures, "propose_postures", count=2).success


def test_proposed_postures_can_be_taken(scenario):
    answer = scenario.call(action.ProposePostures, "propose_postures", count=2)
    assert answer.success, answer.message
    first, second = answer.postures
    assert tuple(first.joint_names) == scenario.robot.model.joint_names
    assert first.margin > 0
    assert first.information_gain >= second.information_gain > 0
    captured = scenario.capture(np.array(first.joint_positions), np.array([0.5, 0.5]))
    assert captured.success, captured.message


def test_a_tare_is_taken_off_and_survives_a_restart(scenario, world):
    offset = np.array([[2.0, -1.0, 5.0, 0.1, 0.2, -0.1], np.zeros(6)])
    q, both = POSTURE
    scenario.play(q, both, offset=offset)
    loaded = scenario.call(srv.TareWrench, "tare_wrench", foot="l_sole", timeout=0.2)
    assert not loaded.success
    assert "l_sole" in loaded.message
    unknown = scenario.call(srv.TareWrench, "tare_wrench", foot="hand", timeout=0.2)
    assert "no foot 'hand': there are l_sole, r_sole" in unknown.message

    scenario.play(q, np.array([0.0, 1.0]), offset=offset)
    tared = scenario.call(srv.TareWrench, "tare_wrench", foot="l_sole", timeout=100.0)
    assert tared.success, tared.message
    force = tared.biases[0].force
    np.testing.assert_allclose((force.x, force.y, force.z), offset[0, :3], atol=0.5)

    world.executor.remove_node(scenario.node)
    scenario.node.destroy_node()
    world.nodes.remove(scenario.node)
    scenario.node = world.start(ComIdentification, **scenario.parameters)
    answer = scenario.capture(q, both, offset=offset)
    assert answer.success, answer.message
    assert answer.posture.mass == pytest.approx(scenario.robot.model.mass, abs=0.1)


def test_a_foot_that_carries_all_is_tared_by_the_model(scenario):
    offset = np.array([[2.0, -1.0, 5.0, 0.1, 0.2, -0.1], np.zeros(6)])
    q, both = POSTURE
    scenario.play(q, both, offset=offset)
    shared = scenario.call(
        srv.TareWrench, "tare_wrench", foot="l_sole", single_support=True, timeout=0.2
    )
    assert "r_sole carries load, too" in shared.message
    scenario.play(q, np.array([1.0, 0.0]), offset=offset)
    tared = scenario.call(
        srv.TareWrench, "tare_wrench", foot="l_sole", single_support=True, timeout=100.0
    )
    assert tared.success, tared.message
    force, moment = tared.biases[0].force, tared.biases[0].torque
    np.testing.assert_allclose((force.x, force.y, force.z), offset[0, :3], atol=0.5)
    np.testing.assert_allclose(  # the URDF's CoM is trusted, which is off by some millimetres
        (moment.x, moment.y, moment.z), offset[0, 3:], atol=0.005 * 18.6 * 9.81
    )
    cleared = scenario.call(srv.TareWrench, "tare_wrench", clear=True)
    assert cleared.feet == ["l_sole", "r_sole"]


def test_a_zero_that_the_diagnosis_names_is_tared_with_both_feet_on_the_ground(
    scenario, world
):
    offset = np.array([np.zeros(6), [2.0, -1.0, 5.0, 0.1, 0.2, -0.1]])
    q, both = POSTURE
    world.publisher(CentroidalDiagnosis, "diagnosis")
    scenario.play(q, both, offset=offset)
    refused = scenario.call(srv.TareWrench, "tare_wrench", diagnosed=True, timeout=0.2)
    assert "no zero of a force sensor is named" in refused.message
    unheard = scenario.call(srv.IdentifyLinks, "identify_links", use_diagnosis=True)
    assert not unheard.success

    sign = scenario.robot.config.feet[1].wrench_sign
    zero = Culprit(kind=Culprit.WRENCH_ZERO, named=True, lasting=True, parts=["r_sole"])
    zero.parameters, zero.std = (sign * offset[1]).tolist(), [0.1] * 6
    unsure = Culprit(
        kind=Culprit.WRENCH_ZERO, named=True, parts=["l_sole"], parameters=[1.0] * 6
    )
    world.send("diagnosis", CentroidalDiagnosis(culprits=[zero, unsure]))
    world.spin_until(lambda: scenario.node._current.causes, "the diagnosis")
    tared = scenario.call(srv.TareWrench, "tare_wrench", diagnosed=True, timeout=100.0)
    assert tared.success, tared.message
    assert tared.feet == ["r_sole"]
    force, moment = tared.biases[0].force, tared.biases[0].torque
    np.testing.assert_allclose((force.x, force.y, force.z), offset[1, :3])
    np.testing.assert_allclose((moment.x, moment.y, moment.z), offset[1, 3:])
    answer = scenario.capture(q, both, offset=offset)
    assert answer.posture.mass == pytest.approx(scenario.robot.model.mass, abs=0.1)


@pytest.mark.exhaustive
def test_the_stabilisers_offset_is_a_posture_where_there_is_no_diagnosis(
    scenario, world
):
    for topic, kind in (("gait/state", WalkState), ("diagnosis", CentroidalDiagnosis)):
        world.publisher(kind, topic)
    scenario.fill(3)
    model, rest = (
        scenario.robot.model,
        scenario.robot.config.nominal_posture(scenario.robot.model),
    )
    true = scenario.robot.com(rest) - Sesc(model).com(rest)
    known = WalkState(com_offset=true[:2].tolist(), com_offset_std=[1e-4, 1e-4])
    session = scenario.node._current
    world.send("gait/state", known)
    world.spin_until(lambda: session.walk_state is not None, "the walk's state")
    later = WalkState(com_offset=[0.1, 0.1], com_offset_std=[np.inf, np.inf])
    world.send("gait/state", later)  # as the robot has no feedback any more
    world.spin_for(0.2)
    ask = partial(scenario.call, srv.IdentifyLinks, "identify_links")
    without, found = ask(), ask(use_diagnosis=True)
    assert without.success, without.message
    assert found.success, found.message
    assert list(without.result.postures) == [1, 2, 3]
    assert list(found.result.postures) == [1, 2, 3, 0]
    assert list(found.result.outliers) == []
    assert found.result.bodies[0].com_std.x < without.result.bodies[0].com_std.x
    world.send("diagnosis", CentroidalDiagnosis())
    world.spin_until(lambda: session.causes is not None, "the diagnosis")
    instead = ask(use_diagnosis=True)
    assert instead.success, instead.message
    assert list(instead.result.postures) == [1, 2, 3]


def test_what_a_diagnosis_knows_becomes_evidence(robot):
    model, rest = robot.model, robot.config.nominal_posture(robot.model)
    trunk, ankle = model.bodies.names[0], model.joint_names[0]
    turn = Rotation.from_euler("xyz", [0.3, -0.2, 0.5])
    axes = rotation_to_quaternion(turn.as_matrix())
    encoder = Culprit(
        kind=Culprit.ENCODER_ZERO, parts=[ankle], parameters=[0.01], std=[1e-3]
    )
    tilt = Culprit(
        kind=Culprit.IMU_TILT, parts=[trunk], parameters=[0.01, -0.02], axes=axes
    )
    tilt.std = [1e-3, 1e-3]
    moment = np.array([0.03, -0.01, 0.02])  # kg m
    com = Culprit(
        kind=Culprit.TRUNK_COM, parts=[trunk], parameters=moment.tolist(), axes=axes
    )
    com.std = [0.001] * 3
    found = causes_to_evidence([encoder, tilt, com], model, rest)
    assert found.errors["joint_offset", ankle] == (-0.01, 1e-3)
    up = np.array([0.0, 0.0, 1.0])
    e = turn.apply([0.01, -0.02, 0.0])
    read = Rotation.from_rotvec(e).inv().apply(up)  # by an IMU that is turned by e
    back = np.array([found.errors["tilt", axis][0] for axis in "xyz"])
    np.testing.assert_allclose(read + np.cross(back, read), up, atol=1e-3)
    shift, std = found.coms[trunk]
    np.testing.assert_allclose(
        shift, turn.apply(moment) / model.bodies.mass[0], atol=1e-12
    )
    np.testing.assert_allclose(std, 0.001 / model.bodies.mass[0])
