"""From recordings to rows: legs, contacts, windows, the whitened design matrix of a walk."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import minimum_filter1d

from com_identification.exceptions import WalkError
from com_identification.walking.kernels import Limbs, foot_loads
from com_identification.walking.log import LOAD_CUTOFF, Conditioned, low_pass
from com_identification.walking.window_kernels import Noise, Windows, window_rows
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, Flags
from com_model.bodies import Indices
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import Tree
from com_model.text import listing, quote

_HALF_WINDOW = 0.04  # s
_ROW_RATE = 250.0  # Hz
_LIGHT = 0.2  # of the weight, that a foot in the air seems to carry at most
_HIGH = 0.01  # m, over the lowest foot
_MARGIN = 0.024  # s, to the nearest doubt about a foot in the air
BLOCK = 5.0  # s, of rows that share their information matrix
Contacts = tuple[Array, Flags]


def find_limbs(model: RobotModel, config: RobotConfig) -> Limbs:
    """Finds the legs below the feet of a configuration.

    Args:
        model: With the feet's frames (config.attach).

    Raises:
        WalkError: There are no feet, or two legs share a joint.
    """
    bodies, feet = model.bodies, config.feet
    if not feet:
        raise WalkError(
            f"{config.source} has no feet: give them (com_setup writes them from the URDF)"
        )
    links = [model.link_index(foot.frame) for foot in feet]
    paths = [bodies.path_to(bodies.body_of_link[link]) for link in links]
    joints = [list(dict.fromkeys(bodies.q_index[path].tolist())) for path in paths]
    for i, own in enumerate(joints):
        shared = {j for j in own for other in joints[:i] if j in other}
        if shared or not own:
            names = listing([model.joint_names[j] for j in sorted(shared)])
            problem = f"{names} also move other feet" if shared else "no joint moves it"
            raise WalkError(
                f"foot {quote(feet[i].frame)}: {problem}. The legs must start from the URDF's root"
            )
    centers = np.array([foot.center for foot in feet])
    return Limbs(
        body=np.array(bodies.body_of_link[links]),
        point=bodies.p_body_link[links]
        + np.einsum("cij,cj->ci", bodies.R_body_link[links], centers),
        radius=np.array([foot.radius for foot in feet]),
        size=np.array([6 if len(foot.corners) else 3 for foot in feet]),
        joint_count=np.array([len(own) for own in joints]),
        joints=_filled(joints),
        path=_filled(paths),
    )


def _filled(rows: list[list[int]]) -> Indices:
    width = max(len(row) for row in rows)
    return np.array([row + [-1] * (width - len(row)) for row in rows], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Whitened rows of all windows."""

    X: Array  # (R, P)
    joint: Indices  # (R,) -1: of the base
    block: Array  # (R,) s, where its block of BLOCK s begins; recordings one after the other

    @property
    def base(self) -> Flags:
        """(R,) rows of the base, not of a joint."""
        return np.asarray(self.joint < 0)


def drive_sizes(limits: Array, effort_rms: Array) -> Array:
    """Torques (n,) N m, of which friction, noise and biases are fractions, as rms on a Go2's legs.

    A third of the URDF's limits, but not less than the rms of the recording, nor 3 times more than
    that or the rms of all joints; those where the URDF has no limits.
    """
    usual = np.maximum(effort_rms, max(1.0, float(np.sqrt((effort_rms**2).mean()))))
    known = np.isfinite(limits) & (limits > 0.0)
    return np.where(known, np.clip(limits / 3.0, effort_rms, 3.0 * usual), usual)


def noise_of(mass: float, length: float, load: Array) -> Noise:
    """What the equations leave unexplained, by the size of the robot.

    1.5 N, 0.3 N m, 0.2 and 0.3 N m for a robot of 15 kg with legs of 0.3 m and torques of 8 N m.

    Args:
        mass: kg.
        length: m, of the legs.
        load: (n,) N m, sizes of the drives.
    """
    force = 0.01 * mass * GRAVITY
    return Noise(force, 0.67 * force * length, 0.2 / 8.0 * load, 0.3 / 8.0 * load)


def find_contacts(
    data: Conditioned, robot: Tree, limbs: Limbs, mass: float
) -> Contacts:
    """Loads (N, L) along the ground's normal, N, and which feet (N, L) are surely in the air."""
    shape = len(data.motion.q), len(limbs.body)
    loads, heights = np.empty(shape), np.empty(shape)
    foot_loads(robot, limbs, data.motion, loads, heights)
    loads = low_pass(loads, LOAD_CUTOFF, data.period)
    light = loads < _LIGHT * mass * GRAVITY
    high = heights - heights.min(axis=1, keepdims=True) > _HIGH
    reach = 2 * round(_MARGIN / data.period) + 1
    sure = minimum_filter1d((light & high).astype(np.uint8), reach, axis=0)
    return loads, sure.astype(np.bool_)


def make_rows(
    logs: Sequence[Conditioned],
    contacts: Sequence[Contacts],
    robot: Tree,
    limbs: Limbs,
    noise: Noise,
    measured: Flags,
    x: Array,
) -> Rows:
    """Makes the rows of several recordings; blocks do not go over their borders.

    Args:
        robot: With the parameters about which encoder zeros and the IMU are linearised.
        measured: (n,) joints whose torques are known.
        x: (P,) all coefficients, likewise.
    """
    parts, since = [], 0.0
    planned = [
        _plan(data, airborne, limbs, measured)
        for data, (_, airborne) in zip(logs, contacts, strict=True)
    ]
    X = np.empty((sum(count for _, count in planned), len(x)))
    at = 0
    for data, (windows, count) in zip(logs, planned, strict=True):
        every = max(1, round(1.0 / (_ROW_RATE * data.period)))
        window_rows(
            robot, limbs, data.motion, noise, windows, every, x, X[at : at + count]
        )
        at += count
        used = windows.start >= 0
        blocks = since + BLOCK * np.floor(windows.start[used] * data.period / BLOCK)
        since += len(data.usable) * data.period
        has = np.pad(windows.used[used], ((0, 0), (6, 0)), constant_values=True)
        parts.append(
            (np.maximum(np.nonzero(has)[1] - 6, -1), np.repeat(blocks, has.sum(axis=1)))
        )
    return Rows(X, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _plan(
    data: Conditioned, airborne: Flags, limbs: Limbs, measured: Flags
) -> tuple[Windows, int]:
    """Windows of a recording, and how many rows they have."""
    half = max(2, round(_HALF_WINDOW / data.period))
    half += half % 2  # rows of every second sample meet in the middle
    count = max(len(data.usable) // half - 1, 0)
    start = half * np.arange(count)
    spans = start[:, None] + np.arange(2 * half)
    touching = ~airborne[spans].all(axis=1)
    start = np.where(data.usable[spans].all(axis=1), start, -1)
    used = np.broadcast_to(measured, (count, len(measured))).copy()
    for c in range(len(limbs.body)):
        joints = limbs.joints[c][limbs.joints[c] >= 0]
        used[:, joints] &= ~touching[:, c, None]
    heights = np.where(start >= 0, 6 + used.sum(axis=1), 0)
    row = np.cumsum(heights) - heights
    return Windows(start, half, touching, used, row), int(heights.sum())
