"""A robot in MuJoCo under the control of its centre of mass; the truth comes from MuJoCo."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from com_control.balance.options import BalanceOptions
from com_control.balance.session import BalancePhase, BalanceReading, BalanceSession
from com_model import RobotConfig, RobotModel, find_robot
from com_model.dynamics.kinematics import link_pose, link_poses
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.suspension_rig import Tilt
from com_simulation.physics.world_builder import build_world

Array = NDArray[np.float64]
DesiredCom = Callable[[float, BalanceSession], "tuple[Array, Array] | None"]

RATE_HZ = 500.0
SETTLE = 1.0  # s before the control begins


@dataclass(frozen=True, eq=False)
class Run:
    """What happened; T samples, from the begin of the control on.

    Attributes:
        time: (T,) s from then on.
        com: (T, 3) m, the true CoM from the middle of the soles, z against gravity, x as they do.
        desired: (T, 3) m, where it was to be; a height of NaN was left free.
        slope: (T,) rad, of the ground as the control sees it.
        tilt: (T,) rad, of the trunk.
        step_time: (T,) s, of processor for one step of the control.
        fell: Whether it fell.
        reasons: Distinct reasons that were given.
    """

    time: Array
    com: Array
    desired: Array
    slope: Array
    tilt: Array
    step_time: Array
    fell: bool
    reasons: tuple[str, ...]

    def error(self) -> Array:
        """(T,) m, horizontal distance of the true CoM from where it was to be."""
        return np.asarray(np.linalg.norm((self.com - self.desired)[:, :2], axis=1))

    def settling(self, within: float) -> tuple[float, float]:
        """Time (s) from which on the error stays below `within` (m), and the overshoot, a fraction.

        The desired CoM stays; overshoot is beyond it along the first error, of that.
        """
        outside = np.flatnonzero(self.error() > within)
        after = float(self.time[outside[-1]]) if outside.size else 0.0
        first, way = self.error()[0], (self.com - self.desired)[:, :2]
        return after, max(0.0, -float((way @ way[0]).min()) / float(first**2))


def load(robot: str = "hoap2") -> tuple[RobotModel, RobotConfig]:
    """A robot by its name."""
    files = find_robot(robot)
    assert files.config is not None
    return RobotModel.from_file(files.urdf), RobotConfig.from_file(files.config)


def run(
    duration: float,
    desired_com: DesiredCom,
    tilt: Tilt | None = None,
    options: BalanceOptions | None = None,
    noise: NoiseLevels | None = None,
    control: bool = True,
    rate_hz: float = RATE_HZ,
    robot: str = "hoap2",
    seed: int = 0,
) -> Run:
    """Lets a robot stand, then balance.

    Args:
        duration: s of the control.
        desired_com: From the time and the session to CoM and its velocity; None: as it was.
        tilt: Of the floor; its start counts from the simulation's, SETTLE before the control's.
        options: Of the control.
        noise: Of the sensors.
        control: False: the joints are only held.
        rate_hz: Of readings and commands.
        robot: Its name.
        seed: Of the noise.
    """
    model, config = load(robot)
    world = build_world(model, config)
    simulation = Simulation(world, 1.0 / rate_hz, noise, seed, tilt=tilt)
    session = BalanceSession(model, config, options)
    feet = [model.link_index(foot.frame) for foot in config.feet]
    rows, reasons = [], []
    for _ in range(round((SETTLE + duration) * rate_hz)):
        reading = simulation.advance()
        if reading.time < SETTLE:
            session.step(read_sensors(model, world.imu_link, reading, world.posture))
            continue
        if not session.active:
            session.start()
        wanted = desired_com(reading.time - SETTLE, session)
        if wanted is not None:
            session.set_desired_com(*wanted)
        begin = time.process_time()
        command = session.step(
            read_sensors(model, world.imu_link, reading, world.posture)
        )
        spent = time.process_time() - begin
        if command is None or session.state == BalancePhase.FALLEN:
            break
        if control:
            simulation.lead(command.position, command.velocity)
        if session.reason and session.reason not in reasons:
            reasons.append(session.reason)
        if command.step is not None:
            frame = command.step.frame
            rows.append(
                (reading.time - SETTLE, *true_com(model, feet, reading), *command.step.desired,
                 frame.slope, _tilt(reading), spent)
            )  # fmt: skip
    table = np.array(rows)
    return Run(
        time=table[:, 0],
        com=table[:, 1:4],
        desired=table[:, 4:7],
        slope=table[:, 7],
        tilt=table[:, 8],
        step_time=table[:, 9],
        fell=session.state == BalancePhase.FALLEN or bool(table[-1, 8] > 0.5),
        reasons=tuple(reasons),
    )


def read_sensors(
    model: RobotModel, imu: str, reading: Reading, posture: Array
) -> BalanceReading:
    """What the control receives of a reading; posture (n,) are the drives' targets."""
    R_root_imu, _ = link_pose(model, reading.position, imu)
    up = R_root_imu @ Rotation.from_quat(reading.imu_orientation).as_matrix()[2]
    return BalanceReading(
        reading.time, reading.position, up, reading.wrenches[:, 2], posture
    )


def true_com(model: RobotModel, feet: list[int], reading: Reading) -> Array:
    """MuJoCo's CoM from the middle of the soles, level axes that point where the soles do."""
    R = Rotation.from_quat(reading.root_orientation).as_matrix()
    R_link, p_link = link_poses(model, reading.position)
    place = R @ (reading.com - p_link[feet].mean(axis=0))
    x, y, _ = R @ R_link[feet][:, :, 0].sum(axis=0)
    yaw = np.arctan2(y, x)
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array(
        [c * place[0] + s * place[1], c * place[1] - s * place[0], place[2]]
    )


def _tilt(reading: Reading) -> float:
    return float(np.arccos(np.clip(-reading.gravity[2], -1.0, 1.0)))
