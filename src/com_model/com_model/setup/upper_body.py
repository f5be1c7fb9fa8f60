"""Arms, hands, waist and head: what a robot has beside its legs."""

import numpy as np

from com_model.setup.body_tree import MIDDLE, BodyTree

ARM_JOINTS = 3  # of a chain at a side, at least


def find_upper_body(
    tree: BodyTree, hips: int, taken: set[int], humanoid: bool
) -> tuple[int, dict[str, tuple[str, ...]]]:
    """Finds the trunk and the arms.

    Args:
        hips: The body from which the legs start.
        taken: The bodies of the legs.
        humanoid: Whether the body that carries the arms is the trunk.

    Returns:
        The trunk's body, and the joints that are no leg's by the name of their group.
    """
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
    waist = [b for b in (*bodies.path_to(trunk), *bodies.path_to(hips)) if b not in taken]
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
