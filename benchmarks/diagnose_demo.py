"""Shows the diagnosis: a humanoid walks, takes a weight, is pushed, and a force sensor drifts.

It records a bag of the walk in simulation, and writes the page that diagnose_bag makes of it: which
culprit was named when. Nobody tells the estimator what happens.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from com_bags import TopicRequest
from com_control.walking import Biped, Walker, WalkRequest
from com_demos import demonstration
from com_demos.bag_writer import BagWriter
from com_demos.exceptions import RunError
from com_demos.record_bag import START_NS
from com_demos.walk_record import TILTED
from com_estimation.commands.diagnose_bag import diagnose
from com_estimation.humanoid.layout import make_layout
from com_estimation.humanoid.story import Story, story_page
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.files import write_file
from com_simulation.physics.events import find_events
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

PAYLOAD_AT, PUSH_AT, DRIFT_AT, END = 5.0, 10.0, 15.0, 20.0  # s
STANDING = 0.5  # s, before the first step
PUSH = 0.06  # of the weight, forwards
STEP, STEP_TIME, DOUBLE_SUPPORT = 0.12, 0.8, 0.25  # of the CoM's height; s
DRIFT = {"x": 0.006, "y": 0.005, "z": 0.012}  # of the weight
PERIOD = 0.005  # s, between readings
NOISE = NoiseLevels(position=5e-5, force=1.0, torque=0.05, orientation=3e-5)


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo_diagnose", str(__doc__), "talos", "talos, icub", speed=None
    )
    parser.add_number(
        "--payload", 4.0, (0.0, 100.0), "kg, put into the left hand at 5 s"
    )
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, config_file = demonstration.find_configured_robot(
        options, "its feet, IMU and arms"
    )
    config = RobotConfig.from_file(config_file)
    model = config.attach(RobotModel.from_file(robot.urdf))
    bag, page = (
        options.output / f"{robot.name}_diagnosis{end}" for end in ("_bag", ".html")
    )
    print(
        f"{robot.name}: {model.mass:.1f} kg walk for {END:g} s, recorded in {bag}",
        flush=True,
    )
    options.output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(bag, ignore_errors=True)
    truth = record(str(robot.urdf), model, config, options.payload, bag)
    story, notes = diagnose(bag, model, config, TopicRequest())
    title = (
        f"Diagnosis of {robot.name}: it takes {options.payload:g} kg at 5 s, is pushed at 10 s, "
        "and a force sensor drifts at 15 s"
    )
    write_file(page, story_page(story, title, notes))
    print("\n".join(f"{time:8.2f} s  {text}" for time, text in story.lines))
    figures = summary(story, config, truth)
    print(f"report: {page}")
    print(json.dumps(figures))
    if missing := [key for key, value in figures.items() if value is None]:
        raise RunError(f"missing: {', '.join(missing)}; see {page}")


def record(
    urdf: str,
    model: RobotModel,
    config: RobotConfig,
    payload: float,
    bag: Path,
    watch: Callable[[Reading], None] = lambda _: None,
) -> Array:
    """Records the walk; the true CoM (3,) m at its end, axes of the root link.

    Who watches gets what is true at each time.
    """
    biped = Biped.from_config(model, config)
    steps = int((END - STANDING) / (STEP_TIME + DOUBLE_SUPPORT))
    length = STEP * make_layout(model, config).height
    request = WalkRequest(
        (), steps, length, step_time=STEP_TIME, double_support=DOUBLE_SUPPORT
    )
    path = Walker(biped).plan(replace(request, method="refined"), biped.posture).path
    weight, sole = model.mass * GRAVITY, config.feet[0].frame
    events = [
        f"payload_{payload}kg_left_hand@{PAYLOAD_AT}",
        f"forwards_{PUSH * weight}N@{PUSH_AT}",
    ]
    events += [
        f"f{axis}_{part * weight}N_{sole}@{DRIFT_AT}" for axis, part in DRIFT.items()
    ]
    q0 = path.sample(0.0)[0]
    posture = dict(zip(model.joint_names, q0.tolist(), strict=True))
    world = build_world(model, replace(config, posture=posture), urdf_path=urdf)
    found = find_events("+".join(events), world, config)
    simulation = Simulation(world, PERIOD, NOISE, events=found)
    lag = world.servos.damping / world.servos.stiffness
    with BagWriter(bag, world, NOISE, START_NS) as writer:
        while simulation.time < END:
            reading = simulation.advance()
            watch(reading)
            time = reading.time - STANDING
            q, rate = path.sample(min(max(time + PERIOD, 0.0), path.end))
            moving = 0.0 < time < path.end
            simulation.lead(q + lag * rate * moving, rate * moving)
            writer.write(reading)
            if -reading.gravity[2] < np.cos(TILTED):
                raise RunError(f"the robot fell at {reading.time:.1f} s")
    return reading.com


def summary(story: Story, config: RobotConfig, truth: Array) -> dict[str, object]:
    """When each event was named, s after it; what was named wrongly; errors of the CoM, mm."""

    def named(begin: float, text: str) -> float | None:
        times = [
            time
            for time, line in story.lines
            if line.startswith(text) and time > begin - 0.5
        ]
        return round(times[0] - begin, 2) if times else None

    hand, zero = (
        "named: payload on the left hand",
        f"named: zero of {config.feet[0].frame}",
    )
    others = {line for _, line in story.lines if line.startswith("named")}
    before, after = story.com - story.correction[-1] - truth, story.com - truth
    return {
        "payload_named_s": named(PAYLOAD_AT, hand),
        "push_begin_error_s": named(PUSH_AT, "push"),
        "drift_named_s": named(DRIFT_AT, zero),
        "wrong_names": sorted(
            line for line in others if not line.startswith((hand, zero))
        ),
        "com_error_urdf_mm": round(1e3 * float(np.linalg.norm(before)), 2),
        "com_error_mm": round(1e3 * float(np.linalg.norm(after)), 2),
        "verdict": story.sentence,
    }


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
