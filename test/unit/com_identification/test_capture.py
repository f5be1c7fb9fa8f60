"""Streams of readings to stationary postures; the wrenches are Pinocchio's, the noise is known."""

import itertools
import tracemalloc

import numpy as np
import pytest
from posture_recording import NOISE, START, S, recorder_of, spans

from com_identification.capture.recorder import CaptureStatus
from com_identification.capture.streams import PostureMark
from com_identification.exceptions import CaptureRefused, IdentificationError
from com_identification.settings import CaptureOptions, SensorNoise
from com_identification.store.results import corrected_inertials
from com_model import Foot, RobotModel
from com_model.urdf.editing import edit_inertials

pytestmark = pytest.mark.slow


def test_each_stationary_interval_gives_one_posture(hoap2, record, postures):
    recording, read = record(postures)
    recorder = recorder_of(hoap2, CaptureOptions(max_time=25.0))
    recording.feed(recorder)
    intervals = recorder.finished() + recorder.flush()
    assert [i.reasons for i in intervals] == [(), (), ()]
    for i, (interval, (wrenches, torque, up)) in enumerate(
        zip(intervals, read, strict=True)
    ):
        t0, t1 = spans([interval])[0]
        assert 3 * i + 0.5 <= t0 <= 3 * i + 0.8, "half a second to settle"
        assert 3 * i + 1.7 <= t1 <= 3 * i + 2.0, "nothing of the motion"
        posture = interval.posture
        assert posture.samples >= 100, "the IMU has the fewest"
        allowed = 6.0 / np.sqrt(posture.samples)
        assert np.abs(posture.q - postures[i]).max() < allowed * NOISE.position
        force, moment = np.hsplit(posture.wrenches - wrenches, 2)
        assert np.abs(force).max() < allowed * NOISE.force
        assert np.abs(moment).max() < allowed * NOISE.moment
        assert np.abs(posture.effort - torque).max() < allowed * NOISE.effort
        assert np.abs(posture.up - up).max() < allowed * NOISE.tilt + 1e-9
    assert (
        recorder.dropped.late
        == recorder.dropped.unusable
        == recorder.dropped.restarts
        == 0
    )
    seconds = recorder.seconds
    assert seconds["stationary"] == pytest.approx(6.0, abs=0.6)
    assert seconds["joints moved"] + seconds.get("forces varied", 0) == pytest.approx(
        2.0, abs=0.6
    )


def test_live_and_recorded_give_the_same_posture(hoap2, record, postures):
    recording, _ = record(postures[:2])
    live, block = recorder_of(hoap2), recorder_of(hoap2)
    times = [
        (t, k)
        for k, ts in enumerate((recording.t, *[recording.t_wrench] * 2, recording.t_up))
        for t in ts
    ]
    for t, k in sorted(times):
        recording.give(live, k, t, t + 1)
    recording.feed(block, 1.9, order=(2, 0, 3, 1))
    pairs = list(zip(live.flush(), block.flush(), strict=True))
    assert len(pairs) == 2
    for a, b in pairs:
        assert (a.t0_ns, a.t1_ns, a.posture.samples) == (
            b.t0_ns,
            b.t1_ns,
            b.posture.samples,
        )
        for name in ("q", "wrenches", "effort", "up"):
            np.testing.assert_allclose(
                getattr(a.posture, name),
                getattr(b.posture, name),
                rtol=1e-12,
                atol=1e-13,
            )


def test_same_blocks_give_the_same_bits(hoap2, record, postures):
    recording, _ = record(postures[:2])
    runs = []
    for _ in range(2):
        recorder = recorder_of(hoap2)
        recording.feed(recorder)
        runs.append(recorder.flush())
    for a, b in zip(*runs, strict=True):
        assert a.posture.wrenches.tobytes() == b.posture.wrenches.tobytes()
        assert a.posture.q.tobytes() == b.posture.q.tobytes()


def test_a_long_interval_is_one_posture_and_little_memory(hoap2, record, postures):
    recording, _ = record(postures[:1], hold=30.0, rate=200, wrench_rate=100)
    recorder = recorder_of(hoap2, CaptureOptions(max_time=3.0))
    tracemalloc.start()
    recording.feed(recorder)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    intervals = recorder.flush()
    assert len(intervals) == 1
    assert intervals[0].posture.samples == pytest.approx(300, abs=2), (
        "the IMU has 100 a second"
    )
    assert size < 500_000


@pytest.mark.parametrize("rate", [50, 100, 200, 500])
def test_postures_are_found_at_any_rate(hoap2, record, postures, rate):
    eight = np.array([(1.0 - 0.3 * (k // 3)) * postures[k % 3] for k in range(8)])
    recording, _ = record(eight, hold=1.2, rate=rate, wrench_rate=rate, imu_rate=rate)
    recorder = recorder_of(hoap2)
    recording.feed(recorder)
    intervals = recorder.finished() + recorder.flush()
    assert [interval.reasons for interval in intervals] == [()] * 8
    np.testing.assert_allclose([i.posture.q for i in intervals], eight, atol=2e-3)


def test_an_interval_that_is_too_short_is_refused(hoap2, record, postures):
    recording, _ = record(postures, hold=0.8)
    recorder = recorder_of(hoap2)
    recording.feed(recorder)
    intervals = recorder.flush()
    assert [i.posture for i in intervals] == [None] * 3
    for interval in intervals:
        assert "of 0.3 s; stay in each posture longer" in interval.reasons[0]


def test_slow_motion_is_not_stationary(hoap2, record, postures):
    slow = np.array([postures[0], postures[0] + 0.02])
    recording, _ = record([slow[0], slow[1]], hold=0.0)  # 0.02 rad/s for a second
    recorder = recorder_of(hoap2)
    recording.feed(recorder)
    assert [i.posture for i in recorder.flush()] == []
    assert set(recorder.seconds) & {"joints moved", "forces varied", "tilt varied"}


def test_swaying_force_is_not_stationary(hoap2, record, postures):
    recording, _ = record(postures[:1], hold=5.0)
    t = (recording.t_wrench - START) / S
    recording.W[0, :, 4] += 70.0 * 0.006 * np.sin(2 * np.pi * 0.8 * t)
    recorder = recorder_of(hoap2)
    recording.feed(recorder)
    state = recorder.state()
    assert state.status in (CaptureStatus.MOVING, CaptureStatus.SETTLING)
    assert recorder.seconds["forces varied"] > 0.5
    assert not any(i.posture for i in recorder.flush())


def test_capture_on_request_uses_each_reading_once(hoap2, record, postures):
    recording, _ = record(postures[:1], hold=4.0)
    recorder = recorder_of(hoap2)
    for block in range(4):
        for k in range(4):
            recording.give(recorder, k, START + block * S, START + (block + 1) * S)
        if block == 0:
            with pytest.raises(
                CaptureRefused, match=r"Readings of 0\.3 s of 1 s: keep the robot"
            ):
                recorder.capture(seconds=1.0)
        if block == 1:
            posture = recorder.capture("first")
            assert (posture.label, posture.samples >= 100) == ("first", True)
            with pytest.raises(CaptureRefused, match=r"of 0\.3 s"):
                recorder.capture("again")
            assert recorder.latest() is not None
            assert recorder.state().status == CaptureStatus.COLLECTING
    assert recorder.capture("second").samples < 220
    assert recorder.flush() == [], "what was captured by hand is not given again"
    with pytest.raises(CaptureRefused, match="No readings so far"):
        recorder.capture()


def test_readings_of_a_posture_that_was_stored_are_not_captured_again(
    hoap2, record, postures
):
    recording, _ = record(postures[:1], hold=5.0)
    recorder = recorder_of(hoap2, CaptureOptions(max_time=2.0))
    for second, k in itertools.product(range(3), range(4)):
        recording.give(recorder, k, START + second * S, START + (second + 1) * S)
    (interval,) = recorder.finished()
    assert recorder.state().status == CaptureStatus.READY
    recorder.mark_stored(interval)
    with pytest.raises(CaptureRefused, match=r"of 1 s: keep the robot"):
        recorder.capture(seconds=1.0)
    for second, k in itertools.product(range(3, 5), range(4)):
        recording.give(recorder, k, START + second * S, START + (second + 1) * S)
    assert recorder.capture().samples >= 100
    recorder.flush()
    recorder.mark_stored(interval)  # long over


def test_marks_are_used_as_they_are(hoap2, record, postures):
    recording, read = record(postures)
    times = [(0.3, 1.9), (2.3, 2.9), (3.1, 4.7), (6.0, 6.1), (100.0, 101.0)]
    marks = [
        PostureMark(START + int(a * S), START + int(b * S), f"m{i}")
        for i, (a, b) in enumerate(times)
    ]
    recorder = recorder_of(hoap2, CaptureOptions(min_change=1.0), marks=marks)
    recording.feed(recorder)
    intervals = recorder.finished() + recorder.flush()
    assert [i.label for i in intervals] == ["m0", "m1", "m2", "m3", "m4"]
    good, moving, also, short, nothing = intervals
    assert moving.posture is None
    assert "changed by" in moving.reasons[0]
    assert "of 0.3 s" in short.reasons[0]
    assert nothing.reasons == ("There are no readings in it: check its times.",)
    for interval, (a, b), truth in ((good, times[0], 0), (also, times[2], 1)):
        t0, t1 = spans([interval])[0]
        assert t0 == pytest.approx(a, abs=0.02)
        assert t1 == pytest.approx(b, abs=0.02)
        assert interval.posture.label == interval.label
        np.testing.assert_allclose(interval.posture.q, postures[truth], atol=6e-4)
        np.testing.assert_allclose(interval.posture.wrenches, read[truth][0], atol=0.3)


def test_wrong_marks_are_refused(hoap2):
    with pytest.raises(IdentificationError, match="mark 'x': it ends"):
        PostureMark(5, 5, "x")
    with pytest.raises(
        IdentificationError, match="mark 'b' begins before mark 'a' ends: give marks"
    ):
        recorder_of(hoap2, marks=[PostureMark(0, 5, "a"), PostureMark(5, 9, "b")])


def test_a_robot_without_joints_is_recorded_too():
    inertia = "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    inertial = f"<inertial><mass value='10'/>{inertia}</inertial>"
    model = RobotModel.from_urdf(
        f"<robot name='r'><link name='box'>{inertial}</link></robot>"
    )
    foot = Foot(
        "box", "", np.array([[1.0, 1], [1, -1], [-1, -1], [-1, 1]]), 0.0, "w", "box", 1
    )
    recorder = recorder_of((model, [foot]), use_up=False)
    t = START + np.arange(0, 3 * S, S // 200)
    for part in np.array_split(t, 6):
        noise = np.random.default_rng(part[0]).normal(0.0, 0.01, (len(part), 6))
        recorder.add_joints(part, np.zeros((len(part), 0)))
        recorder.add_wrenches(
            0, part, np.array([0.0, 0.0, 98.1, 0.0, 0.0, 0.0]) + noise
        )
    (interval,) = recorder.flush()
    assert interval.posture.wrenches[0, 2] == pytest.approx(98.1, abs=0.01)


def test_efforts_may_be_missing_or_unused(hoap2, record, postures):
    recording, _ = record(postures[:1])
    recording.effort[:, 3] = np.nan
    recorder, blind = (
        recorder_of(hoap2),
        recorder_of(hoap2, use_effort=False, use_up=False),
    )
    for each in (recorder, blind):
        recording.feed(each)
    posture = recorder.flush()[0].posture
    assert list(np.flatnonzero(np.isnan(posture.effort))) == [3]
    posture = blind.flush()[0].posture
    assert np.isnan(posture.effort).all()
    assert np.isnan(posture.up).all()


def test_the_bias_is_subtracted(hoap2, record, postures):
    offset = np.array(
        [[3.0, -2.0, 5.0, 0.1, 0.2, -0.3], [0.0, 1.0, -4.0, 0.0, 0.0, 0.1]]
    )
    hanging, _ = record(postures[:1], load=(0.0, 1.0))
    hanging.W += offset[:, None]
    recorder = recorder_of(hoap2)
    hanging.feed(recorder)
    found = recorder.measure_bias(0)
    np.testing.assert_allclose(found, offset[0], atol=0.3)
    with pytest.raises(CaptureRefused, match=r"r_sole reads .* lift the foot off"):
        recorder.measure_bias(1)
    recorder.set_bias(offset)
    with pytest.raises(IdentificationError, match="finite numbers"):
        recorder.set_bias(offset * np.nan)
    posture = recorder.capture()
    np.testing.assert_allclose(posture.wrenches[0], 0.0, atol=0.3)


def test_a_heavy_robot_with_noisier_sensors_is_stationary_too(hoap2):
    """95 kg, sensors of 2 N and 0.1 N m: thresholds follow weight and noise."""
    model, feet = hoap2
    bodies = model.bodies
    mass, com = (
        bodies.mass * 95.0 / model.mass,
        bodies.first_moment / bodies.mass[:, None],
    )
    model = RobotModel.from_urdf(
        edit_inertials(model.xml, corrected_inertials(model, mass, com))
    )
    noise = SensorNoise(force=2.0, moment=0.1, position=1e-4)
    rng = np.random.default_rng(5)
    t = np.arange(0, 20.0, 0.002)
    stamps = (t * S).astype(np.int64)
    recorder = recorder_of((model, feet), noise=noise, use_up=False)
    recorder.add_joints(stamps[:0], np.zeros((0, 25)))
    for block in np.array_split(np.arange(len(t)), 20):
        recorder.add_joints(stamps[block], rng.normal(0, 1e-4, (len(block), 25)))
        for foot in range(2):
            W = [0, 0, 466.0, 0, 0, 0] + rng.normal(0, 1, (len(block), 6)) * np.repeat(
                [2.0, 0.1], 3
            )
            recorder.add_wrenches(foot, stamps[block], W)
    assert recorder.seconds == {"stationary": pytest.approx(19.9)}
    assert recorder.state().status == CaptureStatus.READY
    quieter = recorder_of(hoap2, noise=SensorNoise(), use_up=False)
    for block in np.array_split(np.arange(1000), 4):
        quieter.add_joints(stamps[block], rng.normal(0, 1e-4, (len(block), 25)))
        for foot in range(2):
            W = [0, 0, 35.0, 0, 0, 0] + rng.normal(0, 1, (len(block), 6)) * np.repeat(
                [4.0, 0.1], 3
            )
            quieter.add_wrenches(foot, stamps[block], W)
    with pytest.raises(
        CaptureRefused, match=r"set noise\.force and noise\.moment to the"
    ):
        quieter.capture()
