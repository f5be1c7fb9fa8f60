"""Streams of the readings of a robot that takes postures in turn; times in ns."""

from dataclasses import dataclass

import numpy as np

from com_identification.capture.recorder import PostureRecorder
from com_identification.settings import (
    CaptureOptions,
    FitSettings,
    IdentificationSettings,
    SensorNoise,
)

NOISE = SensorNoise(
    force=0.5, moment=0.025, effort=0.02, position=np.radians(0.05), tilt=1e-4
)
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


def record_postures(
    robot,
    postures,
    hold=2.0,
    load=(0.6, 0.4),
    rate=500,
    wrench_rate=250,
    imu_rate=100,
    seed=1,
):
    """Each posture held, one second of motion before each; the recording, and what is true."""
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


def recorder_of(
    robot, options=None, *, noise=NOISE, use_effort=True, use_up=True, marks=()
):
    fit = FitSettings(use_effort=use_effort, use_imu=use_up)
    settings = IdentificationSettings(
        noise=noise, fit=fit, capture=options or CaptureOptions()
    )
    return PostureRecorder(*robot, settings, marks)


def spans(intervals):
    return [((i.t0_ns - START) / S, (i.t1_ns - START) / S) for i in intervals]
