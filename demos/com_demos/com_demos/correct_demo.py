"""Shows why a URDF must be right: a robot falls with a wrong one, is measured, and stands.

A load that the URDF does not have hangs on the simulated robot's back. Three launches follow:
the robot balances and leans to the edge of its soles, by the CoM of the wrong URDF, and falls; it
moves through a few postures, and the suite finds what its feet carry and corrects the URDF; it
leans again, by the corrected URDF. A robot without two feet that have soles only sways, and its
CoM is published.

Subscribes:
    com, ground_truth/com, sesc, joint_states: see com_demos.sway_demo.
    balance/state (com_msgs/BalanceState): whether it balances or has fallen.
    identification/...: see com_demos.identify_demo.
"""

import argparse
import json
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from com_demos import demonstration, identify_demo, sway_demo
from com_demos.demonstration import Times
from com_demos.exceptions import RunError
from com_demos.hidden_load import FoundLoad, HiddenLoad, find_load, flat_feet, hide_load
from com_demos.lean_check import lean_problem
from com_demos.live import Rows
from com_demos.sway_demo import SwayMonitor
from com_identification.settings import SensorPriors
from com_model import (
    RobotConfig,
    RobotFiles,
    RobotModel,
    SupportPolygon,
    find_robot,
    link_pose,
    plotting,
)
from com_model.arrays import Array
from com_model.files import write_file
from com_model.plotting import save_png
from com_msgs.msg import BalanceState
from com_ros.conversions import NS_PER_S, constant_name, stamp_to_ns

LEAN_TIME = 8.5
"""s of balancing: forwards, back to the middle, to the heels and to the middle again."""

FALL_TIME = 0.8
"""s that are recorded after the node has noticed a fall, so that it is seen."""


@dataclass(frozen=True, eq=False)
class Track:
    """Where CoM and soles were in one run, seen from above; t instants.

    Attributes:
        time: (t,) s since the robot began to balance.
        believed: (t, 2) m, forwards and to the left, CoM by the URDF; from the middle of the soles.
        true: (t, 2) m, the simulator's.
        margin: (t, 2) m, of both inside the support polygon, negative outside.
        polygon: (k, 2) m, the support polygon of the first instant.
        fell_at: s, when the robot fell; NaN: it did not.
    """

    time: Array
    believed: Array
    true: Array
    margin: Array
    polygon: Array
    fell_at: float

    @property
    def error(self) -> Array:
        """Horizontal distances (t,) of believed and true CoM, m."""
        return np.linalg.norm(self.believed - self.true, axis=1)


class BalanceMonitor(SwayMonitor):
    """Records a robot that leans, until it has done so or has fallen."""

    def __init__(self, model: RobotModel, title: str) -> None:
        super().__init__(model, "balance_monitor")
        self._title = title
        self._state = BalanceState()
        self._began_ns = self._fell_ns = 0
        self._listen(BalanceState, "balance/state", self._on_state)

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the robot balances, or has fallen."""
        return self._began_ns > 0 and super().ready

    @property
    def elapsed(self) -> float:
        """Time since it balances, s."""
        samples = self.recording.samples
        return (
            (samples[-1][0] - self._began_ns) / NS_PER_S
            if samples and self._began_ns
            else 0.0
        )

    @property
    def fell(self) -> bool:
        """Whether it fell."""
        return self._fell_ns > 0

    @property
    def ended(self) -> bool:  # type: ignore[override]
        """Whether the fall has been seen."""
        return (
            self.fell
            and self.elapsed > (self._fell_ns - self._began_ns) / NS_PER_S + FALL_TIME
        )

    def rows(self) -> Rows:
        """Return what a view shows."""
        if not self.received:
            return super().rows()
        series = self.recording.series(last=1)
        error, margin = 1000 * self._horizontal_error(), 1000 * series.margin[-1]
        state = "FELL" if self.fell else constant_name(BalanceState, self._state.state)
        return [
            ("part", self._title),
            ("robot", state.lower()),
            ("CoM error", f"{error:.1f} mm" if np.isfinite(error) else "no truth yet"),
            (
                "believed margin",
                f"{margin:.1f} mm" if np.isfinite(margin) else "no feet known",
            ),
        ]

    def _horizontal_error(self) -> float:
        """Return the horizontal distance of the newest CoM and its truth, m; NaN without any."""
        if (
            not self.snapshots
            or (truth := self.recording.truths.get(self.stamps[-1])) is None
        ):
            return float("nan")
        shot = self.snapshots[-1]
        gap = shot.com - truth
        return float(np.linalg.norm(gap - (gap @ shot.gravity) * shot.gravity))

    def waiting_for(self, seconds: float) -> str:
        """Return why it does not balance."""
        reason = self._state.reason or constant_name(BalanceState, self._state.state)
        return f"the robot does not balance after {seconds:.0f} s: {reason}"

    def track(self, config: RobotConfig) -> Track:
        """Return where CoM and soles were while it balanced."""
        rows: list[list[float]] = []
        feet = config.feet
        polygon = np.empty((0, 2))
        for stamp_ns, shot in zip(self.stamps, self.snapshots, strict=True):
            truth = self.recording.truths.get(stamp_ns)
            if (
                truth is None
                or not shot.contacts
                or (self.fell and stamp_ns > self._fell_ns)
            ):
                continue
            poses = [link_pose(self.model, shot.q, foot.frame) for foot in feet]
            R, p = np.array([R for R, _ in poses]), np.array([p for _, p in poses])
            support = SupportPolygon.from_soles(R, p, [foot.corners for foot in feet])
            forward = R[:, :, 0].sum(axis=0) / np.linalg.norm(R[:, :, 0].sum(axis=0))
            axes = np.array([forward, np.cross(support.normal, forward)])
            middle = p.mean(axis=0)
            if not rows:
                polygon = (support.vertices - middle) @ axes.T
            coms = np.array([shot.com, truth])
            time = (stamp_ns - self._began_ns) / NS_PER_S
            margins = [float(support.margin(com)) for com in coms]
            rows.append([time, *((coms - middle) @ axes.T).ravel(), *margins])
        table = np.array(rows).reshape(-1, 7)
        outside = np.flatnonzero(table[:, 6] < 0.0)
        if self.fell and len(outside):  # what follows is the fall
            table = table[: outside[0] + 1]
        fell_at = (self._fell_ns - self._began_ns) / NS_PER_S if self.fell else np.nan
        return Track(
            table[:, 0], table[:, 1:3], table[:, 3:5], table[:, 5:], polygon, fell_at
        )

    def _on_state(self, msg: BalanceState, _info: dict) -> None:
        self._state = msg
        if msg.state == BalanceState.BALANCING:
            self._began_ns = self._began_ns or stamp_to_ns(msg.header.stamp)
        if msg.state == BalanceState.FALLEN and self._began_ns:
            self._fell_ns = self._fell_ns or stamp_to_ns(msg.header.stamp)


SIZE = (9.6, 7.6)  # inches
BELIEVED, TRUE = plotting.BLUE, plotting.RED


def correction_figure(before: Track, after: Track, title: str) -> Figure:
    """Return the figure of both runs: from above, and the margins over time."""
    figure = plotting.new_figure(SIZE, title)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.3, 1.0))
    for column, (track, name) in enumerate(
        ((before, "the URDF"), (after, "the corrected URDF"))
    ):
        end = (
            f"falls after {track.fell_at:.1f} s"
            if np.isfinite(track.fell_at)
            else "stands"
        )
        above = figure.add_subplot(grid[0, column])
        _above_axes(above, track, f"By {name}: {end}")
        over_time = figure.add_subplot(grid[1, column])
        _margin_axes(over_time, track)
        plotting.style_axes(above)
        plotting.style_axes(over_time)
    figure.axes[1].set_xlim(0.0, LEAN_TIME)
    figure.axes[1].sharey(figure.axes[3])
    plotting.add_legend(figure.axes[0], 2)
    return figure


def _above_axes(axes: Axes, track: Track, title: str) -> None:
    """Plot support polygon and paths of the CoM, mm, the robot's front upwards."""
    closed = 1000 * np.concatenate([track.polygon, track.polygon[:1]])
    axes.fill(closed[:, 1], closed[:, 0], color=plotting.GREEN, alpha=0.12, lw=0)
    axes.plot(
        closed[:, 1],
        closed[:, 0],
        color=plotting.GREEN,
        lw=1.4,
        label="support polygon",
    )
    for path, color, name in (
        (track.believed, BELIEVED, "CoM by the URDF"),
        (track.true, TRUE, "true CoM"),
    ):
        axes.plot(*1000 * path.T[::-1], color=color, lw=1.6, label=name)
    end = 1000 * track.true[-1:]
    axes.plot(
        end[:, 1],
        end[:, 0],
        "X" if np.isfinite(track.fell_at) else "o",
        color=TRUE,
        ms=8,
    )
    axes.set_title(title, fontsize=11, loc="left", color=plotting.INK)
    axes.set_aspect("equal", adjustable="datalim")
    axes.invert_xaxis()
    axes.set_xlabel("left (mm)")
    axes.set_ylabel("forwards (mm)")


def _margin_axes(axes: Axes, track: Track) -> None:
    """Plot the margins of believed and true CoM over time, mm."""
    for k, color in ((0, BELIEVED), (1, TRUE)):
        axes.plot(track.time, 1000 * track.margin[:, k], color=color, lw=1.6)
    axes.axhline(0.0, color=plotting.INK, lw=1.0)
    axes.set_xlim(0.0, LEAN_TIME)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("support margin (mm)")


PARTS = (
    "1 of 3: balance by the URDF",
    "2 of 3: measure in a few postures",
    "3 of 3: balance by the corrected URDF",
)
POSTURES = 3
MASS_STD = 0.3
"""Of a body's mass, relative: of a robot that may carry what its URDF does not have."""

PUBLISH_HZ = 100.0
"""Of simulated sensors: enough for the control, and a fifth of the work of the default."""

IMPROVEMENT = 4.0
"""Error before over error after, that the correction should reach at least."""


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot = find_robot(options.robot, options.config)
    model = RobotModel.from_file(robot.urdf)
    robot, config = sway_demo.with_fitting_config(robot, model)
    if config is None or not flat_feet(config):
        sway_demo.show(options)
        return
    folder = options.output / f"{robot.name}_corrected"
    shutil.rmtree(folder, ignore_errors=True)
    model = config.attach(model)
    true, load = hide_load(model, config)
    if problem := lean_problem(model, config, load.margin, LEAN_TIME):
        raise RunError(f"{robot.name} cannot lean to the edge of its soles: {problem}")
    folder.mkdir(parents=True)
    write_file(folder / "truth.urdf", true.xml)
    print(
        f"{robot.name}: {model.mass:.2f} kg by its URDF. In the simulation a load of "
        f"{load.mass:g} kg hangs on {load.link}, which no node is told."
    )
    lean = partial(_balance, load=load, folder=folder, config=config, options=options)
    before, first = lean(PARTS[0], robot, model)
    corrected, reason = _measure(robot, load, folder, options)
    new = config.attach(RobotModel.from_file(corrected.urdf))
    found = find_load(model, new, config)
    print(f"found: {found.text()}\n       by the feet: {reason}")
    after, second = lean(PARTS[2], corrected, new)
    _report(options, robot, new, config, (before, after), (first, second), found, load)


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo", str(__doc__), "hoap2", "hoap2, talos", speed=2.0
    )
    text = "how long to record a robot that only sways"
    parser.add_number("--seconds", 20.0, (1, 3600), text)
    return parser


def _balance(
    part: str,
    robot: RobotFiles,
    model: RobotModel,
    load: HiddenLoad,
    folder: Path,
    config: RobotConfig,
    options: argparse.Namespace,
) -> tuple[BalanceMonitor, Track]:
    """Let the robot with the load lean by a URDF; return what was recorded."""
    nodes = ("com_balancer", "sesc_publisher", "balance_monitor")
    command = demonstration.launch_words(
        "balance.launch.xml",
        robot,
        true_urdf=(folder / "truth.urdf").resolve(),
        demonstration="reach",
        margin=f"{load.margin:.4f}",
        state_publisher="false",
        publish_rate_hz=PUBLISH_HZ,
        **demonstration.lockstep_arguments(options.speed, *nodes),
    )
    make = partial(BalanceMonitor, model, part)
    times = Times(LEAN_TIME, ready=120.0)
    monitor = demonstration.listen(
        command, make, times, f"{robot.name}: {part}", options
    )
    track = monitor.track(config)
    if not len(track.time):
        raise RunError(
            "no chain arrived on sesc together with com, joint_states and the truth"
        )
    end = f"falls after {track.fell_at:.1f} s" if monitor.fell else "stands"
    error = 1000 * float(np.median(track.error))
    print(f"{part}: its CoM is {error:.1f} mm off; {robot.name} {end}", flush=True)
    return monitor, track


def _measure(
    robot: RobotFiles, load: HiddenLoad, folder: Path, options: argparse.Namespace
) -> tuple[RobotFiles, str]:
    """Let the robot move through postures and correct its URDF; return it, and why it was wrong."""
    parameters, sensors = folder / "identification.yaml", folder / "settings.yaml"
    write_file(sensors, yaml.safe_dump({"sensors": asdict(SensorPriors.calibrated())}))
    # The true CoM is elsewhere than the proposed postures have it: they keep away from the edges.
    settings = {
        "plan": {"margin": 0.75 * load.reach, "most_tilt": 0.2, "candidates": 20},
        "prior": {"mass_std_fraction": MASS_STD},
    }
    write_file(parameters, json.dumps({"/**": {"ros__parameters": settings}}))
    nodes = ("com_identification", "posture_tour", "identify_monitor")
    command = demonstration.launch_words(
        "identification.launch.xml",
        robot,
        true_urdf=(folder / "truth.urdf").resolve(),
        com_error=0.0,
        identification_parameters=parameters.resolve(),
        settings=sensors.resolve(),
        storage=folder.resolve(),
        tour="true",
        automatic="true",
        tour_count=POSTURES,
        tour_batch=POSTURES,
        tour_speed=1.0,
        publish_rate_hz=PUBLISH_HZ,
        sesc="false",
        state_publisher="false",
        **demonstration.lockstep_arguments(2 * options.speed, *nodes),
    )
    what = f"{robot.name}: {PARTS[1]}"
    times = Times(identify_demo.LONGEST)
    monitor = demonstration.listen(
        command, identify_demo.IdentifyMonitor, times, what, options
    )
    if monitor.failure or monitor.result is None:
        raise RunError(monitor.failure or "no result arrived on identification/result")
    return replace(robot, urdf=identify_demo.corrected_urdf(folder)), monitor.suspicion


def _report(
    options: argparse.Namespace,
    robot: RobotFiles,
    model: RobotModel,
    config: RobotConfig,
    monitors: tuple[BalanceMonitor, BalanceMonitor],
    tracks: tuple[Track, Track],
    found: FoundLoad,
    load: HiddenLoad,
) -> None:
    """Write pictures and page; print the figures of the run."""
    before, after = tracks
    series = monitors[1].recording.series(until=LEAN_TIME)
    plot = options.output / f"{robot.name}_com.png"
    title = (
        f"{robot.name} with {load.mass:g} kg on its back leans to the edge of its soles"
    )
    save_png(correction_figure(before, after, title), plot)
    was, now = (1000 * float(np.mean(track.error)) for track in tracks)
    figures = {
        "robot": robot.name,
        **series.summary(),
        "believed_error_mm": round(was, 2),
        "corrected_error_mm": round(now, 2),
        "load_kg": load.mass,
        "found_kg": round(found.mass, 3),
        "fell_before": monitors[0].fell,
        "fell_after": monitors[1].fell,
        "corrected_urdf": str(options.output / f"{robot.name}_corrected"),
    }
    figures |= sway_demo.write_picture(
        robot, model, config, monitors[1], options.output
    )
    figures["plot"] = str(plot)

    def check() -> None:
        if monitors[1].fell:
            raise RunError("the robot fell with the corrected URDF, too")
        if was < IMPROVEMENT * now:
            raise RunError(
                f"the CoM was {was:.1f} mm off and still is {now:.1f} mm off"
            )

    end = "fell" if monitors[0].fell else "stood"
    verdict = (
        f"By its URDF {robot.name}'s CoM was {was:.1f} mm off, and it {end}; "
        f"{found.text()} were found, and by the corrected URDF the CoM is {now:.1f} mm off, and it "
        "stands."
    )
    then = (
        "Your own robot: `make setup-robot URDF=robot.urdf` writes its configuration, then "
        "`make demo ROBOT=robot.urdf` shows the same with it."
    )
    path = options.output / f"{robot.name}.json"
    title = f"{robot.name} with a load that its URDF does not have: found and corrected"
    demonstration.finish(figures, path, check, verdict, then, title)


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
