"""Compiled: low pass and derivatives of all signals, and the motion that they make.

Every signal passes (a / (s + a))^3, exact for an input that is a straight line between two
samples: the response to a ramp is known in closed form, and what differs from it decays as the
homogeneous solution does. Everything is late by the same 3 / a.

So is the direction of a joint's motion, which Coulomb friction has: one pole makes the velocity,
the other two pass tanh(velocity / FRICTION_SPEED). The tanh of the filtered velocity would change
at once where the filtered friction takes 40 ms: with 20 N m, that is taken for viscous friction.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_estimation.trunk.floating_base.filter_types import (
    ACCELEROMETER,
    GYRO,
    JOINT_SIGNALS,
    UP,
    Array,
    FilteredMotion,
)
from com_model.geometry.vector_kernels import add_cross, cross

Channels = NDArray[np.void]
FRICTION_SPEED = 0.01  # rad/s, below which Coulomb friction fades out


@njit
def start_channels(channels: Channels, signals: Array, settling: float) -> None:
    """Restarts the filters at constant signals; they must settle again.

    Args:
        channels: (k,) of CHANNEL, set.
        signals: (k,) values; one that is not finite counts as 0.
        settling: s until a channel has settled.
    """
    for k in range(len(channels)):
        channel = channels[k]
        value = signals[k] if math.isfinite(signals[k]) else 0.0
        channel.first = channel.second = channel.third = channel.input = value
        channel.settling = settling
        channel.turning = channel.direction = 0.0


@njit
def update_channels(
    channels: Channels, signals: Array, dt: float, a: float, settling: float
) -> None:
    """Filters one sample; an unknown signal holds its last value and must settle again.

    Args:
        channels: (k,) of CHANNEL, changed.
        signals: (k,) values; not finite where unknown.
        dt: s since the sample before.
        a: rad/s, the filter's bandwidth.
        settling: s until a channel has settled.
    """
    t, joints = a * dt, (len(channels) - JOINT_SIGNALS) // 2
    decay = math.exp(-t)
    for k in range(len(channels)):
        channel, u = channels[k], signals[k]
        if math.isfinite(u):
            channel.settling = max(channel.settling - dt, 0.0)
        else:
            channel.settling = settling
            u = channel.input
        before = channel.input
        lag = (u - before) / t
        d1 = channel.first - (before - lag)
        d2 = channel.second - (before - 2.0 * lag)
        d3 = channel.third - (before - 3.0 * lag)
        channel.first = u - lag + decay * d1
        channel.second = u - 2.0 * lag + decay * (d2 + t * d1)
        channel.third = u - 3.0 * lag + decay * (d3 + t * d2 + 0.5 * t * t * d1)
        channel.input = u
        if 0 <= k - JOINT_SIGNALS < joints:
            now = math.tanh(a * (u - channel.first) / FRICTION_SPEED)
            d1 = channel.turning - now
            channel.direction = now + decay * (channel.direction - now + t * d1)
            channel.turning = now + decay * d1


@njit
def are_settled(channels: Channels, first: int, count: int) -> bool:
    """Whether a range of channels has settled.

    Args:
        channels: (k,) of CHANNEL.
        first: index of the first one.
        count: number of channels.
    """
    for k in range(first, first + count):  # noqa: SIM110 (numba compiles no generators)
        if channels[k].settling > 0.0:
            return False
    return True


@njit
def read_motion(channels: Channels, a: float, delay: float) -> FilteredMotion:
    """The filtered motion; its specific force is still that at the IMU.

    IMU readings are linear in the delay around its present value: value and rate v, v' become v
    - delay^2/2 v'', v' + delay v'', so that v + delay v' is the second-order prediction.

    Args:
        channels: (JOINT_SIGNALS + 2 n,) of CHANNEL.
        a: rad/s, the filter's bandwidth.
        delay: s, of the IMU's readings after those of the joints.
    """
    n = (len(channels) - JOINT_SIGNALS) // 2
    q, qd, qdd, direction, tau, tau_rate = np.empty((6, n))
    root, rates, half = np.empty((4, 3)), np.empty((4, 3)), 0.5 * delay**2
    for i in range(n):
        channel = channels[JOINT_SIGNALS + i]
        q[i] = channel.third
        qd[i] = a * (channel.second - channel.third)
        qdd[i] = a * a * (channel.first - 2.0 * channel.second + channel.third)
        direction[i] = channel.direction
        torque = channels[JOINT_SIGNALS + n + i]
        tau[i], tau_rate[i] = torque.third, a * (torque.second - torque.third)
    for i in range(3):
        for row, first in ((0, GYRO), (2, ACCELEROMETER), (3, UP)):
            channel = channels[first + i]
            rate = a * (channel.second - channel.third)
            bend = a * a * (channel.first - 2.0 * channel.second + channel.third)
            root[row, i], rates[row, i] = (
                channel.third - half * bend,
                rate + delay * bend,
            )
            if first == GYRO:
                jerk = (
                    channel.input
                    - 3.0 * (channel.first - channel.second)
                    - channel.third
                )
                jerk *= a**3
                root[1, i], rates[1, i] = rate - half * jerk, bend + delay * jerk
    root[3] /= math.sqrt(max((root[3] ** 2).sum(), 1e-12))
    joints = q, qd, qdd, direction, tau, tau_rate
    return FilteredMotion(*joints, root[0], root[1], root[2], root[3], rates)


@njit
def move_to_root(motion: FilteredMotion, p_imu: Array) -> None:
    """Moves the specific force and its rate from the IMU to the root's origin.

      a -= dw x p + w x (w x p)

    Args:
        motion: its specific force and the rate of that are changed.
        p_imu: (3,) m, position of the IMU in the root's frame.
    """
    w, rates = motion.omega, motion.rates
    velocity, rise = cross(w, p_imu), cross(motion.omega_dot, p_imu)
    add_cross(motion.omega_dot, p_imu, -1.0, motion.specific_force)
    add_cross(w, velocity, -1.0, motion.specific_force)
    add_cross(rates[1], p_imu, -1.0, rates[2])
    add_cross(motion.omega_dot, velocity, -1.0, rates[2])
    add_cross(w, rise, -1.0, rates[2])


@njit
def filtered_variances(
    a: float, force_noise: float, gyro_noise: float, dt: float
) -> Array:
    """Variances of specific force and angular acceleration after the filter.

    White noise of density s^2 T passes (a / (s + a))^3 with 3 a / 16, its derivative with a^3 /
    16.

    Args:
        a: rad/s, the filter's bandwidth.
        force_noise: m/s^2, standard deviation of an accelerometer sample.
        gyro_noise: rad/s, standard deviation of a gyroscope sample.
        dt: T, s, period of the samples.

    Returns:
        (2,) (m/s^2)^2 and (rad/s^2)^2.
    """
    return np.array([3.0 * a * force_noise**2, a**3 * gyro_noise**2]) * dt / 16.0
