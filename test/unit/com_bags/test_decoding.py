"""Messages as batches, against rosbags' own deserialiser."""

import numpy as np
import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_bags import IMU, JOINT_STATE, WRENCH
from com_bags.decoding import Decoder

rng = np.random.default_rng(3)


def joined(batches, count, field):
    """One field in the order of the block."""
    values = {}
    for batch in batches:
        for row, numbers in zip(batch.rows, batch.numbers[field], strict=True):
            values[int(row)] = numbers
    return [values[i] for i in range(count)]


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("frame", ["", "a", "base_link"])
def test_joint_states_of_any_shape_come_back_as_they_were(messages, little, frame):
    sent = []
    for names in (["a"], ["left_hip", "b"], ["x", "yy", "zzz", "wwww", "vvvvv"], []):
        for efforts in (0, len(names)):
            for _ in range(3):
                time = int(rng.integers(0, 2**31)) * 10**9 + int(rng.integers(0, 10**9))
                position, effort = rng.normal(size=len(names)), rng.normal(size=efforts)
                sent.append(messages.joints(time, names, position, effort, frame=frame))
    reader = Decoder(JOINT_STATE)
    batches = reader.decode([messages.bytes(message, little) for message in sent])
    assert not reader.errors
    for field in ("position", "velocity", "effort"):
        got = joined(batches, len(sent), field)
        for message, numbers in zip(sent, got, strict=True):
            np.testing.assert_array_equal(numbers, getattr(message, field))
    for batch in batches:
        assert batch.frame == frame
        for row, stamp in zip(batch.rows, batch.stamps, strict=True):
            header = sent[row].header
            assert stamp == header.stamp.sec * 10**9 + header.stamp.nanosec
            assert list(batch.names) == sent[row].name


def test_wrenches_and_imus_come_back_as_they_were(messages):
    values, turn = rng.normal(size=(2, 6)), rng.normal(size=4)
    wrenches = [
        messages.wrench(5, v, frame) for v, frame in zip(values, "ab", strict=True)
    ]
    batches = Decoder(WRENCH).decode([messages.bytes(message) for message in wrenches])
    np.testing.assert_array_equal(joined(batches, 2, "wrench"), values)
    assert [batch.frame for batch in batches] == ["a", "b"]
    imu = messages.imu(7, turn, known=False, acceleration=(1, 2, 3))
    (batch,) = Decoder(IMU).decode([messages.bytes(imu)])
    np.testing.assert_array_equal(batch.numbers["orientation"], [turn])
    np.testing.assert_array_equal(batch.numbers["linear_acceleration"], [[1, 2, 3]])
    assert batch.numbers["orientation_covariance"][0, 0] == -1.0


def test_names_that_change_without_changing_the_length_are_distinguished(messages):
    sent = [
        messages.joints(i, names, [i, -i]) for i, names in enumerate(["ab", "ba"] * 4)
    ]
    batches = Decoder(JOINT_STATE).decode([messages.bytes(message) for message in sent])
    assert [batch.names for batch in batches] == [("a", "b"), ("b", "a")]
    assert [batch.rows.tolist() for batch in batches] == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_what_is_in_the_gaps_between_fields_does_not_matter(messages):
    payload = bytearray(messages.bytes(messages.joints(1, ["abc", "d"], [1.0, 2.0])))
    gap = payload.index(b"d\0") + 2  # the next length starts at a multiple of four
    other = bytearray(payload)
    other[gap] = 0xAA
    (batch,) = Decoder(JOINT_STATE).decode([bytes(payload), bytes(other)])
    assert batch.names == ("abc", "d")
    one, two = batch.numbers["position"]
    np.testing.assert_array_equal(one, two)


def test_every_message_of_another_shape_is_still_read(messages):
    names = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(60)]
    sent = [messages.joints(i, [name], [float(i)]) for i, name in enumerate(names)]
    batches = Decoder(JOINT_STATE).decode([messages.bytes(message) for message in sent])
    np.testing.assert_array_equal(
        joined(batches, 60, "position"), np.arange(60.0)[:, None]
    )


@pytest.mark.parametrize("extra", [b"", b"\0\0\0"])
@pytest.mark.parametrize("little", [True, False])
def test_many_messages_of_one_shape_are_as_rosbags_reads_them(messages, little, extra):
    sent = [
        messages.imu(7 + i, v, False, v[1:])
        for i, v in enumerate(rng.normal(size=(9, 4)))
    ]
    payloads = [messages.bytes(message, little) + extra for message in sent]
    payloads[4] = payloads[4][:-9]
    reader = Decoder(IMU)
    batches = reader.decode(payloads)
    assert sum(reader.errors.values()) == 1
    rows = np.concatenate([batch.rows for batch in batches])
    stamps = np.concatenate([batch.stamps for batch in batches])
    orientations = np.concatenate([batch.numbers["orientation"] for batch in batches])
    assert sorted(rows.tolist()) == [0, 1, 2, 3, 5, 6, 7, 8]
    for row, stamp, (x, y, z, w) in zip(rows, stamps, orientations, strict=True):
        got = messages.store.deserialize_cdr(payloads[row], IMU)
        assert stamp == 7 + row == got.header.stamp.nanosec
        turn = got.orientation
        assert (x, y, z, w) == (turn.x, turn.y, turn.z, turn.w)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda b: b[:10], "ends after 10 bytes"),
        (lambda b: b"\0\7" + b[2:], "does not begin as CDR does"),
        (
            lambda b: b[:12] + b"\xff\xff\xff\x7f" + b[16:],
            "ends after",
        ),
        (lambda b: b"", "does not begin as CDR does"),
        (lambda b: b + b"\0" * 8, "bytes, expected"),
    ],
)
def test_broken_messages_are_counted_and_the_others_read(messages, spoil, reason):
    good = messages.bytes(messages.joints(1, ["a", "b"], [1.0, 2.0]))
    reader = Decoder(JOINT_STATE)
    batches = reader.decode([good, spoil(good), good])
    assert sum(len(batch.rows) for batch in batches) == 2
    ((words, count),) = reader.errors.items()
    assert reason in words
    assert count == 1


def test_a_definition_of_the_bag_s_own_goes_the_general_way(messages):
    store = get_typestore(Stores.EMPTY)
    store.register(
        {
            k: v
            for k, v in messages.store.fielddefs.items()
            if "Header" in k or "Time" in k
        }
    )
    text = (
        "std_msgs/Header header\nstring source\nstring[] name\nfloat64[] position\n"
        "float64[] velocity\nfloat64[] effort"
    )
    store.register(get_types_from_msg(text, JOINT_STATE))
    header = messages.header(9, "f")
    message = store.types[JOINT_STATE](
        header, "new", ["a"], *[np.array([v]) for v in (1.0, 2.0, 3.0)]
    )
    payload = bytes(store.serialize_cdr(message, JOINT_STATE))
    reader = Decoder(JOINT_STATE, store.fielddefs)
    (batch,) = reader.decode([payload])
    assert (batch.names, batch.frame, batch.stamps.tolist()) == (("a",), "f", [9])
    assert batch.numbers["effort"].tolist() == [[3.0]]
    assert reader.decode([payload[:9]]) == []
    assert sum(reader.errors.values()) == 1


def test_a_vector_of_two_numbers_is_an_error_of_the_message(messages):
    # Found by fuzzing: a definition in the bag whose Vector3 has lost its z.
    store = get_typestore(Stores.EMPTY)
    types = dict(messages.store.fielddefs)
    constants, fields = types["geometry_msgs/msg/Vector3"]
    types["geometry_msgs/msg/Vector3"] = (constants, fields[:2])
    store.register(types)
    make = store.types
    covariance, flat = np.zeros(9), make["geometry_msgs/msg/Vector3"](1.0, 2.0)
    turn = make["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    message = make[IMU](
        messages.header(1, "imu"), turn, covariance, flat, covariance, flat, covariance
    )
    reader = Decoder(IMU, store.fielddefs)
    assert reader.decode([bytes(store.serialize_cdr(message, IMU))]) == []
    assert list(reader.errors) == ["angular_velocity has 2 numbers, expected 3"]
