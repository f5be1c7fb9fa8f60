"""The four legs of a quadruped: which joints, hips and foot balls they have."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from com_model.arrays import Array, FrozenArrays, Indices
from com_model.exceptions import ConfigError, listing
from com_model.model import RobotModel
from com_model.robot_config import Foot, RobotConfig

LEGS = (("left", "front"), ("right", "front"), ("left", "hind"), ("right", "hind"))
"""Side and end of the legs, in the order in which all results have them."""

DIAGONALS = {"left_front": (0, 3), "right_front": (1, 2)}
"""Legs that stand and swing together in a trot, by their front leg."""

JOINTS = 3  # moving joints of a leg: hip abduction (HAA), hip flexion (HFE), knee (KFE)


@dataclass(frozen=True, eq=False)
class Leg(FrozenArrays):
    """A leg of three moving joints, or of the last two of them; arrays are read-only.

    Attributes:
        name: "left_front", "right_front", "left_hind" or "right_hind".
        lateral: 1 on the left, -1 on the right.
        longitudinal: 1 in front, -1 behind.
        foot_index: Place of the foot in config.feet.
        joints: (3,) or (2,) indices of its joints in q, from the hip to the foot.
        hip: (3,) m, origin of its first joint in the frame of the root link.
        body: The moving body that carries the foot, an index of model.bodies.
        ball: (3,) m, center of the foot's ball in the frame of that body.
        radius: m, of the ball; 0 where the foot has none.
    """

    name: str
    lateral: int
    longitudinal: int
    foot: Foot
    foot_index: int
    joints: Indices
    hip: Array
    body: int
    ball: Array
    radius: float


def quadruped_legs(
    model: RobotModel, config: RobotConfig, fewest: int = JOINTS
) -> tuple[Leg, Leg, Leg, Leg]:
    """Finds the legs of a quadruped.

    Args:
        model: The robot, with the sole frames of the configuration.
        config: Its configuration.
        fewest: How many joints a leg must have: 3, or 2 where it may lack the hip's abduction.

    Returns:
        Left front, right front, left hind, right hind.

    Raises:
        ConfigError: The configuration is of another robot, a foot without side and end is missing,
            there twice or has a flat sole, or a leg has fewer moving joints of its own.
    """
    model = config.attach(model)
    indices = [find_foot(config, side, end) for side, end in LEGS]
    feet = [config.feet[i] for i in indices]
    chains = [
        model.bodies.path_to(model.bodies.body_of_link[model.link_index(foot.frame)])
        for foot in feet
    ]
    for i, j in combinations(range(len(LEGS)), 2):
        common = set(model.bodies.q_index[chains[i]]) & set(
            model.bodies.q_index[chains[j]]
        )
        if common:
            names = listing([model.joint_names[k] for k in sorted(common)])
            problem = (
                f"{names} also moves foot {feet[j].frame!r}: the root link must be the "
                "trunk from which all four legs start"
            )
            raise ConfigError(problem, config.source, f"feet.{feet[i].frame}")
    legs = [
        _leg(model, config, i, chain, fewest)
        for i, chain in zip(indices, chains, strict=True)
    ]
    return legs[0], legs[1], legs[2], legs[3]


def find_foot(config: RobotConfig, side: str, end: str) -> int:
    """Finds the place in config.feet of the only point foot of a side and end."""
    found = [
        i for i, foot in enumerate(config.feet) if (foot.side, foot.end) == (side, end)
    ]
    if not found:
        problem = (
            f"no foot has side {side} and end {end}: give side and end of the four feet"
        )
        if len(config.feet) == 2:
            problem = (
                "the robot has two feet, and this is for quadrupeds that trot. For humanoids: "
                "diagnose_bag, node humanoid_com_estimator"
            )
        raise ConfigError(problem, config.source, "feet")
    if len(found) > 1:
        names = listing([config.feet[i].frame for i in found])
        problem = f"{names} all have side {side} and end {end}: leave one of them"
        raise ConfigError(problem, config.source, "feet")
    foot = config.feet[found[0]]
    if len(foot.corners):
        problem = "a leg of three joints ends in a point foot: give radius, not corners"
        raise ConfigError(problem, config.source, f"feet.{foot.frame}.corners")
    return found[0]


def _leg(
    model: RobotModel, config: RobotConfig, index: int, chain: list[int], fewest: int
) -> Leg:
    foot, bodies = config.feet[index], model.bodies
    names = [bodies.joint_names[body] for body in chain]
    own = [name for name in names if name in model.joint_names]
    if not fewest <= len(own) <= JOINTS or len(own) != len(chain):
        followers = f", of which {len(names) - len(own)} follow others" * (
            len(own) < len(names)
        )
        problem = (
            f"its leg has {len(names)} moving joints ({listing(names) or 'none'}){followers}; "
            f"only legs with {'2 or ' * (fewest < JOINTS)}{JOINTS} are supported: "
            "hip abduction, hip flexion, knee"
        )
        raise ConfigError(problem, config.source, f"feet.{foot.frame}")
    link = model.link_index(foot.frame)
    return Leg(
        name=f"{foot.side}_{foot.end}",
        lateral=1 if foot.side == "left" else -1,
        longitudinal=1 if foot.end == "front" else -1,
        foot=foot,
        foot_index=index,
        joints=np.array(bodies.q_index[chain], dtype=np.int64),
        hip=bodies.d[chain[0]],
        body=chain[-1],
        ball=bodies.p_body_link[link] + bodies.R_body_link[link] @ foot.center,
        radius=foot.radius,
    )
