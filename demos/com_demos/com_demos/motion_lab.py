"""Plays motion files of HOAP-2 and HOAP-3 in MuJoCo, by several mass models and contacts.

What becomes of a motion that was made for the real robot, and nothing is fed back ([Cominoli]
section 9): how far and where to it goes, when it falls, which limits it asks to exceed. Mass models
are those of a file in config/motion_lab: the CoMs of links, and errors of joints (zero offsets and
backlash, compliance as softer servos). Drives keep the limits of speed and acceleration of the
file's layout, and are asked for no more than they can.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation

from com_control.exceptions import MotionError
from com_control.motion.files import read_motion
from com_control.motion.limits import check_motion, find_motion_file
from com_control.motion.motion import Motion, MotionLayout
from com_identification.tip_over.quasi_static import JointErrors, read_joint_errors
from com_model import (
    ComModelError,
    RobotConfig,
    RobotModel,
    Servo,
    ServoGains,
    find_robot,
    load_robot,
)
from com_model.arrays import Array
from com_model.commands import command_parser
from com_model.html import UNKNOWN
from com_model.strict_yaml import Section, read_yaml
from com_model.text import listing
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.exceptions import DivergedError
from com_simulation.physics.contacts import CONTACTS, body_of_foot, standing_height
from com_simulation.physics.sensors import Reading
from com_simulation.physics.servo import Drive, backlash
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import World, build_world

SAMPLE, SETTLE, REST = 0.002, 1.0, 1.0  # s
ROBOTS = {27: "hoap2", 29: "hoap3"}  # by the columns of their files
STARTS = {
    "standing": 0.0,
    "back": -np.pi / 2.0,
    "belly": np.pi / 2.0,
}  # rad, about the y axis
SATURATED = 0.999  # of a servo's effort
HIDDEN = ("motion", "duration_s", "peak_torque_joint", "stands")  # in the table
_LAG = 0.03  # s, damping over stiffness of a servo that the configuration does not know
SAMPLES = ("hoap2_walk", "hoap2_squat_and_wave", "hoap2_rise")
# of the samples, but --full
QUICK = "published", "identified", "backlash", "world3", "world6"


@dataclass(frozen=True, eq=False)
class MassModel:
    """A robot as somebody believes it to be."""

    model: RobotModel
    errors: JointErrors
    speeds: dict[str, float]  # m/s, that [Cominoli] prints, by motion


def read_models(path: Path, model: RobotModel) -> dict[str, MassModel]:
    """Reads a file of mass models; ComModelError or ProtocolError where it is none."""
    top = Section(read_yaml(path), str(path))
    top.text("robot", None)
    sections, found = top.section("models"), {}
    for name in sections.entries():
        section = sections.section(name)
        coms, speeds = section.section("coms"), section.section("speeds")
        places = {link: coms.vector(link, (0.0, 0.0, 0.0)) for link in coms.entries()}
        if section.flag("com_at_joint", False):
            places = dict.fromkeys(
                np.array(model.link_names)[model.link_masses > 0.0], (0.0,) * 3
            )
        changed = {}
        for link, com in places.items():
            i = model.link_index(link)
            changed[link] = Inertial(
                model.link_masses[i], np.array(com), model.link_inertias[i]
            )
        errors = JointErrors(*np.zeros((3, model.n_joints)))
        if file := section.text("joint_errors", None):
            errors = read_joint_errors(path.parent / file, model)
        section.finish()
        edited = RobotModel.from_urdf(edit_inertials(model.xml, changed), model.frames)
        numbers = {motion: speeds.number(motion, 0.0) for motion in speeds.entries()}
        found[name] = MassModel(edited, errors, numbers)
    top.finish()
    return found


class Lab:
    """One motion of one robot."""

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        layout: MotionLayout,
        motion: Motion,
    ) -> None:
        self._model, self._config, self._layout = model, config, layout
        self._columns = np.array([model.joint_index(joint) for joint in layout.joints])
        nominal = config.nominal_posture(model)
        rows = np.where(
            np.isnan(motion.positions), nominal[self._columns], motion.positions
        )
        self._path = replace(motion, positions=rows).path
        self._first, self._still = nominal, np.zeros(model.n_joints)
        self._first[self._columns] = rows[0]

    def run(
        self, robot: MassModel, contact: str, start: str, play: float
    ) -> dict[str, Any]:
        """Plays it; `play` is the backlash (rad) of the file's joints, if not more is known.

        Raises:
            ComSimulationError: The robot cannot be simulated.
        """
        world = self._world(robot, contact, start, play)
        limits = np.array(
            [self._model.velocity_limits, np.full(self._model.n_joints, np.inf)]
        )
        limits[:, self._columns] = self._layout.velocity, self._layout.acceleration
        lag = world.servos.damping / world.servos.stiffness
        drive = Drive(self._model, limits[0], limits[1], lag)
        simulation = Simulation(world, SAMPLE, drive=drive)
        feet = {body_of_foot(world.robot, foot) for foot in world.feet}
        end = SETTLE + self._path.end - self._path.time[0] + REST
        readings: list[Reading] = []
        begin, fell = 0, np.nan
        try:
            while not readings or readings[-1].time < end - 0.5 * SAMPLE:
                readings.append(simulation.advance())
                since = readings[-1].time - SETTLE
                begin += since < 0.0
                if start == "standing" and simulation.grounded() - feet:
                    fell = since
                    break
                simulation.lead(*self._targets(since + SAMPLE, robot.errors.offset))
        except DivergedError as error:
            if not readings:
                raise
            fell = error.time - SETTLE
        found = self._figures(world, readings, min(begin, len(readings) - 1), fell)
        kinds = [kind for _, kind in drive.excess()]
        return found | {
            "stands": bool(np.isnan(fell) and simulation.grounded() <= feet),
            "too_fast": kinds.count("speed"),
            "too_hard": kinds.count("acceleration"),
            "warnings": list(drive.excess().values()),
        }

    def _world(self, robot: MassModel, contact: str, start: str, play: float) -> World:
        model, errors = robot.model, robot.errors
        gains = {}
        for i in np.flatnonzero(errors.compliance):
            given = (
                self._config.servo.gains(name := model.joint_names[i]) or ServoGains()
            )
            lag = (given.damping or _LAG) / (given.stiffness or 1.0)
            stiffness = 1.0 / errors.compliance[i]
            gains[name] = replace(given, stiffness=stiffness, damping=lag * stiffness)
        servo = Servo(
            self._config.servo.default, {**self._config.servo.joints, **gains}
        )
        first = np.clip(self._first + errors.offset, model.lower, model.upper)
        posture = dict(zip(model.joint_names, first.tolist(), strict=True))
        config = replace(self._config, posture=posture, servo=servo)
        widths = errors.backlash.copy()
        widths[self._columns] = np.maximum(widths[self._columns], play)
        edit, path = backlash(model, widths), self._model.path
        world = build_world(model, config, contact=contact, urdf_path=path, edit=edit)
        if turn := STARTS[start]:
            data = mujoco.MjData(world.mj)
            world.qpos[2:7] = 0.0, np.cos(turn / 2.0), 0.0, np.sin(turn / 2.0), 0.0
            data.qpos[:] = world.qpos
            mujoco.mj_kinematics(world.mj, data)
            world.qpos[2] = -standing_height(world.mj, data, world.normal)
        return world

    def _targets(self, t: float, offset: Array) -> tuple[Array, Array]:
        position, velocity = self._first + offset, self._still.copy()
        place, velocity[self._columns] = self._path.sample(self._path.time[0] + t)
        position[self._columns] = place + offset[self._columns]
        return position, velocity

    def _figures(
        self, world: World, readings: Sequence[Reading], begin: int, fell: float
    ) -> dict[str, Any]:
        first, last = readings[begin], readings[-1]
        turned = Rotation.from_quat(
            [r.root_orientation for r in (first, last)]
        ).as_matrix()
        heading = np.arctan2(turned[:, 1, 0], turned[:, 0, 0])
        (c, s), way = (np.cos(heading[0]), np.sin(heading[0])), last.root_position
        forward, left = np.array([[c, s], [-s, c]]) @ (way - first.root_position)[:2]
        duration = min(last.time - SETTLE, self._path.end - self._path.time[0])
        torque = np.abs([reading.effort for reading in readings[begin:]])
        turn = np.degrees(np.angle(np.exp(1j * (heading[1] - heading[0]))))
        return {
            "duration_s": round(duration, 3),
            "forward_m": round(float(forward), 4) + 0.0,
            "left_m": round(float(left), 4) + 0.0,
            "speed_m_s": round(float(forward) / duration, 4)
            if duration > 0.0
            else None,
            "heading_deg": round(float(turn), 2) + 0.0,
            "fell_s": None if np.isnan(fell) else round(fell, 3),
            "peak_torque_nm": round(float(torque.max()), 3),
            "peak_torque_joint": world.robot.joint_names[
                int(torque.max(axis=0).argmax())
            ],
            "saturated": round(
                float((torque > SATURATED * world.servos.effort).any(1).mean()), 4
            ),
        }


def robot_of(file: Path) -> str:
    """The robot whose files have as many columns; MotionError where there is none."""
    with file.open(encoding="utf-8-sig", errors="replace") as stream:
        lines = iter(lambda: stream.readline(4096), "")
        first = next((line.strip() for line in lines if line.strip()), "")
    columns = first.rstrip(",").count(",") + 1
    if columns not in ROBOTS:
        valid = ", ".join(f"{count} ({name})" for count, name in ROBOTS.items())
        got = f"{columns}: {first[:40]}" if first else "an empty file"
        raise MotionError(f"expected columns, separated by commas, {valid}; got {got}")
    return ROBOTS[columns]


def play_file(name: str, options: Namespace) -> list[dict[str, Any]]:
    """Plays a file by all models and contacts, and prints a table."""
    file, configs = Path(name), Path(str(find_robot("hoap2").config)).parent
    if not file.is_file() and file.with_suffix("").as_posix() not in SAMPLES:
        raise MotionError(f"no such file; samples are {listing(SAMPLES)}")
    if not file.is_file():
        file = find_motion_file(
            configs.parent / "motions", file.with_suffix(".csv").name
        )
    robot = robot_of(file)
    model, config = load_robot(robot)
    layout = MotionLayout.from_file(configs / "motion" / f"{robot}.yaml", config, model)
    motion = read_motion(file, layout)
    print(f"{file.name}: {check_motion(layout, motion).text()}")
    models = read_models(configs / "motion_lab" / f"{robot}.yaml", model)
    for pair in options.urdf:
        label, _, path = pair.rpartition("=")
        other = RobotModel.from_file(path).with_frames(model.frames)
        models[label or Path(path).stem] = MassModel(
            other, models["published"].errors, {}
        )
    chosen = options.models or list(models)
    if unknown := set(chosen) - set(models):
        raise MotionError(
            f"unknown models: {listing(sorted(unknown))}; valid: {listing(models)}"
        )
    lab, play = Lab(model, config, layout, motion), np.radians(options.backlash)
    printed, results = options.motion or file.stem, []
    for label, contact in product(chosen, options.contacts):
        found = lab.run(models[label], contact, options.start, play)
        thesis = models[label].speeds.get(printed)
        head = {
            "motion": file.stem,
            "model": label,
            "contact": contact,
            "printed_m_s": thesis,
        }
        results.append(head | found)
    for text in dict.fromkeys(
        text for result in results for text in result.pop("warnings")
    ):
        print(f"warning: {text}")
    real = models["published"].speeds.get(f"{printed} real")
    columns = [key for key in results[0] if key not in HIDDEN]
    title = file.stem + (f", the real robot: {real:g} m/s" if real else "")
    table = Table(*(column.replace("_", " ") for column in columns), title=title)
    for result in results:
        cells = (result[key] for key in columns)
        table.add_row(*(UNKNOWN if cell is None else str(cell) for cell in cells))
    Console(width=150).print(table)
    return results


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status, see the help."""
    parser = command_parser("motion_lab", __doc__, __file__)
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="a motion file, or a sample"
    )
    parser.add_argument(
        "--models", nargs="+", metavar="MODEL", help="default: all that are known"
    )
    text = "one more mass model"
    parser.add_argument(
        "--urdf", action="append", default=[], metavar="NAME=URDF", help=text
    )
    parser.add_argument(
        "--contacts", nargs="+", choices=tuple(CONTACTS), default=tuple(CONTACTS)
    )
    parser.add_argument(
        "--start", choices=tuple(STARTS), default="standing", help="how it lies"
    )
    text = "degrees, of all joints of the file"
    parser.add_argument("--backlash", type=float, default=0.0, metavar="DEG", help=text)
    parser.add_argument(
        "--motion", help="which of the thesis' it is; default: the file's name"
    )
    parser.add_argument(
        "--full", action="store_true", help="the samples by all mass models"
    )
    options = parser.parse_args(argv)
    if not (options.files or options.full or options.models):
        options.models = list(QUICK)
    found: dict[str, dict[str, Any]] = {}
    for name in options.files or SAMPLES:
        try:
            results = play_file(name, options)
        except (ComModelError, OSError) as error:
            print(f"motion_lab: {name}: {error}", file=sys.stderr)
            return 2
        for result in results:
            key = f"{result.pop('model')}, {result.pop('contact')}"
            found.setdefault(result.pop("motion"), {})[key] = result
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
