"""Mimic joints: which independent joint each one follows, through any chain of others."""

from __future__ import annotations

from collections.abc import Mapping

from com_model.exceptions import UrdfError
from com_model.text import closest, listing, quote
from com_model.urdf.parsing import Joint, Mimic


def resolve_mimics(moving: Mapping[str, Joint], fixed: Mapping[str, Joint]) -> dict[str, Mimic]:
    """Expresses every mimic joint by the independent joint at the end of its chain.

    position = multiplier * position of the master + offset; of two in a chain,
    a (b q + c) + d = a b q + (a c + d).

    Args:
        moving: All joints that move, by name.
        fixed: The fixed ones.

    Returns:
        Per mimic joint the independent joint, multiplier and offset.

    Raises:
        UrdfError: A chain that leads to a missing or fixed joint, or in a circle.
    """
    resolved: dict[str, Mimic] = {}
    for name, joint in moving.items():
        chain: dict[str, None] = {}  # in order
        while joint.mimic is not None and joint.name not in resolved:
            if joint.name in chain:
                circle = " -> ".join(quote(n)[1:-1] for n in [*list(chain)[:9], joint.name])
                fix = "Let one of them move by itself: delete its <mimic>"
                raise UrdfError(f"mimics itself: {circle}", moving[name].element, fix)
            chain[joint.name] = None
            joint = _master(joint, moving, fixed)
        for follower in reversed(chain):
            resolved[follower] = _compose(moving[follower], resolved)
    return resolved


def _master(joint: Joint, moving: Mapping[str, Joint], fixed: Mapping[str, Joint]) -> Joint:
    mimic = joint.mimic
    if mimic is None:
        return joint
    where = f"<mimic> of {joint.element}"
    if mimic.master in fixed:
        problem = f"follows {quote(mimic.master)}, which is fixed"
        fix = "Delete the <mimic>, make this joint fixed too, or let the other one move"
        raise UrdfError(problem, where, fix)
    if mimic.master not in moving:
        meant = closest(mimic.master, list(moving))
        fix = f"Did you mean {quote(meant)}? " if meant else "Name a joint that exists. "
        fix += f"The moving joints are {listing(moving)}"
        raise UrdfError(f"follows {quote(mimic.master)}, which does not exist", where, fix)
    return moving[mimic.master]


def _compose(joint: Joint, resolved: Mapping[str, Mimic]) -> Mimic:
    own = joint.mimic
    if own is None or own.master not in resolved:
        return own or Mimic(joint.name, 1.0, 0.0)
    chain = resolved[own.master]
    return Mimic(
        chain.master,
        own.multiplier * chain.multiplier,
        own.multiplier * chain.offset + own.offset,
    )
