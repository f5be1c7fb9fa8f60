"""Which chains of a robot are legs and arms, which is its trunk: from the tree and its symmetry.

Everything is judged in the neutral posture, in the robot's axes: x forwards, y left, z upwards.
They are the root link's (REP 103), unless no leg points down its z axis, or names of the legs
contradict sides and ends so that a turn about the vertical explains it.
"""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array
from com_model.exceptions import ComModelError
from com_model.geometry.rotations import rotation_from_rpy
from com_model.model import RobotModel
from com_model.setup.body_tree import ASYMMETRY, MIDDLE, BodyTree
from com_model.shapes.hulls import Outside
from com_model.text import listing

HUMANOID, QUADRUPED, OTHER = "humanoid", "quadruped", "other"


_WORD = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
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
    **{s + e: (_SIDES[s], _ENDS[e]) for s in "lr" for e in "fhb"},
    **{e + s: (_SIDES[s], _ENDS[e]) for s in "lr" for e in "fhbr"},
}
_X, _Y, _Z = np.eye(3)
_UPRIGHT = [
    np.column_stack([np.cross(y, z), y, z]) for y, z in ((_Y, _Z), (-_Z, _Y), (_Y, _X))
]
"""R_root_robot with z, y and x of the root link upwards."""


class NoLegsError(ComModelError):
    """A robot that does not stand on two or more legs."""


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg: its moving bodies from the first one of its own to the foot."""

    name: str  # left_leg, right_leg; left_front_leg ... of a quadruped.
    side: str  # left, right or center
    end: str  # front or hind of a quadruped, else ""
    bodies: tuple[int, ...]  # of the chain to the foot
    others: tuple[int, ...] = ()  # bodies beyond the foot's, such as toes

    @property
    def foot(self) -> int:
        """The body that stands on the ground."""
        return self.bodies[-1]


@dataclass(frozen=True, eq=False)
class Limbs:
    """What a robot consists of."""

    kind: str  # humanoid (two legs), quadruped (four) or other
    trunk: int  # the body that carries the arms of a humanoid; that from which the legs start, else
    hips: int  # the body from which the legs start
    legs: tuple[Leg, ...]  # left before right, front before hind
    R_root_robot: Array  # (3, 3) rotation from the robot's axes to the root link's
    groups: dict[str, tuple[str, ...]]  # independent joints by the name of their group
    height: float  # m, of the robot in its neutral posture
    issues: tuple[str, ...] = ()  # what looks wrong, for people


def find_limbs(model: RobotModel, outside: Outside) -> Limbs:
    """Finds legs, arms, trunk and groups of joints; NoLegsError with less than two legs."""
    trees = [BodyTree(model, outside, R) for R in _UPRIGHT]
    found = [(tree, *tree.legs()) for tree in trees]
    tree, chains, hips = max(
        found, key=lambda f: len(f[1]) if len(f[1]) in (2, 4) else 1
    )
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
    issues = _asymmetries(tree, legs)
    if best or tree.R_root_robot[2, 2] < 1.0:
        x, z = (_axis_name(tree.R_root_robot[:, k]) for k in (0, 2))
        issues.append(
            f"forwards is {x} and up is {z} of {model.root_link}, as its legs show"
        )
    own = {b for leg in legs for b in (*leg.bodies, *leg.others)}
    length, joints = tree.reach(legs[0].foot)
    like = [
        b
        for b in tree.leaves
        if b not in own and tree.reach(b)[1] == joints
        if abs(tree.reach(b)[0] - length) < ASYMMETRY * length
    ]
    if kind == HUMANOID and len(like) > 1:
        names = listing([model.bodies.names[b] for b in like])
        issues.append(
            f"limbs that end in {names} are like its legs: where these stand as well, it is no "
            "humanoid; write its feet, kind and posture by hand"
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
    ahead = (
        float(np.linalg.norm(tree.bodies.d[toe])) > MIDDLE * tree.height
    )  # no ankle's roll
    return foot if stands and ahead and len(path) > 3 else toe


def _asymmetries(tree: BodyTree, legs: tuple[Leg, ...]) -> list[str]:
    """Sentences on legs that have no mirror image; also on names that contradict the side."""
    issues = []
    for leg in legs:
        others = [
            o for o in legs if o.side != leg.side and len(o.bodies) == len(leg.bodies)
        ]
        if not any(tree.mirrored(leg.bodies[0], other.bodies[0]) for other in others):
            issues.append(
                f"{leg.name} has no mirror image on the other side of the root's y = 0"
            )
        side, end = _named_place(tree, leg)
        if (side and side != leg.side) or (end and leg.end and end != leg.end):
            issues.append(
                f"{leg.name} is called {side} {end} in the URDF".replace("  ", " ")
            )
    return issues


def _agreement(tree: BodyTree, legs: tuple[Leg, ...]) -> float:
    """How well sides and ends of legs agree with their names and with the robot's shape."""
    score = 0.0
    for leg in legs:
        side, end = _named_place(tree, leg)
        score += (side == leg.side) - bool(side and side != leg.side)
        score += bool(leg.end) * ((end == leg.end) - bool(end and end != leg.end))
    hips = np.ptp([tree.p[leg.bodies[0]] for leg in legs], axis=0)
    wide = hips[1] > hips[0] if len(legs) == 2 else hips[0] > 0.7 * hips[1]
    return score + 0.5 * bool(wide)


def _named_place(tree: BodyTree, leg: Leg) -> tuple[str, str]:
    """Side and end of which most names of a leg's links and joints speak; "" where none does."""
    votes: Counter[str] = Counter()
    for b in leg.bodies:
        for name in (tree.bodies.names[b], tree.bodies.joint_names[b]):
            for word in _WORD.findall(name):
                votes.update(_PLACES.get(word.lower(), ()))
    side, end = (
        max(pair, key=lambda word: votes[word])
        if votes[pair[0]] != votes[pair[1]]
        else ""
        for pair in (("left", "right"), ("front", "hind"))
    )
    return side, end


def _axis_name(axis: Array) -> str:
    k = int(np.argmax(np.abs(axis)))
    return f"{'-' * int(axis[k] < 0.0)}{'xyz'[k]}"


ARM_JOINTS = 3  # of a chain at a side, at least


def find_upper_body(
    tree: BodyTree, hips: int, taken: set[int], humanoid: bool
) -> tuple[int, dict[str, tuple[str, ...]]]:
    """Finds the trunk, which carries a humanoid's arms, and the groups of no leg's joints."""
    bodies, eps = tree.bodies, MIDDLE * tree.height
    rest = [b for b in range(1, bodies.count) if b not in taken]
    arms: list[int] = []
    for b in rest:
        inside = any(b in tree.subtree(a) for a in arms)
        sides = np.sign(tree.p[list(tree.subtree(b)), 1])
        aside = abs(tree.p[b, 1]) > eps and (sides == sides[0]).all()
        if not inside and aside and tree.depth(b) >= ARM_JOINTS:
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
