"""Types of the compiled Kalman filter of the trunk: named tuples of arrays and numbers.

The layout of the state is defined only here: a further nuisance state needs one more line in
STATE_SIZES, its prior in options.py and its columns in rows.py.
"""

from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from com_model.arrays import Array, Flags, Indices
from com_model.dynamics.inverse_dynamics import Links
from com_model.dynamics.link_frames import Tree
from com_model.legs import DIAGONALS, JOINTS, LEGS


# --- layouts of vectors -----------------------------------------------------------------------
class StateLayout(NamedTuple):
    """Slices of the state: the trunk's parameters, then errors of the IMU, of joints and links.

    Attributes:
        mass: of the trunk, kg.
        moment: of the trunk, first moment m c, kg m.
        inertia: of the trunk, xx, yy, zz, xy, xz, yz about the root's origin, kg m^2.
        bias: of the specific force, m/s^2.
        tilt: of the IMU's mounting, rad: a_true = a + tilt x a, and the same for its other
            readings.
        delay: of all IMU readings after the joints' positions and torques, s.
        arm: error of the IMU's position, m.
        scale: relative error of the specific force along each axis of the IMU.
        late: of all torques after the joints' positions, s.
        load: friction of the drives of hips, thighs and calves, over the torque that they report.
        gain: relative error of each leg torque.
        torque_bias: constant error of each leg torque, N m.
        coulomb: Coulomb friction of each leg joint, N m.
        viscous: viscous friction of each leg joint, N m s/rad.
        rotor: error of each drive's reflected inertia, kg m^2.
        zero: bias of each encoder, rad.
        link: error of the mass of each link of the legs, relative to the URDF's.
        hip: error of the mean position of each diagonal's hips in the URDF along x and y, m.
    """

    mass: slice
    moment: slice
    inertia: slice
    bias: slice
    tilt: slice
    delay: slice
    arm: slice
    scale: slice
    late: slice
    load: slice
    gain: slice
    torque_bias: slice
    coulomb: slice
    viscous: slice
    rotor: slice
    zero: slice
    link: slice
    hip: slice


LEG_JOINTS = JOINTS * len(LEGS)
STATE_SIZES = {
    "mass": 1,
    "moment": 3,
    "inertia": 6,
    "bias": 3,
    "tilt": 3,
    "delay": 1,
    "arm": 3,
    "scale": 3,
    "late": 1,
    "load": JOINTS,
}
STATE_SIZES |= dict.fromkeys(StateLayout._fields[len(STATE_SIZES) : -1], LEG_JOINTS)
STATE_SIZES["hip"] = 2 * len(DIAGONALS)


class SignalLayout(NamedTuple):
    """Slices of the filtered signals; the positions and the torques of n joints follow them.

    Attributes:
        angular_velocity: rad/s, root axes, as the others.
        specific_force: m/s^2, at the IMU.
        up: unit vector against gravity.
    """

    angular_velocity: slice
    specific_force: slice
    up: slice


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
MASS, MOMENT, INERTIA, BIAS, TILT, DELAY, ARM, SCALE, LATE, LOAD = (
    block.start for block in STATE[:10]
)
GAIN, TORQUE_BIAS, COULOMB, VISCOUS, ROTOR, ZERO, LINK, HIP = (
    block.start for block in STATE[10:]
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
    """A sample of all signals.

    Attributes:
        time: s.
        signals: (JOINT_SIGNALS + 2 n,) by SIGNAL, then q and tau; NaN where unknown.
    """

    time: float
    signals: Array


class FilterModel(NamedTuple):
    """The robot as the filter uses it, with n joints.

    Attributes:
        bodies: kinematic tree, with the root's mass set to zero.
        armature: (n,) kg m^2, reflected inertia of the drives.
        leg_bodies: (4, 3) bodies of each leg's joints, from the hip on.
        leg_joints: (4, 3) their indices in q.
        balls: (4, 3) m, centres of the feet's balls in the frames of the last bodies.
        radii: (4,) m, of the balls.
        p_root_imu: (3,) m, of the accelerometer in the root's frame.
        R_imu_root: (3, 3) rows: the axes of the IMU in the root's frame.
        drift: (STATES,) variance per second of each state's random walk.
    """

    bodies: Tree
    armature: Array
    leg_bodies: Indices
    leg_joints: Indices
    balls: Array
    radii: Array
    p_root_imu: Array
    R_imu_root: Array
    drift: Array


class Settings(NamedTuple):
    """Constants of the filter, made by FloatingBaseOptions; times in s.

    Attributes:
        bandwidth: rad/s, of the filter's three equal poles.
        period: between updates.
        settling: of a channel, after which its filter has forgotten what came before.
        correlation: factor on all noise, included in the values below.
        torque_relative: standard deviation of a torque sample, relative to the torque.
        torque_floor: N m, added to it.
        torque_unknown: N m, standard deviation of an unknown torque.
        swing_relative: standard deviation of a swinging leg's own torque, relative to the
            torque.
        force_noise: N, of the base rows.
        moment_noise: N m, of the base rows.
        gyro_noise: rad/s, of a sample.
        accelerometer_noise: m/s^2, of a sample.
        feet_noise: m/s^2, of the acceleration from the feet, after the filter.
        swing_force: N, below which a leg may be in swing.
        stand_force: N, above which a leg may be in stance.
        gate: of the normalised innovation, above which the noise is increased.
        shock: m/s^2, of a reading less its low pass, above which the frame rings.
        quiet: m/s^2, what is left of a shock while the frame still rings.
        outlier: normalised innovation that counts tenfold in the variance factor.
        lifted: m, mean height of a diagonal's feet over the other's, above which it is up.
    """

    bandwidth: float
    period: float
    settling: float
    correlation: float
    torque_relative: float
    torque_floor: float
    torque_unknown: float
    swing_relative: float
    force_noise: float
    moment_noise: float
    gyro_noise: float
    accelerometer_noise: float
    feet_noise: float
    swing_force: float
    stand_force: float
    gate: float
    shock: float
    quiet: float
    outlier: float
    lifted: float


# --- what the filter remembers ----------------------------------------------------------------
class Monitors:
    """Clock and monitors: fields of a record of the type MONITORS; s unless stated otherwise.

    Attributes:
        last_sample: time of the last sample; NaN at the start.
        last_update: time of the last update that was due.
        frozen_until: until when only the trunk is estimated.
        variance: factor by which the innovations exceed their expected variance.
        half_stride: duration of the half stride so far.
        usual: duration of the one before; 0: unknown.
        window: duration of its first or second half so far: a quarter stride.
        ended: duration of the quarter stride that this update ended; 0: none.
        information: (3, 3) of m, m c_x, m c_y by the quarter stride's data, other states known.
        weighted: (3,) information times the values that fit the data best.
        airborne: 1 or 2, the diagonal whose feet were up last; 0: none yet.
        swinging: (4,) for how long each leg has had no force.
        standing: (4,) for how long each leg has carried load.
        without_accelerometer: 1 while the feet provide the acceleration, else 0.
        stationary: for how long the trunk has not rotated.
        shock: m/s^2, by which the accelerometer has recently left its low pass, fading.
    """

    last_sample: float
    last_update: float
    frozen_until: float
    variance: float
    half_stride: float
    usual: float
    window: float
    ended: float
    information: Array
    weighted: Array
    airborne: float
    swinging: Array
    standing: Array
    without_accelerometer: float
    stationary: float
    shock: float


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
    """Forces of the ground on the feet at the last update, root axes.

    Attributes:
        force: (4, 3) N; NaN where unknown.
        std: (4, 3) N, their standard deviations.
        point: (4, 3) m, contact points.
        swings: (4,) the legs without contact.
    """

    force: Array
    std: Array
    point: Array
    swings: Flags


class FilterMemory(NamedTuple):
    """State of the filter: everything that changes from sample to sample.

    Attributes:
        channels: (JOINT_SIGNALS + 2 n,) of CHANNEL, state of each signal's low pass.
        monitors: (1,) of MONITORS; element 0 has the fields of Monitors.
        x: (STATES,) estimate.
        P: (STATES, STATES) its covariance.
        excitation: (2, TRUNK_STATES) mean squares of the trunk's regressors, and of their noise.
        forces: of the ground on the feet at the last update.
    """

    channels: NDArray[np.void]
    monitors: Any
    x: Array
    P: Array
    excitation: Array
    forces: FootForces


# --- what an update works on ------------------------------------------------------------------
class FilteredMotion(NamedTuple):
    """Filtered signals: (n,) of the joints, (3,) of the root in its axes.

    Attributes:
        q: rad, joint positions.
        qd: rad/s.
        qdd: rad/s^2.
        direction: -1 to 1, of Coulomb friction.
        tau: N m, joint torques.
        tau_rate: N m/s, their derivatives.
        omega: rad/s, angular velocity.
        omega_dot: rad/s^2.
        specific_force: m/s^2, at the root's origin.
        up: unit vector against gravity.
        rates: (4, 3) derivatives of the last four by time, their unit per s.
    """

    q: Array
    qd: Array
    qdd: Array
    direction: Array
    tau: Array
    tau_rate: Array
    omega: Array
    omega_dot: Array
    specific_force: Array
    up: Array
    rates: Array


class LegStates(NamedTuple):
    """Effect of the legs on the base, from one pass of the inverse dynamics.

    Attributes:
        residual: (4, 3) N m, torque of each joint minus that of the leg's own motion.
        wrench: (4, 6) N, N m on the base: of the ground minus that of the leg's own motion,
            about the root's origin.
        point: (4, 3) m, the contact points.
        A: (4, 6, 3) wrench on the base of a generalised force at each joint.
    """

    residual: Array
    wrench: Array
    point: Array
    A: Array


class Rows(NamedTuple):
    """Rows of an update, residual = H (truth - x) + noise, and intermediate results.

    Attributes:
        H: (6, STATES) of the base.
        residual: (6,) N, N m.
        noise: (6, 6) its covariance; after `whiten` its Cholesky factor.
        joint_rows: (4, 3, STATES) of the legs' joints.
        joint_std: (4, 3) N m, of their torques.
        swing_std: (4, 3) N m, of the rows of a leg in swing.
        known: (4,) whether each leg's torques can be used.
        regular: (4,) whether each leg's Jacobian is regular.
        legs: as measured.
        changed: with one of the signals changed by a little.
        links: of the last pass of the inverse dynamics.
        torque: (n,) N m, of that pass.
    """

    H: Array
    residual: Array
    noise: Array
    joint_rows: Array
    joint_std: Array
    swing_std: Array
    known: Flags
    regular: Flags
    legs: LegStates
    changed: LegStates
    links: Links
    torque: Array


class Outcome(IntEnum):
    """Result of a step: what it did, or why an update was not made.

    Attributes:
        FILTERED: the sample was filtered; no update is due.
        UPDATED: the state was updated.
        NO_MOTION: joint positions or angular velocity are unknown.
        NO_ATTITUDE: neither specific force nor attitude is known.
        NO_CONTACT: without specific force, and a foot is being set down or lifted.
        GAP: the sample is not later than the last one, or by more than 0.1 s: filters restart.
    """

    FILTERED = 0
    UPDATED = 1
    NO_MOTION = 2
    NO_ATTITUDE = 3
    NO_CONTACT = 4
    GAP = 5
