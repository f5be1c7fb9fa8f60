"""A simulated robot that differs from its URDF by known errors; its trunk and payload.

The URDF that the nodes use and the simulated one then differ, and the result of an
identification can be compared with the truth.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from com_model import RobotModel
from com_model.arrays import Array
from com_model.bodies import steiner
from com_model.files import write_file
from com_model.parameters import check_options, parameter
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.exceptions import WorldError
from com_simulation.physics.spec import quaternion_wxyz

ROOT = 1  # MuJoCo's number of the robot's root body


@dataclass(frozen=True)
class Payload:
    """A point mass that a link carries from a time on.

    Raises:
        WorldError: a number is out of its bounds.
    """

    mass: float = parameter(0.0, "mass of the payload, kg; 0: none", (0.0, 1e4))
    position: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), "position in the link's frame, x, y, z, m", (-100.0, 100.0)
    )
    time: float = parameter(0.0, "s of simulated time at which it is added", (0.0, 1e6))
    link: str = parameter("", "link that carries it; empty: the root link")

    def __post_init__(self) -> None:
        check_options(self, WorldError, "payload.")


def offset(values: ArrayLike, what: str) -> Array:
    """Copies three finite numbers, read-only.

    Args:
        values: m.
        what: their name, for the error.

    Returns:
        (3,) m.

    Raises:
        WorldError: they are not three finite numbers.
    """
    result = np.array(values, dtype=float)
    if result.shape != (3,) or not np.isfinite(result).all():
        raise WorldError(f"{what} is {values!r}: give three finite numbers, m")
    result.setflags(write=False)
    return result


def loaded(trunk: Inertial, mass: float, position: Array) -> Inertial:
    """Adds a point mass to a trunk.

    m' = m + p,  c' = (m c + p r) / m',  I' = I + m p / m' (|r - c|^2 1 - (r - c)(r - c)^T)

    Args:
        trunk: without it.
        mass: p, kg, of the point.
        position: r, (3,) m, of the point in the root link's frame.

    Returns:
        The inertial of both.
    """
    total = trunk.mass + mass
    arm = position - trunk.com
    spread = trunk.mass * mass / total * steiner(arm)
    com = trunk.com + mass / total * arm
    return Inertial(total, com, trunk.inertia + spread)


def read_trunk(mj: mujoco.MjModel, body: int = ROOT) -> Inertial:
    """Reads the inertial of a body from a MuJoCo model.

    Args:
        mj: the MuJoCo model.
        body: number of the body; the trunk by default.

    Returns:
        Mass, CoM, and inertia about the CoM, in the body's frame.
    """
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, mj.body_iquat[body])
    axes = R.reshape(3, 3)
    inertia = (axes * mj.body_inertia[body]) @ axes.T
    return Inertial(float(mj.body_mass[body]), mj.body_ipos[body].copy(), inertia)


def write_trunk(mj: mujoco.MjModel, trunk: Inertial, body: int = ROOT) -> None:
    """Sets the inertial of a body in a MuJoCo model; the rest of the robot and its posture stay.

    Args:
        mj: the MuJoCo model; changed.
        trunk: the new inertial.
        body: number of the body; the trunk by default.
    """
    moments, axes = np.linalg.eigh(trunk.inertia)
    axes = axes * np.sign(np.linalg.det(axes))
    mj.body_mass[body] = trunk.mass
    mj.body_ipos[body] = trunk.com
    mj.body_iquat[body] = quaternion_wxyz(axes)
    mj.body_inertia[body] = moments
    # MuJoCo has a short cut where a body's frame is that of its inertia: disabled from here on.
    none = int(mujoco.mjtSameFrame.mjSAMEFRAME_NONE)
    mj.body_sameframe[body] = none
    mj.geom_sameframe[mj.geom_bodyid == body] = none
    mj.site_sameframe[mj.site_bodyid == body] = none
    # Subtree masses, and the inertias that scale contacts and friction.
    mujoco.mj_setConst(mj, mujoco.MjData(mj))


@dataclass(frozen=True)
class TrueErrors:
    """Random errors of the simulated robot's masses and CoMs relative to its URDF.

    Raises:
        WorldError: a number is out of its bounds.
    """

    com: float = parameter(
        0.0,
        "standard deviation of each link's CoM from the URDF's, along each axis, m",
        (0.0, 1.0),
    )
    mass: float = parameter(
        0.0, "relative standard deviation of each link's mass", (0.0, 0.5)
    )
    seed: int = parameter(0, "seed; the same seed gives the same robot", (0, 2**31 - 1))

    def __post_init__(self) -> None:
        check_options(self, WorldError, "true_errors.")


def with_true_errors(robot: RobotModel, errors: TrueErrors) -> RobotModel:
    """Makes the simulated robot from the assumed one.

    c' = c + e_c,  m' = m (1 + e_m),  I' = I m' / m  about the new centre of mass

    with normal e_c (3,) and e_m of each link that has a mass. The text of the URDF is otherwise
    byte for byte the same.

    Args:
        robot: the assumed one.
        errors: standard deviations and seed.

    Returns:
        The simulated robot.
    """
    if not (errors.com or errors.mass):
        return robot
    rng = np.random.default_rng(errors.seed)
    drawn = rng.standard_normal((robot.n_links, 4))
    inertials = {}
    digits = 7  # decimals of m and kg, so that the file stays easy to read
    for i in np.flatnonzero(robot.link_masses > 0.0):
        old = float(robot.link_masses[i])
        # of the URDF's mass, that a link keeps
        fraction = max(1.0 + errors.mass * drawn[i, 3], 0.1)
        mass = round(old * fraction, digits) if errors.mass else old
        com = np.round(robot.link_coms[i] + errors.com * drawn[i, :3], digits)
        inertia = robot.link_inertias[i] * (mass / old)
        inertials[robot.link_names[i]] = Inertial(mass, com, inertia)
    return RobotModel.from_urdf(edit_inertials(robot.xml, inertials), robot.frames)


def true_robot(
    robot: RobotModel, errors: TrueErrors, urdf: str | os.PathLike[str] = ""
) -> RobotModel:
    """The robot to simulate: that of a file, or the assumed one with errors.

    Args:
        robot: the assumed one.
        errors: for the latter; all 0: none.
        urdf: file of the former; empty: none.

    Returns:
        The robot to simulate.

    Raises:
        WorldError: a file and errors are given, or another robot.
        UrdfError: the file is no URDF.
    """
    if not str(urdf):
        return with_true_errors(robot, errors)
    if errors.com or errors.mass:
        raise WorldError("both a true URDF and true_errors are given: give one of them")
    true = RobotModel.from_file(urdf).with_frames(robot.frames)
    if true.joint_names != robot.joint_names or true.link_names != robot.link_names:
        raise WorldError(
            f"{Path(urdf).name} differs from {robot.name!r}: give a URDF with the same "
            "links and joints"
        )
    return true


def write_urdf(robot: RobotModel, path: str | os.PathLike[str]) -> None:
    """Writes a robot's URDF, completely or not at all.

    Args:
        robot: whose URDF is written.
        path: of the file; its folder is created.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_file(path, robot.xml)
