"""Readings that are bad, missing, late, repeated or garbage never become a posture unnoticed."""

import numpy as np
import pytest
from posture_recording import START, S, recorder_of

from com_identification.capture.recorder import CaptureStatus
from com_identification.exceptions import CaptureRefused, IdentificationError
from com_identification.settings import CaptureOptions
from com_model import ConfigError, ShapeError


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
        (
            saturated,
            CaptureStatus.REFUSED,
            r"force sensor of r_sole reads 20 N, its limit is 20 N",
        ),
        (
            frozen,
            CaptureStatus.REFUSED,
            r"sensor of l_sole has had identical readings .* restart",
        ),
        (frozen_imu, CaptureStatus.REFUSED, r"the IMU has had identical readings"),
        (
            unplugged,
            CaptureStatus.REFUSED,
            r"force sensor of r_sole has no number for force x of",
        ),
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
def test_bad_sensors_are_refused_with_the_fix(
    hoap2, record, postures, spoil, status, text
):
    recording, _ = record(postures[:1], hold=3.0)
    spoil(recording)
    recorder = recorder_of(
        hoap2, CaptureOptions(force_limit=20.0 if spoil is saturated else 0.0)
    )
    recording.feed(recorder)
    state = recorder.state()
    assert state.status == status
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
    assert free.state().status == CaptureStatus.READY
    with pytest.raises(
        CaptureRefused, match=r"r_sole carries [01]\.\d+ N, less than 1.4 N: put it on"
    ):
        strict.capture()


def test_a_dead_driver_is_noticed_by_the_clock(hoap2, record, postures):
    recording, _ = record(postures[:1])
    recorder = recorder_of(hoap2)
    recording.feed(recorder)
    assert recorder.state().status == CaptureStatus.READY
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
    copies = np.sort(
        np.concatenate((np.arange(len(recording.t)), rng.integers(0, 900, 50)))
    )
    order = copies.copy()
    swapped = rng.choice(len(order) - 1, 30, replace=False)
    for i in swapped:
        order[[i, i + 1]] = order[[i + 1, i]]
    last = START
    for chunk in np.array_split(order, 40):
        dirty.add_joints(
            recording.t[chunk], recording.Q[chunk], recording.effort[chunk]
        )
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
        recorder.add_up(
            recording.t_up[i // 5 : i // 5 + 10], recording.up[i // 5 : i // 5 + 10]
        )
    found = [i.posture for i in recorder.flush() if i.posture is not None]
    assert len(found) == 3
    assert recorder.dropped.unusable == 3
    assert recorder.dropped.restarts >= 1


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
    stamps[rng.integers(0, len(stamps))] = rng.choice(
        [0, -1, 2**62, -(2**63), START - 10 * S]
    )
    recorder = recorder_of(hoap2)
    for part in np.array_split(np.arange(1250), 100):
        for k in rng.permutation(4):
            if k == 0:
                many = np.arange(2 * part[0], 2 * part[-1] + 2)
                if rng.random() < 0.1:
                    rng.shuffle(many)
                recorder.add_joints(
                    recording.t[many], recording.Q[many], recording.effort[many]
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
    found = [
        i.posture
        for i in recorder.finished() + recorder.flush()
        if i.posture is not None
    ]
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
    with pytest.raises(ConfigError, match="collect_time: expected 0 to max_time"):
        CaptureOptions(collect_time=10.0)
    with pytest.raises(ConfigError, match="force_drift is nan: give a number from 0"):
        CaptureOptions(force_drift=np.nan)
