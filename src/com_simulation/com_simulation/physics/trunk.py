"""The trunk of a simulated robot: its true mass, CoM and inertia, and a payload put on it.

The trunk is the robot's root body: the root link with everything that is fixed to it.
"""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array
from com_model.parameters import check_options, parameter
from com_simulation.exceptions import WorldError
from com_simulation.physics.spec import quaternion_wxyz

ROOT = 1  # MuJoCo's number of the robot's root body


@dataclass(frozen=True, eq=False)
class Trunk:
    """What a rigid body weighs and how."""

    mass: float  # kg
    com: Array  # (3,) m, centre of mass in the root link's frame
    inertia: Array  # (3, 3) kg m^2, about the centre of mass, root link's axes


@dataclass(frozen=True)
class Payload:
    """A point mass that a link carries from a time on; WorldError: out of its bounds."""

    mass: float = parameter(0.0, "kg; 0: none", (0.0, 1e4))
    position: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), "in the link's frame, x, y, z, m", (-100.0, 100.0)
    )
    time: float = parameter(0.0, "s of simulated time from which on it is there", (0.0, 1e6))
    link: str = parameter("", "that carries it; empty: the root link")

    def __post_init__(self) -> None:
        check_options(self, WorldError, "payload.")


def offset(values: ArrayLike, what: str) -> Array:
    """Copies three finite numbers, m, read-only; else a WorldError names `what` they were for."""
    result = np.array(values, dtype=float)
    if result.shape != (3,) or not np.isfinite(result).all():
        raise WorldError(f"{what} is {values!r}: give three finite numbers, m")
    result.setflags(write=False)
    return result


def loaded(trunk: Trunk, mass: float, position: Array) -> Trunk:
    """Adds a point mass (kg) at a position (3,) m of the root link's frame.

    m' = m + p,  c' = (m c + p r) / m',  I' = I + m p / m' (|r - c|^2 1 - (r - c)(r - c)^T)
    """
    total = trunk.mass + mass
    arm = position - trunk.com
    spread = trunk.mass * mass / total * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    com = trunk.com + mass / total * arm
    return Trunk(total, com, trunk.inertia + spread)


def read_trunk(mj: mujoco.MjModel, body: int = ROOT) -> Trunk:
    """Reads the trunk, or another body, out of a MuJoCo model."""
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, mj.body_iquat[body])
    axes = R.reshape(3, 3)
    inertia = (axes * mj.body_inertia[body]) @ axes.T
    return Trunk(float(mj.body_mass[body]), mj.body_ipos[body].copy(), inertia)


def write_trunk(mj: mujoco.MjModel, trunk: Trunk, body: int = ROOT) -> None:
    """Gives a MuJoCo model another trunk or body; the rest of the robot and its posture stay."""
    moments, axes = np.linalg.eigh(trunk.inertia)
    axes = axes * np.sign(np.linalg.det(axes))
    mj.body_mass[body] = trunk.mass
    mj.body_ipos[body] = trunk.com
    mj.body_iquat[body] = quaternion_wxyz(axes)
    mj.body_inertia[body] = moments
    # MuJoCo takes short cuts where a body's frame is that of its inertia: not so from here on.
    none = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
    mj.body_sameframe[body] = none
    mj.geom_sameframe[mj.geom_bodyid == body] = none
    mj.site_sameframe[mj.site_bodyid == body] = none
    # Subtree masses, and the inertias that scale contacts and friction.
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
