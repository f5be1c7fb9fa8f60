"""Messages from their bytes are those that rclpy makes, also of bytes that are broken."""

import struct
import time
from dataclasses import dataclass

import numpy as np
import pytest
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, WrenchStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory

from com_estimation.nodes.com_output import ComWriter, numpy_to_center_of_mass
from com_estimation.whole_body.com_state import ComState, Ground, unknown_state
from com_model.status import Status
from com_msgs.msg import CenterOfMass
from com_ros import qos
from com_ros.conversions import ns_to_stamp, numpy_to_joint_trajectory
from com_ros.exceptions import ConversionError
from com_ros.inputs import imu_to_values
from com_ros.joint_input import JointInput
from com_ros.parameters import JointTimeout, RobotParameters
from com_ros.raw_messages import (
    MAX_TEMPLATES,
    MAX_TEXTS,
    RawImu,
    RawJoints,
    RawWrench,
    Reader,
    Template,
    TrajectoryWriter,
)
from com_ros.robot_node import RobotNode

pytestmark = pytest.mark.slow

URDF = """<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="lift" type="continuous"><parent link="base"/><child link="tip"/></joint></robot>"""

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
NUMBER = st.floats(width=64)  # with NaN and infinities
STAMP = st.builds(
    Time, sec=st.integers(-(2**31), 2**31 - 1), nanosec=st.integers(0, 2**32 - 1)
)


@st.composite
def joint_states(draw):
    names = draw(st.lists(TEXT, max_size=6))
    sizes = st.sampled_from([0, len(names), len(names) + 1])
    arrays = [
        draw(st.lists(NUMBER, min_size=n, max_size=n))
        for n in draw(st.tuples(*[sizes] * 3))
    ]
    msg = JointState(
        name=names, position=arrays[0], velocity=arrays[1], effort=arrays[2]
    )
    return stamped(draw, msg)


@st.composite
def imus(draw):
    msg = Imu()
    for vector in (msg.orientation, msg.angular_velocity, msg.linear_acceleration):
        fill(draw, vector)
    for name in ("orientation", "angular_velocity", "linear_acceleration"):
        setattr(
            msg, f"{name}_covariance", draw(st.lists(NUMBER, min_size=9, max_size=9))
        )
    return stamped(draw, msg)


@st.composite
def wrenches(draw):
    msg = WrenchStamped()
    fill(draw, msg.wrench.force)
    fill(draw, msg.wrench.torque)
    return stamped(draw, msg)


def stamped(draw, msg):
    msg.header.stamp, msg.header.frame_id = draw(STAMP), draw(TEXT)
    return msg


def fill(draw, vector):
    for name in vector.get_fields_and_field_types():
        setattr(vector, name, draw(NUMBER))


MESSAGES = st.one_of(joint_states(), imus(), wrenches())
FAST = {JointState: RawJoints, Imu: RawImu, WrenchStamped: RawWrench}


def content(value):
    """What a message or its substitute holds; numbers by their bits."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, int | str):
        return value
    if hasattr(value, "get_fields_and_field_types"):
        return {
            name: content(
                getattr(value, name)[:1]
                if "covariance" in name
                else getattr(value, name)
            )
            for name in value.get_fields_and_field_types()
        }
    if hasattr(value, "_asdict"):
        return {name: content(field) for name, field in value._asdict().items()}
    return [
        content(item)
        for item in (value.tolist() if hasattr(value, "tolist") else value)
    ]


def outcome(read, data):
    try:
        return content(read(data))
    except Exception as error:
        return type(error)


@settings(max_examples=300, deadline=None)
@given(MESSAGES, STAMP)
def test_a_text_that_is_known_is_read_as_rclpy_reads_it(msg, stamp):
    read, data = Reader(type(msg)), serialize_message(msg)
    assert content(read(data)) == content(msg)
    msg.header.stamp = stamp
    # Not serialized again, as what is between its strings may then be something else.
    again = read(data[:4] + struct.pack("<iI", stamp.sec, stamp.nanosec) + data[12:])
    assert type(again) is FAST[type(msg)]
    assert content(again) == content(msg)


EDIT = st.tuples(
    st.integers(0, 10**4),
    st.sampled_from(["set", "cut", "insert", "drop"]),
    st.one_of(
        st.binary(min_size=1, max_size=9),
        st.sampled_from(
            [b"\0\0\0\0", b"\1\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"]
        ),
    ),
)


@settings(max_examples=600, deadline=None)
@given(MESSAGES, st.lists(EDIT, min_size=1, max_size=4), st.booleans())
def test_broken_bytes_are_read_or_refused_as_by_rclpy(msg, edits, known):
    read, data = Reader(type(msg)), serialize_message(msg)
    if known:
        read(data)
    broken = bytearray(data)
    for place, how, new in edits:
        at = place % (len(broken) + 1)
        if how == "set":
            broken[at : at + len(new)] = new
        elif how == "insert":
            broken[at:at] = new
        else:
            del broken[at : (at + len(new) if how == "drop" else None)]
    expected = outcome(lambda data: deserialize_message(data, type(msg)), bytes(broken))
    assert outcome(read, bytes(broken)) == expected
    assert (
        outcome(read, bytes(broken)) == expected
    )  # what it has learnt from them is right
    assert content(read(data)) == content(msg)


def test_every_way_to_cut_a_message():
    msg = JointState(name=["hip", "knee"], position=[1.0, 2.0], effort=[3.0, 4.0])
    read, data = Reader(JointState), serialize_message(msg)
    read(data)
    for end in range(len(data)):
        cut = data[:end]
        expected = outcome(lambda data: deserialize_message(data, JointState), cut)
        assert outcome(read, cut) == expected


@pytest.mark.parametrize(
    "encapsulation", [b"\0\0\0\0", b"\0\1\0\1", b"\0\7\0\0", b"\1\1\0\0"]
)
def test_other_encodings_are_left_to_rclpy(encapsulation):
    read, data = Reader(WrenchStamped), serialize_message(WrenchStamped())
    read(data)
    other = encapsulation + data[4:]
    expected = outcome(lambda data: deserialize_message(data, WrenchStamped), other)
    assert outcome(read, other) == expected
    assert type(read(data)) is RawWrench


def test_names_in_another_order_are_noticed():
    read = Reader(JointState)
    for names in (["hip", "toe"], ["toe", "hip"], ["hip", "toe"], ["toe", "hip"]):
        msg = read(serialize_message(JointState(name=names, position=[1.0, 2.0])))
        assert (msg.name, list(msg.position)) == (names, [1.0, 2.0])


def test_what_is_remembered_is_bounded():
    read = Reader(JointState)
    for i in range(5 * MAX_TEXTS):
        read(serialize_message(JointState(name=["a" * (i % 90), str(i)])))
    assert len(read._texts) <= MAX_TEXTS
    assert len(read._ends) <= MAX_TEXTS


def test_other_kinds_are_messages():
    msg = PointStamped()
    msg.point.x = 3.0
    assert Reader(PointStamped)(serialize_message(msg)) == msg


def test_joints_and_imu_are_the_same_from_both():
    """JointInput and imu_to_values give the same for what is read and for rclpy's messages."""
    joints, imu = (
        JointState(name=["b", "a"], position=[1.0, 2.0], velocity=[3.0, 4.0]),
        Imu(),
    )
    joints.header.stamp = Time(sec=1)
    imu.angular_velocity.y, imu.linear_acceleration_covariance[0] = 0.5, -1.0
    for msg in (joints, imu):
        read, data = Reader(type(msg)), serialize_message(msg)
        read(data)
        raw = read(data)
        assert type(raw) is FAST[type(msg)]
        if msg is joints:
            found = [JointInput(["a", "b"], 1.0).update(m, 0) for m in (msg, raw)]
            assert found[0].stamp_ns == found[1].stamp_ns == 10**9
            both = [np.concatenate(sample[:3]) for sample in found]
        else:
            both = [np.array(imu_to_values(m).angular_velocity) for m in (msg, raw)]
            assert np.isnan(imu_to_values(raw).specific_force).all()
        np.testing.assert_array_equal(*both)


# --- outputs ----------------------------------------------------------------------------------
VECTOR = st.lists(NUMBER, min_size=3, max_size=3).map(np.array)
STATE = st.builds(
    ComState,
    st.sampled_from(Status),
    TEXT,
    NUMBER,
    *[VECTOR] * 3,
    st.sampled_from(Ground),
    VECTOR,
    NUMBER,
    st.lists(TEXT, max_size=3).map(tuple),
)


class Publisher:
    """Takes what is published."""

    def __init__(self):
        self.published = []

    def create_publisher(self, *_):
        return self

    def publish(self, msg):
        self.published.append(msg)


NANOSECONDS = st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1)


@settings(max_examples=200, deadline=None)
@given(
    STATE,
    st.lists(st.tuples(NANOSECONDS, VECTOR, NUMBER, st.booleans()), max_size=9),
    TEXT,
)
def test_com_is_the_same_from_a_template(state, changes, frame):
    """A text has a template once it came twice in a row, also when it comes back."""
    output = ComWriter(Publisher(), "com")
    expected_raw, have_template, before, text = [], set(), None, state.reason
    for stamp_ns, vector, number, other_text in changes:
        reason = text + "!" * other_text
        state = state._replace(
            position=vector, margin=number, velocity=vector, reason=reason
        )
        output.publish(state, stamp_ns, frame)
        expected = content(numpy_to_center_of_mass(state, ns_to_stamp(stamp_ns), frame))
        last = output._writer._publisher.published[-1]
        msg = (
            deserialize_message(last, CenterOfMass) if isinstance(last, bytes) else last
        )
        assert content(msg) == expected
        expected_raw.append(reason in have_template)
        if reason == before:
            have_template.add(reason)
        before = reason
    published = output._writer._publisher.published
    assert [isinstance(msg, bytes) for msg in published] == expected_raw


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_joint_targets_are_the_same_from_a_template(data):
    writer = TrajectoryWriter(Publisher())
    finite = st.floats(-1e9, 1e9)
    for _ in range(4):
        q, qd = np.array(data.draw(st.lists(finite, min_size=8, max_size=8))).reshape(
            2, 2, 2
        )
        times, stamp_ns = (
            [0.01, data.draw(st.sampled_from([0.02, 3.0]))],
            data.draw(NANOSECONDS),
        )
        way = ("a", "b"), times, q, qd
        writer.publish(*way, stamp_ns)
        last = writer._writer._publisher.published[-1]
        msg = (
            deserialize_message(last, JointTrajectory)
            if isinstance(last, bytes)
            else last
        )
        assert msg == numpy_to_joint_trajectory(*way, ns_to_stamp(stamp_ns))


def test_targets_that_are_not_finite_are_not_sent():
    writer, q = TrajectoryWriter(Publisher()), np.zeros((1, 2))
    for _ in range(3):
        writer.publish(("a", "b"), [0.01], q, q, 1)
    for wrong in (np.nan, np.inf):
        for way in ((q, q + wrong), (q + wrong, q)):
            with pytest.raises(ConversionError, match="not finite"):
                writer.publish(("a", "b"), [0.01], *way, 1)
    assert len(writer._writer._publisher.published) == 3


def test_templates_of_com_do_not_pile_up():
    output = ComWriter(Publisher(), "com")
    for i in range(3 * MAX_TEMPLATES):
        for _ in range(2):
            output.publish(unknown_state(f"reason {i}"), i, "base")
    assert 0 < len(output._writer._templates) <= MAX_TEMPLATES


# --- a node -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout):
    pass


class ArmNode(RobotNode[Parameters]):
    def __init__(self, **options):
        super().__init__("arm", Parameters, **options)
        self.samples = []
        self.follow_robot_description()
        self.follow_joint_states(self.samples.append, depth=100)


def test_bytes_that_are_no_message_are_counted_and_the_node_goes_on(ros_context, capfd):
    given = [rclpy.Parameter("robot_description", value=URDF)]
    node = ArmNode(context=ros_context, parameter_overrides=given)
    driver = Node("driver", context=ros_context)
    publisher = driver.create_publisher(JointState, "joint_states", qos.RESULT)
    executor = SingleThreadedExecutor(context=ros_context)
    executor.add_node(node)
    end = time.monotonic() + 20.0
    sent = 0
    while (len(node.samples) < 5 or not node.faults.counts) and time.monotonic() < end:
        msg = JointState(name=["lift"], position=[0.5])
        msg.header.stamp = driver.get_clock().now().to_msg()
        data = serialize_message(msg)
        publisher.publish(data)
        publisher.publish(data[:-9])
        sent += 1
        executor.spin_once(timeout_sec=0.1)
    executor.shutdown()
    for each in (node, driver):
        each.destroy_node()
    assert len(node.samples) >= 5
    assert set(node.faults.counts) == {"undecodable"}
    shown = capfd.readouterr().err
    assert shown.count("bytes on /joint_states are no JointState: ") == 1
    assert "Traceback" not in shown


def test_numbers_that_padding_looks_like_are_found():
    msg = CenterOfMass(ground=CenterOfMass.GROUND_FEET, contacts=["sole"])
    template = Template(msg, [0.0] * 10, [0.0] * 4)
    data = template.fill(
        3_000_000_000, [float(i) for i in range(1, 11)], [11.0, 12.0, 13.0, 14.0]
    )
    found = deserialize_message(data, CenterOfMass)
    assert (found.header.stamp.sec, found.mass, found.gravity.z) == (3, 1.0, 10.0)
    assert (found.ground, found.projection.x, found.support_margin) == (2, 11.0, 14.0)
    assert found.contacts == ["sole"]
    with pytest.raises(ValueError, match="does not have these numbers"):
        Template(msg, [5.0])
