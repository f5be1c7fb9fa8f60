"""Compares two URDFs, before and after an identification, with a third one, which is true.

The horizontal error of the whole robot's centre of mass, the part that feet can measure, in
postures that were not measured, with the feet where they are to each other in the nominal posture;
then that of every body's.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from com_model import (
    ComModelError,
    ConfigError,
    RobotConfig,
    RobotModel,
    Sesc,
    SupportPolygon,
    find_robot,
    link_poses,
)
from com_model.arrays import Array
from com_model.commands import command_parser
from com_simulation.exceptions import ComSimulationError, SwayError
from com_simulation.physics.planted_feet import PlantedFeet

TRIES = 20  # for each posture
SPREAD = 0.7  # of the way from the nominal posture to anywhere within the limits
MARGIN = 0.01  # m, of the believed CoM inside the support polygon


def compare(
    true: RobotModel,
    before: RobotModel,
    after: RobotModel,
    config: RobotConfig,
    count: int = 100,
    seed: int = 1,
) -> dict[str, float]:
    """Compares two models with the true one, errors in mm; by the first one it stands.

    Raises ConfigError where the configuration is of another robot; ComSimulationError where the
    models are of different robots, or it cannot stand.
    """
    if not true.joint_names == before.joint_names == after.joint_names:
        raise ComSimulationError("the URDFs have different joints: give three of one robot")
    true, before, after = (config.attach(model) for model in (true, before, after))
    Q, ups = standing_postures(before, config, count, seed)
    of_true, heavy = Sesc(true), true.bodies.mass > 0.0
    figures: dict[str, float] = {"postures": len(Q)}
    for name, model in (("before", before), ("after", after)):
        sesc = Sesc(model)
        gaps = np.array([sesc.com(q) - of_true.com(q) for q in Q])
        across = gaps - np.einsum("pj,pj->p", gaps, ups)[:, None] * ups
        errors = 1000.0 * np.linalg.norm(across, axis=1)
        coms, true_coms = (
            robot.bodies.first_moment[heavy] / robot.bodies.mass[heavy, None]
            for robot in (model, true)
        )
        figures[f"com_rms_{name}_mm"] = round(float(np.sqrt(np.mean(errors**2))), 3)
        figures[f"com_max_{name}_mm"] = round(float(errors.max()), 3)
        body_rms = 1000.0 * np.sqrt(np.mean((coms - true_coms) ** 2))
        figures[f"body_rms_{name}_mm"] = round(float(body_rms), 3)
    return figures


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
    planted, sesc = PlantedFeet(robot, feet, nominal), Sesc(robot)
    links = [robot.link_index(foot.frame) for foot in feet]
    low, high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
    Q, ups = [], []
    for _ in range(TRIES * count):
        drawn = nominal + rng.uniform(0.0, SPREAD) * (rng.uniform(low, high) - nominal)
        with suppress(SwayError):
            q = planted.project(drawn)
            R, p = link_poses(robot, q)
            polygon = SupportPolygon.from_soles(R[links], p[links], [f.corners for f in feet])
            if polygon.margin(sesc.com(q)) > MARGIN:
                Q.append(q)
                ups.append(R[links[0]][:, 2])
        if len(Q) == count:
            break
    if len(Q) < max(count / 4, 1):
        raise ComSimulationError(f"only {len(Q)} of {count} postures were found: is it balanced?")
    return np.array(Q), np.array(ups)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 for wrong arguments."""
    parser = command_parser(
        "compare_urdfs",
        __doc__,
        "Example:\n  compare_urdfs truth.urdf robot.urdf corrected.urdf --config hoap2.yaml",
    )
    for name, text in (("true", "as it is"), ("before", "as believed"), ("after", "as found")):
        parser.add_argument(name, type=Path, help=f"URDF of the robot {text}")
    parser.add_argument("--config", help="the robot's; default: that of the URDF as believed")
    parser.add_argument("--count", type=int, default=100, help="of postures")
    parser.add_argument("--seed", type=int, default=1, help="of postures")
    options = parser.parse_args(words)
    try:
        files = (options.true, options.before, options.after)
        true, before, after = (RobotModel.from_file(file) for file in files)
        chosen = find_robot(options.before, options.config).config
        if chosen is None:
            raise ConfigError("there is none for it; give --config", str(options.before))
        config = RobotConfig.from_file(chosen)
        found = compare(true, before, after, config, options.count, options.seed)
    except (ComModelError, ComSimulationError) as error:
        print(f"compare_urdfs: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found))
    return 0
