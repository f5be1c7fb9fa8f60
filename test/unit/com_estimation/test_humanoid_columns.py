"""Residual and columns of com_estimation.humanoid against inverse dynamics of a moving robot.

The left sole stands at the world's origin, joints move by sines; what the left foot must bear comes
from recursive Newton-Euler (checked against MuJoCo and Pinocchio elsewhere), of the URDF's robot or
of one with the culprit. The right foot has a wrench that pulls down, so that odometry ignores it.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_estimation.humanoid.layout import Kind, make_layout
from com_estimation.humanoid.step import make_memory, step
from com_estimation.humanoid.windows import make_window
from com_model import RobotModel
from com_model.bodies import steiner
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.kinematics import body_poses

pytestmark = pytest.mark.slow

DT, LENGTH = 0.002, 120


class Motion:
    """A motion of HOAP-2, slow or fast, as samples."""

    def __init__(self, hertz: float) -> None:
        config, model = shipped_robot("hoap2")[:2]
        self.model, self.layout = config.attach(model), make_layout(model, config)
        rng = np.random.default_rng(1)
        self.t = DT * np.arange(LENGTH + 3)
        rate = 2.0 * np.pi * hertz
        phase = rng.uniform(0.0, 6.0, (1, self.model.n_joints))
        angle = rate * self.t[:, None] + phase
        swing = 0.1 * rng.uniform(-1.0, 1.0, phase.shape)
        self.q = config.nominal_posture(self.model) + swing * np.sin(angle)
        self.poses(self.q)
        self.right = np.array([3.0, -2.0, -1.0, 0.2, -0.1, 0.3]) * (
            1.0 + 3.0 * self.t[:, None]
        )

    def poses(self, q: np.ndarray) -> None:
        """Root poses such that the left sole stays at the origin."""
        plant = self.layout.plant
        R, p = [], []
        for row in q:
            Rb, pb = body_poses(self.model.bodies, row)
            b = plant.foot_body[0]
            sole = Rb[b] @ plant.R_sole[0]
            R.append(sole.T)
            p.append(-sole.T @ (pb[b] + Rb[b] @ plant.p_sole[0]))
        self.R, self.p = np.array(R), np.array(p)
        self.frames = []
        for row in zip(q, self.R, self.p, strict=True):
            Rb, pb = body_poses(self.model.bodies, *row)
            feet = zip(plant.sensor_body, plant.R_sensor, plant.p_sensor, strict=True)
            self.frames.append([(Rb[b] @ Rs, pb[b] + Rb[b] @ ps) for b, Rs, ps in feet])

    def wrenches(
        self, model: RobotModel | None = None, external: np.ndarray | None = None
    ):
        """What the sensors read (N, 2, 6); external (N, 6): on the root's origin, world axes."""
        model = model or self.model
        gradient = [np.gradient(self.q, DT, axis=0, edge_order=2)]
        gradient.append(np.gradient(gradient[0], DT, axis=0, edge_order=2))
        turn = Rotation.from_matrix(self.R[:-1]).inv() * Rotation.from_matrix(
            self.R[1:]
        )
        half = turn.as_rotvec() / DT  # at k + 1/2
        omega = np.vstack((half[:1], 0.5 * (half[1:] + half[:-1]), half[-1:]))
        omega_dot = np.vstack(
            (omega[:1] * 0, (half[1:] - half[:-1]) / DT, omega[:1] * 0)
        )
        a = np.gradient(
            np.gradient(self.p, DT, axis=0, edge_order=2), DT, axis=0, edge_order=2
        )
        a[1:-1] = (self.p[2:] - 2.0 * self.p[1:-1] + self.p[:-2]) / DT**2
        specific = np.einsum("nji,nj->ni", self.R, a + np.array([0.0, 0.0, GRAVITY]))
        motion = (self.q, *gradient), (omega, omega_dot, specific)
        root = Dynamics(model).root_wrenches(*motion)
        out = np.zeros((len(self.t), 2, 6))
        out[:, 1] = self.right
        for k in range(len(self.t)):
            f, n = self.R[k] @ root[k, :3], self.R[k] @ root[k, 3:]
            if external is not None:
                f, n = f - external[k, :3], n - external[k, 3:]
            n = n + np.cross(self.p[k], f)  # about the world's origin
            (Rl, xl), (Rr, xr) = self.frames[k]
            fr, nr = Rr @ self.right[k, :3], Rr @ self.right[k, 3:]
            f, n = f - fr, n - nr - np.cross(xr, fr)
            out[k, 0] = [*(Rl.T @ f), *(Rl.T @ (n - np.cross(xl, f)))]
        return out

    def window(
        self,
        wrenches: np.ndarray,
        q: np.ndarray | None = None,
        tilt: np.ndarray | None = None,
        late: int = 0,
    ):
        """The window that the estimator makes of samples."""
        plant, layout = self.layout.plant, self.layout
        memory = make_memory(plant)
        q = self.q if q is None else q
        for k in range(1, len(self.t) - 1):
            R = self.R[k - late] if tilt is None else self.R[k] @ tilt
            if step(
                plant, q[k], np.ascontiguousarray(R), wrenches[k], DT, LENGTH, memory
            ):
                return make_window(0.0, layout, memory.closed, memory.closed_stats)
        raise AssertionError("no window")


@cache
def motion(hertz: float = 1.0) -> Motion:
    return Motion(hertz)


def with_body(
    model: RobotModel, body: int, mass: float, moment: np.ndarray
) -> RobotModel:
    """The robot with a point mass or first moment more on a body, at its CoM."""
    b = model.bodies
    masses, first, inertia = b.mass.copy(), b.first_moment.copy(), b.inertia.copy()
    com = first[body] / masses[body]
    shift = moment / mass if mass else np.zeros(3)
    inertia[body] += mass * steiner(com + shift)
    if not mass:  # the same mass a little aside: d(m r^2) = 2 moment r
        inertia[body] += (
            2.0 * (com @ moment * np.eye(3))
            - np.outer(com, moment)
            - np.outer(moment, com)
        )
    masses[body] += mass
    first[body] += mass * com + moment
    return replace(
        model, bodies=replace(b, mass=masses, first_moment=first, inertia=inertia)
    )


def check(column_sum: np.ndarray, y: np.ndarray, y0: np.ndarray, within: float) -> None:
    change = y - y0
    scale = np.array(
        [np.abs(column_sum[:3]).max()] * 3 + [np.abs(column_sum[3:]).max()] * 3
    )
    scale = np.maximum(
        scale,
        [0.2 * np.abs(column_sum[3:]).max()] * 3
        + [0.02 * np.abs(column_sum[:3]).max()] * 3,
    )
    np.testing.assert_allclose(change / scale, column_sum / scale, atol=within)


def test_residual_of_the_true_model_is_zero() -> None:
    m = motion()
    window = m.window(m.wrenches())
    assert np.abs(window.y[:3]).max() < 1e-3 * m.layout.weight / 10
    assert np.abs(window.y[3:]).max() < 1e-4 * m.layout.weight * m.layout.height


def culprits(kind: Kind):
    return [c for c in motion().layout.culprits if c.kind is kind]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_payloads(which: int) -> None:
    m = motion()
    culprit = culprits(Kind.PAYLOAD)[which]
    plant = m.layout.plant
    body = int(plant.dipole[plant.dipole[:, 1] == culprit.columns[1], 0][0])
    theta = np.array([0.02, 2e-4, -3e-4, 1e-4])
    heavier = with_body(m.model, body, theta[0], plant.triad[body] @ theta[1:])
    window, other = m.window(m.wrenches()), m.window(m.wrenches(heavier))
    check(window.A[:, culprit.columns] @ theta, other.y, window.y, 0.01)


def test_first_moments_and_masses() -> None:
    m = motion()
    plant, window = m.layout.plant, m.window(m.wrenches())
    for body, column in plant.dipole[:2]:
        for j in range(3):
            moment = 1e-4 * plant.triad[body][:, j]
            other = m.window(m.wrenches(with_body(m.model, int(body), 0.0, moment)))
            check(window.A[:, column + j] * 1e-4, other.y, window.y, 0.02)
    b, scaled = m.model.bodies, 0.01
    for group in range(plant.mass_group.max() + 1):
        factor = 1.0 + scaled * (plant.mass_group == group)
        heavier = replace(
            b,
            mass=b.mass * factor,
            first_moment=b.first_moment * factor[:, None],
            inertia=b.inertia * factor[:, None, None],
        )
        other = m.window(m.wrenches(replace(m.model, bodies=heavier)))
        check(
            window.A[:, plant.blocks.masses + group] * scaled, other.y, window.y, 0.03
        )


def test_pull() -> None:
    m = motion()
    pull = np.array([0.5, -0.3, 0.2, 0.05, 0.1, -0.02])
    trunk = np.array(
        [
            body_poses(m.model.bodies, *row)[1][0] + row[1] @ m.layout.plant.com[0]
            for row in zip(m.q, m.R, m.p, strict=True)
        ]
    )
    at_root = np.tile(pull, (len(m.t), 1))
    at_root[:, 3:] += np.cross(trunk - m.p, pull[:3])
    window, other = m.window(m.wrenches()), m.window(m.wrenches(external=at_root))
    check(window.A[:, culprits(Kind.PULL)[0].columns] @ pull, other.y, window.y, 0.003)


def test_zeros_gains_and_delay() -> None:
    m = motion()
    wrenches, blocks = m.wrenches(), m.layout.plant.blocks
    window = m.window(wrenches)
    for i, culprit in enumerate(culprits(Kind.WRENCH_ZERO)):
        zero = np.array([1.0, -2.0, -3.0, 0.1, 0.2, -0.1])
        off = wrenches.copy()
        off[:, i] += zero
        check(window.A[:, culprit.columns] @ zero, m.window(off).y, window.y, 1e-6)
        off = wrenches.copy()
        off[:, i] *= 1.01
        check(0.01 * window.A[:, blocks.gains + i], m.window(off).y, window.y, 1e-6)
    m = Motion(1.0)
    m.right *= 0.01  # it is late in the axes of the foot, which turns
    wrenches = m.wrenches()
    window, late = m.window(wrenches), wrenches.copy()
    late[1:] = wrenches[:-1]
    check(DT * window.A[:, blocks.delay], m.window(late).y, window.y, 0.1)


def test_tilt() -> None:
    m = motion()
    window = m.window(m.wrenches())
    triad = m.layout.plant.triad[m.layout.plant.blocks.imu]
    for j, column in enumerate(culprits(Kind.IMU_TILT)[0].columns):
        tilt = Rotation.from_rotvec(1e-4 * triad[:, j]).as_matrix()
        check(
            1e-4 * window.A[:, column],
            m.window(m.wrenches(), tilt=tilt).y,
            window.y,
            0.01,
        )


def test_encoders_and_flexibility() -> None:
    m = motion(0.2)  # the column leaves out that links move a little otherwise
    wrenches, plant = m.wrenches(), m.layout.plant
    window = m.window(wrenches)
    for body, _, column in plant.joint:
        q = m.q.copy()
        q[:, plant.tree.q_index[body]] += 1e-4
        check(1e-4 * window.A[:, column], m.window(wrenches, q).y, window.y, 0.03)
        # and what the corrected CoM makes of it
    k, q = 1e-4, m.q.copy()
    for n, row in enumerate(zip(m.q, m.R, m.p, strict=True)):
        q[n] += k * torques(m, wrenches[n], *row)
    check(
        k * window.A[:, plant.blocks.flexibility],
        m.window(wrenches, q).y,
        window.y,
        0.05,
    )


def torques(
    m: Motion,
    wrenches: np.ndarray,
    q: np.ndarray,
    R_root: np.ndarray,
    p_root: np.ndarray,
) -> np.ndarray:
    """Static torques of the legs: each foot's wrench and the weight below, by virtual work."""
    plant, out, step_ = m.layout.plant, np.zeros(m.model.n_joints), 1e-6
    for body, foot, _ in plant.joint:
        j = plant.tree.q_index[body]
        work = []
        for sign in (-1.0, 1.0):
            moved = q.copy()
            moved[j] += sign * step_
            R, p = body_poses(m.model.bodies, moved, R_root, p_root)
            com = p + np.einsum("bij,bj->bi", R, plant.com)
            b = plant.sensor_body[foot]
            work.append(
                (
                    -GRAVITY * m.model.bodies.mass @ com[:, 2],
                    p[b] + R[b] @ plant.p_sensor[foot],
                    R[b] @ plant.R_sensor[foot],
                )
            )
        (e0, x0, R0), (e1, x1, R1) = work
        middle = Rotation.from_matrix(R0).as_matrix()
        turn = (Rotation.from_matrix(R1) * Rotation.from_matrix(R0).inv()).as_rotvec()
        f, n = middle @ wrenches[foot, :3], middle @ wrenches[foot, 3:]
        out[j] = -(e1 - e0 + f @ (x1 - x0) + n @ turn) / (2.0 * step_)
    return out


def test_jacobian_of_the_com() -> None:
    m = motion()
    wrenches, plant = m.wrenches(), m.layout.plant
    memory = make_memory(plant)
    for k in range(1, 3):
        step(plant, m.q[k], m.R[k], wrenches[k], DT, LENGTH, memory)

    def com(model: RobotModel, q: np.ndarray) -> np.ndarray:
        R, p = body_poses(model.bodies, q, m.R[2], m.p[2])
        b = model.bodies
        return (b.mass @ p + np.einsum("bij,bj->i", R, b.first_moment)) / b.mass.sum()

    for body, column in plant.point:
        heavier = com(with_body(m.model, int(body), 1e-5, np.zeros(3)), m.q[2])
        np.testing.assert_allclose(
            1e5 * (heavier - com(m.model, m.q[2])),
            memory.jacobian[:, column],
            atol=1e-5,
        )
    for body, _, column in plant.joint:
        q = m.q[2].copy()
        q[plant.tree.q_index[body]] += (
            1e-6  # what the encoder reads; the robot is at m.q
        )
        change = (com(m.model, m.q[2]) - com(m.model, q)) / 1e-6
        np.testing.assert_allclose(change, memory.jacobian[:, column], atol=1e-5)


def test_an_imu_that_is_late() -> None:
    m = motion()
    wrenches = m.wrenches()
    late = m.window(wrenches, late=1)
    column = late.A[:, m.layout.plant.blocks.imu_delay] * DT
    check(column, late.y, m.window(wrenches).y, 0.1)
