"""Statically equivalent serial chains: where a robot's centre of mass is and how it moves.

The centre of mass of any tree of links is the end of a serial chain whose links turn as the robot's
links do [Cotton]:

  CoM = p_root + sum over the bodies k of R_k r_k

with R_k the orientation of body k and r_k a vector that is fixed in it, save that a prismatic joint
lengthens its parent's. docs/derivations.md has the derivation.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import types
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array, as_rotation
from com_model.bodies import PRISMATIC, Bodies
from com_model.dynamics.kinematics import Given, body_poses
from com_model.exceptions import ComModelError
from com_model.model import RobotModel
from com_model.sesc import batch_kernels, kernels
from com_model.text import Facts, Shown, signed_mm

FLOAT64 = np.dtype(np.float64)
UPRIGHT, CENTRE = np.eye(3), np.zeros(3)
empty, ndarray = np.empty, np.ndarray


class Sesc(Shown):
    """The statically equivalent serial chain of a robot with n joints and K moving bodies.

    A body is a link with all that fixed joints tie to it; the root and the bodies of mimic joints
    count too. Calls take anything that numpy can read as float64 and return arrays of their own;
    those for one configuration take about a microsecond when q is a float64 array. NaN in q
    makes the centre of mass NaN. A Sesc may be used from several threads.

    Arguments of the methods, which raise ShapeError where one has another shape:
        q: (n,) joint positions, rad or m, in the order of model.joint_names. Q: (N, n), of many.
        R_world_root: (3, 3) orientation of the root link, identity by default; ComModelError where
            it is no rotation. The measured one brings the ground's slope in ([Cotton] eq. 11).
        p_world_root: (3,) m, position of the root link's frame; zero by default.
        threads: Number of threads that divide the work; the result is the same.

    Attributes:
        chain_links: K names, the first link of each body, depth-first.
        parameters: (K, 3) m, r_k at q = 0, each in the frame of its link; read-only.
    """

    def __init__(self, model: RobotModel) -> None:
        n = model.n_joints
        self.model = model
        self.chain_links: tuple[str, ...] = model.bodies.names
        self._vectors = sesc_vectors(model.bodies)
        # The kernels for one configuration work in it too; they hold the interpreter's lock.
        self._robot = pack(model.bodies)
        self._q_shape, self._shape, self._floating_shape = (n,), (3, n), (3, 6 + n)
        self._com = _compiled("com_of_one")
        self._com_and_jacobian = _compiled("com_and_jacobian_of_one")
        self.parameters = self.parameters_at(np.zeros(n))
        self.parameters.setflags(write=False)

    def facts(self) -> Facts:
        """The robot; the vector of each body."""
        rows = zip(self.chain_links, map(signed_mm, self.parameters), strict=True)
        return Facts(
            f"of {self.model.name!r}: {len(self.chain_links)} bodies",
            ("body", *("r " + axis + ", mm" for axis in "xyz")),
            [(name, *cells) for name, cells in rows],
        )

    def com(
        self, q: ArrayLike, R_world_root: Given = None, p_world_root: Given = None
    ) -> Array:
        """Computes the centre of mass, p_root + sum of R_k r_k ([Cotton] eqs 3, 7).

        Args:
            q: (n,) joint positions, rad or m.
            R_world_root: (3, 3) orientation of the root link in the world; identity by default.
            p_world_root: (3,) m, its origin; zero by default.

        Returns:
            (3,) m, in the world; in the root link's frame if no pose is given.
        """
        if not (type(q) is ndarray and q.dtype is FLOAT64 and q.shape == self._q_shape):
            q = self.model.check_q(q)
        com = empty(3)
        if R_world_root is None and p_world_root is None:
            self._com(q, self._robot, com)
        else:
            R, p = _pose(R_world_root, p_world_root)
            if not _compiled("com_of_placed")(q, self._robot, R, p, com):
                as_rotation("R_world_root", R)
        return com

    def com_and_jacobian(
        self,
        q: ArrayLike,
        R_world_root: Given = None,
        p_world_root: Given = None,
        floating: bool = False,
    ) -> tuple[Array, Array]:
        """Computes the CoM and its derivatives by the joints.

        Column of a revolute joint j: z_j x (sum over its subtree of R_k r_k), with z_j its axis
        ([Cotton] eq. 9); of a prismatic one: z_j M_j / M. What mimic joints do, times their
        multipliers, is added to the column of the joint that they follow.

        Args:
            q: (n,) joint positions, rad or m.
            R_world_root: (3, 3) orientation of the root link in the world; identity by default.
            p_world_root: (3,) m, its origin; zero by default.
            floating: Whether the motion of the root comes first: [1, -[CoM - p_root]x, joints],
                the CoM's velocity is jacobian @ (v_world_root, w_world_root, qd), world axes.

        Returns:
            CoM (3,) m, and Jacobian (3, n) or (3, 6 + n), m or 1, in world axes.
        """
        if not (type(q) is ndarray and q.dtype is FLOAT64 and q.shape == self._q_shape):
            q = self.model.check_q(q)
        com, jacobian = (
            empty(3),
            empty(self._floating_shape if floating else self._shape),
        )
        if R_world_root is None and p_world_root is None:
            self._com_and_jacobian(q, self._robot, com, jacobian)
        else:
            R, p = _pose(R_world_root, p_world_root)
            kernel = _compiled("com_and_jacobian_of_placed")
            if not kernel(q, self._robot, R, p, com, jacobian):
                as_rotation("R_world_root", R)
        return com, jacobian

    def com_velocity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        R_world_root: Given = None,
        p_world_root: Given = None,
        v_world_root: Given = None,
        w_world_root: Given = None,
    ) -> Array:
        """Computes the velocity of the centre of mass, v + w x (CoM - p_root) + J qd.

        Args:
            q: (n,) joint positions, rad or m.
            qd: (n,) joint velocities, rad/s or m/s.
            R_world_root: (3, 3) orientation of the root link in the world; identity by default.
            p_world_root: (3,) m, its origin; zero by default.
            v_world_root: (3,) m/s, velocity of the root's origin, world axes; zero by default.
            w_world_root: (3,) rad/s, its angular velocity, world axes; zero by default.

        Returns:
            (3,) m/s, world axes.
        """
        rates = np.zeros(6 + self.model.n_joints)
        rates[6:] = self.model.check_q(qd, "qd")
        if v_world_root is not None:
            rates[:3] = as_array("v_world_root", v_world_root, (3,))
        if w_world_root is not None:
            rates[3:6] = as_array("w_world_root", w_world_root, (3,))
        return (
            self.com_and_jacobian(q, R_world_root, p_world_root, floating=True)[1]
            @ rates
        )

    def com_batch(
        self,
        Q: ArrayLike,
        threads: int = 1,
        R_world_root: Given = None,
        p_world_root: Given = None,
    ) -> Array:
        """Computes the centres of mass of many configurations.

        Args:
            Q: (N, n) joint positions, rad or m.
            threads: How many threads share the work.
            R_world_root: (3, 3) orientation of the root link in the world; identity by default.
            p_world_root: (3,) m, its origin; zero by default.

        Returns:
            (N, 3) m.
        """
        return self._place_many(Q, threads, R_world_root, p_world_root, False)[0]

    def com_and_jacobian_batch(
        self,
        Q: ArrayLike,
        threads: int = 1,
        R_world_root: Given = None,
        p_world_root: Given = None,
    ) -> tuple[Array, Array]:
        """Computes the CoMs of many configurations and their Jacobians.

        Args:
            Q: (N, n) joint positions, rad or m.
            threads: How many threads share the work.
            R_world_root: (3, 3) orientation of the root link in the world; identity by default.
            p_world_root: (3,) m, its origin; zero by default.

        Returns:
            CoMs (N, 3) m, and Jacobians (N, 3, n), m or 1, in world axes.
        """
        return self._place_many(Q, threads, R_world_root, p_world_root, True)

    def parameters_at(self, q: ArrayLike) -> Array:
        """Computes r_k (K, 3) m in the frame of link k; only prismatic joints change them.

        r_k = (m_k c_k + sum over the children j of M_j (d_j + travel of j)) / M  ([Cotton] eq. 5)
        """
        bodies, vectors = self.model.bodies, self._vectors.copy()
        q = np.append(self.model.check_q(q), 0.0)
        for j in np.flatnonzero(bodies.joint_type == PRISMATIC):
            travel = bodies.multiplier[j] * q[bodies.q_index[j]] + bodies.offset[j]
            fraction = bodies.subtree_mass[j] / bodies.subtree_mass[0]
            vectors[bodies.parent[j]] += (
                fraction * travel * (bodies.R[j] @ bodies.axis[j])
            )
        return vectors

    def chain(
        self, q: ArrayLike, R_world_root: Given = None, p_world_root: Given = None
    ) -> Array:
        """Computes the points of the chain, p_root + partial sums of R_k r_k.

        Args:
            q: (n,) joint positions, rad or m.
            R_world_root: (3, 3) orientation of the root link in the world; identity by default.
            p_world_root: (3,) m, its origin; zero by default.

        Returns:
            (K + 1, 3) m: the root link's origin is the first, the centre of mass the last.
        """
        q = self.model.check_q(q)
        R, p = body_poses(self.model.bodies, q, R_world_root, p_world_root)
        steps = np.einsum("kij,kj->ki", R, self.parameters_at(q))
        return np.cumsum(np.vstack((p[:1], steps)), axis=0)

    def _place_many(
        self, Q: ArrayLike, threads: int, R: Given, p: Given, with_jacobian: bool
    ) -> tuple[Array, Array]:
        """CoMs of many configurations in threads, and their Jacobians; those are empty without."""
        names = ", ".join(self.model.joint_names)
        Q = as_array("Q", Q, (None, self.model.n_joints), f"The joints are {names}")
        com = np.empty((len(Q), 3))
        jacobian = np.empty((len(Q), *(self._shape if with_jacobian else (0, 0))))
        kernel = _compiled("com_and_jacobian_of_many")
        R, p = _pose(R, p)
        as_rotation("R_world_root", R)

        def work(part: slice) -> None:
            kernel(Q[part], self._robot, R, p, com[part], jacobian[part])

        _divide(threads, len(Q), work)
        return com, jacobian


def _pose(R: Given, p: Given) -> tuple[Array, Array]:
    """Converts the pose of the root; the kernels check that R is a rotation."""
    if not (type(R) is ndarray and R.dtype is FLOAT64 and R.shape == (3, 3)):
        R = UPRIGHT if R is None else as_array("R_world_root", R, (3, 3))
    if not (type(p) is ndarray and p.dtype is FLOAT64 and p.shape == (3,)):
        p = CENTRE if p is None else as_array("p_world_root", p, (3,))
    return R, p


@cache
def _compiled(name: str) -> Callable[..., Any]:
    """Compiles a kernel, or loads it from numba's cache; see com_model.compiled.entry_point."""
    vector, matrix, cube = (
        types.float64[::1],
        types.float64[:, ::1],
        types.float64[:, :, ::1],
    )
    any_vector, any_matrix = types.float64[:], types.float64[:, :]
    one, pose = (any_vector, matrix), (any_matrix, any_vector)
    arguments = {
        "com_of_one": (*one, vector),
        "com_and_jacobian_of_one": (*one, vector, matrix),
        "com_of_placed": (*one, *pose, vector),
        "com_and_jacobian_of_placed": (*one, *pose, vector, matrix),
        "com_and_jacobian_of_many": (any_matrix, matrix, *pose, matrix, cube),
    }
    kernel: Any = getattr(batch_kernels if name.endswith("many") else kernels, name)
    return kernel.compile(arguments[name]) if hasattr(kernel, "compile") else kernel


def _divide(threads: int, count: int, work: Callable[[slice], None]) -> None:
    """Divides range(count) into slices, one for each thread."""
    if not isinstance(threads, int | np.integer) or threads < 1:
        raise ComModelError(
            f"threads: expected a whole number from 1 up, got {threads!r}"
        )
    blocks = -(-count // batch_kernels.BLOCK)
    parts = max(1, min(int(threads), blocks))
    ends = [batch_kernels.BLOCK * (blocks * i // parts) for i in range(parts + 1)]
    slices = [slice(start, end) for start, end in pairwise(ends)]
    if parts == 1:
        work(slices[0])
        return
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(work, slices))


def sesc_vectors(bodies: Bodies) -> Array:
    """Computes the SESC vectors (B, 3) m, without the travels of prismatic joints.

    r_k = (m_k c_k + sum over the children j of M_j d_j) / M  ([Cotton] eq. 5, for any tree), with
    m_k c_k the first moment of body k, M_j the mass of subtree j, d_j the origin of its joint.
    """
    moments = np.array(bodies.first_moment)
    np.add.at(moments, bodies.parent[1:], bodies.subtree_mass[1:, None] * bodies.d[1:])
    return moments / bodies.subtree_mass[0]


def pack(bodies: Bodies) -> Array:
    """Turns every body's frame so that its joint works along z, and lists what the kernels need.

    With A_k the rotation from aligned to own axes of body k, the constant rotation between bodies
    becomes C_k = A_parent^T R_k A_k. The turn of A_k about z is free: it is chosen such that the
    next body, if it hangs on this one, has C = (turn about x) (turn about z), of which the second
    is added to its joint angle. Such a body is "chained". The rows (kernels.ROWS, B rounded up to a
    multiple of 8) are named in com_model.sesc.kernels.
    """
    count = bodies.count
    robot = np.zeros((kernels.ROWS, -(-count // 8) * 8))
    A = _aligned_frames(bodies)
    C = np.einsum("kji,kjl,klm->kim", A[bodies.parent], bodies.R, A)
    slides = bodies.joint_type == PRISMATIC
    fraction = bodies.subtree_mass / bodies.subtree_mass[0]
    chained = bodies.parent == np.arange(count) - 1
    chained[0] = False
    C[0] = A[0]
    rest = np.einsum("kji,kj->ki", A, sesc_vectors(bodies))
    shifts = np.where(slides, fraction * bodies.offset, 0.0)
    np.add.at(rest, bodies.parent[1:], shifts[1:, None] * C[1:, :, 2])
    robot[kernels.TURN, :count] = np.where(slides, 0.0, bodies.multiplier)
    robot[kernels.SLIDE, :count] = np.where(slides, bodies.multiplier * fraction, 0.0)
    robot[kernels.OFFSET, :count] = np.where(slides, 0.0, bodies.offset)
    robot[kernels.OFFSET, :count] += np.where(
        chained, np.arctan2(-C[:, 0, 1], C[:, 0, 0]), 0.0
    )
    robot[kernels.COS_TILT, :count], robot[kernels.SIN_TILT, :count] = (
        C[:, 2, 2],
        -C[:, 1, 2],
    )
    robot[kernels.REST : kernels.REST + 3, :count] = rest.T
    robot[kernels.ALIGN : kernels.ALIGN + 9, :count] = C.reshape(count, 9).T
    robot[kernels.PARENT, 1:count], robot[kernels.PARENT, 0] = bodies.parent[1:], count
    robot[kernels.DRIVER, 1:count] = bodies.q_index[1:]
    robot[kernels.CHAINED, :count] = chained
    robot[kernels.FORKS, bodies.parent[1:][~chained[1:]]] = 1
    return robot


def _aligned_frames(bodies: Bodies) -> Array:
    """Chooses A (B, 3, 3): z along the joint's axis, x square to the next axis of a chain too."""
    A = np.empty((bodies.count, 3, 3))
    for k in range(bodies.count):
        z = bodies.axis[k] if k else np.array([0.0, 0.0, 1.0])
        x = np.eye(3)[np.argmin(np.abs(z))]
        if k + 1 < bodies.count and bodies.parent[k + 1] == k:
            common = np.cross(z, bodies.R[k + 1] @ bodies.axis[k + 1])
            length = np.linalg.norm(common)
            # sine of the angle between two axes below which they count as parallel
            x = common / length if length > 1e-15 else x
        x = x - z * (z @ x)
        x /= np.linalg.norm(x)
        A[k] = np.column_stack((x, np.cross(z, x), z))
    return A
