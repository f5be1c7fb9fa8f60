"""Shows the suite at work: a robot sways in simulation, its CoM and SESC are published.

It writes a picture and a plot.

Subscribes:
    com (com_msgs/CenterOfMass): every message is recorded, with the time of its receipt.
    ground_truth/com (com_msgs/CenterOfMass): matched with `com` by stamp.
    sesc (com_msgs/SescChain), joint_states (sensor_msgs/JointState): matched with `com` by stamp
        into the snapshots that pictures are drawn from.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from sensor_msgs.msg import JointState

from com_demos.background import ListeningNode
from com_demos.demonstration import (
    DemoParser,
    Times,
    finish,
    launch_words,
    listen,
    lockstep_arguments,
    run_demo,
)
from com_demos.exceptions import RunError
from com_demos.live import WAITING, Rows, millimetres
from com_demos.pictures import draw_picture
from com_demos.plots import center_text, corner_text, minus
from com_demos.scene import Snapshot, build_scene, shape_note
from com_estimation.nodes.com_conversions import center_of_mass_to_numpy
from com_model import (
    ComModelError,
    RobotConfig,
    RobotFiles,
    RobotModel,
    find_robot,
    plotting,
)
from com_model.plotting import save_png
from com_msgs.msg import CenterOfMass, SescChain
from com_ros.conversions import NS_PER_S, points_to_numpy, stamp_to_ns
from com_ros.joint_input import JointInput
from com_simulation.drawing.shapes import robot_shape


@dataclass(frozen=True)
class Series:
    """A run as arrays, one row per sample on `com`."""

    time: np.ndarray  # (t,) s since the first stamp
    com: np.ndarray  # (t, 3) m
    truth: np.ndarray  # (t, 3) m, of the same stamp; NaN where none arrived
    margin: np.ndarray  # (t,) m
    latency: (
        np.ndarray
    )  # (t,) s, from the receipt of joint_states to that of com; NaN: not known

    @property
    def error(self) -> np.ndarray:
        """Return the distances (t,) between com and truth, m."""
        return np.linalg.norm(self.com - self.truth, axis=1)

    @property
    def rate_hz(self) -> float:
        """Return the mean number of samples per second; NaN for fewer than two."""
        span = self.time[-1] - self.time[0] if len(self.time) > 1 else 0.0
        return (len(self.time) - 1) / span if span > 0 else math.nan

    def summary(self) -> dict[str, float | int | None]:
        """Return the figures of the run; None for those that are not known."""
        error, margin, latency = self.error, self.margin, self.latency
        figures = {
            "seconds": round(self.time[-1] - self.time[0], 3)
            if len(self.time)
            else 0.0,
            "messages": len(self.time),
            "rate_hz": round(self.rate_hz, 1),
            "p50_ms": round(1000 * _over(np.median, latency), 3),
            "p99_ms": round(
                1000 * _over(lambda all: np.percentile(all, 99), latency), 3
            ),
            "com_error_mm": float(f"{1000 * _over(np.mean, error):.3g}"),
            "com_error_max_mm": float(f"{1000 * _over(np.max, error):.3g}"),
            "truths_matched": int(np.isfinite(error).sum()),
            "margin_min_mm": round(1000 * _over(np.min, margin), 2),
        }
        return {
            name: value if math.isfinite(value) else None
            for name, value in figures.items()
        }

    def rows(self) -> Rows:
        """Return what a view shows of the newest sample."""
        if not len(self.time):
            return [(WAITING, "for the first message on com")]
        known = self.latency[np.isfinite(self.latency)]
        p50, p99 = (
            1000 * np.percentile(known, [50, 99])
            if len(known)
            else (math.nan, math.nan)
        )
        margin = 1000 * self.margin[-1]
        errors = self.error[np.isfinite(self.error)]
        return [
            ("CoM", millimetres(self.com[-1])),
            (
                "margin",
                f"{margin:.2f} mm" if math.isfinite(margin) else "no feet known",
            ),
            ("rate", f"{self.rate_hz:.0f} Hz"),
            ("latency", f"{p50:.2f} ms, 99 %: {p99:.2f} ms"),
            (
                "error",
                f"{1000 * errors.max():.1e} mm" if len(errors) else "no truth yet",
            ),
        ]


class Recording:
    """Collects samples of `com`, and the true CoM (x, y, z) m, by their stamps, ns."""

    def __init__(self) -> None:
        # stamp, ns; receipt, ns; x, y, z in the root link's frame, m; margin, m
        self.samples: list[tuple[int, int, float, float, float, float]] = []
        self.truths: dict[int, tuple[float, float, float]] = {}
        self.joints: dict[int, int] = {}  # receipt of joint_states by their stamp, ns

    def series(self, last: int = 0, until: float = math.inf) -> Series:
        """Return all samples, or only the last few, as arrays; until a time of the run, s."""
        first = self.samples[0][0] if self.samples else 0
        rows = [
            row for row in self.samples[-last:] if row[0] - first <= until * NS_PER_S
        ]
        values = np.array([row[1:] for row in rows], dtype=float).reshape(-1, 5)
        truths = [self.truths.get(row[0], (math.nan,) * 3) for row in rows]
        latency = [
            (row[1] - self.joints.get(row[0], math.nan)) / NS_PER_S for row in rows
        ]
        return Series(
            time=np.array([row[0] - first for row in rows]) / NS_PER_S,
            com=values[:, 1:4],
            truth=np.array(truths, dtype=float).reshape(-1, 3),
            margin=values[:, 4],
            latency=np.array(latency, dtype=float),
        )


def _over(function: Callable[[np.ndarray], float], values: np.ndarray) -> float:
    """Apply a function to the finite values; NaN if there is none."""
    finite = values[np.isfinite(values)]
    return float(function(finite)) if len(finite) else math.nan


SHOWN = 500  # newest samples that a view shows figures of
STORED = 1000  # recent instants of which a message may still be missing


class SwayMonitor(ListeningNode):
    """Records a run of one robot.

    Attributes:
        recording: every known CoM, with its truth.
        snapshots: the instants for which all of CoM, chain and joint positions arrived.
        stamps: theirs, ns.
        unknown: number of messages without a known CoM.
        reason: what the last of those gave as the reason.
    """

    def __init__(self, model: RobotModel, name: str = "sway_monitor") -> None:
        super().__init__(name, "com")
        self.model = model
        self.start_over()
        self._parts: dict[
            int, dict[type, Any]
        ] = {}  # messages by their stamp, ns, and type
        self._listen(CenterOfMass, "com", self._on_com)
        self._listen(CenterOfMass, "ground_truth/com", self._on_truth)
        self._listen(JointState, "joint_states", self._on_joints)
        self._listen(SescChain, "sesc", self._gather)

    def start_over(self) -> None:
        """Forget what has been recorded."""
        self.recording = Recording()
        self.snapshots: list[Snapshot] = []
        self.stamps: list[int] = []
        self.unknown = 0
        self.reason = ""

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether all topics arrive; a late one would leave nothing to compare or to draw."""
        return bool(self.snapshots and self.recording.truths)

    def waiting_for(self, seconds: float) -> str:
        """Return which topics do not arrive."""
        arrived = {"ground_truth/com": self.recording.truths, "sesc": self.snapshots}
        missing = [topic for topic, messages in arrived.items() if not messages]
        return f"no message on {' and '.join(missing)} after {seconds:.0f} s"

    @property
    def elapsed(self) -> float:
        """Time between the first and the last CoM, s."""
        samples = self.recording.samples
        return (samples[-1][0] - samples[0][0]) / NS_PER_S if samples else 0.0

    def rows(self) -> Rows:
        """Return what a view shows."""
        return self.recording.series(last=SHOWN).rows()

    def problem(self, seconds: float) -> str:
        """Return why no CoM came for a time."""
        return (
            f"the CoM is not known: {self.reason}"
            if self.unknown
            else super().problem(seconds)
        )

    def _on_com(self, msg: CenterOfMass, info: dict) -> None:
        if msg.status == CenterOfMass.STATUS_UNKNOWN:
            self.unknown += 1
            self.reason = msg.reason
            return
        stamp_ns = stamp_to_ns(msg.header.stamp)
        at, received_ns = msg.position, info["received_timestamp"]
        self.recording.samples.append(
            (stamp_ns, received_ns, at.x, at.y, at.z, msg.support_margin)
        )
        self._gather(msg, info)

    def _on_truth(self, msg: CenterOfMass, _info: dict) -> None:
        com = (msg.position.x, msg.position.y, msg.position.z)
        self.recording.truths[stamp_to_ns(msg.header.stamp)] = com

    def _on_joints(self, msg: JointState, info: dict) -> None:
        self.recording.joints[stamp_to_ns(msg.header.stamp)] = info[
            "received_timestamp"
        ]
        self._gather(msg, info)

    def _gather(self, msg: Any, _info: dict) -> None:
        """Make a snapshot when the last of CoM, joints and chain of one stamp has arrived."""
        stamp_ns = stamp_to_ns(msg.header.stamp)
        parts = self._parts.setdefault(stamp_ns, {})
        parts[type(msg)] = msg
        if len(parts) < 3:
            if len(self._parts) > STORED:
                del self._parts[next(iter(self._parts))]
            return
        del self._parts[stamp_ns]
        sample = JointInput(self.model.joint_names, timeout_s=1.0).update(
            parts[JointState], stamp_ns
        )
        if sample is None or sample.error:
            return
        values = center_of_mass_to_numpy(parts[CenterOfMass])
        self.stamps.append(stamp_ns)
        self.snapshots.append(
            Snapshot(
                q=sample.position,
                com=values.position,
                projection=values.projection,
                gravity=values.gravity,
                chain=points_to_numpy(parts[SescChain].points),
                contacts=values.contacts,
                margin=values.margin,
                on_feet=values.ground == CenterOfMass.GROUND_FEET,
            )
        )


SIZE = (9.6, 7.2)  # inches
_LEAST_MM = 1e-14  # shown in place of no error at all, which a logarithm does not know


def plot_figure(series: Series, title: str) -> Figure:
    """Return the figure of a run of at least one sample."""
    figure = plotting.new_figure(SIZE, title)
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
    _com_axes(top, series)
    _error_axes(middle, series)
    _margin_axes(bottom, series)
    for axes in (top, middle, bottom):
        plotting.style_axes(axes)
    bottom.set_xlabel("time (s)")
    return figure


def _com_axes(axes: Axes, series: Series) -> None:
    """Plot x, y, z less their means, which are in the legend."""
    mean = 1000 * np.nanmean(series.com, axis=0)
    for k, name in enumerate("xyz"):
        label = minus(f"{name}, mean {mean[k]:.1f} mm")
        com, truth = (
            1000 * values[:, k] - mean[k] for values in (series.com, series.truth)
        )
        thick: dict[str, Any] = {
            "color": plotting.AXIS_COLORS[k],
            "lw": 2.6,
            "alpha": 0.55,
        }
        axes.plot(series.time, com, label=label, **thick)
        dashed: dict[str, Any] = {"color": plotting.INK, "lw": 0.9, "ls": (0, (5, 4))}
        axes.plot(
            series.time, truth, label="simulator's truth" if k == 2 else None, **dashed
        )
    axes.set_ylabel("CoM − mean (mm)")
    plotting.add_legend(axes, 4, above=True)


def _error_axes(axes: Axes, series: Series) -> None:
    """Plot the distance to the truth; logarithmic, for it spans many powers of ten."""
    error = 1000 * series.error
    if not np.isfinite(error).any():
        center_text(axes, "no truth arrived")
    else:
        axes.semilogy(
            series.time, np.maximum(error, _LEAST_MM), color=plotting.PURPLE, lw=1
        )
        low = 10.0 ** np.floor(np.log10(max(np.nanmin(error), _LEAST_MM)))
        axes.set_ylim(low / 3, max(30 * np.nanmax(error), 10 * low))
        axes.yaxis.set_major_locator(LogLocator(numticks=4))
        axes.minorticks_off()
        corner_text(axes, f"largest {np.nanmax(error):.2g} mm")
    axes.set_ylabel("error (mm)")


def _margin_axes(axes: Axes, series: Series) -> None:
    """Plot the signed distance of the projection to the support polygon's edge."""
    margin = 1000 * series.margin
    if not np.isfinite(margin).any():
        center_text(axes, "no feet known: no support polygon")
    else:
        axes.plot(series.time, margin, color=plotting.GREEN, lw=1.4)
        axes.axhspan(
            min(0.0, 1.1 * np.nanmin(margin)), 0.0, color=plotting.RED, alpha=0.12, lw=0
        )
        axes.axhline(0.0, color=plotting.RED, lw=1)
        low = min(-0.08 * np.nanmax(margin), 1.1 * np.nanmin(margin))
        axes.set_ylim(low, 1.3 * max(np.nanmax(margin), 0.1))
        corner_text(axes, f"smallest {np.nanmin(margin):.1f} mm")
    axes.set_ylabel("margin (mm)")


MAX_ERROR_MM = 1.0


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot = find_robot(options.robot, options.config)
    model = RobotModel.from_file(robot.urdf)
    robot, config = with_fitting_config(robot, model)
    stands = (
        "stands on its feet"
        if config is not None and config.feet
        else "hangs from its base"
    )
    what = f"{robot.name}: {model.n_joints} joints, {model.mass:.2f} kg, {stands}"
    times, command = (
        Times(options.seconds, settle=4.0),
        launch_command(robot, options.speed),
    )
    monitor = listen(command, lambda: SwayMonitor(model), times, what, options)
    series = monitor.recording.series(until=options.seconds)
    figures = {"robot": robot.name, **series.summary()}
    figures |= write_picture(robot, model, config, monitor, options.output)
    plot = options.output / f"{robot.name}_com.png"
    title = f"{robot.name}: CoM in {model.root_link}, {series.rate_hz:.0f} Hz, against the truth"
    save_png(plot_figure(series, title), plot)
    figures["plot"] = str(plot)
    verdict = (
        "The CoM on the topic com is within {com_error_max_mm} mm of the simulator's truth, at "
        "{rate_hz} Hz."
    )
    then = (
        "`make setup-robot URDF=robot.urdf` configures your own robot, "
        "`make demo ROBOT=robot.urdf` shows it. "
        "`make demo-identify` corrects a URDF whose masses are wrong."
    )
    path, title = (
        options.output / f"{robot.name}.json",
        f"The CoM of {robot.name}, live",
    )
    finish(figures, path, lambda: check(figures), verdict, then, title)


def command_line() -> DemoParser:
    """Options of the demo."""
    parser = DemoParser("demo", str(__doc__), "hoap2", "hoap2, talos", speed=1.0)
    parser.add_number("--seconds", 20.0, (1, 3600), "how long to record")
    return parser


def with_fitting_config(
    robot: RobotFiles, model: RobotModel
) -> tuple[RobotFiles, RobotConfig | None]:
    """Read the configuration of the robot's name, unless it is about another robot."""
    if robot.config is None:
        return robot, None
    config = RobotConfig.from_file(robot.config)
    try:
        config.attach(model)
    except ComModelError as error:
        print(f"{robot.name}: not the robot of that name, so it has no feet: {error}")
        return replace(robot, config=None), None
    return robot, config


def launch_command(robot: RobotFiles, speed: float) -> list[str]:
    """Return the command that starts the launch file; simulated over wall time is at most speed."""
    file = (
        "hoap2.launch.xml"
        if robot.name == "hoap2" and robot.config
        else "view_robot.launch.xml"
    )
    waits = lockstep_arguments(speed, "sesc_publisher", "sway_monitor")
    return launch_words(file, robot, simulation="true", sway="true", **waits)


def write_picture(
    robot: RobotFiles,
    model: RobotModel,
    config: RobotConfig | None,
    monitor: SwayMonitor,
    out: Path,
) -> dict[str, str | float]:
    """Write the picture of the last instant; return where it is, and the robot's mass."""
    if not monitor.snapshots:
        raise RunError("no chain arrived on sesc together with com and joint_states")
    shape = robot_shape(model, robot.urdf)
    if note := shape_note(shape):
        print(f"{robot.name}: {note}")
    picture = out / f"{robot.name}.png"
    feet = config.feet if config is not None else ()
    draw_picture(
        build_scene(model, shape, feet, monitor.snapshots, robot.name), picture
    )
    return {"mass_kg": round(model.mass, 6), "picture": str(picture)}


def check(figures: dict) -> None:
    """Raise RunError if the CoM was not compared with the truth, or differs from it."""
    error = figures["com_error_max_mm"]
    if error is None:
        raise RunError("no message on ground_truth/com has the stamp of one on com")
    if error > MAX_ERROR_MM:
        raise RunError(
            f"the CoM is up to {error:.3g} mm off the truth, {MAX_ERROR_MM:g} allowed"
        )


main = partial(run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
