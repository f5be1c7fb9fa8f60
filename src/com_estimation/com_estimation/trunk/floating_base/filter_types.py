"""What the compiled Kalman filter of the trunk works on: named tuples of arrays and numbers.

The layout of the state is defined here only: a further nuisance state is one more line of
STATE_SIZES, its prior in options.py and its columns in rows.py.
"""

from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from com_model.arrays import Array, Flags, Indices
from com_model.dynamics.inverse_dynamics import Links
from com_model.dynamics.tree_kernels import Tree
from com_model.legs import JOINTS, LEGS


# --- layouts of vectors -----------------------------------------------------------------------
class StateLayout(NamedTuple):
    """Slices of the state: the trunk's parameters, then errors of the IMU, of joints and links."""

    mass: slice  # kg
    moment: slice  # first moment m c, kg m
    inertia: slice  # xx, yy, zz, xy, xz, yz about the root's origin, kg m^2
    bias: slice  # of the specific force, m/s^2
    tilt: slice  # of the IMU's mounting, rad: a_true = a + tilt x a, likewise all it reads
    delay: slice  # of all that the IMU reads after the joints' positions and torques, s
    arm: slice  # error of the IMU's position, m
    scale: slice  # relative error of the specific force along each axis of the IMU
    gain: slice  # relative error of each torque of the legs
    torque_bias: slice  # constant error of each, N m
    coulomb: slice  # friction of each joint of the legs, N m
    viscous: slice  # likewise, N m s/rad
    rotor: slice  # error of each drive's reflected inertia, kg m^2
    zero: slice  # error of each encoder, rad
    link: slice  # error of the mass of each link of the legs, relative to the URDF's


LEG_JOINTS = JOINTS * len(LEGS)
STATE_SIZES = {
    "mass": 1,
    "moment": 3,
    "inertia": 6,
    "bias": 3,
    "tilt": 3,
    "delay": 1,
    "arm": 3,
}
STATE_SIZES["scale"] = 3
STATE_SIZES |= dict.fromkeys(StateLayout._fields[len(STATE_SIZES) :], LEG_JOINTS)


class SignalLayout(NamedTuple):
    """Slices of the filtered signals; the positions and the torques of n joints follow them."""

    angular_velocity: slice  # rad/s, root axes, as the others
    specific_force: slice  # m/s^2, at the IMU
    up: slice  # unit vector against gravity


SIGNAL_SIZES = {"angular_velocity": 3, "specific_force": 3, "up": 3}


def _slices(sizes: dict[str, int]) -> dict[str, slice]:
    ends = accumulate(sizes.values())
    return {
        name: slice(end - sizes[name], end)
        for name, end in zip(sizes, ends, strict=True)
    }


STATE = StateLayout(**_slices(STATE_SIZES))
STATES = sum(STATE_SIZES.values())
TRUNK_STATES = STATE.inertia.stop
SIGNAL = SignalLayout(**_slices(SIGNAL_SIZES))
JOINT_SIGNALS = sum(SIGNAL_SIZES.values())  # where the joints' signals begin

# The same for compiled code: the first index of each.
MASS, MOMENT, INERTIA, BIAS, TILT, DELAY, ARM, SCALE = (
    block.start for block in STATE[:8]
)
GAIN, TORQUE_BIAS, COULOMB, VISCOUS, ROTOR, ZERO, LINK = (
    block.start for block in STATE[8:]
)
GYRO, ACCELEROMETER, UP = (block.start for block in SIGNAL)

_CHANNEL_FIELDS = (
    "first",
    "second",
    "third",
    "input",
    "settling",
    "turning",
    "direction",
)
CHANNEL = np.dtype([(name, "f8") for name in _CHANNEL_FIELDS])
"""Memory of one signal's filter: its three stages, the last input, s until it has settled; of a
position, two stages of the direction in which it moves."""


# --- what comes in ----------------------------------------------------------------------------
class SignalSample(NamedTuple):
    """A sample of all signals."""

    time: float  # s
    signals: (
        Array  # (JOINT_SIGNALS + 2 n,) by SIGNAL, then q and tau; NaN where not known
    )


class FilterModel(NamedTuple):
    """The robot, as the filter uses it."""

    bodies: Tree  # without the root's masses
    armature: Array  # (n,) kg m^2, reflected inertia of the drives
    leg_bodies: Indices  # (4, 3) bodies of each leg's joints, from the hip on
    leg_joints: Indices  # (4, 3) their indices in q
    balls: (
        Array  # (4, 3) m, centres of the feet's balls in the frames of the last bodies
    )
    radii: Array  # (4,) m, of the balls
    p_root_imu: Array  # (3,) m, of the accelerometer in the root's frame
    R_imu_root: Array  # (3, 3) rows: its axes
    drift: Array  # (STATES,) variance per second of each state's random walk


class Settings(NamedTuple):
    """Numbers that FloatingBaseOptions makes; s where not said otherwise."""

    bandwidth: float  # rad/s, of the filter's three equal poles
    period: float  # between updates
    settling: (
        float  # of a channel, after which its filter has forgotten what came before
    )
    correlation: float  # factor on all noise, included in those below
    torque_relative: float  # standard deviation of a torque sample over the torque
    torque_floor: float  # N m, added to it
    torque_unknown: float  # N m, standard deviation of a torque that is not known
    swing_relative: (
        float  # standard deviation of a swinging leg's own torque, over the torque
    )
    force_noise: float  # N, of the base rows
    moment_noise: float  # N m
    gyro_noise: float  # rad/s, of a sample
    accelerometer_noise: float  # m/s^2, of a sample
    feet_noise: float  # m/s^2, of the acceleration by the feet, after the filter
    swing_force: float  # N, below which a leg may swing
    stand_force: float  # N, above which a leg may stand
    gate: (
        float  # of the normalised innovation, above which the noise is taken as larger
    )
    outlier: float  # normalised innovation that counts tenfold in the variance factor
    lifted: float  # m, mean height of a diagonal's feet over the other's, above which it is up


# --- what the filter remembers ----------------------------------------------------------------
class Monitors:
    """Clock and monitors: fields of a record of the type MONITORS; s where not said otherwise."""

    last_sample: float  # time of the last sample; NaN at the start
    last_update: float  # time of the last update that was due
    frozen_until: float  # until when only the trunk is estimated
    variance: float  # factor on the noise, by which the innovations exceed it
    half_stride: float  # duration of the half stride so far
    usual: float  # duration of the one before; 0: not known
    window: float  # duration of its first or second half so far: a quarter stride
    ended: float  # duration of the quarter stride that this update ended; 0: none
    information: Array  # (3, 3) of m, m c_x, m c_y by the window's data, the rest known
    weighted: Array  # (3,) the same times the values that fit them best
    airborne: float  # 1 or 2, the diagonal whose feet were up last; 0: none yet
    swinging: Array  # (4,) for how long each leg has had no force
    standing: Array  # (4,) for how long each leg has carried the robot
    without_accelerometer: float  # 1 while the feet give the acceleration
    stationary: float  # for how long the trunk has not rotated


_MONITOR_SHAPES = {
    "information": (3, 3),
    "weighted": (3,),
    "swinging": (len(LEGS),),
    "standing": (len(LEGS),),
}
MONITORS = np.dtype(
    [(name, "f8", _MONITOR_SHAPES.get(name, ())) for name in Monitors.__annotations__]
)


class FootForces(NamedTuple):
    """Forces of the ground on the feet at the last update, root axes."""

    force: Array  # (4, 3) N; NaN where not known
    std: Array  # (4, 3) N, their standard deviations
    point: Array  # (4, 3) m, contact points
    swings: Flags  # (4,) the legs without contact


class FilterMemory(NamedTuple):
    """All that changes from sample to sample."""

    channels: NDArray[np.void]  # (JOINT_SIGNALS + 2 n,) of CHANNEL
    monitors: Any  # (1,) of MONITORS; element 0 has the fields of Monitors
    x: Array  # (STATES,) estimate
    P: Array  # (STATES, STATES) its covariance
    # (2, TRUNK_STATES) mean squares of the trunk's regressors, and of their noise
    excitation: Array
    forces: FootForces  # of the ground


# --- what an update works on ------------------------------------------------------------------
class FilteredMotion(NamedTuple):
    """Filtered signals: (n,) of the joints, (3,) of the root in its axes."""

    q: Array
    qd: Array
    qdd: Array
    direction: Array  # -1 to 1, of Coulomb friction
    tau: Array
    omega: Array
    omega_dot: Array
    specific_force: Array  # at the root's origin
    up: Array
    rates: Array  # (4, 3) of change of the last four, 1/s


class LegStates(NamedTuple):
    """What the legs do to the base, by one pass of the inverse dynamics."""

    residual: (
        Array  # (4, 3) N m, torque of each joint less what the leg's own motion takes
    )
    wrench: (
        Array  # (4, 6) on the base, of the ground less what the leg's own motion takes
    )
    point: Array  # (4, 3) m, the contact points
    A: Array  # (4, 6, 3) wrench on the base of a generalised force at each joint


class Rows(NamedTuple):
    """Rows of an update: residual = H (truth - x) + noise, and what they are made from."""

    H: Array  # (6, STATES) of the base
    residual: Array  # (6,)
    noise: Array  # (6, 6) its covariance
    joint_rows: Array  # (4, 3, STATES) of the legs' joints
    joint_std: Array  # (4, 3) N m, of their torques
    swing_std: Array  # (4, 3) N m, of the rows of a leg in the air
    known: Flags  # (4,) whether each leg's torques are of use
    regular: Flags  # (4,) whether each leg's Jacobian is
    legs: LegStates  # as measured
    changed: LegStates  # with one of the signals changed by a little
    links: Links  # of the last pass of the inverse dynamics
    torque: Array  # (n,) N m, of it


class Outcome(IntEnum):
    """What a step did, or why an update was not made."""

    FILTERED = 0
    UPDATED = 1
    NO_MOTION = 2
    NO_ATTITUDE = 3
    NO_CONTACT = 4
    GAP = 5
