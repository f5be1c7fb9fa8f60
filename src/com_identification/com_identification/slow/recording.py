"""Recordings of slow motions: low-passed so far that friction, not acceleration, is what matters.

All channels pass one zero-phase filter of 1.2 Hz, also the direction of friction and its product
with the torque, whose means over a reversal are not those of the filtered velocity.
"""

from dataclasses import dataclass

import numpy as np

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.kernels import Motion
from com_identification.walking.log import condition, low_pass
from com_model import RobotModel
from com_model.arrays import Array, Flags
from com_model.dynamics.link_frames import LinkFrames

RATE = 5.0
"""Hz, of the samples that become rows."""
_LEAST = 15.0  # s


@dataclass(frozen=True, eq=False)
class SlowRecording:
    """N samples of a slow motion at RATE.

    Attributes:
        motion: low-passed; `sign` is the mean direction of friction.
        rubbing: (N, n) N m, low-passed direction times the size of the torque.
        measured: (n,) joints whose torques were recorded.
        hung: the robot hangs; else it stands on all feet.
    """

    motion: Motion
    rubbing: Array
    measured: Flags
    hung: bool


def condition_slow(
    log: WalkLog, model: RobotModel, imu_link: str, measured: Flags, hung: bool
) -> SlowRecording:
    """Filters a recording and reduces it to RATE.

    Args:
        log: the recording, with an IMU.
        model: the robot, n joints.
        imu_link: name of the IMU's link, fixed to the root.
        measured: (n,) joints whose torques are used.
        hung: whether the robot hangs.

    Raises:
        WalkError: it has no IMU, is too short, too slow, or lacks too many samples.
    """
    if not log.has_imu:
        raise WalkError(
            "a slow motion needs the IMU's angular velocity and specific force: record imu, too"
        )
    data = condition(log, model, imu_link, measured)
    period, given = data.period, data.motion
    # signs of velocities by a band of 8 Hz, smooth below 6 mrad/s
    sign = np.tanh(low_pass(given.qd, 8.0, period) / 0.006)
    channels = given._replace(sign=sign)
    # s, at both ends, where the filter is not settled
    edge, step = round(1.5 / period), max(1, round(1.0 / (RATE * period)))
    chosen = np.arange(edge, len(data.usable) - edge, step)
    chosen = chosen[data.usable[chosen]]
    if len(chosen) < _LEAST * RATE:
        raise WalkError(
            f"a slow motion of {len(chosen) / RATE:.0f} s is usable: expected {_LEAST:g} s or "
            "more, better 60 s"
        )

    def smooth(values: Array) -> Array:
        # Hz: friction matters, acceleration does not
        return np.ascontiguousarray(low_pass(values, 1.2, period)[chosen])

    motion = Motion(*(smooth(values) for values in channels))
    return SlowRecording(motion, smooth(sign * np.abs(given.tau)), measured, hung)


def upwards(recording: SlowRecording, frames: LinkFrames) -> Array:
    """Directions (N, 3) against gravity in root axes, by the accelerometer and standing feet.

    The acceleration of the root over the first foot is taken off: 0.03 m/s^2 are 0.2 degrees.

    Args:
        recording: of a robot whose feet stand.
        frames: of the soles.
    """
    poses = [frames.poses(q) for q in recording.motion.q]
    R = np.array([R[0] for R, _ in poses])
    place = -np.einsum("kji,kj->ki", R, np.array([p[0] for _, p in poses]))
    rise = np.gradient(np.gradient(place, 1.0 / RATE, axis=0), 1.0 / RATE, axis=0)
    rise[[0, 1, -2, -1]] = 0.0
    up = recording.motion.force - np.einsum("kij,kj->ki", R, rise)
    return np.asarray(up / np.linalg.norm(up, axis=1, keepdims=True))
