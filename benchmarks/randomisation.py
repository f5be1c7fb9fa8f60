"""Robots drawn from the posterior of a walk, against uniform randomisation about the URDF.

A Go2 as in walking_identification.py is identified from three gaits; robots are drawn from the
posterior, and by +-10 % of masses and inertias and +-10 mm of CoMs about the URDF. On a gait that
was held out, each predicts the torques with the simulator's forces on the feet, friction included;
the truth are those of the true robot (see walking_identification.py).

The last line is one JSON object: samples, loaded (how many of the drawn MuJoCo loads and steps),
crps_ours and crps_uniform (continuous ranked probability score of the torques, mean, N m).
"""

from __future__ import annotations

import argparse
import json
import os

import mujoco
import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from walking_identification import predict_torques, true_torques
from walking_lab import GAITS, HELD_OUT, RobotWithErrors, Wrong, record

from com_identification.walking.identify import identify_walking
from com_identification.walking.posterior import RobotPosterior
from com_identification.walking.unknowns import Scale, corrected_urdf
from com_model import RobotModel
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.world_builder import build_world

Array = NDArray[np.float64]


def uniform(robot: RobotWithErrors, rng: np.random.Generator) -> RobotModel:
    """The URDF with masses, CoMs and inertias as usual domain randomisation has them."""
    model, changed = robot.believed, {}
    for i in np.flatnonzero(model.link_masses > 0.0):
        factor = 1.0 + rng.uniform(-0.1, 0.1)
        com = model.link_coms[i] + rng.uniform(-0.01, 0.01, 3)
        inertia = model.link_inertias[i] * factor
        changed[model.link_names[i]] = Inertial(
            model.link_masses[i] * factor, com, inertia
        )
    return RobotModel.from_urdf(edit_inertials(model.xml, changed), model.frames)


def crps(predicted: Array, truth: Array) -> float:
    """Mean of E|x - y| - E|x - x'| / 2 over predictions (S, ...) of truths (...)."""
    ordered, count = np.sort(predicted, axis=0), len(predicted)
    ranks = (2.0 * np.arange(1, count + 1) - count - 1.0) / count**2
    spread = np.tensordot(ranks, ordered, axes=1)
    return float((np.abs(predicted - truth).mean(axis=0) - spread).mean())


def loads(robot: RobotWithErrors, xml: str) -> bool:
    """Whether MuJoCo takes a URDF and steps it without warnings."""
    try:
        world = build_world(
            RobotModel.from_urdf(xml, robot.believed.frames),
            robot.config,
            urdf_path=robot.believed.path,
        )
    except ValueError:
        return False
    data = mujoco.MjData(world.mj)
    data.qpos[:] = world.qpos
    mujoco.mj_step(world.mj, data, 20)
    return bool(np.isfinite(data.qpos).all())


def measure(arguments: tuple[int, int, float]) -> dict[str, float]:
    """Identifies, draws, scores."""
    samples, seed, seconds = arguments
    gaits = (GAITS[0], GAITS[1], GAITS[4], HELD_OUT)
    robot, walks = record("go2", seed, seconds, Wrong(), gaits)
    logs, scale = [walk.log for walk in walks[:-1]], Scale(robot.true.mass)
    result = identify_walking(logs, robot.believed, robot.config, scale)
    draws, rng = (
        RobotPosterior.of(result).draw(samples, seed),
        np.random.default_rng(seed),
    )
    ours, usual, loaded, n = [], [], 0, result.model.n_joints
    friction = [robot.coulomb.mean(), robot.viscous.mean(), robot.armature.mean()]
    for s in range(samples):
        xml = corrected_urdf(robot.believed, draws["eta"][s])
        loaded += loads(robot, xml)
        drawn = robot.config.attach(RobotModel.from_urdf(xml, robot.believed.frames))
        friction_s = [draws[name][s] for name in ("coulomb", "viscous", "armature")]
        ours.append(predict_torques(robot, drawn, walks[-1], *friction_s, every=25))
        factors = rng.uniform(0.5, 1.5, (3, n))
        ranges = [mean * factor for mean, factor in zip(friction, factors, strict=True)]
        other = robot.config.attach(uniform(robot, rng))
        usual.append(predict_torques(robot, other, walks[-1], *ranges, every=25))
    truth = true_torques(robot, walks[-1], 25)
    return {
        "samples": samples,
        "loaded": loaded,
        "crps_ours": round(crps(np.array(ours), truth), 4),
        "crps_uniform": round(crps(np.array(usual), truth), 4),
    }


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Draws from the posterior of a walk.")
    parser.add_argument("--samples", type=int, help="default 40, --full: 100")
    parser.add_argument("--full", action="store_true", help="100 draws")
    parser.add_argument("--seed", type=int, default=411)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each gait")
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the process
    samples = args.samples or (100 if args.full else 40)
    print(json.dumps(in_processes(measure, [(samples, args.seed, args.seconds)])[0]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
