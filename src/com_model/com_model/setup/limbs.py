"""Which chains of a robot are legs and arms, which is its trunk: from the tree and its symmetry.

Everything is judged in the neutral posture, in the robot's axes: x forwards, y left, z upwards.
They are the root link's (REP 103), unless no leg points down its z axis, or names of the legs
contradict sides and ends so that a turn about the vertical explains it.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.exceptions import ComModelError, listing
from com_model.geometry.rotations import rotation_from_rpy
from com_model.model import RobotModel
from com_model.setup.parts import HUMANOID, OTHER, QUADRUPED, Leg, Limbs
from com_model.shapes.hulls import Outside

# of the robot's height, from the first joint to the ground; casters have less
SHORTEST_LEG = 0.2
# of the robot's height, off the middle plane: a body that is on neither side
MIDDLE = 0.02
ASYMMETRY = 0.05  # of the robot's height, by which mirrored places may differ
_WORD = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_LEG = re.compile(
    "leg|hip|knee|ankle|foot|thigh|shank|calf|shin|tibia|femur", re.IGNORECASE
)
_SIDES = {"l": "left", "r": "right"}
_ENDS = {"f": "front", "h": "hind", "b": "hind", "r": "hind"}
_PLACES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("left", "l"), ("left",)),
    **dict.fromkeys(("right", "r"), ("right",)),
    **{
        f"{k}{part}": (side,)
        for k, side in _SIDES.items()
        for part in ("leg", "hip", "foot")
    },
    **dict.fromkeys(("front", "fore"), ("front",)),
    **dict.fromkeys(("hind", "rear", "back"), ("hind",)),
    **{s + e: (_SIDES[s], _ENDS[e]) for s in "lr" for e in "fhbr"},
    **{e + s: (_SIDES[s], _ENDS[e]) for s in "lr" for e in "fhbr"},
}
_LEG_LEFT_RIGHT = {"ll": ("left",), "lr": ("right",)}
_MANY_LEGS = {6: "hexapod", 8: "octopod"}
_X, _Y, _Z = np.eye(3)
_UPRIGHT = [
    np.column_stack([np.cross(y, z), y, z]) for y, z in ((_Y, _Z), (-_Z, _Y), (_Y, _X))
]
"""R_root_robot with z, y and x of the root link upwards."""


class NoLegsError(ComModelError):
    """A robot that does not stand on two or more legs."""


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
        # the root link's frame may be far from the robot, as that of a massless "world" is
        joint = np.ones(self.bodies.count, dtype=bool)
        joint[0] = not len(outside.points[0]) and self.bodies.mass[0] == 0.0
        clouds = [
            np.concatenate([np.zeros((int(own), 3)), [com], points]) @ R.T + p
            for own, com, points, R, p in zip(
                joint, coms, outside.points, self.R, self.p, strict=True
            )
        ]
        self.coms = np.einsum("bij,bj->bi", self.R, coms) + self.p
        self.low = np.array([cloud[:, 2].min() for cloud in clouds])
        self.ground = float(self.low.min())
        self.height = float(max(cloud[:, 2].max() for cloud in clouds)) - self.ground
        self.middles = np.array([cloud.mean(axis=0) for cloud in clouds])
        parents = set(self.bodies.parent.tolist())
        self.leaves = [b for b in range(1, self.bodies.count) if b not in parents]
        near = self.ground + 0.2 * self.height
        self.standing = [
            b for b in self.leaves if self.low[self.bodies.path_to(b)[-2:]].min() < near
        ]

    def pitches(self, leg: Leg) -> bool:
        """Whether a joint of a leg turns about an axis to the side, within 45 degrees."""
        own = list(leg.bodies)
        axes = np.einsum("bij,bj->bi", self.R[own], self.bodies.axis[own])
        return bool((np.abs(axes[:, 1]) > np.sqrt(0.5)).any())

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
        # a limb is its chain to the ground, whatever else ends on it: rods and gears of a linkage
        limbs = [sorted(leaves, key=self._above_lowest(leaves)) for leaves in limbs]
        chains = []
        for leaves in limbs:
            start = self.start(leaves, limbs)
            path = [b for b in self.bodies.path_to(leaves[0]) if b >= start]
            drop = self.p[path[0], 2] - min(self.low[b] for b in self.subtree(start))
            high = self.p[path[0], 2] - self.ground
            beside = self.p[path[0], 2] - self._rest_height(limbs)
            # of the hips' height, by which they may be above the CoM of the rest; shoulders are
            if (
                len(path) > 1
                and drop > SHORTEST_LEG * self.height
                and beside < 0.15 * high
            ):
                chains.append(leaves)
        hips = (
            self.common([leaf for leaves in chains for leaf in leaves]) if chains else 0
        )
        return chains, hips

    def _above_lowest(self, leaves: list[int]) -> Callable[[int], bool]:
        """Whether a leaf of a limb, or the body before it, ends above the limb's lowest point."""
        low = {b: self.low[self.bodies.path_to(b)[-2:]].min() for b in leaves}
        level = min(low.values()) + 0.01 * self.height
        return lambda leaf: bool(low[leaf] > level)

    def repeated_limbs(self) -> list[list[int]]:
        """Leaves of the limbs that one body carries in mirrored pairs, all with equal bones.

        Legs are built alike, whatever the joints' angles at q = 0: four or more such limbs are
        legs even where they are stretched out. Bones may differ by ASYMMETRY of a limb's length.

        Returns:
            The largest such group, each limb as [leaf], or nothing.
        """
        groups: list[list[int]] = []
        for leaf in self.leaves:
            for group in groups:
                if self._same_bones(leaf, group[0]):
                    group.append(leaf)
                    break
            else:
                groups.append([leaf])
        best = max(groups, key=len, default=[])
        firsts = [self.bodies.path_to(leaf)[0] for leaf in best]
        paired = all(any(self.mirrored(a, b) for b in firsts if b != a) for a in firsts)
        return [[leaf] for leaf in best] if len(best) > 3 and paired else []

    def names_legs(self, limbs: list[list[int]]) -> bool:
        """Whether the names of the links and joints of each limb have a leg's part among them.

        Args:
            limbs: Leaves of each limb.
        """
        names = (self.bodies.names, self.bodies.joint_names)
        return all(
            any(
                _LEG.search(of[b]) for of in names for b in self.bodies.path_to(limb[0])
            )
            for limb in limbs
        )

    def _same_bones(self, first: int, second: int) -> bool:
        """Whether the chains from the root to two bodies have joints at equal distances."""
        paths = [self.bodies.path_to(leaf) for leaf in (first, second)]
        if len(paths[0]) != len(paths[1]) or len(paths[0]) < 2:
            return False
        bones = [np.linalg.norm(self.bodies.d[path[1:]], axis=1) for path in paths]
        length = bones[1].sum()
        alike = np.abs(bones[0] - bones[1]).max() < ASYMMETRY * length
        apart = paths[0][0] != paths[1][0]
        return bool(apart and alike and length > SHORTEST_LEG * self.height)

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
        """First body that this limb has for itself.

        Args:
            leaves: Leaves of this limb.
            limbs: Leaves of all limbs, this one among them.
        """
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
        """Whether two bodies are at mirrored places.

        Args:
            first: Index of a body.
            second: Index of the other.
        """
        away = self.p[first] - self.p[second] * [1.0, -1.0, 1.0]
        return bool(np.abs(away).max() < ASYMMETRY * self.height)

    def children(self, body: int) -> list[int]:
        """The bodies below a body."""
        return np.flatnonzero(self.bodies.parent == body).tolist()

    def depth(self, body: int) -> int:
        """Joints of the longest chain that begins with a body's."""
        return 1 + max((self.depth(child) for child in self.children(body)), default=0)

    def is_wheel(self, body: int) -> bool:
        """Whether a body is round about the axis of its joint, which is not vertical.

        Without a shape, whether its name or its joint's says so.
        """
        points, axis = self.outside.points[body], self.bodies.axis[body]
        if not len(points):
            names = self.bodies.names[body] + self.bodies.joint_names[body]
            return "wheel" in names.lower()
        if len(points) < 20 or abs((self.R[body] @ axis)[2]) > 0.5:
            return False
        across = points - np.outer(points @ axis, axis)
        radius = float(np.linalg.norm(across, axis=1).max())
        middle = 0.5 * (across.max(axis=0) + across.min(axis=0))
        return bool(
            np.linalg.norm(middle) < 0.1 * radius
            and np.ptp(points @ axis) < 1.5 * radius
        )


def find_limbs(model: RobotModel, outside: Outside) -> Limbs:
    """Finds legs, arms, trunk and groups of joints.

    Args:
        model: The robot.
        outside: Points of its shapes.

    Returns:
        The limbs.

    Raises:
        NoLegsError: It does not stand on two or more legs.
    """
    trees = [BodyTree(model, outside, R) for R in _UPRIGHT]
    found = [(tree, *tree.legs()) for tree in trees]
    # z is up (REP 103) unless only another axis gives legs, by name, too: with a mesh missing, or
    # all joints at 0 stretched out, a robot may look as if it stood on hands and feet
    alike = trees[0].repeated_limbs()
    if len(alike) > max(3, len(found[0][1])):
        hips = trees[0].common([leaf for leaves in alike for leaf in leaves])
        found[0] = (trees[0], alike, hips)
    found = [found[0], *(f for f in found[1:] if f[0].names_legs(f[1]))]
    tree, chains, hips = next((f for f in found if len(f[1]) > 1), found[0])
    if len(chains) < 2:
        ends = listing(model.bodies.names[b] for b in tree.standing) or "none"
        raise NoLegsError(
            f"no legs: {len(chains)} chains of two or more joints reach from the upper part to the "
            f"ground, 2 or more are needed (ends near the ground: {ends})"
        )
    kind = {2: HUMANOID, 4: QUADRUPED}.get(len(chains), OTHER)
    turned = [
        BodyTree(
            model,
            outside,
            tree.R_root_robot @ rotation_from_rpy([0.0, 0.0, k * np.pi / 2]),
        )
        for k in range(4)
    ]
    named = [_named_legs(one, chains, kind) for one in turned]
    scores = [_agreement(one, legs) for one, legs in zip(turned, named, strict=True)]
    best = int(np.argmax(scores))
    tree, legs = turned[best], named[best]
    rolling = [leg.name for leg in legs if tree.is_wheel(leg.foot)]
    if rolling:
        raise NoLegsError(
            f"no legs: {listing(rolling)} end in wheels; it does not walk"
        )
    if kind == HUMANOID and not any(tree.pitches(leg) for leg in legs):
        raise NoLegsError(
            "no legs: its two legs stand one behind the other, and no joint swings them forwards; "
            "walks are for two legs side by side"
        )
    issues = _asymmetries(tree, legs)
    if best or tree.R_root_robot[2, 2] < 1.0:
        x, z = (_axis_name(tree.R_root_robot[:, k]) for k in (0, 2))
        issues.append(
            f"forwards is {x} and up is {z} of {model.root_link}, as its legs show"
        )
    own = {b for leg in legs for b in (*leg.bodies, *leg.others)}
    if kind == OTHER:
        issues.append(
            f"{_MANY_LEGS.get(len(legs), f'a robot with {len(legs)} legs')}: publishing and audit "
            "work, gaits do not (walks are for two legs, trots for four)"
        )
    groups = {leg.name: tree.joints((*leg.bodies, *leg.others)) for leg in legs}
    trunk, upper = find_upper_body(tree, hips, own, kind == HUMANOID)
    groups |= upper
    return Limbs(
        kind, trunk, hips, legs, tree.R_root_robot, groups, tree.height, tuple(issues)
    )


def _named_legs(tree: BodyTree, chains: list[list[int]], kind: str) -> tuple[Leg, ...]:
    bodies = tree.bodies
    starts = [tree.start(leaves, chains) for leaves in chains]
    places = np.array([tree.middles[leaves[0]] for leaves in chains])
    hips = tree.p[starts]
    middle = float(hips[:, 0].mean())
    legs: dict[str, Leg] = {}
    order = sorted(
        range(len(chains)), key=lambda i: (-round(hips[i, 0], 2), -places[i, 1])
    )
    for i in order:
        leaves = chains[i]
        side = "left" if places[i, 1] > 0 else "right"
        end = ""
        if kind == QUADRUPED:
            end = "front" if hips[i, 0] > middle else "hind"
        name = "_".join(word for word in (side, end, "leg") if word)
        if name in legs:
            name = f"{name}_{1 + sum(other.startswith(name) for other in legs)}"
        path = [b for b in bodies.path_to(leaves[0]) if b >= starts[i]]
        own = set(tree.subtree(starts[i]))
        foot = _foot_of(tree, path)
        kept = path[: path.index(foot) + 1]
        legs[name] = Leg(name, side, end, tuple(kept), tuple(sorted(own - set(kept))))
    return tuple(legs.values())


def _foot_of(tree: BodyTree, path: list[int]) -> int:
    """The body of a leg that stands: a foot before its toe, where both reach the ground."""
    if len(path) < 2:
        return path[-1]
    toe, foot = path[-1], path[-2]
    same_level = tree.low[foot] < tree.low[toe] + 0.01 * tree.height
    stands = same_level and len(tree.outside.points[foot]) > 0
    # no ankle's roll
    ahead = float(np.linalg.norm(tree.bodies.d[toe])) > MIDDLE * tree.height
    return foot if stands and ahead and len(path) > 3 else toe


def _asymmetries(tree: BodyTree, legs: tuple[Leg, ...]) -> list[str]:
    """Sentences on legs that have no mirror image; also on names that contradict the side."""
    issues = []
    places = _named_places(tree, legs)
    for leg, (side, end) in zip(legs, places, strict=True):
        others = [
            o for o in legs if o.side != leg.side and len(o.bodies) == len(leg.bodies)
        ]
        if not any(tree.mirrored(leg.bodies[0], other.bodies[0]) for other in others):
            issues.append(
                f"{leg.name} has no mirror image on the other side of the root's y = 0"
            )
        if (side and side != leg.side) or (end and leg.end and end != leg.end):
            issues.append(
                f"{leg.name} is called {side} {end} in the URDF".replace("  ", " ")
            )
    return issues


def _agreement(tree: BodyTree, legs: tuple[Leg, ...]) -> float:
    """How well sides and ends of legs agree with their names and with the robot's shape."""
    score = 0.0
    for leg, (side, end) in zip(legs, _named_places(tree, legs), strict=True):
        score += (side == leg.side) - bool(side and side != leg.side)
        score += bool(leg.end) * ((end == leg.end) - bool(end and end != leg.end))
    hips = np.ptp([tree.p[leg.bodies[0]] for leg in legs], axis=0)
    wide = hips[1] > hips[0] if len(legs) == 2 else hips[0] > 0.7 * hips[1]
    return score + 0.5 * bool(wide)


def _named_places(tree: BodyTree, legs: tuple[Leg, ...]) -> list[tuple[str, str]]:
    """Side and end of which most names of each leg's links and joints speak; "" where none does.

    What all legs have in their names shows no place: HR in LL_HR and LR_HR is the rotation of the
    hip. LL and LR are the left and the right leg where both occur, else LR is left and rear.
    """
    bodies = tree.bodies
    words = [
        Counter(
            word.lower()
            for b in leg.bodies
            for name in (bodies.names[b], bodies.joint_names[b])
            for word in _WORD.findall(name)
        )
        for leg in legs
    ]
    common = reduce(Counter.__and__, words)
    words = [own - common for own in words]
    both = {"ll", "lr"} <= {word for own in words for word in own}
    places = {**_PLACES, **(_LEG_LEFT_RIGHT if both else {})}
    found = []
    for own in words:
        votes: Counter[str] = Counter()
        for word, count in own.items():
            votes.update(dict.fromkeys(places.get(word, ()), count))
        side, end = (
            max(pair, key=lambda word: votes[word])
            if votes[pair[0]] != votes[pair[1]]
            else ""
            for pair in (("left", "right"), ("front", "hind"))
        )
        found.append((side, end))
    return found


def _axis_name(axis: Array) -> str:
    k = int(np.argmax(np.abs(axis)))
    return f"{'-' * int(axis[k] < 0.0)}{'xyz'[k]}"


def find_upper_body(
    tree: BodyTree, hips: int, taken: set[int], humanoid: bool
) -> tuple[int, dict[str, tuple[str, ...]]]:
    """Finds the trunk, which carries a humanoid's arms, and the groups of no leg's joints.

    Args:
        tree: The tree of the bodies.
        hips: The body from which the legs start.
        taken: The bodies of the legs.
        humanoid: Whether it stands on two legs: then it may have arms.

    Returns:
        The trunk, a body; and names of independent joints by group.
    """
    bodies, eps = tree.bodies, MIDDLE * tree.height
    rest = [b for b in range(1, bodies.count) if b not in taken]
    arms: list[int] = []
    for b in rest:
        inside = any(b in tree.subtree(a) for a in arms)
        sides = np.sign(tree.p[list(tree.subtree(b)), 1])
        aside = abs(tree.p[b, 1]) > eps and (sides == sides[0]).all()
        if not inside and aside and tree.depth(b) >= 3:
            arms.append(b)
    arms = [a for a in arms if any(tree.mirrored(a, b) for b in arms)]
    trunk = hips
    if arms and humanoid:
        trunk = tree.common([int(bodies.parent[a]) for a in arms])
    waist = [
        b for b in (*bodies.path_to(trunk), *bodies.path_to(hips)) if b not in taken
    ]
    groups = {"waist": tree.joints(waist)} if waist else {}
    used = set(waist)
    for arm in arms:
        side = "left" if tree.p[arm, 1] > 0 else "right"
        chain = [arm]
        while len(children := tree.children(chain[-1])) == 1:
            chain.append(children[0])
        name = f"{side}_arm" + "_2" * (f"{side}_arm" in groups)
        groups[name] = tree.joints(chain)
        hand = [b for b in tree.subtree(arm) if b not in chain]
        if hand:
            groups[name.replace("arm", "hand")] = tree.joints(hand)
        used |= set(tree.subtree(arm))
    for b in rest:
        if b in used:
            continue
        members = [m for m in tree.subtree(b) if m not in used and m not in taken]
        used |= set(members)
        above = tree.p[b, 2] >= tree.p[trunk, 2]
        long = tree.depth(b) > 3
        name = "head" if above and humanoid else "arm" if long else "upper_body"
        groups[name] = groups.get(name, ()) + tree.joints(members)
    return trunk, {name: joints for name, joints in groups.items() if joints}
