"""Messages of a walking robot: round trips, refusals, and that constants fit the maths."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message
from read_back import joint_trajectory_to_numpy

from com_control import walking
from com_control.nodes.ccgd_output import (
    footstep_to_msg,
    make_walk_state,
    msg_to_footstep,
    msg_to_request,
    walk_numbers,
)
from com_control.walking.stabiliser import Fault
from com_control.walking.walk import WalkRequest
from com_msgs.action import Walk
from com_msgs.msg import Footstep, WalkGoal, WalkState
from com_ros.conversions import numpy_to_joint_trajectory, point_to_numpy, stamp_to_ns
from com_ros.exceptions import ConversionError
from com_ros.raw_messages import Template

STAMP = Time(sec=12, nanosec=34)


def make_goal(request, frame):
    """WalkGoal message of a request."""
    msg = WalkGoal(method=request.method or "")
    msg.header.frame_id = frame
    msg.first = {None: 0, "left": Footstep.LEFT, "right": Footstep.RIGHT}[request.first]
    msg.footsteps = [footstep_to_msg(step) for step in request.footsteps]
    for name, value in vars(request).items():
        if name not in ("method", "first", "footsteps") and value is not None:
            setattr(msg, name, [value])
    return msg


def test_goals_have_the_fields_of_requests():
    assert set(WalkGoal().get_fields_and_field_types()) - {"header"} == set(
        vars(WalkRequest())
    )


def test_footstep(over_the_wire):
    step = walking.Footstep("right", 0.3, -0.1, 0.05, 0.2)
    msg = over_the_wire(footstep_to_msg(step))
    assert msg.side == Footstep.RIGHT
    assert msg_to_footstep(msg) == step


def test_a_footstep_that_is_not_finite_is_named():
    msg = make_goal(WalkRequest(), "walk")
    msg.footsteps = [Footstep(side=1), Footstep(side=2, yaw=math.nan)]
    with pytest.raises(walking.PlanError, match="footstep 1: yaw of a footstep is nan"):
        msg_to_request(msg, "walk")


@pytest.mark.parametrize("side", [0, 3, 255])
def test_a_footstep_without_a_side_is_refused(side):
    with pytest.raises(
        ConversionError, match=rf"side is {side}: give 1 \(left\) or 2 \(right\)"
    ):
        msg_to_footstep(Footstep(side=side))


@pytest.mark.parametrize(
    "values",
    [
        WalkRequest(),
        WalkRequest(
            footsteps=(walking.Footstep("left", 0.1, 0.1, 0.0, 0.0),), method="exact"
        ),
        WalkRequest(steps=3, step_time=0.0, com_height=0.4, first="left", turn=-0.2),
        WalkRequest(
            steps=0,
            step_length=0.1,
            side_step=0.2,
            turn=0.3,
            climb=0.4,
            half_width=0.5,
            first="right",
            step_time=0.6,
            double_support=0.7,
            step_height=0.8,
            com_height=0.9,
            method="ccgd",
        ),
    ],
)
def test_walk_goal(values, over_the_wire):
    msg = over_the_wire(make_goal(values, "walk"))
    assert msg.header.frame_id == "walk"
    assert msg_to_request(msg, "walk") == values


def test_goals_in_other_frames_are_refused():
    msg = WalkGoal()
    assert msg_to_request(msg, "walk") == WalkRequest()
    msg.header.frame_id = "map"
    with pytest.raises(ConversionError, match="the goal's frame is 'map': give 'walk'"):
        msg_to_request(msg, "walk")
    with pytest.raises(ConversionError, match="the goal's first is 7"):
        msg_to_request(WalkGoal(first=7), "walk")


def test_walk_state(over_the_wire):
    rng = np.random.default_rng(1)
    com, meant, zmp, zmp_meant, dcm, dcm_meant = rng.normal(size=(6, 3))
    plain = {
        "state": 5,
        "reason": "why",
        "step": 2,
        "steps": 6,
        "time": 3.5,
        "duration": 13.0,
    }
    plain |= {"last_walk": "completed", "fault": WalkState.NO_IMU, "margin": 0.5}
    points = {
        "com_reference": meant,
        "com": com,
        "zmp_reference": zmp_meant,
        "zmp": zmp,
    }
    points |= {"dcm": dcm, "dcm_reference": dcm_meant}
    pairs = {
        "com_offset": rng.normal(size=2),
        "com_offset_std": np.array([0.1, np.inf]),
    }
    msg = over_the_wire(
        make_walk_state(STAMP, "walk", "left", **plain, **points, **pairs)
    )
    assert (msg.header.stamp, msg.header.frame_id) == (STAMP, "walk")
    assert msg.com_error == pytest.approx(np.linalg.norm(com - meant))
    assert msg.swing == Footstep.LEFT
    for name, value in plain.items():
        assert getattr(msg, name) == value
    for name, value in points.items():
        np.testing.assert_array_equal(point_to_numpy(getattr(msg, name)), value)
    for name, value in pairs.items():
        np.testing.assert_array_equal(getattr(msg, name), value)
    feedback = over_the_wire(Walk.Feedback(state=msg))
    assert feedback.state == msg
    template = Template(make_walk_state(STAMP, "walk", state=5), *walk_numbers({}))
    known = (
        {name: plain[name] for name in ("time", "duration", "margin")} | points | pairs
    )
    data = template.fill(stamp_to_ns(STAMP), *walk_numbers(known))
    expected = make_walk_state(STAMP, "walk", state=5, **known)
    assert deserialize_message(data, WalkState) == expected


def test_an_unknown_state():
    msg = make_walk_state(STAMP, "", state=0, reason="no joints")
    assert (msg.state, msg.step, msg.swing) == (WalkState.UNKNOWN, -1, Footstep.UNKNOWN)
    assert math.isnan(msg.com_error)
    assert np.isnan(
        [msg.com.x, msg.dcm.x, msg.margin, *msg.com_offset, *msg.com_offset_std]
    ).all()
    assert msg.fault == WalkState.NO_FAULT


def test_faults_are_those_of_the_message():
    for fault in Fault:
        name = {Fault.NONE: "NO_FAULT", Fault.FALLEN: "TILTED"}.get(fault, fault.name)
        assert getattr(WalkState, name) == fault


def test_joint_trajectory(over_the_wire):
    rng = np.random.default_rng(2)
    times, q, qd = (
        np.array([0.0, 0.01, 1.5]),
        rng.normal(size=(3, 2)),
        rng.normal(size=(3, 2)),
    )
    msg = over_the_wire(numpy_to_joint_trajectory(("a", "b"), times, q, qd, STAMP))
    assert msg.joint_names == ["a", "b"]
    assert msg.header.stamp == STAMP
    for got, sent in zip(joint_trajectory_to_numpy(msg), (times, q, qd), strict=True):
        np.testing.assert_array_equal(got, sent)
    for point in msg.points:
        point.velocities = []
    assert np.isnan(joint_trajectory_to_numpy(msg)[2]).all()


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_finite_is_never_sent(which):
    values = [np.zeros((2, 3)), np.zeros((2, 3))]
    values[which][1, 2] = np.nan
    with pytest.raises(ConversionError, match="targets that are not finite"):
        numpy_to_joint_trajectory("abc", [0.0, 1.0], *values, STAMP)
