"""Markers, frames and diagnostics."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from scipy.spatial.transform import Rotation
from visualization_msgs.msg import Marker

from com_ros.conversions import points_to_numpy, quaternion_to_rotation
from com_ros.diagnostics import WARN, Diagnostics, RateMeter
from com_ros.markers import FramePublisher, MarkerMaker, MarkerOutput

STAMP = Time(sec=5)
RED = (1.0, 0.0, 0.0, 0.5)


class Recorder:
    """Stands in for a publisher."""

    def __init__(self, subscriptions=1):
        self.messages, self.subscriptions = [], subscriptions

    def get_subscription_count(self):
        return self.subscriptions

    def publish(self, msg):
        self.messages.append(msg)


@pytest.fixture
def maker():
    maker = MarkerMaker(lifetime_ns=1_500_000_000)
    maker.set_header("base_link", STAMP)
    return maker


def test_every_marker_carries_frame_stamp_and_lifetime(maker):
    markers = [
        maker.sphere("a", [1, 2, 3], 0.1, RED),
        maker.disc("b", [1, 2, 3], [0, 0, -2], 0.1, RED),
        maker.line("c", np.eye(3), 0.1, RED),
        maker.balls("d", np.eye(3), 0.1, RED),
    ]
    for marker in markers:
        assert marker.header.frame_id == "base_link"
        assert marker.header.stamp == STAMP
        assert (marker.lifetime.sec, marker.lifetime.nanosec) == (1, 500_000_000)
        assert marker.color.a == 0.5
        assert marker.action == Marker.ADD
    assert len({marker.ns for marker in markers}) == len(markers)
    assert [m.type for m in markers] == [
        Marker.SPHERE,
        Marker.CYLINDER,
        Marker.LINE_STRIP,
        Marker.SPHERE_LIST,
    ]


def test_a_closed_line_ends_where_it_began(maker):
    triangle = np.eye(3)
    points = points_to_numpy(maker.line("x", triangle, 0.1, RED, closed=True).points)
    np.testing.assert_array_equal(points, [*triangle, triangle[0]])
    segment = maker.line("x", triangle[:2], 0.1, RED, closed=True)
    assert len(segment.points) == 2


@pytest.mark.parametrize("normal", [[0, 0, 1], [0, 0, -1], [1, 0, 0], [0.3, -0.5, 0.8]])
def test_a_disc_lies_across_its_normal(maker, normal):
    disc = maker.disc("x", [0, 0, 0], normal, 0.1, RED)
    R = quaternion_to_rotation(disc.pose.orientation)
    np.testing.assert_allclose(R[:, 2], normal / np.linalg.norm(normal), atol=1e-12)


def test_a_marker_is_filled_again(maker):
    first = maker.balls("x", np.eye(3), 0.1, RED)
    maker.set_header("other", Time(sec=6))
    again = maker.balls("x", 2 * np.eye(3), 0.2, RED)
    assert again is first
    assert (again.header.frame_id, again.header.stamp.sec, again.scale.x) == (
        "other",
        6,
        0.2,
    )
    np.testing.assert_array_equal(points_to_numpy(again.points), 2 * np.eye(3))
    fewer = maker.balls("x", np.eye(3)[:1], 0.2, RED)
    np.testing.assert_array_equal(points_to_numpy(fewer.points), np.eye(3)[:1])


def test_segments_are_separate_lines(maker):
    ends = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    marker = maker.segments("edges", ends, 0.01, (1.0, 0.0, 0.0, 1.0))
    assert marker.type == Marker.LINE_LIST
    assert [(p.x, p.y, p.z) for p in marker.points] == [tuple(end) for end in ends]


def test_markers_that_are_shown_are_hidden_once(make_node):
    output = MarkerOutput(make_node(), "markers", 1.0)
    output._publisher = Recorder()
    output.hide()
    assert output._publisher.messages == []
    output.show([output.sphere("x", np.zeros(3), 0.1, RED)])
    output.hide()
    output.hide()
    shown, hidden = (msg.markers[0] for msg in output._publisher.messages)
    assert (shown.action, shown.lifetime.sec) == (Marker.ADD, 1)
    assert hidden.action == Marker.DELETEALL


def test_frames(make_node):
    frames = FramePublisher(make_node(), "robot1/")
    frames._publisher = Recorder()
    frames.send(STAMP, "base_link", [("com", [1, 2, 3]), ("com_projection", [1, 2, 0])])
    (msg,) = frames._publisher.messages
    com, projection = msg.transforms
    assert (com.header.frame_id, com.child_frame_id) == (
        "robot1/base_link",
        "robot1/com",
    )
    assert projection.child_frame_id == "robot1/com_projection"
    assert com.header.stamp == STAMP
    t, r = com.transform.translation, com.transform.rotation
    assert (t.x, t.y, t.z, r.w) == (1.0, 2.0, 3.0, 1.0)


def test_frames_that_nobody_hears_are_not_made(make_node):
    frames = FramePublisher(make_node())
    frames._publisher = Recorder(subscriptions=0)
    frames.send(STAMP, "base_link", [("com", [1, 2, 3])])
    assert not frames._publisher.messages


def test_a_frame_with_a_rotation(make_node):
    frames = FramePublisher(make_node())
    frames._publisher = Recorder()
    R = Rotation.from_rotvec([1.0, 2.0, 3.0]).as_matrix()
    frames.send(STAMP, "odom", [("base_link", [1, 2, 3], R)])
    (transform,) = frames._publisher.messages[0].transforms
    np.testing.assert_allclose(
        quaternion_to_rotation(transform.transform.rotation), R, atol=1e-12
    )


def test_diagnostics(make_node):
    node = make_node()
    diagnostics = Diagnostics(node, "centre of mass")
    diagnostics._publisher = Recorder()
    values = {
        "rate_hz": 999.98765,
        "feet": "none",
        "joints": 25,
        "ok": True,
        "margin": math.nan,
    }
    diagnostics.publish(WARN, "imu is silent", values, "hoap2")
    (msg,) = diagnostics._publisher.messages
    (status,) = msg.status
    assert status.name == f"{node.get_name()}: centre of mass"
    assert (status.level, status.message, status.hardware_id) == (
        WARN,
        "imu is silent",
        "hoap2",
    )
    assert {pair.key: pair.value for pair in status.values} == {
        "rate_hz": "999.988",
        "feet": "none",
        "joints": "25",
        "ok": "true",
        "margin": "nan",
    }
    assert msg.header.stamp.sec > 0


def test_rate_and_latency():
    meter = RateMeter()
    first = meter.read(0)
    assert all(math.isnan(value) for value in first.values())
    for latency_ms in (1, 2, 6):
        meter.add(latency_ms * 1_000_000)
    assert meter.read(500_000_000) == {
        "rate_hz": 6.0,
        "latency_mean_ms": 3.0,
        "latency_max_ms": 6.0,
    }
    silent = meter.read(1_000_000_000)
    assert silent["rate_hz"] == 0.0
    assert math.isnan(silent["latency_mean_ms"])
