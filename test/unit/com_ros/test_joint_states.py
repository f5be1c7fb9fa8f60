"""Odd joint states are judged alike, live (com_ros) and in a recording (com_bags)."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from com_bags.bag import Bag
from com_bags.exceptions import TopicError
from com_bags.sensors import SensorReader, SensorTopics
from com_ros.joint_input import JointInput

START, STEP, COUNT = 1_700_000_000_000_000_000, 10_000_000, 200  # ns, ns, messages
Q, TAU = [0.1, -0.2], [1.0, 2.0]


def stream(odd):
    """Good messages of a and b, and after every second one an odd one, 4 ms later."""
    entries = []
    for i in range(COUNT):
        time = START + i * STEP
        entries.append((time, ["a", "b"], Q, (), TAU))
        if i % 2:
            entries.append((time + 4_000_000, *odd))
    return entries


CASES = {  # names, position, velocity, effort of the odd messages; words of the verdict, "": none
    "velocity alone, another joint": ((["wheel"], [], [1.0], []), ""),
    "velocity alone": ((["a", "b"], [], [1.0, 2.0], []), ""),
    "effort alone": ((["a", "b"], [], [], [9.0, 9.0]), ""),
    "names alone": ((["a", "b"], [], [], []), ""),
    "nothing": (([], [], [], []), ""),
    "another robot's joints": ((["wheel"], [4.0], [], []), ""),
    "the same again": ((["a", "b"], Q, [], TAU), ""),
    "the same in another message": ((["a"], Q[:1], [], TAU[:1]), ""),
    "too few positions": ((["a", "b"], [0.1], [], []), "1 positions for 2 names"),
    "too many positions": ((["a"], Q, [], []), "2 positions for 1 names"),
    "a joint twice": ((["a", "b", "a"], [0.1, -0.2, 0.5], [], []), "a more than once"),
    "zeros": ((["a", "b"], [0.0, 0.0], [], []), "contradict each other: a, b"),
    "zeros of one joint": ((["b"], [0.0], [], []), "contradict each other: b"),
}


def live(entries, model):
    """Verdicts of the node's reader, and its last positions."""
    joints, texts, last = JointInput(model.joint_names, 0.1), set(), None
    for time, names, position, velocity, effort in entries:
        message = JointState(name=names, position=position)
        message.velocity, message.effort = list(velocity), list(effort)
        message.header.stamp = Time(sec=time // 10**9, nanosec=time % 10**9)
        sample = joints.update(message, time)
        if sample is not None:
            texts |= {*filter(None, [sample.error]), *sample.warnings}
            last = last if sample.error else sample.position
    return texts, last


def recorded(entries, model, messages, write_bag):
    """Verdicts of the recording's reader, and its last positions."""
    written = [
        (
            "/joint_states",
            time,
            messages.joints(time, names, position, effort, velocity),
        )
        for time, names, position, velocity, effort in entries
    ]
    with Bag(write_bag(written)) as bag:
        reader = SensorReader(bag, model, [], SensorTopics("/joint_states", ()))
        try:
            blocks = [block.Q for block in reader.blocks()]
        except TopicError as error:  # messages of other joints, too: refused at once
            return {str(error)}, np.array(Q)
        return set(reader.warnings()), np.concatenate(blocks)[-1]


@pytest.mark.parametrize("case", CASES)
def test_verdicts_are_the_same(case, pair, messages, write_bag):
    odd, words = CASES[case]
    entries = [*stream(odd), (START + COUNT * STEP, ["a", "b"], Q, (), TAU)]
    ignored = ("joints that are not moving joints", "names change")  # matched by name
    for texts, last in (
        live(entries, pair),
        recorded(entries, pair, messages, write_bag),
    ):
        texts = {text for text in texts if not any(word in text for word in ignored)}
        assert all(words in text for text in texts) if words else not texts, texts
        assert bool(texts) == bool(words)
        np.testing.assert_array_equal(last, Q)


@pytest.mark.parametrize("noise", [0.003, 0.01, 0.05])
def test_noisy_encoders_are_not_two_publishers(noise, pair, messages, write_bag):
    rng = np.random.default_rng(5)
    entries = [
        (
            START + i * STEP // 5,
            ["a", "b"],
            list(Q + rng.normal(0.0, noise, 2)),
            (),
            TAU,
        )
        for i in range(2500)
    ]
    for texts, _ in (
        live(entries, pair),
        recorded(entries, pair, messages, write_bag),
    ):
        assert not any("contradict" in text for text in texts), texts


@pytest.mark.parametrize("period", [2, 3, 10])
def test_two_publishers_of_a_moving_noisy_robot_are_named(
    period, pair, messages, write_bag
):
    """Another publisher of joint b, with each so many messages."""
    rng, entries = np.random.default_rng(6), []
    for i in range(600):
        time = START + i * STEP
        moved = np.array([0.5 * np.sin(0.05 * i), -0.2]) + rng.normal(0.0, 0.002, 2)
        entries.append((time, ["a", "b"], moved.tolist(), (), TAU))
        if i % period == 0:
            entries.append((time + STEP // 2, ["b"], [0.3], (), [0.0]))
    for texts, _ in (
        live(entries, pair),
        recorded(entries, pair, messages, write_bag),
    ):
        assert any("contradict each other: b" in text for text in texts), texts
