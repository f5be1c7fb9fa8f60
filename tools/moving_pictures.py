"""Draws the moving pictures of the tutorials, from runs of the demos and benchmarks.

identification  HOAP-2 stands in planned postures; the estimate of its CoM moves to the truth
trunk           20 kg drop on SCALF-II, which trots by the estimate of its trunk
diagnosis       TALOS walks, takes a weight, is pushed, a force sensor drifts: what is named when
walk            a biped walks with its true CoM on the path; with a CoM fixed in the pelvis it falls
walk_pushed     TALOS is pushed on soft ground: it falls without the stabiliser

    tools/in_env python tools/moving_pictures.py walk  # writes docs/images/walk.png
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from PIL import Image
from scipy.spatial.transform import Rotation

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))

# ruff: noqa: E402 - that folder is no package
import diagnose_demo
import walk_robustness as robustness
from identification_scenario import NOISE, PLAN, PinocchioRobot, scenario_of
from trot_lab import TrotRun, build, run_trot
from walk_plots import footprints
from walk_scenarios import itu_biped, paper_plan, simulate, walk_by, world_for

from com_bags import TopicRequest
from com_demos.hidden_load import displace_battery
from com_demos.pictures import com_symbol, draw_body, pixel_axes
from com_demos.render import Camera
from com_demos.scene import Part, body_parts
from com_estimation.commands.diagnose_bag import diagnose
from com_estimation.humanoid.diagnosis import DiagnosisOptions
from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.interface import Sample
from com_identification import identify
from com_identification.regression.priors import urdf_priors
from com_identification.regression.statics import Statics, prediction_rows
from com_identification.settings import (
    FitSettings,
    IdentificationSettings,
    SensorPriors,
)
from com_model import RobotConfig, RobotModel, load_robot, plotting, quadruped_legs
from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.files import write_file
from com_model.geometry.support import solid_hull
from com_model.plotting import BLUE, GREEN, GRID, INK, PURPLE, RED, RULE
from com_model.robots import find_robot
from com_model.status import TRUSTED
from com_simulation.drawing.shapes import RobotShape, robot_shape
from com_simulation.physics.sensors import Reading

SIZE = (7.8, 3.9)  # inches, at 100 dots per inch
LOAD_COLOR = (0.8, 0.4, 0.1)
COLORS = 64  # of all frames together: what does not move is the same in each
END_S = 1.5  # s, for which the last frame stays
AZIMUTH_DEG, ELEVATION_DEG = (
    -58.0,
    10.0,
)  # of the camera, from the robot's right and front

Pictures = Iterator[Image.Image]


@dataclass(frozen=True, eq=False)
class Instant:
    """A robot at one time; world frame, SI units."""

    time: float
    q: Array  # (n,)
    R: Array  # (3, 3) of the root link
    p: Array  # (3,) of the root link
    com: Array  # (3,) true CoM

    @classmethod
    def of(cls, reading: Reading) -> Instant:
        """What is true at a reading."""
        R = Rotation.from_quat(reading.root_orientation).as_matrix()
        p = np.array(reading.root_position)
        return cls(reading.time, reading.position.copy(), R, p, R @ reading.com + p)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A robot to draw."""

    model: RobotModel
    shape: RobotShape

    def parts(self, at: Instant) -> tuple[Part, ...]:
        """Its triangles at one time."""
        return body_parts(self.model, self.shape, at.q, at.R, at.p)

    def corners(self, *instants: Instant) -> Array:
        """Corners (k, 3) of its triangles at some times."""
        triangles = [t for at in instants for t, _ in self.parts(at)]
        return np.concatenate([t.reshape(-1, 3) for t in triangles])


def paint(
    axes: Axes,
    camera: Camera,
    points: Array,
    parts: Sequence[Part],
    com: Array,
    soles: Sequence[Array] = (),
) -> Camera:
    """Draw parts and a CoM (3,), points (k, 3) filling the picture, and soles (j, 3) each.

    Returns the camera that has been used.
    """
    width, height = pixel_axes(axes)
    camera = camera.fitted(points, width, height, border=0.04)
    flat = [camera.project(sole)[:, :2] for sole in soles]
    axes.add_collection(PolyCollection(flat, facecolor=GRID, edgecolor=RULE, zorder=1))
    draw_body(axes, parts, camera, 0.75)
    ends = camera.project(np.array([com, [com[0], com[1], 0.0]]))[:, :2]
    axes.plot(*ends.T, color=RED, lw=1.8, zorder=5)
    com_symbol(axes, (float(ends[0, 0]), float(ends[0, 1])), 6.0)
    return camera


def cube(edge: float) -> Array:
    """Triangles (12, 3, 3) of a cube, m, about the origin."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    return 0.5 * edge * signs[solid_hull(signs).simplices]


def blank() -> Figure:
    """A picture without anything."""
    figure = Figure(figsize=SIZE, dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def picture(figure: Figure) -> Image.Image:
    """The pixels of a figure."""
    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3])  # type: ignore[attr-defined]


def heading(figure: Figure, left: float, text: str) -> None:
    """Write above a panel."""
    figure.text(left + 0.012, 0.93, text, fontsize=12, fontweight="bold", color=INK)


def identification() -> Pictures:
    """HOAP-2 with its battery elsewhere: its CoM in a posture that is not measured."""
    scenario, (model, config) = scenario_of("hoap2"), load_robot("hoap2")
    prior = urdf_priors(model, 0.01)
    settings = IdentificationSettings(
        noise=NOISE, sensors=SensorPriors.calibrated(), fit=FitSettings(folds=0)
    )
    true, _ = displace_battery(model, config, 0.005, 0)
    robot = PinocchioRobot(true.xml, scenario.model, scenario.feet)
    drawn = Drawn(
        model, robot_shape(model, ROOT / "src/robot_descriptions/urdf/hoap2.urdf")
    )
    planned = scenario.planned(replace(PLAN, candidates=120, refinements=4), 12)
    rng, Q = np.random.default_rng(0), scenario.rest[None]
    R = robot.frame(Q[0], scenario.feet[0].frame)[0].T  # of the sole, from the root
    statics, measured, seen = Statics(model), [], []
    poses, up = statics.poses(Q), R[None, 2]
    for plan in (None, *planned):
        if plan is None:
            theta, covariance = prior.parameters, prior.factor @ prior.factor.T
        else:
            measured.append(robot.posture(plan.q, rng))
            found = identify(model, scenario.feet, measured, settings, prior)
            theta, covariance = found.parameters, found.covariance
        rows = R @ prediction_rows(statics, poses, up, theta)[0]
        error = R @ (statics.com(poses, theta)[0] - robot.com(Q[0]))
        seen.append((1e3 * error[:2], 1e6 * (rows @ covariance @ rows.T)[:2, :2]))
    print([f"{np.linalg.norm(error):.2f} mm" for error, _ in seen])
    instants = []
    for q in (scenario.rest, *(plan.q for plan in planned)):
        turn, at = robot.frame(q, scenario.feet[0].frame)
        com = turn.T @ (robot.com(q) - at)
        instants.append(Instant(0.0, q, turn.T, -turn.T @ at, com))
    corners = drawn.corners(*instants)
    camera = Camera.looking_at(instants[0].com, 62.0, 8.0, 2.5)
    reach = 1.25 * float(max(np.abs(error).max() for error, _ in seen))
    for k, at in enumerate(instants):
        figure = blank()
        body = figure.add_axes((0.0, 0.0, 0.45, 0.92))
        paint(body, camera, corners, drawn.parts(at), at.com)
        nth = f"posture {k} of {len(planned)}" if k else "its feet not yet read"
        heading(figure, 0.0, f"HOAP-2, {nth}")
        axes = figure.add_axes((0.54, 0.13, 0.41, 0.76))
        plotting.style_axes(axes)
        axes.set(xlim=(reach, -reach), ylim=(-reach, reach), aspect="equal")
        axes.set_xlabel("to the left (mm)")
        axes.set_ylabel("forwards (mm)")
        trail = np.array([error for error, _ in seen[: k + 1]])
        axes.plot(trail[:, 1], trail[:, 0], color=BLUE, lw=1.0, alpha=0.4)
        values, vectors = np.linalg.eigh(seen[k][1][::-1, ::-1])
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        wide, narrow = 4.0 * np.sqrt(values[::-1])
        y, x = trail[-1].tolist()
        axes.add_patch(
            Ellipse((x, y), wide, narrow, angle=angle, color=BLUE, alpha=0.15)
        )
        label = "identified, 2 σ" if k else "by the URDF, 2 σ"
        axes.plot(x, y, "o", color=BLUE, ms=8, label=label)
        axes.plot(0.0, 0.0, "+", color=RED, ms=16, mew=2.5, label="true")
        plotting.add_legend(axes, 2)
        off = float(np.linalg.norm(trail[-1]))
        heading(figure, 0.48, f"CoM after {k} postures: {off:.1f} mm off")
        yield picture(figure)


def trunk() -> Pictures:
    """20 kg drop on a corner of SCALF-II, whose gait uses the estimate."""
    step, before, after = 0.1, 1.0, 2.5  # s
    load, drop = 20.0, 5.0  # kg, s
    run = TrotRun("scalf2", offset=(-0.03, 0.05, 0.0), seconds=drop + after)
    model, config, _ = build(run)
    hips = np.array([leg.hip for leg in quadruped_legs(model, config)])
    place = (*hips[0, :2], hips[0, 2] + 0.2)
    estimator, estimates = FloatingBaseEstimator(model, config), []

    def feed(sample: Sample) -> Array | None:
        estimator.update(sample)
        latest = estimator.latest
        estimates.append(latest)
        return latest.offset_from_center if latest.status in TRUSTED else None

    log = run_trot(replace(run, payload=(load, place, drop)), feed)
    drawn = Drawn(model, robot_shape(model, find_robot("scalf2").urdf))
    box = cube(0.2) + place
    chosen = [
        int(np.argmin(np.abs(log.time - t)))
        for t in np.arange(drop - before, drop + after, step)
    ]
    instants = [
        Instant(
            log.time[k],
            log.position[k],
            log.R_world_root[k],
            log.root_position[k],
            log.root_position[k] + log.R_world_root[k] @ log.trunk_com[k],
        )
        for k in chosen
    ]
    camera = Camera.looking_at(instants[0].com, 40.0, 15.0, 5.0)
    corners = drawn.corners(*instants[::5])
    until = np.arange(chosen[0] - 500, chosen[-1] + 1, 10)
    com = np.array([estimates[k].com for k in until])
    std = np.sqrt([np.diag(estimates[k].covariance) for k in until])
    rows = (
        (
            "CoM forwards (mm)",
            1e3 * log.trunk_com[until, 0],
            1e3 * com[:, 0],
            1e3 * std[:, 0],
        ),
        (
            "mass (kg)",
            log.trunk_mass[until],
            np.array([estimates[k].mass for k in until]),
            np.array([estimates[k].mass_std for k in until]),
        ),
    )
    for at in instants:
        figure = blank()
        body = figure.add_axes((0.0, 0.0, 0.5, 0.92))
        parts = [*drawn.parts(at)]
        if at.time >= drop:
            parts.append((box @ at.R.T + at.p, LOAD_COLOR))
        paint(body, camera, corners, parts, at.com)
        heading(figure, 0.0, f"{load:g} kg drop on a trotting robot")
        shown = log.time[until] <= at.time
        for j, (name, true, found, off) in enumerate(rows):
            axes = figure.add_axes((0.6, 0.56 - 0.44 * j, 0.38, 0.30))
            plotting.style_axes(axes)
            low, high = min(true.min(), found.min()), max(true.max(), found.max())
            axes.set_xlim(-before - 0.5, after)
            axes.set_ylim(low - 0.3 * (high - low), high + 0.3 * (high - low))
            axes.set_title(name, fontsize=10, loc="left", color=INK)
            t = log.time[until][shown] - drop
            axes.fill_between(
                t,
                (found - 2 * off)[shown],
                (found + 2 * off)[shown],
                color=BLUE,
                alpha=0.2,
                lw=0,
            )
            axes.plot(t, true[shown], color=RED, lw=1.6, label="true")
            axes.plot(t, found[shown], color=BLUE, lw=1.6, label="estimated, 2 σ")
            if not j:
                axes.legend(loc="lower right", frameon=False, labelcolor=INK)
        axes.set_xlabel("time since the drop (s)")
        yield picture(figure)


def diagnosis() -> Pictures:
    """TALOS walks, and something happens to it."""
    step, kg = 0.7, 4.0  # s, kg
    files = find_robot("talos")
    config = RobotConfig.from_file(str(files.config))
    model = config.attach(RobotModel.from_file(files.urdf))
    instants: list[Instant] = []

    def watch(reading: Reading) -> None:
        if reading.time >= len(instants) * step:
            instants.append(Instant.of(reading))

    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / "bag"
        diagnose_demo.record(str(files.urdf), model, config, kg, bag, watch)
        story, _ = diagnose(bag, model, config, TopicRequest())
    print(*story.lines, sep="\n")
    drawn = Drawn(model, robot_shape(model, files.urdf))
    hand, box = dict(config.hands(model))["left"], cube(0.14)
    times, probability = np.array(story.times), np.array(story.probability)
    ever = [
        i
        for i, row in enumerate(probability.T)
        if row.max() > DiagnosisOptions.undecided
    ]
    events = (
        (diagnose_demo.PAYLOAD_AT, f"takes {kg:g} kg"),
        (diagnose_demo.PUSH_AT, "is pushed"),
        (diagnose_demo.DRIFT_AT, "sensor drifts"),
    )
    camera = Camera.looking_at(instants[0].com, AZIMUTH_DEG, ELEVATION_DEG, 6.0)
    first = drawn.corners(instants[0])
    for at in instants:
        figure = blank()
        body = figure.add_axes((0.0, 0.0, 0.36, 0.9))
        moved = at.com * [1, 1, 0] - instants[0].com * [1, 1, 0]
        parts = [*drawn.parts(at)]
        if at.time >= diagnose_demo.PAYLOAD_AT:
            R, p = body_poses(model.bodies, at.q, at.R, at.p)
            parts.append((box @ R[hand].T + p[hand], LOAD_COLOR))
        follows = replace(camera, position=camera.position + moved)
        paint(body, follows, first + moved, parts, at.com)
        heading(figure, 0.0, "TALOS walks")
        said = [text for time, text in story.lines if time <= at.time]
        heading(figure, 0.36, said[-1] if said else "nothing is named")
        axes = figure.add_axes((0.44, 0.14, 0.54, 0.58))
        plotting.style_axes(axes)
        axes.set(
            xlim=(0.0, diagnose_demo.END), ylim=(-0.03, 1.05), xticks=range(0, 21, 5)
        )
        axes.set_ylabel("probability")
        axes.set_xlabel("time (s)")
        shown = times <= at.time
        for i, color in zip(ever, (BLUE, PURPLE, GREEN, RED), strict=False):
            axes.step(
                times[shown],
                probability[shown, i],
                where="post",
                color=color,
                lw=2,
                label=story.layout.culprits[i].name,
            )
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 1.0),
            frameon=False,
            fontsize=10,
            labelcolor=INK,
        )
        for begin, name in events:
            if at.time >= begin:
                axes.axvline(begin, color=RED, lw=1.2, ls=":")
                axes.text(begin + 0.2, 0.05, name, color=RED, fontsize=9)
        yield picture(figure)


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk to draw, which ends early when the robot falls."""

    title: str
    instants: Sequence[Instant]
    path: Array  # (N, 3) m, where the CoM is to be
    soles: Sequence[Array]  # (4, 3) m each


def beside(drawn: Drawn, walks: Sequence[Walk], times: Array) -> Pictures:
    """Two walks beside each other, at the same times; one that ended stays as it was."""
    shown = [at for walk in walks for at in (*walk.instants[::100], walk.instants[-1])]
    points = drawn.corners(*shown)
    camera = Camera.looking_at(points.mean(axis=0), -45.0, ELEVATION_DEG, 6.0)
    for time in times:
        figure = blank()
        for column, walk in enumerate(walks):
            axes = figure.add_axes((0.5 * column, 0.0, 0.5, 0.92))
            at = min(walk.instants, key=lambda at: abs(at.time - time))
            used = paint(axes, camera, points, drawn.parts(at), at.com, walk.soles)
            axes.plot(*used.project(walk.path)[:, :2].T, color=BLUE, lw=1.2, zorder=4)
            heading(figure, 0.5 * column, walk.title)
        yield picture(figure)


def walk() -> Pictures:
    """The biped of [CCGD] walks six steps by two methods."""
    robot, walks = itu_biped(), []
    for method, name in (
        ("refined", "True CoM on its path"),
        ("constant_offset", "CoM assumed fixed in the pelvis"),
    ):
        plan = walk_by(method, robot, paper_plan(1.0))
        record = simulate(world_for(robot, plan), plan)
        columns = (record.time, record.position, record.R_root, record.root, record.com)
        instants = [Instant(*row) for row in zip(*columns, strict=True)]
        walks.append(Walk(name, instants, plan.com, footprints(plan)))
    drawn = Drawn(robot.model, robot_shape(robot.model, robot.path))
    yield from beside(drawn, walks, np.arange(0.8, 12.2, 0.25))


def pushed() -> Pictures:
    """TALOS is pushed while it walks on soft ground."""
    cell = robustness.Cell("soft, pushed", contact="soft", push=(0.2, 0.0))
    biped, _, plan = robustness.load("talos")
    walks = []
    for fed_back, name in ((False, "Without stabiliser"), (True, "With stabiliser")):
        seen: list[Instant] = []
        robustness.simulate(
            robustness.Run("talos", cell, fed_back, 0),
            lambda reading, seen=seen: seen.append(Instant.of(reading)),
        )
        walks.append(Walk(name, seen, plan.samples.com, footprints(plan)))
    drawn = Drawn(biped.model, robot_shape(biped.model, find_robot("talos").urdf))
    times = np.arange(0.5, plan.duration + robustness.REST, 0.35)
    yield from beside(drawn, walks, times)


PICTURES: dict[str, tuple[Callable[[], Pictures], float]] = {
    "identification": (identification, 2.0),
    "trunk": (trunk, 8.0),
    "diagnosis": (diagnosis, 6.0),
    "walk": (walk, 8.0),
    "walk_pushed": (pushed, 4.0),
}


def save(pictures: Sequence[Image.Image], rate: float, path: Path) -> None:
    """Write an animated PNG.

    Args:
        pictures: the frames, all of one size.
        rate: pictures a second.
        path: the file.
    """
    together = Image.fromarray(np.concatenate([np.asarray(p) for p in pictures]))
    palette = together.quantize(COLORS, Image.Quantize.FASTOCTREE)
    first, *others = [
        p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures
    ]
    data = io.BytesIO()
    durations = [1000.0 / rate] * len(others) + [1000.0 * END_S]
    first.save(
        data,
        "PNG",
        optimize=True,
        save_all=True,
        append_images=others,
        duration=durations,
        loop=0,
    )
    write_file(path, data.getvalue())
    print(f"{path}: {len(pictures)} frames, {len(data.getvalue()) / 1e3:.0f} kB")


def main() -> None:
    """Write a picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=PICTURES)
    parser.add_argument("--output", type=Path, help="default: docs/images/NAME.png")
    options = parser.parse_args()
    draw, rate = PICTURES[options.which]
    output = options.output or ROOT / f"docs/images/{options.which}.png"
    save(list(draw()), rate, output)


if __name__ == "__main__":
    main()
