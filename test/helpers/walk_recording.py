"""A recording that obeys the equations of motion: a Go2 that leans and treads on its four feet."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from com_bags import WalkLog
from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.unknowns import Scale
from com_model import RobotConfig, RobotModel
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.kinematics import body_poses, link_pose, link_pose_batch
from com_model.robots import load_robot
from com_model.urdf.editing import Inertial, edit_inertials

RATE, SECONDS, COULOMB = 200.0, 28.0, 0.5


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording, what is believed of the robot, and how it is."""

    log: WalkLog
    believed: RobotModel
    true: RobotModel
    config: RobotConfig

    def identify(self, **changes: np.ndarray) -> WalkResult:
        """Identifies from the recording with other readings."""
        log = replace(self.log, **changes)
        return identify_walking(
            [log], self.believed, self.config, Scale(self.true.mass)
        )


def _feet(model: RobotModel, config: RobotConfig, q: np.ndarray) -> np.ndarray:
    return np.stack(
        [link_pose_batch(model, q, foot.frame)[1] for foot in config.feet], axis=1
    )


def record(
    added: float = 0.0,
    at: tuple[float, float, float] = (0.0, 0.0, 0.1),
    lean: float = 0.0,
    seed: int = 2,
    since: float = 0.5,
) -> Recorded:
    """Feet without radius, so that the vertical does not matter; torques with friction.

    Load friction and rotors are those of the configuration.

    Since a fraction of the time kg are added to the trunk at a place (m); less than 0: they are
    taken away. The trunk leans forwards by rad, against legs that stay as they are.
    """
    believed, config = load_robot("go2")
    config = replace(
        config,
        imu_link=None,
        feet=tuple(replace(foot, radius=0.0) for foot in config.feet),
    )
    i = believed.link_index("base")
    inertia = 1.2 * believed.link_inertias[i] + 0.03 * np.eye(3)
    trunk = Inertial(
        believed.link_masses[i] + 1.5,
        believed.link_coms[i] + [0.02, -0.02, 0.03],
        inertia,
    )
    true = RobotModel.from_urdf(
        edit_inertials(believed.xml, {"base": trunk}), believed.frames
    )
    rng, n, count = (
        np.random.default_rng(seed),
        believed.n_joints,
        round(RATE * SECONDS),
    )
    time = np.arange(count) / RATE

    def waves(
        width: int, size: float | np.ndarray, fast: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rate, phase = rng.uniform(6.0, 18.0, (2, 4, width)) * [[[fast]], [[1.0]]]
        total = np.zeros((3, count, width))
        for w, p in zip(rate, phase, strict=True):
            angle = w * time[:, None] + p
            total += size * np.array(
                [np.sin(angle), w * np.cos(angle), -w * w * np.sin(angle)]
            )
        return total[0], total[1], total[2]

    # feet stay within a centimetre of the ground
    q, qd, qdd = waves(n, np.tile([0.015, 0.007, 0.007], 4), 1.5)
    q += config.nominal_posture(true)
    omega, omega_dot, _ = waves(3, 0.05, 2.0)
    vertical = np.array([-np.sin(lean), 0.0, np.cos(lean)])
    force = waves(3, 0.25)[0] + 9.81 * vertical
    total = trunk.mass + added
    com = (trunk.mass * trunk.com + added * np.array(at)) / total
    later = Inertial(total, com, trunk.inertia)
    loaded = RobotModel.from_urdf(
        edit_inertials(true.xml, {"base": later}), true.frames
    )
    drives = [config.actuators.of(joint) for joint in true.joint_names]
    rotors = np.array([drive.rotor_inertia or 0.0 for drive in drives])
    halves = [Dynamics(model, rotors) for model in (true, loaded)]
    joints, root = np.array((q, qd, qdd)), np.array((omega, omega_dot, force))
    pairs = [
        halves[int(i >= since * count)].inverse_dynamics(joints[:, i], root[:, i])
        for i in range(count)
    ]
    wrench, tau = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
    points, step = _feet(true, config, q), 1e-6
    base = np.zeros((count, 4, 3, 6))
    base[..., :3], axes = np.eye(3), np.eye(3)
    for k in range(3):  # torques about the root's origin of unit forces
        base[:, :, k, 3:] = np.cross(points, axes[k])
    by_wrench = np.linalg.pinv(base.reshape(count, 12, 6).transpose(0, 2, 1))
    forces = np.einsum("kij,kj->ki", by_wrench, wrench).reshape(count, 4, 3)
    for j in range(n):
        moved = np.array(q)
        moved[:, j] += step
        slope = (_feet(true, config, moved) - points) / step
        tau[:, j] -= np.einsum("kfi,kfi->k", slope, forces)
    sign = np.tanh(qd / 0.02)
    tau += COULOMB * sign
    load = np.array([drive.load_friction or 0.0 for drive in drives])
    tau /= 1.0 - load * sign * np.sign(tau)
    up = np.empty((count, 3))
    for i, turn in enumerate(Rotation.from_rotvec(-omega / RATE).as_matrix()):
        up[i] = vertical = turn @ vertical
    return Recorded(WalkLog(time, q, qd, tau, omega, force, up), believed, true, config)


def standing_wrenches(
    recorded: Recorded, theta: np.ndarray, q: np.ndarray, up: np.ndarray
) -> np.ndarray:
    """What the feet's sensors read (f, 6) where a robot with theta (B, 10) rests at q (n,)."""
    model, feet = recorded.believed, recorded.config.feet
    R, p = body_poses(model.bodies, q)
    weight, moment = (
        9.80665 * up,
        theta[:, 0] @ p + np.einsum("bij,bj->i", R, theta[:, 1:4]),
    )
    load = np.concatenate((theta[:, 0].sum() * weight, np.cross(moment, weight)))
    poses = [link_pose(model, q, foot.wrench_frame) for foot in feet]
    levers = np.hstack([np.cross(p, np.eye(3)).T for _, p in poses])
    A = np.vstack((np.tile(np.eye(3), len(feet)), levers))
    forces = np.linalg.lstsq(A, load, rcond=None)[0].reshape(-1, 3)
    np.testing.assert_allclose(A @ forces.ravel(), load, atol=1e-9)
    wrenches = np.zeros((len(feet), 6))
    for i, (foot, (R, _)) in enumerate(zip(feet, poses, strict=True)):
        wrenches[i, :3] = foot.wrench_sign * R.T @ forces[i]
    return wrenches
