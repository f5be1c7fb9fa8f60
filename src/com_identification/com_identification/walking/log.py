"""Recordings of walking, conditioned for the rows of the design matrix, and their steady gait.

Which samples repeat from stride to stride, and their phases: lying, rising, slipping, standing,
starts and stops do not repeat, and are left out by that.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.ndimage import minimum_filter1d, uniform_filter1d
from scipy.signal import butter, sosfiltfilt

from com_bags import WalkLog, spread_bursts
from com_identification.exceptions import WalkError
from com_identification.walking.kernels import MotionSamples
from com_model import RobotModel
from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled
from com_model.dynamics import GRAVITY

FORCE_CUTOFF = 25.0  # Hz, of the low-pass filter of the feet's forces
_CUTOFF = 80.0  # Hz
_NYQUIST = 0.4  # of the rate of the samples is the highest cutoff
GOOD_RATE = 150.0  # Hz, of joint states; below, the report says what that costs


@dataclass(frozen=True, eq=False)
class ConditionedLog:
    """A recording at equal intervals, filtered without delay.

    Attributes:
        motion: N samples.
        period: s, between samples.
        usable: (N,) no gap is near.
    """

    motion: MotionSamples
    period: float
    usable: Flags


def condition(
    log: WalkLog, model: RobotModel, imu_link: str, measured: Flags
) -> ConditionedLog:
    """Resamples, filters and differentiates a recording.

    a_0 = R f - wd x p - w x (w x p), p and R the pose of the IMU in the root link. Samples that
    lack a reading, or the torque of a joint (n,) that is measured, count as lost, as do
    those in which all joints, or the IMU, repeat the same numbers again and again.

    Args:
        log: the recording.
        model: the robot.
        imu_link: name of the IMU's link.
        measured: (n,) joints whose torques are needed.

    Raises:
        WalkError: it is too slow, lacks too many samples, or the IMU is
            not on the trunk.
    """
    log = replace(log, time=spread_bursts(log.time))
    effort = np.where(measured, log.effort, 0.0)
    usable = np.ones(len(log.time), dtype=np.bool_)
    if not log.has_imu:
        log = _without_imu(log, model, imu_link)
    parts = [(log.position, effort)]
    if log.angular_velocity.any():
        parts.append((log.angular_velocity, log.specific_force))
    for part in parts:
        readings = np.hstack(part)
        same = (np.diff(readings, axis=0, prepend=np.nan) == 0.0).all(axis=1)
        # seven consecutive samples equal to the one before: the sensor is frozen
        held = minimum_filter1d(same.astype(np.uint8), 7).astype(np.bool_)
        usable &= np.isfinite(readings).all(axis=1) & ~held
    time, first = np.unique(log.time[usable], return_index=True)
    first = np.flatnonzero(usable)[first]
    steps, period = np.diff(time), np.inf
    if len(steps):
        usual = np.median(steps)
        # stamps since 1970 in floating point are rounded to 0.2 us, 1e-4 of a step
        period = float(steps[np.abs(steps - usual) <= 1e-3 * usual].mean())
    # Hz. A trot at 125, 100 and 83 Hz has 2 to 4 times the error and standard deviation of
    # 500 Hz; at 62 and 50 Hz the tests on held-out data refuse it
    least = 50.0
    if round(1.0 / period) < least:
        raise WalkError(
            f"joint states come {1.0 / period:.0f} times a second: expected {least:g} Hz, "
            "better 500 Hz. Raise the driver's rate"
        )
    count = int(np.ceil((time[-1] - time[0]) / period - 1e-6))
    grid = time[0] + period * np.arange(count)  # arange(time[0], ...) rounds the step
    # 3.5 periods without a sample are a gap
    usable, gaps = (
        np.ones(len(grid), dtype=np.bool_),
        np.flatnonzero(np.diff(time) > 3.5 * period),
    )
    for k in gaps:
        usable[(grid > time[k] - 0.02) & (grid < time[k + 1] + 0.02)] = False
    # a lossy link loses 20 to 40 % of the samples
    if (lost := 1.0 - len(time) / len(grid)) > 0.4 or usable.mean() < 0.4:
        raise WalkError(
            f"{100.0 * max(lost, 0.0):.0f} % of the samples are missing, in {len(gaps)} gaps: "
            "expected joint states and IMU without gaps. Record on the robot's own disk, or, where "
            "the times are those of receipt and the rate is constant, give --time even"
        )
    link, bodies = model.link_index(imu_link), model.bodies
    if bodies.body_of_link[link] != 0:
        raise WalkError(
            f"the IMU's link {imu_link!r} moves against the root link {model.root_link!r}: "
            "expected an IMU on the trunk"
        )

    def smooth(values: Array) -> Array:
        columns = [np.interp(grid, time, column) for column in values[first].T]
        return low_pass(np.column_stack(columns), _CUTOFF, period)

    def rate(values: Array) -> Array:
        return np.asarray(np.gradient(values, period, axis=0))

    R, p = bodies.R_body_link[link], bodies.p_body_link[link]
    q = smooth(log.position)
    qd = rate(q) if log.velocity is None else smooth(log.velocity)
    omega, force = smooth(log.angular_velocity) @ R.T, smooth(log.specific_force) @ R.T
    omega_dot = rate(omega)
    force = force - np.cross(omega_dot, p) - np.cross(omega, np.cross(omega, p))
    # Hz, of the specific force that shows the vertical where nothing else does
    up = smooth(log.up) if log.up is not None else low_pass(force, 0.5, period)
    # signs of velocities by a band of 60 Hz, smooth below 0.02 rad/s
    motion = MotionSamples(
        q=q,
        qd=qd,
        qdd=rate(qd),
        tau=smooth(effort),
        sign=np.tanh(low_pass(qd, 60.0, period) / 0.02),
        omega=omega,
        omega_dot=omega_dot,
        force=force,
        up=up / np.linalg.norm(up, axis=1, keepdims=True),
    )
    return ConditionedLog(
        MotionSamples(*(np.ascontiguousarray(v) for v in motion)), period, usable
    )


def _without_imu(log: WalkLog, model: RobotModel, imu_link: str) -> WalkLog:
    """The recording as of a trunk that neither turns nor accelerates nor leans."""
    R = model.bodies.R_body_link[model.link_index(imu_link)]
    force = np.tile(GRAVITY * R[2], (len(log.time), 1))
    return replace(
        log, angular_velocity=np.zeros_like(force), specific_force=force, up=None
    )


def moving(time: Array, q: Array) -> Flags:
    """Returns about which samples (N,) joints move, rms over 1 s.

    Args:
        time: (N,) s.
        q: (N, k) rad or m.
    """
    period, k = (
        float(np.median(np.diff(time))) if len(time) > 1 else np.inf,
        np.arange(len(time)),
    )
    # velocities by differences over 0.05 s
    step, width = (max(1, round(span / period)) for span in (0.05, 1.0))
    before, after = np.maximum(k - step, 0), np.minimum(k + step, len(k) - 1)
    change = np.sqrt(((q[after] - q[before]) ** 2).mean(axis=1))
    speed = change / np.maximum(time[after] - time[before], 1e-9)
    # rad/s, rms over 1 s: a G1 that walks slowly has 0.09, one that stands and sways 0.03
    return np.asarray(moving_mean(speed, width) > 0.05)


# 3 s of walking or more
def walking_parts(log: WalkLog, least: float = 3.0) -> list[WalkLog]:
    """Returns the parts of a recording in which joints move.

    Where nothing was recorded for a second, as between runs in one file, a part ends.

    Args:
        log: the recording.
        least: s, of a part.
    """
    moves = moving(log.time, log.position)
    edges = np.flatnonzero(np.diff(moves, prepend=False, append=False)).reshape(-1, 2)
    # s; a lossy link misses less
    pauses = 1 + np.flatnonzero(np.diff(log.time) > 1.0)
    cuts = [(a, *pauses[(a < pauses) & (pauses < b)], b) for a, b in edges]
    pairs = [pair for cut in cuts for pair in pairwise(cut)]
    parts = [slice(a, b) for a, b in pairs if log.time[b - 1] - log.time[a] >= least]
    return [
        WalkLog(*(None if v is None else v[part] for v in vars(log).values()))  # type: ignore[arg-type]
        for part in parts
    ]


def moving_mean(values: Array, width: int) -> Array:
    """Returns the means (N,) of some samples about each; beyond the ends values count as 0.

    Args:
        values: (N,) of the samples.
        width: number of samples that are averaged.
    """
    return np.convolve(values, np.full(width, 1.0 / width))[width // 2 :][: len(values)]


def low_pass(values: Array, cutoff: float, period: float) -> Array:
    """Filters (N, k) to a frequency (Hz), without delay.

    Args:
        values: (N, k) of the samples.
        cutoff: Hz.
        period: s, between samples.
    """
    relative = 2.0 * min(cutoff, _NYQUIST / period) * period
    return np.asarray(sosfiltfilt(butter(2, relative, output="sos"), values, axis=0))


@compiled(nogil=True)
def _follow(q: Array, distance: float, sign: Array) -> None:
    """See directions; sign (N, k) is set."""
    for k in range(1, len(q)):
        for j in range(q.shape[1]):
            step, s = (q[k, j] - q[k - 1, j]) / distance, sign[k - 1, j]
            sign[k, j] = min(1.0, max(-1.0, s + step - s * abs(step)))


def directions(q: Array, distance: float) -> Array:
    """Returns directions of friction (N, k), -1 to 1, that change while a drive turns (Dahl).

    ds = dq / distance - s |dq| / distance; gears, belts and linkages wind up before they slide.

    Args:
        q: (N, k) rad or m, joints.
        distance: rad or m.
    """
    sign = np.zeros_like(q)
    _follow(q, distance, sign)
    return sign


def band(period: float) -> float:
    """Highest frequency of the motion that is used, Hz.

    Args:
        period: s, between samples.
    """
    return min(_CUTOFF, _NYQUIST / period)


class Gait(NamedTuple):
    """The strides of N samples.

    Attributes:
        steady: (N,) samples that repeat those one stride before or after.
        walks: (N,) samples in which joints move as far as in a walk, whether it repeats or not.
        stride: (N,) number of the stride, counted through the recording.
        phase: (N,) 0 to 1 within the stride.
        chunk: (N,) number of the part with one stride time.
    """

    steady: Flags
    walks: Flags
    stride: Indices
    phase: Array
    chunk: Indices

    def every(self, chosen: slice) -> "Gait":
        """Returns the strides of some of the samples.

        Args:
            chosen: of the samples.
        """
        return Gait(
            self.steady[chosen],
            self.walks[chosen],
            self.stride[chosen],
            self.phase[chosen],
            self.chunk[chosen],
        )

    def whole(self, usable: Flags) -> Indices:
        """Returns the numbers of the steady strides between steady ones that can be used.

        Args:
            usable: (N,) samples that can be used.
        """
        count = np.bincount(self.stride)
        good = np.bincount(self.stride, self.steady & usable)
        usual = np.median(count[count > 0])
        # 85 % of a stride's samples
        whole = np.flatnonzero(
            (np.bincount(self.stride, self.steady) > 0.85 * count)
            & (count > 0.9 * usual)
        )
        inner = whole[np.isin(whole - 1, whole) & np.isin(whole + 1, whole)]
        # three quarters of a stride's samples
        return inner[good[inner] > 0.75 * count[inner]]


def find_gait(q: Array, period: float) -> Gait:
    """Finds the strides of a recording.

    Args:
        q: (N, k) rad or m, joints of the legs.
        period: s, between samples.
    """
    # a stride of 2 s or more is no gait
    y = q - uniform_filter1d(q, max(1, round(2.0 / period)), axis=0)
    N = len(y)
    # pieces of 4 s have one stride time each
    edges = np.linspace(0, N, max(1, round(N * period / 4.0)) + 1).astype(int)
    steady, walks = np.zeros((2, N), dtype=np.bool_)
    stride = np.zeros(N, dtype=np.int64)
    phase, chunk, since = np.zeros(N), np.zeros(N, dtype=np.int64), 0
    for number, (a, b) in enumerate(pairwise(edges)):
        time = stride_time(y[a:b], period)
        cycles = np.arange(b - a) * period / time
        chunk[a:b], phase[a:b] = number, cycles % 1.0
        stride[a:b] = since + np.floor(cycles)
        since = stride[b - 1] + 1
        lag = round(time / period)
        # over a stride, the joints move by 0.02 rad or m rms
        squares = uniform_filter1d((y**2).mean(axis=1), lag)
        walks[a:b] = squares[a:b] > 0.02**2
        steady[a:b] = walks[a:b] & _repeats(y, a, b, lag)
    return Gait(steady, walks, stride, phase, chunk)


def stride_time(y: Array, period: float) -> float:
    """Returns the shortest time, s, after which joints move as before; the longest if none.

    Args:
        y: (N, k) motion about the mean.
        period: s, between samples.
    """
    stride = 0.2, 1.6  # s, of one stride
    low, high = (round(limit / period) for limit in stride)
    lags = np.arange(low, max(low + 3, min(high, len(y) // 2)))
    squares = (y**2).sum(axis=1)
    found = np.zeros(len(lags))
    for i, lag in enumerate(lags):
        size = np.sqrt(squares[lag:].sum() * squares[: len(y) - lag].sum())
        found[i] = (y[lag:] * y[: len(y) - lag]).sum() / max(size, 1e-12)
    peaks = 1 + np.flatnonzero((found[1:-1] >= found[:-2]) & (found[1:-1] > found[2:]))
    if not len(peaks) or found[peaks].max() <= 0.0:
        return float(lags[-1] * period)
    # the first period whose correlation has 90 % of the best one
    best = int(peaks[np.argmax(found[peaks] > 0.9 * found[peaks].max())])
    a, b, c = found[best - 1 : best + 2]
    return float((lags[best] + 0.5 * (a - c) / (a - 2.0 * b + c)) * period)


def _repeats(y: Array, a: int, b: int, lag: int) -> Flags:
    """Whether samples a to b are as those a stride before or a stride after, over a stride."""
    result = np.zeros(b - a, dtype=np.bool_)
    size = uniform_filter1d((y**2).sum(axis=1), lag)
    for shift in (lag, -lag):
        other = np.roll(y, shift, axis=0)
        product = uniform_filter1d((y * other).sum(axis=1), lag)
        alike = product / np.maximum(
            np.sqrt(np.maximum(size * np.roll(size, shift), 0.0)), 1e-12
        )
        inside = np.arange(a, b) - shift
        # steady: a correlation of 0.7 or more with the stride before
        result |= (alike[a:b] > 0.7) & (inside >= 0) & (inside < len(y))
    return result
