"""Postures of slow motion: the inertial wrench is Pinocchio's, what stays is within the noise."""

import numpy as np
import pinocchio
import pytest

from com_identification.capture.recorder import PostureRecorder
from com_identification.settings import CaptureOptions, IdentificationSettings

RATE, S = 200.0, 10**9


class Moving:
    """HOAP-2 on its left foot; all joints swing."""

    def __init__(self, hoap2, robot, amplitude, period=4.0, seconds=3.0):
        self.model, self.feet = hoap2
        self.robot, self.t = robot, np.arange(0.0, seconds, 1.0 / RATE)
        rng = np.random.default_rng(2)
        phase = rng.uniform(0.0, 2.0 * np.pi, self.model.n_joints)
        self.Q = amplitude * np.sin(2.0 * np.pi * self.t[:, None] / period + phase)
        self.W = np.array([self._wrench(k) for k in range(1, len(self.t) - 1)])
        self.t, self.Q = self.t[1:-1], self.Q[1:-1]

    def _full(self, q):
        R, p = self.robot.frame(q, self.feet[0].frame)
        full = self.robot._q(q)
        full[:7] = pinocchio.SE3ToXYZQUAT(pinocchio.SE3(R.T, -R.T @ p))
        return full

    def _wrench(self, k):
        """(6,) as the left sensor reads, by RNEA."""
        oracle, data = self.robot.oracle, self.robot.data
        full = [self._full(self.Q[i]) for i in (k - 1, k, k + 1)]
        v = [pinocchio.difference(oracle, *full[i : i + 2]) * RATE for i in (0, 1)]
        oracle.gravity.linear = np.array([0.0, 0.0, -9.81])
        root = pinocchio.rnea(
            oracle, data, full[1], 0.5 * (v[0] + v[1]), (v[1] - v[0]) * RATE
        )[:6]
        R, p = self.robot.frame(self.Q[k], self.feet[0].wrench_frame)
        moment = root[3:] - np.cross(p, root[:3])
        return self.feet[0].wrench_sign * np.concatenate((R.T @ root[:3], R.T @ moment))

    def intervals(self):
        """All that a recorder finds, and the seconds by what became of them."""
        options = CaptureOptions(frozen_time=0.0)
        settings = IdentificationSettings(capture=options)
        recorder = PostureRecorder(self.model, self.feet, settings, slow_motion=True)
        times = S + np.round(self.t * S).astype(np.int64)
        recorder.add_joints(times, self.Q)
        recorder.add_wrenches(0, times, self.W)
        recorder.add_wrenches(1, times, np.zeros_like(self.W))
        taken = recorder.flush()
        return recorder.slow_motion_postures(taken)


@pytest.fixture(scope="module")
def robot(perturbed):
    return perturbed(np.random.default_rng(0), 0.005)[0]


def test_the_inertial_wrench_comes_off_and_the_rest_is_within_the_noise(hoap2, robot):
    moving = Moving(hoap2, robot, 0.12)
    found, seconds = moving.intervals()
    assert len(found) >= 3
    assert seconds["slow motion, used"] == pytest.approx(0.5 * len(found))
    raw, corrected, scaled = [], [], []
    for interval in found:
        posture = interval.posture
        static = robot.read(posture.q, [1.0, 0.0])[0][0]
        inside = (interval.t0_ns <= S + moving.t * S) & (
            S + moving.t * S <= interval.t1_ns
        )
        lever = np.array([3, 4])  # the moments, which the CoM is in
        raw.append((moving.W[inside].mean(axis=0) - static)[lever])
        corrected.append((posture.wrenches[0] - static)[lever])
        own = posture.noise[:6][lever]
        scaled.append(corrected[-1] / np.sqrt(np.sum(own**2, axis=1)))
    assert np.linalg.norm(corrected) < 0.35 * np.linalg.norm(raw)
    assert np.sqrt(np.mean(np.square(scaled))) < 1.0


def test_fast_motion_is_left_out_with_the_reason(hoap2, robot):
    found, seconds = Moving(hoap2, robot, 0.4, period=1.0, seconds=2.0).intervals()
    assert not found
    assert seconds["joints moved fast"] > 0.5
