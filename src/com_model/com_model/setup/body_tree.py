"""The tree of a robot's moving bodies: which chains reach the ground, what mirrors what."""

from collections.abc import Sequence

import numpy as np

from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.model import RobotModel
from com_model.shapes.hulls import Outside

GROUND = (
    0.2  # of the robot's height: a limb that ends lower than this stands on the ground
)
SHORTEST_LEG = (
    0.2  # of the robot's height, from the first joint to the ground; casters have less
)
ABOVE = 0.15  # of the hips' height, by which they may be above the CoM of the rest; shoulders are
MIDDLE = (
    0.02  # of the robot's height, off the middle plane: a body that is on neither side
)
ASYMMETRY = 0.05  # of the robot's height, by which mirrored places may differ


class BodyTree:
    """The moving bodies of a robot in its neutral posture, in the robot's axes.

    Args:
        R_root_robot: (3, 3) rotation from the robot's axes to the root link's.

    Attributes:
        R, p: (B, 3, 3) and (B, 3) m, poses of the bodies, origin of the root link.
        low: (B,) m, lowest z of each body.
        middles: (B, 3) m, means of their points.
        height: m, of the robot.
        standing: Leaves of the tree that end near the ground.
    """

    def __init__(
        self, model: RobotModel, outside: Outside, R_root_robot: Array
    ) -> None:
        self.model, self.bodies, self.R_root_robot = model, model.bodies, R_root_robot
        self.outside = outside
        self.R, self.p = body_poses(model.bodies, model.neutral, R_root_robot.T)
        coms = self.bodies.first_moment / np.maximum(self.bodies.mass, 1e-9)[:, None]
        clouds = [
            np.concatenate([[[0.0, 0.0, 0.0]], [com], points]) @ R.T + p
            for com, points, R, p in zip(
                coms, outside.points, self.R, self.p, strict=True
            )
        ]
        self.coms = np.einsum("bij,bj->bi", self.R, coms) + self.p
        self.low = np.array([cloud[:, 2].min() for cloud in clouds])
        self.ground = float(self.low.min())
        self.height = float(max(cloud[:, 2].max() for cloud in clouds)) - self.ground
        self.middles = np.array([cloud.mean(axis=0) for cloud in clouds])
        parents = set(self.bodies.parent.tolist())
        self.leaves = [b for b in range(1, self.bodies.count) if b not in parents]
        near = self.ground + GROUND * self.height
        self.standing = [
            b for b in self.leaves if self.low[self.bodies.path_to(b)[-2:]].min() < near
        ]

    def joints(self, bodies: Sequence[int]) -> tuple[str, ...]:
        """Names of the independent joints above bodies, in the order of q."""
        names = {self.bodies.joint_names[b] for b in bodies}
        return tuple(name for name in self.model.joint_names if name in names)

    def subtree(self, body: int) -> range:
        """A body and all below it."""
        return range(body, int(self.bodies.subtree_end[body]))

    def legs(self) -> tuple[list[list[int]], int]:
        """Leaves of each leg, and the body from which the legs start."""
        limbs = self._split(
            [b for b in self.standing if len(self.bodies.path_to(b)) > 1]
        )
        chains = []
        for leaves in limbs:
            start = self.start(leaves, limbs)
            path = [b for b in self.bodies.path_to(leaves[0]) if b >= start]
            drop = self.p[path[0], 2] - min(self.low[b] for b in self.subtree(start))
            high = self.p[path[0], 2] - self.ground
            beside = self.p[path[0], 2] - self._rest_height(limbs)
            if (
                len(path) > 1
                and drop > SHORTEST_LEG * self.height
                and beside < ABOVE * high
            ):
                chains.append(leaves)
        hips = (
            self.common([leaf for leaves in chains for leaf in leaves]) if chains else 0
        )
        return chains, hips

    def _rest_height(self, limbs: list[list[int]]) -> float:
        """Height of the centre of mass of all bodies that are in none of the limbs."""
        starts = [self.start(leaves, limbs) for leaves in limbs]
        mass = np.array(self.bodies.mass)
        for start in starts:
            mass[list(self.subtree(start))] = 0.0
        return (
            float(mass @ self.coms[:, 2] / mass.sum()) if mass.sum() > 0.0 else np.inf
        )

    def start(self, leaves: list[int], limbs: list[list[int]]) -> int:
        """First body that this limb has for itself."""
        foreign = {
            b
            for other in limbs
            if other is not leaves
            for b in self.bodies.path_to(other[0])
        }
        return next(
            (b for b in self.bodies.path_to(leaves[0]) if b not in foreign), leaves[0]
        )

    def common(self, leaves: Sequence[int]) -> int:
        """The last body that is above all of some bodies, or one of them."""
        paths = [[0, *self.bodies.path_to(leaf)] for leaf in leaves]
        common = set(paths[0]).intersection(*paths[1:])
        return max(common)

    def _split(self, leaves: list[int]) -> list[list[int]]:
        """Groups leaves by limb: branches at a body in the middle plane are different limbs."""
        if len(leaves) < 2:
            return [leaves] if leaves else []
        fork = self.common(leaves)
        if abs(self.p[fork, 1]) > MIDDLE * self.height and fork > 0:
            return [leaves]
        branches: dict[int, list[int]] = {}
        for leaf in leaves:
            path = [0, *self.bodies.path_to(leaf), leaf]
            branches.setdefault(path[path.index(fork) + 1], []).append(leaf)
        return [limb for branch in branches.values() for limb in self._split(branch)]

    def mirrored(self, first: int, second: int) -> bool:
        """Whether two bodies are at mirrored places."""
        away = self.p[first] - self.p[second] * [1.0, -1.0, 1.0]
        return bool(np.abs(away).max() < ASYMMETRY * self.height)

    def children(self, body: int) -> list[int]:
        """The bodies below a body."""
        return np.flatnonzero(self.bodies.parent == body).tolist()

    def depth(self, body: int) -> int:
        """Joints of the longest chain that begins with a body's."""
        return 1 + max((self.depth(child) for child in self.children(body)), default=0)

    def reach(self, body: int) -> tuple[float, int]:
        """Length (m) of the way from joint to joint between the root and a body, and the joints."""
        path = self.bodies.path_to(body)
        return float(np.linalg.norm(self.bodies.d[path], axis=1).sum()), len(path)

    def is_wheel(self, body: int) -> bool:
        """Whether a body is round about the axis of its joint, which is not vertical."""
        points, axis = self.outside.points[body], self.bodies.axis[body]
        if len(points) < 20 or abs((self.R[body] @ axis)[2]) > 0.5:
            return False
        across = points - np.outer(points @ axis, axis)
        radius = float(np.linalg.norm(across, axis=1).max())
        middle = 0.5 * (across.max(axis=0) + across.min(axis=0))
        return bool(
            np.linalg.norm(middle) < 0.1 * radius
            and np.ptp(points @ axis) < 1.5 * radius
        )
