"""Ranks: combinations of HOAP-2's 78 first moments that postures determine; what torques add."""

from __future__ import annotations

import numpy as np
from identification_scenario import GRAVITY, Array, hoap2
from rich.console import Console

from com_identification.regression.result import Identifiability, examine, rank_of
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics

POSTURES = 80
FEW = 12


def _free() -> Array:
    model = hoap2().model
    return np.random.default_rng(0).uniform(
        model.lower, model.upper, (POSTURES, model.n_joints)
    )


def _double(kept: bool) -> Array:
    """On both soles; kept: with the soles as at rest."""
    scenario, rng = hoap2(), np.random.default_rng(1)
    stance = FlatStance(
        Statics(scenario.model), scenario.feet, scenario.rest if kept else None
    )
    anywhere = rng.uniform(
        scenario.model.lower,
        scenario.model.upper,
        (6 * POSTURES, scenario.model.n_joints),
    )
    start = scenario.rest if kept else np.zeros_like(scenario.rest)
    Q, found = stance.solve_all(start + 0.7 * (anywhere - start))
    return np.asarray(Q[found][:POSTURES])


def _parallel() -> Array:
    """Legs in vertical planes, soles level: pelvis and feet never turn against each other."""
    model = hoap2().model
    Q = 0.6 * _free()
    for side in "LR":
        i = model.joint_index(f"{side}LEG_JOINT3")
        Q[:, [i - 2, i - 1, i + 3]] = 0.0
        Q[:, i + 2] = -Q[:, i] - Q[:, i + 1]
    return Q


def com_rank(
    statics: Statics, Q: Array, link: int, heights: bool, factor: Array
) -> int:
    """Rank of known centres of mass in the axes of a sole that stands flat on horizontal ground.

    Without heights only the projections are known; Q and factor as in identifiability.examine().
    """
    poses = statics.poses(Q)
    R, _ = statics.link_frames(poses, [link])
    rows = R[:, 0].transpose(0, 2, 1) @ statics.first_moment(poses)
    kept = rows[:, : 3 if heights else 2].reshape(-1, len(factor)) @ factor
    return rank_of(kept, np.ones(factor.shape[1]))


def level_ranks() -> dict[str, int]:
    """Ranks of the known CoM, projected or with its height, joints free or on both feet."""
    scenario = hoap2()
    statics, sole = (
        Statics(scenario.model),
        scenario.model.link_index(scenario.feet[0].frame),
    )
    factor = scenario.priors.factor
    return {
        f"{name}_{axes}": com_rank(statics, Q, sole, axes == "xyz", factor)
        for name, Q in (("free", _free()), ("double", _double(kept=False)))
        for axes in ("xy", "xyz")
    }


def torque_ranks(console: Console) -> dict[str, dict[str, int]]:
    """Ranks of the feet's wrenches, without and with joint torques; prints what they add."""
    double = _double(kept=False)
    kinds = {
        "free": _free(),
        "double": double,
        f"double, {FEW} postures": double[:FEW],
        "double, soles as at rest": _double(kept=True),
        "parallel legs": _parallel(),
    }
    ranks = {}
    for name, Q in kinds.items():
        without, with_torques = _report(Q, torques=False), _report(Q, torques=True)
        ranks[name] = {"feet": without.rank, "with_torques": with_torques.rank}
        console.print(
            f"{name}: rank {without.rank}, with joint torques {with_torques.rank}"
        )
        observable = [text for text in without.lost if text not in with_torques.lost]
        for text in observable if len(Q) > FEW else observable[:0]:
            console.print(f"  observable by torques only: {text}")
    return ranks


def _report(Q: Array, torques: bool) -> Identifiability:
    scenario = hoap2()
    statics = Statics(scenario.model)
    factor = scenario.priors.factor
    poses = statics.poses(Q)
    R, _ = statics.link_frames(
        poses, [scenario.model.link_index(scenario.feet[0].frame)]
    )
    up = R[:, 0, :, 2]
    parts = [statics.root_wrench(poses, GRAVITY * up)]
    if torques:
        parts.append(statics.torques(poses, GRAVITY * up))
    rows = np.concatenate(parts, axis=1)
    root = np.asarray(np.linalg.qr(rows.reshape(-1, len(factor)) @ factor, mode="r"))
    return examine(statics, root, factor, 0, Q, up)
