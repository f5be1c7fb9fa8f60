"""Compares two URDFs, before and after an identification, with a third one, which is true.

The horizontal error of the whole robot's centre of mass, the part that feet can measure, in
postures that were not measured, with the feet where they are to each other in the nominal posture;
then that of every body's.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_model import (
    ComModelError,
    ConfigError,
    RobotConfig,
    RobotModel,
    Sesc,
    find_robot,
)
from com_model.arrays import Array
from com_model.commands import command_parser
from com_simulation.exceptions import ComSimulationError

TRIES = 20  # times the postures that are wanted
SPREAD = 0.7  # of the way from the nominal posture to anywhere within the limits
COUNT, SEED = 100, 1  # of the postures that are drawn
MARGIN = 0.01  # m, of the believed CoM inside the support polygon


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors of two URDFs."""

    bodies: tuple[str, ...]  # B names of those with mass
    before: Array  # (P,) m, horizontal, of the first URDF's CoM in P postures
    after: Array  # (P,) m, of the second's
    bodies_before: (
        Array  # (B, 3) m, CoM of each body minus the true one, in the body's frame
    )
    bodies_after: Array  # (B, 3) m

    def figures(self) -> dict[str, float | int]:
        """The same in few numbers, mm."""
        figures: dict[str, float | int] = {"postures": len(self.before)}
        for name in ("before", "after"):
            whole, bodies = getattr(self, name), getattr(self, f"bodies_{name}")
            figures[f"com_rms_{name}_mm"] = round(
                1e3 * float(np.sqrt(np.mean(whole**2))), 3
            )
            figures[f"com_max_{name}_mm"] = round(1e3 * float(whole.max()), 3)
            figures[f"body_rms_{name}_mm"] = round(
                1e3 * float(np.sqrt(np.mean(bodies**2))), 3
            )
        return figures


def compare(
    true: RobotModel,
    before: RobotModel,
    after: RobotModel,
    config: RobotConfig,
    count: int = COUNT,
    seed: int = SEED,
) -> Comparison:
    """Compares two models with the true one; in the postures of the first one it stands.

    Raises ConfigError where the configuration is of another robot; ComSimulationError where the
    models are of different robots, or it cannot stand.
    """
    if not true.joint_names == before.joint_names == after.joint_names:
        raise ComSimulationError(
            "the URDFs have different joints: give three of one robot"
        )
    true, before, after = (config.attach(model) for model in (true, before, after))
    Q, ups = standing_postures(before, config, count, seed)

    def errors(model: RobotModel) -> Array:
        of_model, of_true = Sesc(model), Sesc(true)
        gaps = np.array([of_model.com(q) - of_true.com(q) for q in Q])
        across = gaps - np.einsum("pj,pj->p", gaps, ups)[:, None] * ups
        return np.asarray(np.linalg.norm(across, axis=1))

    heavy = np.flatnonzero(true.bodies.mass > 0.0)

    def bodies(model: RobotModel) -> Array:
        coms = model.bodies.first_moment[heavy] / model.bodies.mass[heavy, None]
        return np.asarray(
            coms - true.bodies.first_moment[heavy] / true.bodies.mass[heavy, None]
        )

    names = tuple(true.bodies.names[body] for body in heavy)
    return Comparison(
        names, errors(before), errors(after), bodies(before), bodies(after)
    )


def standing_postures(
    robot: RobotModel, config: RobotConfig, count: int, seed: int
) -> tuple[Array, Array]:
    """Draws postures (P, n) in which a robot stands, and the directions upwards (P, 3).

    Raises ComSimulationError where hardly any are found, or there are no feet with soles.
    """
    feet = config.feet
    if not feet or not all(len(foot.corners) for foot in feet):
        raise ComSimulationError("the configuration names no feet with corners")
    rng, nominal = np.random.default_rng(seed), config.nominal_posture(robot)
    stance = FlatStance(Statics(robot), feet, kept=nominal)
    low, high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
    found: list[Array] = []
    for _ in range(TRIES):
        anywhere = rng.uniform(low, high, (count, robot.n_joints))
        drawn = nominal + rng.uniform(0.0, SPREAD, (count, 1)) * (anywhere - nominal)
        Q, stands = stance.solve_all(drawn)
        found += [q for q in Q[stands] if stance.margin(q) > MARGIN]
        if len(found) >= count:
            break
    if len(found) < max(count / 4, 1):
        raise ComSimulationError(
            f"only {len(found)} of {count} postures were found: is it balanced?"
        )
    Q = np.array(found[:count])
    return Q, stance.up_directions(Q)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 for wrong arguments."""
    parser = command_parser("compare_urdfs", __doc__, __file__)
    for name, text in (
        ("true", "true"),
        ("before", "original"),
        ("after", "identified"),
    ):
        parser.add_argument(name, type=Path, help=f"{text} URDF of the robot")
    parser.add_argument(
        "--config", help="configuration; default: that of the original URDF"
    )
    parser.add_argument("--count", type=int, default=COUNT, help="number of postures")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the postures")
    options = parser.parse_args(words)
    try:
        files = (options.true, options.before, options.after)
        true, before, after = (RobotModel.from_file(file) for file in files)
        chosen = find_robot(options.before, options.config).config
        if chosen is None:
            raise ConfigError(
                "there is none for it; give --config", str(options.before)
            )
        config = RobotConfig.from_file(chosen)
        found = compare(true, before, after, config, options.count, options.seed)
    except ComModelError as error:
        print(f"compare_urdfs: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found.figures()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
