"""Shows the identification from walking: a quadruped with a wrong URDF and a box on its back trots.

It writes the recordings, what identify makes of them, and the errors before and after. Nothing is
read of the feet: only joints with torques, and an IMU. The simulated robot rubs, its sensors err.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trot_lab import OPEN_LOOP, Gait, stand, trot_gait
from walking_lab import PERIOD, STEP

from com_demos import demonstration
from com_demos.bag_writer import BagWriter
from com_demos.compare_urdfs import Comparison
from com_demos.exceptions import RunError
from com_demos.identify_demo import MUST_SHRINK, identification_figure
from com_identification.commands.identify import main as identify
from com_identification.walking.posterior import RobotPosterior
from com_model import RobotConfig, RobotModel, Sesc
from com_model.bodies import steiner
from com_model.plotting import save_png
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.sensors import TROT_NOISE
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

Array = NDArray[np.float64]

GAITS: dict[str, dict[str, Any]] = {
    "in_place": {},
    "forwards": {"velocity_x": 0.3},
    "backwards": {"velocity_x": -0.2, "frequency": 1.7},
    "sideways": {"velocity_y": 0.15, "frequency": 2.2},
    "turning": {"yaw_rate": 0.6},
}
TRUNK_OFF, BOX, BOX_AT = (0.02, -0.015, 0.02), 2.0, (-0.06, 0.03, 0.09)  # m, kg, m
FRICTION = 0.5  # N m, Coulomb, of each joint
SPREAD, POSTURES = 0.4, 200  # rad, about the mean posture of the walk
LINK_STD = 0.01  # m, before the walk


def command_line() -> argparse.ArgumentParser:
    """Options of the demo."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--robot", default="go2", help="a quadruped: go2, a1, ..., or its URDF"
    )
    parser.add_argument("--config", help="its configuration, if not its own")
    parser.add_argument(
        "--output", type=Path, default=Path("out"), help="folder of what it writes"
    )
    parser.add_argument(
        "--seconds", type=float, default=7.0, help="of each of five gaits (7)"
    )
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, config_file = demonstration.find_configured_robot(options, "feet and IMU")
    believed, config = (
        RobotModel.from_file(robot.urdf),
        RobotConfig.from_file(config_file),
    )
    true = loaded(believed)
    folder = options.output / f"{robot.name}_identify_walk"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "truth.urdf").write_text(true.xml)
    for name, gait in GAITS.items():
        print(
            f"{robot.name}: {true.mass:.2f} kg trot {name} for {options.seconds:g} s",
            flush=True,
        )
        count = round(options.seconds / PERIOD)
        walker = trot_gait(believed, config, OPEN_LOOP | {"frequency": 2.0} | gait)
        trot(true, walker, config, robot.urdf, count, folder / name)
    words = [*(str(folder / name) for name in GAITS), "--robot", str(robot.urdf)]
    words += ["--config", str(config_file), "--mass", f"{true.mass:.2f}"]
    words += ["--output", str(folder / "identified")]
    print("identify " + " ".join(words), flush=True)
    if identify(words):
        raise RunError("identify refuses the recordings, see above")
    after = RobotModel.from_file(folder / "identified" / "corrected.urdf")
    posterior = RobotPosterior.from_file(folder / "identified" / "posterior.npz")
    comparison = compare(true, believed, after, config.nominal_posture(believed))
    stds = np.sqrt(np.diag(posterior.covariance))[: 10 * len(posterior.bodies)].reshape(
        -1, 10
    )
    title = f"{robot.name}: URDF without the {BOX:g} kg on its back, after five trots"
    plot = options.output / f"{robot.name}_identify_walk.png"
    save_png(identification_figure(comparison, stds[:, 7:], LINK_STD, title), plot)
    errors, report = comparison.figures(), folder / "identified" / "report.html"
    figures = {"robot": robot.name, "box_kg": BOX, **errors, "plot": str(plot)}
    figures["identified"] = str(report)
    verdict = (
        "In other postures the CoM of the whole robot was {com_rms_before_mm} mm off with the URDF "
        "and is {com_rms_after_mm} mm off with the corrected one."
    )
    then = (
        "docs/tutorial_walk_identification.md is for your own robot: record it walking, "
        "weigh it, identify. com_randomise draws robots from what is left uncertain."
    )

    def check() -> None:
        if errors["com_rms_after_mm"] > MUST_SHRINK * errors["com_rms_before_mm"]:
            raise RunError("the CoM is not much better than before")

    path = options.output / f"{robot.name}_identify_walk.json"
    title = f"{robot.name}: a URDF corrected by trotting"
    demonstration.finish(figures, path, check, verdict, then, title)


def loaded(believed: RobotModel) -> RobotModel:
    """The robot as it is: the CoM of its heaviest link is elsewhere, and a box is on it."""
    i = int(np.argmax(believed.link_masses))
    mass, com = believed.link_masses[i], believed.link_coms[i] + TRUNK_OFF
    total = mass + BOX
    center = (mass * com + BOX * np.array(BOX_AT)) / total
    inertia = believed.link_inertias[i] + mass * steiner(com - center)
    inertia = inertia + BOX * steiner(BOX_AT - center)
    changed = {believed.link_names[i]: Inertial(float(total), center, inertia)}
    return RobotModel.from_urdf(edit_inertials(believed.xml, changed), believed.frames)


def trot(
    true: RobotModel,
    walker: Gait,
    config: RobotConfig,
    urdf: Path,
    count: int,
    path: Path,
) -> None:
    """Record samples of a trot of the robot as it is into a bag."""
    options: dict[str, Any] = {"base": "floating", "step": STEP, "integrator": "euler"}
    world = build_world(
        true, config, urdf_path=urdf, joint_friction=FRICTION, **options
    )
    world = replace(world, feet=())  # no sensors in them
    simulation = Simulation(world, PERIOD, TROT_NOISE, seed=1)
    stand(simulation, walker)
    with BagWriter(path, world, TROT_NOISE, 0) as bag:
        for k in range(count):
            bag.write(simulation.advance())
            target = walker.step((k + 1) * PERIOD)
            simulation.lead(target.position, target.velocity)


def compare(
    true: RobotModel, before: RobotModel, after: RobotModel, mean: Array
) -> Comparison:
    """Errors of the CoM in postures about a mean one (n,), and of all bodies'."""
    rng, heavy = np.random.default_rng(1), np.flatnonzero(true.bodies.mass > 0.0)
    postures = mean + rng.uniform(-SPREAD, SPREAD, (POSTURES, len(mean)))
    models = true, before, after
    whole = np.array([[Sesc(model).com(q) for q in postures] for model in models])
    moments = np.array([model.bodies.first_moment[heavy] for model in models])
    single = moments / np.array([model.bodies.mass[heavy, None] for model in models])
    return Comparison(
        tuple(true.bodies.names[body] for body in heavy),
        *np.linalg.norm(whole[1:] - whole[0], axis=-1),
        *(single[1:] - single[0]),
    )


if __name__ == "__main__":
    sys.exit(demonstration.run_demo(show, command_line))  # type: ignore[arg-type]
