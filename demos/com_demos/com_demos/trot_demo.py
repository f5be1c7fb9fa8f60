"""Shows the trot: a quadruped trots in simulation, and a load drops on a corner of its trunk.

It writes a plot of the estimate against the truth. The sensors err as real ones do; the trunk's CoM
is not where the URDF says.

Subscribes:
    trunk_com (com_msgs/TrunkCom): every message is recorded.
    ground_truth/trunk_com (com_msgs/CenterOfMass): matched with `trunk_com` by stamp.
    ground_reaction (com_msgs/GroundReaction): the feet's forces, for the view.
    gait/stance (com_msgs/GaitPhase): when the trot began, and the shift of the feet.
    imu (sensor_msgs/Imu): roll and pitch.
"""

import argparse
import math
import sys
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sensor_msgs.msg import Imu

from com_demos import demonstration
from com_demos.background import ListeningNode
from com_demos.demonstration import Times
from com_demos.exceptions import RunError
from com_demos.live import Rows
from com_demos.plots import center_text, corner_text, minus
from com_demos.trot_recording import SIGMAS, TrunkRecording, TrunkSeries
from com_estimation.trunk.floating_base.options import Priors
from com_model import RobotConfig, RobotFiles, RobotModel, plotting, quadruped_legs
from com_model.plotting import save_png
from com_model.status import Status
from com_msgs.msg import CenterOfMass, GaitPhase, GroundReaction, TrunkCom
from com_ros.conversions import (
    constant_name,
    imu_to_rotation,
    point_to_numpy,
    points_to_numpy,
    stamp_to_ns,
)

SHOWN = 200  # newest samples that a view shows figures of
TILT_PERIOD_NS = 4_000_000  # of recorded attitudes, at least


class TrotMonitor(ListeningNode):
    """Records all of a trot; R_imu_root (3, 3) is the IMU's attitude to the root link's."""

    def __init__(self, R_imu_root: np.ndarray) -> None:
        super().__init__("trot_monitor", "trunk_com")
        self.recording = TrunkRecording()
        self._R_imu_root = R_imu_root
        self._tilt_ns = 0
        self._lift = math.nan
        self._trunk = TrunkCom()
        self._gait = GaitPhase()
        self._listen(TrunkCom, "trunk_com", self._on_trunk)
        self._listen(CenterOfMass, "ground_truth/trunk_com", self._on_truth)
        self._listen(GroundReaction, "ground_reaction", self._on_forces)
        self._listen(GaitPhase, "gait/stance", self._on_gait)
        self._listen(Imu, "imu", self._on_imu)

    @property
    def elapsed(self) -> float:
        """Time since the robot began to trot, s."""
        return self.recording.elapsed()

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the robot trots."""
        return self.recording.began_ns > 0

    def rows(self) -> Rows:
        """Return what a view shows."""
        status = constant_name(TrunkCom, self._trunk.status)
        return self.recording.series(last=SHOWN).rows(
            status, self._trunk.reason, self._lift
        )

    @property
    def reason(self) -> str:
        """Return why the last status is not better."""
        return self._trunk.reason

    def waiting_for(self, seconds: float) -> str:
        """Return why no trot began."""
        reason = self._gait.reason or "nothing on gait/stance says why"
        return f"the robot does not trot after {seconds:.0f} s: {reason}"

    def _on_trunk(self, msg: TrunkCom, _info: dict) -> None:
        self._trunk, at = msg, msg.position
        std = np.sqrt(np.diag(np.reshape(msg.covariance, (3, 3)))).tolist()
        values = (at.x, at.y, at.z, msg.mass, *std, msg.mass_std)
        stamps = stamp_to_ns(msg.header.stamp), stamp_to_ns(msg.payload_changed_at)
        self.recording.samples.append((*stamps, msg.status, values))

    def _on_truth(self, msg: CenterOfMass, _info: dict) -> None:
        values = np.append(point_to_numpy(msg.position), msg.mass)
        self.recording.add_truth(stamp_to_ns(msg.header.stamp), values)

    def _on_forces(self, msg: GroundReaction, _info: dict) -> None:
        self._lift = float(points_to_numpy(msg.forces)[:, 2].sum())

    def _on_gait(self, msg: GaitPhase, _info: dict) -> None:
        self._gait = msg
        stamp_ns = stamp_to_ns(msg.header.stamp)
        if msg.state == GaitPhase.TROTTING and not self.recording.began_ns:
            self.recording.began_ns = stamp_ns
        self.recording.gaits.append((stamp_ns, *msg.com_shift.tolist(), msg.saturated))

    def _on_imu(self, msg: Imu, _info: dict) -> None:
        stamp_ns = stamp_to_ns(msg.header.stamp)
        if stamp_ns - self._tilt_ns < TILT_PERIOD_NS:
            return
        self._tilt_ns = stamp_ns
        R = imu_to_rotation(msg) @ self._R_imu_root
        roll, pitch = (
            math.atan2(R[2, 1], R[2, 2]),
            -math.asin(max(-1.0, min(1.0, R[2, 0]))),
        )
        self.recording.tilts.append((stamp_ns, roll, pitch))


SIZE = (9.6, 10.2)  # inches
NAMES = ("x (mm)", "y (mm)", "z (mm)", "mass (kg)")
COLORS = (*plotting.AXIS_COLORS, plotting.PURPLE)
SCALES = (1000.0, 1000.0, 1000.0, 1.0)
LEAST = (4.0, 4.0, 4.0, 2.0)  # half heights of the axes around the truth, mm and kg


def trunk_figure(series: TrunkSeries, title: str) -> Figure:
    """Return the figure of a trot of at least one estimate; the feet's shift, if there is one."""
    figure = plotting.new_figure(SIZE, title)
    ratios = (1.2, 1.2, 1, 1, 1, 0.8) if np.any(series.shift) else (1.2, 1.2, 1, 1, 1)
    panels = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)
    for k, axes in enumerate(panels[:4]):
        _estimate_axes(axes, series, k)
    _tilt_axes(panels[4], series)
    if len(panels) > 5:
        _shift_axes(panels[5], series)
    for axes in panels:
        plotting.style_axes(axes)
        _events(axes, series, named=axes is panels[0])
    plotting.add_legend(panels[0], 3, above=True)
    begin = min(-0.5, float(series.time[series.usable].min(initial=0.0)))
    panels[-1].set_xlim(max(begin, -2.0), float(series.time[-1]))
    panels[-1].set_xlabel("time since the first step (s)")
    return figure


def _estimate_axes(axes: Axes, series: TrunkSeries, k: int) -> None:
    """Plot one of x, y, z and mass, its band and its truth."""
    value, truth = SCALES[k] * series.values[:, k], SCALES[k] * series.truth[:, k]
    band = SIGMAS * SCALES[k] * series.std[:, k]
    axes.fill_between(
        series.time,
        value - band,
        value + band,
        color=COLORS[k],
        alpha=0.22,
        lw=0,
        label="3 σ",
    )
    axes.plot(series.time, value, color=COLORS[k], lw=1.6, label="estimate")
    matched = np.isfinite(truth)
    style: dict[str, Any] = {"color": plotting.INK, "lw": 1.0, "ls": (0, (5, 3))}
    axes.plot(series.time[matched], truth[matched], label="simulator's truth", **style)
    axes.set_ylabel(NAMES[k])
    if not matched.any():
        center_text(axes, "no ground truth received")
        return
    settled = series.usable & (series.time > 0.0)
    usual = np.nanpercentile(value[settled], (1, 99)) if settled.any() else np.empty(0)
    shown = np.concatenate([truth[matched], usual])  # jumps may leave the picture
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    room = max(LEAST[k], 0.15 * (high - low))
    axes.set_ylim(low - room, high + room)
    corner_text(axes, minus(f"error at the end {value[-1] - truth[matched][-1]:+.2g}"))


def _tilt_axes(axes: Axes, series: TrunkSeries) -> None:
    for k, name in enumerate(("roll", "pitch")):
        tilt = np.degrees(series.tilt[:, k])
        axes.plot(
            series.tilt_time, tilt, color=plotting.AXIS_COLORS[k], lw=1.1, label=name
        )
    plotting.add_legend(axes, 2)
    axes.set_ylabel("tilt (°)")


def _shift_axes(axes: Axes, series: TrunkSeries) -> None:
    """Plot how far the gait moves the feet for the CoM; shaded where that is at its bound."""
    axes.set_ylabel("feet's shift (mm)")
    for k, name in enumerate("xy"):
        shift = 1000 * series.shift[:, k]
        axes.plot(series.gait_time, shift, color=plotting.AXIS_COLORS[k], label=name)
    if series.saturated.any():
        style: dict[str, Any] = {"color": plotting.RED, "alpha": 0.12, "lw": 0}
        bound, low_high = series.saturated.tolist(), axes.get_ylim()
        axes.fill_between(
            series.gait_time, *low_high, bound, label="at its bound", **style
        )
    plotting.add_legend(axes, 3)


def _events(axes: Axes, series: TrunkSeries, named: bool) -> None:
    """Mark when the trot began, the load dropped and was noticed."""
    noticed = f" noticed after {series.noticed_at - series.loaded_at:.2f} s"
    for at, line, text, side in (
        (0.0, ":", "", "left"),
        (series.loaded_at, "-", "payload ", "right"),
        (series.noticed_at, "--", noticed, "left"),
    ):
        if np.isfinite(at):
            axes.axvline(at, color=plotting.FAINT, lw=1.0, ls=line, zorder=1)
        if np.isfinite(at) and named and text:
            place: dict[str, Any] = {
                "transform": axes.get_xaxis_transform(),
                "va": "bottom",
            }
            axes.text(at, 0.02, text, fontsize=9, color=plotting.INK, ha=side, **place)


DROP_AT = 5.0  # s of trotting, or a little later
# of the trunk's CoM, over the distances of the hips along x and y
OFFSET = -0.024, 0.08
MARGIN = 0.1  # s, recorded beyond the end, so that nothing of it is missing
LOAD = 1.0 / 15.0  # of the trunk's mass: 20 kg for 300
STANDING = 2.0  # s, at most, before the robot trots
MAX_NEES = 13.8  # of x and y; chi^2 of two exceeds it in 0.1 %


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo_trot", str(__doc__), "scalf2", "scalf2, anymal", speed=0.5
    )
    why = ", the load drops at 5"
    parser.add_number("--seconds", 15.0, (6, 3600), "of trotting, simulated", why)
    parser.add_argument(
        "--feedback", action="store_true", help="let the gait use the estimate"
    )
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, config_file = demonstration.find_configured_robot(
        options, "side and end of its feet"
    )
    model, config = RobotModel.from_file(robot.urdf), RobotConfig.from_file(config_file)
    hips = np.array([leg.hip for leg in quadruped_legs(model, config)])
    load = LOAD * float(model.bodies.mass[0])
    link = model.link_index(config.imu_link or model.root_link)
    R_imu_root = model.bodies.R_body_link[link].T
    what = (
        f"{robot.name}: {model.mass:.2f} kg trot at {options.speed:g} times real time"
    )
    command, times = (
        launch_command(robot, hips, load, options),
        Times(options.seconds + MARGIN),
    )
    monitor = demonstration.listen(
        command, lambda: TrotMonitor(R_imu_root), times, what, options
    )
    series = monitor.recording.series(until=options.seconds)
    name = f"{robot.name}_trot" + ("_feedback" if options.feedback else "")
    plot = options.output / f"{name}.png"
    title = (
        f"{robot.name}: CoM and mass of the trunk, {load:.3g} kg dropped on a corner"
    )
    save_png(trunk_figure(series, title), plot)
    figures = {
        "robot": robot.name,
        "feedback": options.feedback,
        "payload_kg": round(load, 3),
    }
    status = (
        Status(series.status[-1]).name if len(series.status) else Status.UNKNOWN.name
    )
    figures |= {
        "status": status,
        "reason": monitor.reason,
        **series.summary(),
        "plot": str(plot),
    }
    verdict = (
        "At the end the CoM of the trunk is found to {error_x_mm:.2f} mm in x and {error_y_mm:.2f} "
        "mm in y (standard deviations {sigma_x_mm:.2f} and {sigma_y_mm:.2f} mm), its mass to "
        "{error_mass_kg:.2f} kg, with {payload_kg} kg that nobody announced; status {status}."
    )
    title = f"The trunk of {robot.name}, estimated while it trots"
    then = (
        "`make demo-trot FEEDBACK=true` lets the gait use the estimate. docs/tutorial_trunk.md "
        "leads from your own quadruped's URDF and topics to a live estimate."
    )
    prior_mm = 1000.0 * Priors().com * float(np.linalg.norm(hips[0] - hips[3]))
    path = options.output / f"{name}.json"
    demonstration.finish(
        figures, path, lambda: check(figures, prior_mm), verdict, then, title
    )


def launch_command(
    robot: RobotFiles, hips: np.ndarray, load: float, options: argparse.Namespace
) -> list[str]:
    """Return the command that starts the launch file.

    The load, kg, drops on the first of the hips (4, 3) m, in the root link's frame.
    """
    arguments: dict[str, object] = {
        "sesc": "false",
        "noise": "trot",
        "feedback": str(options.feedback).lower(),
        "payload_mass": load,
        "payload_time": STANDING + DROP_AT,
    }
    nodes = ("trot_gait", "trunk_estimator", "trot_monitor")
    arguments |= demonstration.lockstep_arguments(options.speed, *nodes)
    offset = np.array(OFFSET) * np.ptp(hips[:, :2], axis=0)
    arguments |= {
        f"offset_{axis}": value for axis, value in zip("xy", offset, strict=True)
    }
    arguments |= {
        f"payload_{axis}": value for axis, value in zip("xyz", hips[0], strict=True)
    }
    return demonstration.launch_words("trot.launch.xml", robot, **arguments)


def check(figures: dict, prior_mm: float) -> None:
    """Raise RunError unless the estimate is right by its own sigma and narrower than the prior.

    Args:
        figures: Of the run, from TrunkSeries.summary, with the last status and its reason.
        prior_mm: Standard deviation of the trunk's CoM in x and y before the trot, mm.
    """
    if figures["error_x_mm"] is None:
        why = figures["reason"] or "no estimate with its ground truth was received"
        raise RunError(f"no estimate at the end, status {figures['status']}: {why}")
    for name in ("x_mm", "y_mm", "z_mm", "mass_kg"):
        error, sigma = figures[f"error_{name}"], figures[f"sigma_{name}"]
        if error > SIGMAS * sigma:
            raise RunError(
                f"{name} is off by {error:.3g} at a standard deviation of {sigma:.3g}"
            )
        if name[0] in "xy" and sigma >= prior_mm:
            raise RunError(
                f"{name} is known to {sigma:.3g}, before the trot to {prior_mm:.3g}"
            )
    if figures["nees_xy"] > MAX_NEES:
        raise RunError(
            f"squared error over variance is {figures['nees_xy']:.3g} in x and y"
        )


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
