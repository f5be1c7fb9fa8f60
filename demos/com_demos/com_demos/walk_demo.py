"""Shows the walk: a robot on two legs walks in simulation, with its CoM where it is to be.

It writes a plot of CoM and ZMP against the plan, and a film strip.

Subscribes:
    gait/state (com_msgs/WalkState): every message is recorded.
    gait/markers (visualization_msgs/MarkerArray): where the soles are to be set down.
    ground_truth/com (com_msgs/CenterOfMass), joint_states, /tf (odom -> root link -> walk).

The plan is in the frame of the walk, the truth in odom. Both are brought together by the root
link's place in either while the robot still stands, so that a walk that drifts shows.
"""

import argparse
import math
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from com_demos import demonstration
from com_demos.background import ListeningNode
from com_demos.demonstration import Times
from com_demos.exceptions import RunError
from com_demos.live import WAITING, Rows, millimetres, with_reason
from com_demos.pictures import FilmRow, draw_film
from com_demos.plots import center_text, corner_text
from com_demos.walk_record import WalkRecord, has_fallen
from com_model import RobotFiles, RobotModel, plotting
from com_model.arrays import Array
from com_model.plotting import save_png
from com_msgs.msg import CenterOfMass, WalkState
from com_ros.conversions import (
    NS_PER_S,
    constant_name,
    point_to_numpy,
    points_to_numpy,
    stamp_to_ns,
    transform_to_numpy,
)
from com_ros.joint_input import JointInput
from com_simulation.drawing.shapes import robot_shape

Pose = tuple[Array, Array]  # R (3, 3), p (3,) m
SAME_TIME_NS = 10_000_000  # poses that are further apart in time are not compared


def walk_rows(msg: WalkState) -> Rows:
    """Return what a view shows of a state."""
    zmp, reference = (point_to_numpy(point) for point in (msg.zmp, msg.com_reference))
    reason, error = (
        with_reason(constant_name(WalkState, msg.state), msg.reason),
        msg.com_error,
    )
    return [
        ("state", reason),
        ("step", f"{msg.step + 1} of {msg.steps}" if msg.step >= 0 else "none"),
        (
            "CoM reference",
            millimetres(reference) if np.isfinite(reference).all() else "not known",
        ),
        ("CoM error", f"{1000 * error:.2f} mm" if math.isfinite(error) else "-"),
        ("ZMP", millimetres(zmp) if np.isfinite(zmp).all() else "not known"),
    ]


@dataclass(frozen=True, eq=False)
class WalkSeries:
    """A walk as arrays, in the walk's frame; rows of the plan, and rows of the truth."""

    time: Array  # (t,) s of the walk
    com_reference: Array  # (t, 3) m
    zmp_reference: Array  # (t, 3) m
    zmp: Array  # (t, 3) m
    truth: (
        WalkRecord  # where the simulated robot was: root, joints, CoM; times as above
    )
    footprints: tuple[
        Array, ...
    ]  # (k, 3) m each, corners of the soles where they are set down
    duration: float  # s of the walk; NaN without one

    @property
    def error(self) -> Array:
        """Distances (t,) of the true CoM to the reference, m, at the times of the truth."""
        if not len(self.time):
            return np.full(len(self.truth.time), np.nan)
        at, axes = self.truth.time, self.com_reference.T
        reference = [np.interp(at, self.time, values) for values in axes]
        return np.asarray(
            np.linalg.norm(self.truth.com - np.transpose(reference), axis=1)
        )

    def summary(self) -> dict[str, float | bool | None]:
        """The figures of the walk, from its beginning to its end."""
        lasts = (self.truth.time >= 0.0) & (self.truth.time <= self.duration)
        error = self.error[lasts & np.isfinite(self.error)]
        return {
            "seconds": round(self.duration, 3)
            if math.isfinite(self.duration)
            else None,
            "com_error_mean_m": round(float(error.mean()), 5) if len(error) else None,
            "com_error_max_m": round(float(error.max()), 5) if len(error) else None,
            "truths_matched": len(error),
            "fell": self.truth.fell,
        }


@dataclass
class WalkRecording:
    """Collects a walk."""

    # stamp of the joints that a state was computed from, ns; time of the walk, s, negative before
    # it, NaN without one; (9,) m, references of CoM and ZMP and the ZMP, in the walk's frame
    samples: list[tuple[int, float, Array]] = field(default_factory=list)
    footprints: dict[str, list[Array]] = field(default_factory=dict)
    duration: float = math.nan  # s of the walk
    # poses of the root link in odom, by their stamps, ns
    roots: dict[int, Pose] = field(default_factory=dict)
    # poses of the walk's frame in the root link's, likewise
    walk_frames: dict[int, Pose] = field(default_factory=dict)
    # the true CoM (3,) m in the root link's frame, likewise
    coms: dict[int, Array] = field(default_factory=dict)
    joints: dict[int, Array] = field(
        default_factory=dict
    )  # positions (n,), rad or m, likewise

    def add(self, msg: WalkState, time: float) -> None:
        """Add a state, at a time of the walk, s."""
        points = points_to_numpy(
            [msg.com_reference, msg.zmp_reference, msg.zmp]
        ).ravel()
        self.samples.append((stamp_to_ns(msg.header.stamp), time, points))

    def series(self) -> WalkSeries:
        """The walk that began last, as arrays."""
        walk = [sample for sample in self.samples if math.isfinite(sample[1])]
        begin_ns = walk[-1][0] - round(walk[-1][1] * NS_PER_S) if walk else 0
        points = np.array([points for *_, points in walk]).reshape(-1, 9)
        return WalkSeries(
            time=np.array([(stamp_ns - begin_ns) / NS_PER_S for stamp_ns, *_ in walk]),
            com_reference=points[:, :3],
            zmp_reference=points[:, 3:6],
            zmp=points[:, 6:],
            truth=self._truth(
                begin_ns, [stamp_ns for stamp_ns, t, _ in walk if t < 0.0]
            ),
            footprints=tuple(
                sole for soles in self.footprints.values() for sole in soles
            ),
            duration=self.duration,
        )

    def _truth(self, begin_ns: int, standing: list[int]) -> WalkRecord:
        frame = self._walk_in_odom(standing)
        known = [k for k in self.roots if k in self.coms and k in self.joints]
        stamps = (
            sorted(k for k in known if standing and k >= standing[0]) if frame else []
        )
        R, p = frame or (np.eye(3), np.zeros(3))
        roots = [(R.T @ self.roots[k][0], R.T @ (self.roots[k][1] - p)) for k in stamps]
        coms = [
            Rr @ self.coms[k] + pr for k, (Rr, pr) in zip(stamps, roots, strict=True)
        ]
        time = np.array([(k - begin_ns) / NS_PER_S for k in stamps])
        fallen = (
            t
            for t, root in zip(time, roots, strict=True)
            if has_fallen(*roots[0], *root)
        )
        return WalkRecord(
            time=time,
            position=np.array([self.joints[k] for k in stamps]),
            com=_rows(coms),
            root=_rows([root[1] for root in roots]),
            R_root=np.array([root[0] for root in roots]).reshape(-1, 3, 3),
            wrenches=np.empty((len(stamps), 0, 6)),
            fell_at=float(next(fallen, math.nan)),
        )

    def _walk_in_odom(self, standing: list[int]) -> Pose | None:
        """Pose of the walk's frame in odom while the robot stands before the walk."""
        first, last = (standing[0], standing[-1]) if standing else (0, -1)
        stamps = [k for k in self.walk_frames if first <= k <= last]
        if not (stamps and self.roots):
            return None
        # Messages get lost, and the root moves while the robot is led: take what fits best in time,
        # and nothing where all that is left is of other times.
        roots = np.array(list(self.roots))
        away = np.abs(np.array(stamps)[:, None] - roots)
        at, root = np.unravel_index(int(np.argmin(away)), away.shape)
        if away[at, root] > SAME_TIME_NS:
            return None
        R, p = self.roots[int(roots[root])]
        R_root_walk, p_root_walk = self.walk_frames[stamps[at]]
        return R @ R_root_walk, p + R @ p_root_walk


def outlines(edges: Array) -> list[Array]:
    """Corners (k, 3) of polygons, of any number of corners, from all their edges (s, 2, 3).

    A polygon ends where an edge does not begin at the end of the one before it.
    """
    ends = np.flatnonzero((edges[1:, 0] != edges[:-1, 1]).any(axis=1)) + 1
    return np.split(edges[:, 0], ends)


def _rows(values: list[Array]) -> Array:
    return np.array(values, dtype=float).reshape(-1, 3)


WALK = "walk"
FOOTSTEPS = "footsteps_"
MOVING = (WalkState.APPROACHING, WalkState.WALKING, WalkState.STOPPING)


class WalkMonitor(ListeningNode):
    """Records all of a walk that arrives, from the first message on; it has so many steps."""

    def __init__(self, model: RobotModel) -> None:
        super().__init__("walk_monitor", "gait/state")
        self.recording = WalkRecording()
        self.steps = 0
        self._root = model.root_link
        self._names = model.joint_names
        self._state = WalkState()
        self._walked = False
        self._began_ns = 0
        self._listen(WalkState, "gait/state", self._on_state)
        self._listen(MarkerArray, "gait/markers", self._on_markers)
        self._listen(CenterOfMass, "ground_truth/com", self._on_truth)
        self._listen(JointState, "joint_states", self._on_joints)
        self._listen(TFMessage, "/tf", self._on_frames)

    @property
    def elapsed(self) -> float:
        """Time since the robot began to move, s."""
        samples = self.recording.samples
        return (samples[-1][0] - self._began_ns) / NS_PER_S if samples else 0.0

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the robot is led to its first posture, or walks, or was refused a walk."""
        return self._walked or bool(self.refusal)

    @property
    def ended(self) -> bool:  # type: ignore[override]
        """Whether the walk is over, or refused."""
        return self.ready and self._state.state not in MOVING

    @property
    def refusal(self) -> str:
        """Why no walk has begun; "" when one has, or none was asked for."""
        return "" if self._walked else self._state.last_walk

    @property
    def completed(self) -> int:
        """Number of steps that were made."""
        if not self._walked or self._state.state == WalkState.FALLEN:
            return max(self._state.step, 0)
        return self.steps if self._state.step < 0 else self._state.step

    def rows(self) -> Rows:
        """Return what a view shows."""
        if not self.received:
            return [(WAITING, "for the first message on gait/state")]
        return walk_rows(self._state)

    def waiting_for(self, seconds: float) -> str:
        """Return why no walk began."""
        reason = (
            self._state.reason or f"it is {constant_name(WalkState, self._state.state)}"
        )
        return f"the robot does not walk after {seconds:.0f} s: {reason}"

    def _on_state(self, msg: WalkState, _info: dict) -> None:
        self._state = msg
        if not msg.header.frame_id:
            return  # no robot yet
        if msg.state in MOVING:
            self._began_ns = self._began_ns or stamp_to_ns(msg.header.stamp)
            self._walked = True
            self.steps, self.recording.duration = msg.steps, msg.duration
        self.recording.add(msg, msg.time if self._walked else math.nan)

    def _on_markers(self, msg: MarkerArray, _info: dict) -> None:
        for marker in msg.markers:
            if marker.ns.startswith(FOOTSTEPS) and len(marker.points) % 2 == 0:
                edges = points_to_numpy(marker.points).reshape(-1, 2, 3)
                self.recording.footprints[marker.ns] = outlines(edges)

    def _on_truth(self, msg: CenterOfMass, _info: dict) -> None:
        self.recording.coms[stamp_to_ns(msg.header.stamp)] = point_to_numpy(
            msg.position
        )

    def _on_joints(self, msg: JointState, _info: dict) -> None:
        stamp_ns = stamp_to_ns(msg.header.stamp)
        sample = JointInput(self._names, timeout_s=1.0).update(msg, stamp_ns)
        if sample is not None and not sample.error:
            self.recording.joints[stamp_ns] = np.array(sample.position)

    def _on_frames(self, msg: TFMessage, _info: dict) -> None:
        for transform in msg.transforms:
            stamp_ns, pose = stamp_to_ns(transform.header.stamp), transform.transform
            if transform.child_frame_id == self._root:
                self.recording.roots[stamp_ns] = transform_to_numpy(pose)
            elif (
                transform.child_frame_id == WALK
                and transform.header.frame_id == self._root
            ):
                self.recording.walk_frames[stamp_ns] = transform_to_numpy(pose)


SIZE = (9.6, 9.2)  # inches
MEANT, TRUE, ZMP = plotting.GREEN, plotting.RED, plotting.BLUE


def walk_figure(series: WalkSeries, title: str) -> Figure:
    """Return the figure of a walk."""
    figure = plotting.new_figure(SIZE, title)
    ground, *over_time = figure.subplots(4, 1, height_ratios=(1.5, 1.0, 1.0, 0.8))
    _ground_axes(ground, series)
    for k, name in enumerate(("x (m)", "y (m)")):
        _along_axes(over_time[k], series, k, name)
    _error_axes(over_time[2], series)
    for axes in (ground, *over_time):
        plotting.style_axes(axes)
    for axes in over_time:
        axes.sharex(over_time[0])
        axes.axvline(0.0, color=plotting.FAINT, lw=1.0, ls=":")
    first = series.time[np.isfinite(series.time)].min(initial=0.0)
    over_time[0].set_xlim(max(float(first), -2.0), None)
    over_time[2].set_xlabel("time of the walk (s)")
    return figure


def _ground_axes(axes: Axes, series: WalkSeries) -> None:
    prints = PolyCollection(
        [sole[:, :2] for sole in series.footprints],
        facecolors="#f1f3f5",
        edgecolors=plotting.RULE,
        lw=1.2,
    )
    axes.add_collection(prints)
    axes.plot(*series.zmp[:, :2].T, color=ZMP, lw=0.8, alpha=0.7, label="ZMP, measured")
    dashed: dict[str, Any] = {"color": plotting.INK, "lw": 0.8, "ls": (0, (4, 3))}
    axes.plot(*series.zmp_reference[:, :2].T, label="ZMP, meant", **dashed)
    axes.plot(
        *series.com_reference[:, :2].T,
        color=MEANT,
        lw=2.4,
        alpha=0.6,
        label="CoM, meant",
    )
    axes.plot(*series.truth.com[:, :2].T, color=TRUE, lw=1.1, label="CoM, true")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("x (m)")
    axes.set_ylabel("y (m)")
    plotting.add_legend(axes, 4)


def _along_axes(axes: Axes, series: WalkSeries, k: int, name: str) -> None:
    axes.plot(series.time, series.zmp[:, k], color=ZMP, lw=0.8, alpha=0.7)
    axes.plot(
        series.time,
        series.zmp_reference[:, k],
        color=plotting.INK,
        lw=0.8,
        ls=(0, (4, 3)),
    )
    axes.plot(series.time, series.com_reference[:, k], color=MEANT, lw=2.4, alpha=0.6)
    axes.plot(series.truth.time, series.truth.com[:, k], color=TRUE, lw=1.1)
    axes.set_ylabel(name)


def _error_axes(axes: Axes, series: WalkSeries) -> None:
    axes.set_ylabel("CoM off (mm)")
    figures = series.summary()
    mean, most = figures["com_error_mean_m"], figures["com_error_max_m"]
    if mean is None or most is None:
        center_text(axes, "no ground truth received")
        return
    axes.plot(series.truth.time, 1000 * series.error, color=plotting.RED, lw=1.1)
    axes.set_ylim(0.0, None)
    corner_text(axes, f"mean {1000 * mean:.1f} mm, largest {1000 * most:.1f} mm")


PAPER = "itu_biped"  # has a launch file of its own
STANDING = 8.0  # s, at most, before and after the steps
FRAMES = 10


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo_walk", str(__doc__), PAPER, "itu_biped, hoap2, talos", speed=0.5
    )
    parser.add_number("--steps", 6, (1, 100), "to make")
    parser.add_number(
        "--step-time", 0.0, (0, 10), "s, of a step; 0: by its configuration, or 1.2"
    )
    parser.add_argument(
        "--method", default="refined", choices=("exact", "refined", "ccgd")
    )
    parser.add_argument(
        "--open-loop", action="store_true", help="walk without the stabiliser"
    )
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, _ = demonstration.find_configured_robot(options, "the side of its feet")
    model = RobotModel.from_file(robot.urdf)
    seconds = options.steps * ((options.step_time or 1.2) + 0.4) + STANDING
    what = (
        f"{robot.name}: {model.mass:.2f} kg walk at {options.speed:g} times real time"
    )
    command, times = launch_command(robot, options), Times(seconds)
    monitor = demonstration.listen(
        command, lambda: WalkMonitor(model), times, what, options
    )
    if monitor.refusal:
        raise RunError(f"the walk was refused: {monitor.refusal}")
    series, steps = monitor.recording.series(), monitor.completed
    name = f"{robot.name}_walk"
    plot, film = options.output / f"{name}.png", options.output / f"{name}_film.png"
    save_png(walk_figure(series, f"{robot.name}: {steps} steps"), plot)
    figures = {"robot": robot.name, "method": options.method, "steps": steps}
    figures["open_loop"] = options.open_loop
    figures |= {**series.summary(), "plot": str(plot)}
    if len(series.truth.time):
        row = FilmRow(
            f"{robot.name}, {options.method}", series.truth, series.footprints
        )
        times = np.linspace(0.0, float(series.truth.time[-1]), FRAMES).tolist()
        shape = robot_shape(model, robot.urdf)
        draw_film(model, shape, [row], times, film)
        figures["film"] = str(film)
    verdict = (
        "The robot walked {steps} steps; its true CoM was {com_error_mean_m} m off the plan in the "
        "mean, {com_error_max_m} m at most."
    )
    title = f"{robot.name} walks with its CoM on the planned path"
    then = (
        "docs/tutorial_walking.md leads from your own humanoid's URDF to its walk, "
        "docs/stabiliser.md says what feedback did; --open-loop walks without."
    )
    path = options.output / f"{name}.json"
    demonstration.finish(
        figures, path, lambda: check(figures, options), verdict, then, title
    )


def launch_command(robot: RobotFiles, options: argparse.Namespace) -> list[str]:
    """Return the command that starts the launch file."""
    file = "itu_biped.launch.xml" if robot.name == PAPER else "walk.launch.xml"
    walk = {
        "steps": options.steps,
        "step_time": options.step_time,
        "method": options.method,
    }
    walk["stabiliser"] = "false" if options.open_loop else "true"
    walk |= demonstration.lockstep_arguments(options.speed, "ccgd_gait", "walk_monitor")
    return demonstration.launch_words(file, robot, sesc="false", walk="true", **walk)


def check(figures: dict, options: argparse.Namespace) -> None:
    """Raise RunError if the robot fell, or did not make its steps."""
    if figures["fell"]:
        raise RunError("the robot fell")
    if figures["steps"] != options.steps:
        raise RunError(
            f"the robot made {figures['steps']} of {options.steps} steps: see its log"
        )
    if figures["com_error_mean_m"] is None:
        raise RunError("no ground truth was received")


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
