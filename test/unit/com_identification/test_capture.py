"""Streams of readings to still postures; the wrenches are Pinocchio's, the noise is known."""

import itertools
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from com_identification.capture.recorder import CaptureStatus, PostureRecorder
from com_identification.capture.slices import Mark
from com_identification.exceptions import CaptureRefused, IdentificationError
from com_identification.settings import CaptureOptions, SensorNoise
from com_identification.store.export import corrected_inertials
from com_model import Foot, RobotModel, ShapeError
from com_model.urdf.editing import edit_inertials

NOISE = SensorNoise(force=0.5, moment=0.025, effort=0.02, position=np.radians(0.05), tilt=1e-4)
S = 1_000_000_000
START = 1_700_000_000 * S


@dataclass
class Recording:
    """Streams of a robot that takes postures in turn; times in ns, all arrays may be spoilt."""

    t: np.ndarray
    Q: np.ndarray
    effort: np.ndarray
    t_wrench: np.ndarray
    W: np.ndarray  # (f, N, 6)
    t_up: np.ndarray
    up: np.ndarray

    def feed(self, recorder, block=0.5, order=None):
        """All streams in turn, in blocks of so many seconds."""
        begin = min(self.t[0], self.t_wrench[0], self.t_up[0])
        end = max(self.t[-1], self.t_wrench[-1])
        for t0 in range(int(begin), int(end) + 1, int(block * S)):
            for k in order or range(2 + len(self.W)):
                self.give(recorder, k, t0, t0 + int(block * S))

    def give(self, recorder, k, t0, t1):
        part = (
            self.t if k == 0 else self.t_wrench if k <= len(self.W) else self.t_up
        ).searchsorted([t0, t1])
        inside = slice(*part)
        if k == 0:
            recorder.add_joints(self.t[inside], self.Q[inside], self.effort[inside])
        elif k <= len(self.W):
            recorder.add_wrenches(k - 1, self.t_wrench[inside], self.W[k - 1][inside])
        else:
            recorder.add_up(self.t_up[inside], self.up[inside])


@pytest.fixture
def record(hoap2, perturbed):
    """record([q, ...], hold=2.0): each posture held, one second of motion before each."""
    robot, _, _ = perturbed(np.random.default_rng(0), 0.005)

    def make(postures, hold=2.0, load=(0.6, 0.4), rate=500, wrench_rate=250, imu_rate=100, seed=1):
        rng = np.random.default_rng(seed)
        knots = np.concatenate(
            [[i * (hold + 1.0), i * (hold + 1.0) + hold] for i in range(len(postures))]
        )
        path = np.repeat(postures, 2, axis=0)
        end = knots[-1]

        def at(seconds, values):
            return np.stack(
                [np.interp(seconds, knots, column) for column in np.asarray(values).T], -1
            )

        t, tw, tu = (np.arange(0.0, end, 1.0 / r) for r in (rate, wrench_rate, imu_rate))
        read = [robot.read(q, list(load)) for q in path]
        Q, up = at(t, path), at(tu, [r[2] for r in read])
        W = np.stack([at(tw, [r[0][i] for r in read]) for i in range(2)])
        spread = np.repeat([NOISE.force, NOISE.moment], 3)
        up = up + rng.normal(0, NOISE.tilt, up.shape)
        recording = Recording(
            START + (t * S).astype(np.int64) + 137,
            Q + rng.normal(0, NOISE.position, Q.shape),
            at(t, [r[1] for r in read]) + rng.normal(0, NOISE.effort, Q.shape),
            START + (tw * S).astype(np.int64) + 991,
            W + rng.normal(0, 1, W.shape) * spread,
            START + (tu * S).astype(np.int64) + 5,
            up / np.linalg.norm(up, axis=1)[:, None],
        )
        return recording, read[::2]

    return make


@pytest.fixture
def postures(random_q):
    rng = np.random.default_rng(7)
    return np.array([0.3 * random_q(rng) for _ in range(3)])


def recorder_of(hoap2, options=None, **keys):
    return PostureRecorder(*hoap2, options, **{"noise": NOISE, "use_up": True} | keys)


def spans(intervals):
    return [((i.t0_ns - START) / S, (i.t1_ns - START) / S) for i in intervals]


def test_each_stationary_interval_gives_one_posture(hoap2, record, postures):
    recording, read = record(postures)
    recorder = recorder_of(hoap2, CaptureOptions(max_samples=5000))
    recording.feed(recorder)
    intervals = recorder.finished() + recorder.flush()
    assert [i.reasons for i in intervals] == [(), (), ()]
    for i, (interval, (wrenches, torque, up)) in enumerate(zip(intervals, read, strict=True)):
        t0, t1 = spans([interval])[0]
        assert 3 * i + 0.5 <= t0 <= 3 * i + 0.8, "half a second to settle"
        assert 3 * i + 1.7 <= t1 <= 3 * i + 2.0, "nothing of the motion"
        posture = interval.posture
        assert posture.samples >= 100, "the IMU has the fewest"
        share = 6.0 / np.sqrt(posture.samples)
        assert np.abs(posture.q - postures[i]).max() < share * NOISE.position
        force, moment = np.hsplit(posture.wrenches - wrenches, 2)
        assert np.abs(force).max() < share * NOISE.force
        assert np.abs(moment).max() < share * NOISE.moment
        assert np.abs(posture.effort - torque).max() < share * NOISE.effort
        assert np.abs(posture.up - up).max() < share * NOISE.tilt + 1e-9
    assert recorder.dropped.late == recorder.dropped.unusable == recorder.dropped.restarts == 0
    seconds = recorder.seconds
    assert seconds["stationary"] == pytest.approx(6.0, abs=0.6)
    assert seconds["joints moved"] + seconds.get("forces varied", 0) == pytest.approx(2.0, abs=0.6)


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
        assert (a.t0_ns, a.t1_ns, a.posture.samples) == (b.t0_ns, b.t1_ns, b.posture.samples)
        for name in ("q", "wrenches", "effort", "up"):
            np.testing.assert_allclose(
                getattr(a.posture, name), getattr(b.posture, name), rtol=1e-12, atol=1e-13
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
    recorder = recorder_of(hoap2, CaptureOptions(max_samples=300))
    tracemalloc.start()
    recording.feed(recorder)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    intervals = recorder.flush()
    assert len(intervals) == 1
    assert 300 <= intervals[0].posture.samples < 330
    assert size < 500_000


def test_an_interval_that_is_too_short_is_refused(hoap2, record, postures):
    recording, _ = record(postures, hold=1.0)
    recorder = recorder_of(hoap2)
    recording.feed(recorder)
    intervals = recorder.flush()
    assert [i.posture for i in intervals] == [None] * 3
    for interval in intervals:
        assert "of 100 readings; stay in each posture longer" in interval.reasons[0]


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


def saturated(recording):
    recording.W[1, :, 2] = np.minimum(recording.W[1, :, 2], 20.0)


def frozen(recording):
    recording.W[0, 200:] = recording.W[0, 200]


def frozen_imu(recording):
    recording.up[50:] = recording.up[50]


def unplugged(recording):
    recording.W[1] = np.nan


def no_encoder(recording):
    recording.Q[:, 4] = np.nan


def lifted(recording):
    recording.W *= 1e-3
    recording.W += np.random.default_rng(0).normal(0, 1e-3, recording.W.shape)


@pytest.mark.parametrize(
    ("spoil", "status", "text"),
    [
        (saturated, CaptureStatus.REFUSED, r"force sensor of r_sole reads 20 N, its limit is 20 N"),
        (
            frozen,
            CaptureStatus.REFUSED,
            r"sensor of l_sole has had identical readings .* restart",
        ),
        (frozen_imu, CaptureStatus.REFUSED, r"the IMU has had identical readings"),
        (unplugged, CaptureStatus.REFUSED, r"force sensor of r_sole has no number for force x of"),
        (
            no_encoder,
            CaptureStatus.REFUSED,
            r"joint_states has no number for \w+_JOINT\d: check its driver",
        ),
        (
            lifted,
            CaptureStatus.REFUSED,
            r"feet carry .* N together, the robot.s weight is 69.85 N",
        ),
    ],
)
def test_bad_sensors_are_refused_with_the_fix(hoap2, record, postures, spoil, status, text):
    recording, _ = record(postures[:1], hold=3.0)
    spoil(recording)
    recorder = recorder_of(hoap2, CaptureOptions(force_limit=20.0 if spoil is saturated else 0.0))
    recording.feed(recorder)
    state = recorder.state()
    assert (state.status, state.ready) == (status, False)
    with pytest.raises(CaptureRefused, match=text) as refused:
        recorder.capture()
    assert refused.value.reasons == state.reasons
    assert recorder.latest() is None
    intervals = recorder.flush()
    assert [i.posture for i in intervals] == [None]
    assert all(i.reasons for i in intervals)


def test_missing_streams_are_named(hoap2, record, postures):
    recording, _ = record(postures[:1], hold=3.0)
    recorder = recorder_of(hoap2)
    assert recorder.state().status == CaptureStatus.UNKNOWN
    recording.feed(recorder, order=(0, 1))
    state = recorder.state()
    assert state.status == CaptureStatus.WAITING
    assert state.reasons[0].startswith("the force sensor of r_sole has no readings")
    assert state.reasons[1].startswith("the IMU has no readings")
    recording.feed(recorder, order=(2, 3))
    assert recorder.dropped.late > 100, "that is too late"
    assert recorder.seconds["the force sensor of r_sole missing"] > 0.5


def test_a_foot_without_sensor_may_be_allowed(hoap2, record, postures):
    recording, read = record(postures[:1])
    recorder = recorder_of(hoap2, CaptureOptions(missing_feet=True))
    recording.feed(recorder, order=(0, 2, 3))
    (interval,) = recorder.flush()
    assert np.isnan(interval.posture.wrenches[0]).all()
    np.testing.assert_allclose(interval.posture.wrenches[1], read[0][0][1], atol=0.3)


def test_all_feet_may_be_demanded(hoap2, record, postures):
    recording, _ = record(postures[:1], load=(1.0, 0.0))
    free, strict = recorder_of(hoap2), recorder_of(hoap2, CaptureOptions(all_feet=True))
    for recorder in (free, strict):
        recording.feed(recorder)
    assert free.state().ready
    with pytest.raises(CaptureRefused, match=r"r_sole carries .* N, less than 1.4 N: put it on"):
        strict.capture()
    assert strict.state().loads == pytest.approx([69.8, 0.5], abs=1.5)


def test_capture_on_request_uses_each_reading_once(hoap2, record, postures):
    recording, _ = record(postures[:1], hold=4.0)
    recorder = recorder_of(hoap2)
    for block in range(4):
        for k in range(4):
            recording.give(recorder, k, START + block * S, START + (block + 1) * S)
        if block == 0:
            with pytest.raises(CaptureRefused, match=r"\d+ of 100 readings: keep the robot"):
                recorder.capture()
        if block == 1:
            posture = recorder.capture("first")
            assert (posture.label, posture.samples >= 100) == ("first", True)
            with pytest.raises(CaptureRefused, match="of 100 readings"):
                recorder.capture("again")
            assert recorder.latest() is not None
            assert recorder.state().status == CaptureStatus.COLLECTING
    assert recorder.capture("second").samples < 220
    assert recorder.flush() == [], "what was captured by hand is not given again"
    with pytest.raises(CaptureRefused, match="No readings so far"):
        recorder.capture()


def test_readings_of_a_posture_that_was_stored_are_not_captured_again(hoap2, record, postures):
    recording, _ = record(postures[:1], hold=5.0)
    recorder = recorder_of(hoap2, CaptureOptions(samples=100, max_samples=200))
    for second, k in itertools.product(range(3), range(4)):
        recording.give(recorder, k, START + second * S, START + (second + 1) * S)
    (interval,) = recorder.finished()
    assert recorder.state().status == CaptureStatus.READY
    recorder.mark_stored(interval)
    with pytest.raises(CaptureRefused, match=r"\d+ of 100 readings: keep the robot"):
        recorder.capture()
    for second, k in itertools.product(range(3, 5), range(4)):
        recording.give(recorder, k, START + second * S, START + (second + 1) * S)
    assert recorder.capture().samples >= 100
    recorder.flush()
    recorder.mark_stored(interval)  # long over


def test_a_dead_driver_is_noticed_by_the_clock(hoap2, record, postures):
    recording, _ = record(postures[:1])
    recorder = recorder_of(hoap2)
    recording.feed(recorder)
    assert recorder.state().ready
    late = recorder.state(now_ns=int(recording.t[-1]) + 3 * S)
    assert late.status == CaptureStatus.WAITING
    assert late.reasons[0].startswith(
        "joint_states has had no reading for 3.00 s: check its driver"
    )


def test_late_and_repeated_readings_are_counted_and_left_out(hoap2, record, postures):
    recording, _ = record(postures[:1])
    clean, dirty = recorder_of(hoap2), recorder_of(hoap2)
    recording.feed(clean)
    rng = np.random.default_rng(3)
    copies = np.sort(np.concatenate((np.arange(len(recording.t)), rng.integers(0, 900, 50))))
    order = copies.copy()
    swapped = rng.choice(len(order) - 1, 30, replace=False)
    for i in swapped:
        order[[i, i + 1]] = order[[i + 1, i]]
    last = START
    for chunk in np.array_split(order, 40):
        dirty.add_joints(recording.t[chunk], recording.Q[chunk], recording.effort[chunk])
        end = recording.t[chunk].max()
        for k in (1, 2, 3):
            recording.give(dirty, k, last, end)
        last = end
    a, b = clean.flush()[0].posture, dirty.flush()[0].posture
    assert dirty.dropped.repeated >= 45
    assert dirty.dropped.late > 5
    assert dirty.dropped.restarts == 0
    np.testing.assert_allclose(a.q, b.q, atol=5e-5)


def test_time_that_jumps_back_restarts(hoap2, record, postures):
    recording, _ = record(postures[:1], hold=4.0)
    recorder = recorder_of(hoap2, CaptureOptions(min_change=0.0))
    recording.feed(recorder)
    recording.feed(recorder)
    intervals = recorder.flush()
    assert len(intervals) == 2
    assert recorder.dropped.restarts >= 1
    assert all(i.posture is not None for i in intervals)


def test_a_wrong_stamp_costs_little(hoap2, record, postures):
    recording, _ = record(postures, hold=3.0)
    recording.t[100] = START + 10**6 * S
    recording.t[101] = -5
    recording.t_wrench[300] = 2**63 - 1
    recorder = recorder_of(hoap2)
    n = len(recording.t)
    for i in range(0, n, 50):
        j = i // 2
        recorder.add_joints(recording.t[i : i + 50], recording.Q[i : i + 50])
        for foot in range(2):
            recorder.add_wrenches(
                foot, recording.t_wrench[j : j + 25], recording.W[foot, j : j + 25]
            )
        recorder.add_up(recording.t_up[i // 5 : i // 5 + 10], recording.up[i // 5 : i // 5 + 10])
    found = [i.posture for i in recorder.flush() if i.posture is not None]
    assert len(found) == 3
    assert recorder.dropped.unusable == 3
    assert recorder.dropped.restarts >= 1


def test_marks_are_used_as_they_are(hoap2, record, postures):
    recording, read = record(postures)
    times = [(0.3, 1.9), (2.3, 2.9), (3.1, 4.7), (6.0, 6.1), (100.0, 101.0)]
    marks = [
        Mark(START + int(a * S), START + int(b * S), f"m{i}") for i, (a, b) in enumerate(times)
    ]
    recorder = recorder_of(hoap2, CaptureOptions(min_change=1.0), marks=marks)
    recording.feed(recorder)
    intervals = recorder.finished() + recorder.flush()
    assert [i.label for i in intervals] == ["m0", "m1", "m2", "m3", "m4"]
    good, moving, also, short, nothing = intervals
    assert moving.posture is None
    assert "changed by" in moving.reasons[0]
    assert "of 100 readings" in short.reasons[0]
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
        Mark(5, 5, "x")
    with pytest.raises(
        IdentificationError, match="mark 'b' begins before mark 'a' ends: give marks"
    ):
        recorder_of(hoap2, marks=[Mark(0, 5, "a"), Mark(5, 9, "b")])


def test_a_robot_without_joints_is_recorded_too():
    inertia = "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    inertial = f"<inertial><mass value='10'/>{inertia}</inertial>"
    model = RobotModel.from_urdf(f"<robot name='r'><link name='box'>{inertial}</link></robot>")
    foot = Foot("box", "", np.array([[1.0, 1], [1, -1], [-1, -1], [-1, 1]]), 0.0, "w", "box", 1)
    recorder = PostureRecorder(model, [foot], noise=NOISE)
    t = START + np.arange(0, 3 * S, S // 200)
    for part in np.array_split(t, 6):
        noise = np.random.default_rng(part[0]).normal(0.0, 0.01, (len(part), 6))
        recorder.add_joints(part, np.zeros((len(part), 0)))
        recorder.add_wrenches(0, part, np.array([0.0, 0.0, 98.1, 0.0, 0.0, 0.0]) + noise)
    (interval,) = recorder.flush()
    assert interval.posture.wrenches[0, 2] == pytest.approx(98.1, abs=0.01)


def test_efforts_may_be_missing_or_unused(hoap2, record, postures):
    recording, _ = record(postures[:1])
    recording.effort[:, 3] = np.nan
    recorder, blind = recorder_of(hoap2), recorder_of(hoap2, use_effort=False, use_up=False)
    for each in (recorder, blind):
        recording.feed(each)
    posture = recorder.flush()[0].posture
    assert list(np.flatnonzero(np.isnan(posture.effort))) == [3]
    posture = blind.flush()[0].posture
    assert np.isnan(posture.effort).all()
    assert np.isnan(posture.up).all()


def test_the_bias_is_subtracted(hoap2, record, postures):
    offset = np.array([[3.0, -2.0, 5.0, 0.1, 0.2, -0.3], [0.0, 1.0, -4.0, 0.0, 0.0, 0.1]])
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
    mass, com = bodies.mass * 95.0 / model.mass, bodies.first_moment / bodies.mass[:, None]
    model = RobotModel.from_urdf(edit_inertials(model.xml, corrected_inertials(model, mass, com)))
    noise = SensorNoise(force=2.0, moment=0.1, position=1e-4)
    rng = np.random.default_rng(5)
    t = np.arange(0, 20.0, 0.002)
    stamps = (t * S).astype(np.int64)
    recorder = PostureRecorder(model, feet, noise=noise)
    recorder.add_joints(stamps[:0], np.zeros((0, 25)))
    for block in np.array_split(np.arange(len(t)), 20):
        recorder.add_joints(stamps[block], rng.normal(0, 1e-4, (len(block), 25)))
        for foot in range(2):
            W = [0, 0, 466.0, 0, 0, 0] + rng.normal(0, 1, (len(block), 6)) * np.repeat(
                [2.0, 0.1], 3
            )
            recorder.add_wrenches(foot, stamps[block], W)
    assert recorder.seconds == {"stationary": pytest.approx(19.9)}
    assert recorder.state().ready
    quieter = PostureRecorder(*hoap2)
    for block in np.array_split(np.arange(1000), 4):
        quieter.add_joints(stamps[block], rng.normal(0, 1e-4, (len(block), 25)))
        for foot in range(2):
            W = [0, 0, 35.0, 0, 0, 0] + rng.normal(0, 1, (len(block), 6)) * np.repeat([4.0, 0.1], 3)
            quieter.add_wrenches(foot, stamps[block], W)
    with pytest.raises(CaptureRefused, match=r"set noise\.force and noise\.moment to the"):
        quieter.capture()


@pytest.mark.parametrize("seed", range(6))
def test_garbage_neither_ends_it_nor_becomes_a_posture(hoap2, record, postures, seed):
    """Random readings are spoilt at random, stamps too; what comes out is finite and true."""
    recording, read = record(postures[:2])
    rng = np.random.default_rng(seed)
    bad = [np.nan, np.inf, -np.inf, 1e308, -1e300, 1e13]
    for array in (recording.Q, recording.effort, recording.up, *recording.W):
        rows = rng.integers(0, len(array), 40)
        array[rows, rng.integers(0, array.shape[1], 40)] = rng.choice(bad, 40)
    for stamps in (recording.t, recording.t_wrench, recording.t_up):
        stamps[rng.integers(0, len(stamps), 5)] += rng.integers(-50, 50, 5) * 1_000_000
    stamps[rng.integers(0, len(stamps))] = rng.choice([0, -1, 2**62, -(2**63), START - 10 * S])
    recorder = recorder_of(hoap2)
    for part in np.array_split(np.arange(1250), 100):
        for k in rng.permutation(4):
            if k == 0:
                many = np.arange(2 * part[0], 2 * part[-1] + 2)
                if rng.random() < 0.1:
                    rng.shuffle(many)
                recorder.add_joints(
                    recording.t[many],
                    recording.Q[many],
                    recording.effort[many],
                )
            elif k < 3:
                recorder.add_wrenches(
                    int(k) - 1, recording.t_wrench[part], recording.W[k - 1][part]
                )
            else:
                few = np.unique(part * 2 // 5)
                recorder.add_up(recording.t_up[few], recording.up[few])
        recorder.state()
        recorder.latest()
    found = [i.posture for i in recorder.finished() + recorder.flush() if i.posture is not None]
    for posture in found:
        assert min(np.abs(posture.q - q).max() for q in postures[:2]) < 1e-3
        assert min(np.abs(posture.wrenches - w).max() for w, _, _ in read) < 0.5
        assert np.linalg.norm(posture.up) == pytest.approx(1.0)
        assert not np.isinf(posture.effort).any()
    assert recorder.dropped.unusable > 50
    print(len(found), "postures", recorder.dropped)


def test_shapes_are_checked(hoap2):
    recorder = recorder_of(hoap2)
    with pytest.raises(ShapeError, match=r"Q: expected shape \(any, 25\)"):
        recorder.add_joints([1], [[1.0, 2.0]])
    with pytest.raises(IdentificationError, match="2 stamps for 1 readings"):
        recorder.add_joints([1, 2], np.zeros((1, 25)))
    with pytest.raises(IdentificationError, match="foot 2: expected 0 to 1"):
        recorder.add_wrenches(2, [1], np.zeros((1, 6)))
    with pytest.raises(IdentificationError, match="samples: expected 1 to max_samples"):
        CaptureOptions(samples=2000)
    with pytest.raises(IdentificationError, match="force_drift: expected 0 or more, got nan"):
        CaptureOptions(force_drift=np.nan)
