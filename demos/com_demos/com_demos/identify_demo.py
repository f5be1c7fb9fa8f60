"""Shows the identification: a robot whose URDF is wrong visits postures, and the URDF is corrected.

Its battery is mounted elsewhere than the URDF has it, and each link's CoM is off. The sensors have
the noise of real ones; they are calibrated, and the settings of the identification say so. It
writes a picture of the errors before and after.

Subscribes:
    identification/state (com_msgs/IdentificationState): how many postures there are.
    identification/result (com_msgs/IdentificationResult): the latest one is kept.
    identification/model_check (com_msgs/ModelCheck): the model against the feet.
    posture_tour/status (std_msgs/String): what is done.
"""

import argparse
import math
import shutil
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from std_msgs.msg import String

from com_demos import demonstration
from com_demos.background import ListeningNode
from com_demos.compare_urdfs import COUNT, SEED, Comparison, compare, standing_postures
from com_demos.demonstration import Times
from com_demos.exceptions import RunError
from com_demos.hidden_load import displace_battery
from com_demos.live import WAITING, Rows
from com_identification import identify
from com_identification.regression.statics import Statics, prediction_rows
from com_identification.settings import IdentificationSettings, SensorPriors
from com_identification.store.store import PostureStore
from com_model import RobotConfig, RobotFiles, RobotModel, plotting
from com_model.arrays import Array
from com_model.files import write_file
from com_model.plotting import save_png
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros import qos
from com_ros.conversions import NS_PER_S, stamp_to_ns, vector3_to_numpy

ENDS = "the tour ends"  # begins posture_tour's last status when it fails
WAITS = "waits for "  # begins what it says before the tour
LETTERS = 70  # of a row


class IdentifyMonitor(ListeningNode):
    """Follows an identification from its start to its result.

    The latest `result` is None before; `failure`, why the tour ended early, is empty if it did not;
    `suspicion` is what the feet said against the URDF while the robot stood.
    """

    follows = False

    def __init__(self) -> None:
        super().__init__("identify_monitor", "identification/state")
        self._count = 0
        self._began_ns = 0
        self._job_began = 0.0
        self.result: IdentificationResult | None = None
        self.failure = self.suspicion = ""
        self._state = IdentificationState()
        self._status = ""
        self._offset = math.nan
        self._listen(IdentificationState, "identification/state", self._on_state)
        self._listen(ModelCheck, "identification/model_check", self._on_check)
        self._listen(
            IdentificationResult, "identification/result", self._on_result, qos.LATCHED
        )
        self._listen(String, "posture_tour/status", self._on_status, qos.LATCHED)

    @property
    def received(self) -> int:
        """Number of messages on identification/state."""
        return self._count

    @property
    def elapsed(self) -> float:
        """Time since the first state, s."""
        stamp_ns = stamp_to_ns(self._state.header.stamp)
        return (stamp_ns - self._began_ns) / NS_PER_S if self._began_ns else 0.0

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the tour has begun."""
        return bool(self._status) and not self._status.startswith(WAITS)

    @property
    def ended(self) -> bool:  # type: ignore[override]
        """Whether the URDF is written, or never will be."""
        return bool(self.failure) or "postures captured; " in self._status

    def rows(self) -> Rows:
        """Return what a view shows."""
        if not self.received:
            return [(WAITING, "for com_identification")]
        state = self._state
        lasts = time.monotonic() - self._job_began
        progress = "" if math.isnan(state.progress) else f"{state.progress:.0%} "
        job = (
            f"{state.job}: {progress}{state.step}, {lasts:.0f} s"
            if state.job
            else "nothing"
        )
        offset = f"{1000 * self._offset:.2f} mm off the feet's"
        return [
            ("postures", str(state.postures)),
            ("model's CoM", offset if math.isfinite(self._offset) else "moves"),
            ("computes", job[:LETTERS]),
            ("tour", self._status[:LETTERS]),
        ]

    def problem(self, seconds: float) -> str:
        """Return why nothing came for a time."""
        if not self.received:
            return super().problem(seconds)
        return f"nothing new from posture_tour for {seconds:.0f} s; its status: {self._status}"

    def _on_state(self, msg: IdentificationState, _info: dict) -> None:
        self._count += 1
        if msg.job != self._state.job:
            self._job_began = time.monotonic()
        self._state = msg
        self._began_ns = self._began_ns or stamp_to_ns(msg.header.stamp)

    def _on_check(self, msg: ModelCheck, _info: dict) -> None:
        off = msg.difference
        self._offset = math.hypot(off.x, off.y, off.z)
        if msg.verdict > ModelCheck.CONSISTENT:
            self.suspicion = self.suspicion or msg.reason

    def _on_result(self, msg: IdentificationResult, _info: dict) -> None:
        if msg.status != IdentificationResult.STATUS_UNKNOWN:
            self.result = msg

    def _on_status(self, msg: String, _info: dict) -> None:
        self._status = msg.data
        if msg.data.startswith(ENDS):
            self.failure = msg.data


SIZE = (9.6, 7.2)  # inches
BEFORE, AFTER = plotting.RED, plotting.AXIS_COLORS[2]
BEST = 0.8  # of the prior's standard deviation: what is less is drawn, the rest is not observable


def identification_figure(
    comparison: Comparison, stds: Array, prior: float, title: str
) -> Figure:
    """Return the figure of an identification, by the comparison with the truth.

    stds (B, 3) m are standard deviations that it gives its bodies' CoMs, prior, m, those before.
    """
    figure = plotting.new_figure(SIZE, title)
    upper, lower = figure.subplots(2, 1, height_ratios=(1, 1.5))
    _whole(upper, comparison)
    _bodies(lower, comparison, stds, prior)
    for axes in (upper, lower):
        plotting.style_axes(axes)
        plotting.add_legend(axes, 3)
    return figure


def _whole(axes: Axes, comparison: Comparison) -> None:
    """Errors of the whole robot's CoM in postures that were not measured, the largest last."""
    percent = np.linspace(0.0, 100.0, len(comparison.before))
    for name, values, color in (
        ("URDF as believed", comparison.before, BEFORE),
        ("identified", comparison.after, AFTER),
    ):
        rms = 1000.0 * np.sqrt(np.mean(values**2))
        label = f"{name}: {rms:.2f} mm RMS"
        axes.plot(percent, 1000.0 * np.sort(values), color=color, lw=2, label=label)
    axes.set_ylim(0.0, 1300.0 * comparison.before.max())
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("postures that were not measured, in order of the error (%)")
    axes.set_ylabel("error of the CoM (mm)")


def _bodies(axes: Axes, comparison: Comparison, stds: Array, prior: float) -> None:
    """Errors of the observable components of bodies' CoMs, with two standard deviations."""
    observable = np.argwhere(stds < BEST * prior)
    order = np.argsort([stds[body, axis] for body, axis in observable])
    observable = observable[order]
    places = np.arange(len(observable))
    before, after, spread = (
        np.array([1000.0 * values[body, axis] for body, axis in observable])
        for values in (comparison.bodies_before, comparison.bodies_after, stds)
    )
    axes.bar(
        places,
        4.0 * spread,
        bottom=-2.0 * spread,
        color="#d0ebff",
        label="two standard deviations",
    )
    axes.plot(places, before, "x", color=BEFORE, ms=5, label="URDF as believed")
    axes.plot(places, after, "o", color=AFTER, ms=4, label="identified")
    names = [f"{comparison.bodies[body]} {'xyz'[axis]}" for body, axis in observable]
    axes.set_xticks(places, names, rotation=90, fontsize=7)
    reach = 1.3 * max(np.abs(before).max(initial=1.0), np.abs(after).max(initial=1.0))
    axes.set_ylim(-reach, reach * 1.25)
    axes.set_ylabel("error of a body's CoM (mm)")


LONGEST = 3600.0  # s

PUBLISH_HZ = 100.0
"""Of simulated sensors: enough for a robot that stands still, at half of the default's work."""

PRIOR = 0.01  # m; that of the launch file's parameters
MUST_SHRINK = 0.5  # error after over error before
COVERS = 3.0  # standard deviations, at most, of the error after


def command_line() -> demonstration.DemoParser:
    """Options of the demo."""
    parser = demonstration.DemoParser(
        "demo_identify", str(__doc__), "hoap2", "hoap2, biped3", speed=4.0
    )
    parser.add_number("--postures", 12, (1, 500), "to visit")
    parser.add_argument(
        "--error", type=float, default=0.005, help="error of the links' CoMs, m"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of these errors")
    return parser


def show(options: argparse.Namespace) -> None:
    """Run the demo and print its figures."""
    robot, path = demonstration.find_configured_robot(
        options, "the feet and their sensors"
    )
    folder = options.output / f"{robot.name}_identification"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = RobotConfig.from_file(path)
    if not all(len(foot.corners) > 2 for foot in config.feet) or not config.feet:
        raise RunError(
            f"{robot.name} cannot be shown: postures are compared on flat soles, and its feet have "
            "no corners in its configuration"
        )
    model = config.attach(RobotModel.from_file(robot.urdf))
    true, wrong = displace_battery(model, config, options.error, options.seed)
    write_file(folder / "truth.urdf", true.xml)
    sensors = asdict(SensorPriors.calibrated())
    write_file(folder / "settings.yaml", yaml.safe_dump({"sensors": sensors}))
    print(f"{robot.name}: in the simulation {wrong}; no node is told.")
    what = f"{robot.name}: {options.postures} postures at {options.speed:g} times real time"
    command = launch_command(robot, folder, options)
    monitor = demonstration.listen(
        command, IdentifyMonitor, Times(LONGEST), what, options
    )
    if monitor.failure or monitor.result is None:
        raise RunError(monitor.failure or "no result arrived on identification/result")
    comparison = judge(robot, folder)
    plot = options.output / f"{robot.name}_identify.png"
    postures = len(monitor.result.postures)
    title = f"{robot.name}: CoM of every link, {postures} postures, before and after"
    found = {
        body.name: vector3_to_numpy(body.com_std) for body in monitor.result.bodies
    }
    stds = np.array([found[name] for name in comparison.bodies])
    save_png(identification_figure(comparison, stds, PRIOR, title), plot)
    figures = {"robot": robot.name, "captured": postures, "rank": monitor.result.rank}
    figures |= comparison.figures()
    figures["com_std_mm"] = round(1000 * prediction_std(model, config, folder), 3)
    figures |= {"corrected_urdf": str(corrected_urdf(folder)), "plot": str(plot)}
    verdict = (
        "In other postures the CoM of the whole robot was {com_rms_before_mm} mm off with the "
        "URDF, and is {com_rms_after_mm} mm off with the corrected one, whose standard deviation "
        "is {com_std_mm} mm; single bodies {body_rms_before_mm} and {body_rms_after_mm} mm."
    )
    then = (
        "docs/tutorial_identification.md leads from your robot's URDF to the corrected one, live "
        "or from a recording. Single bodies are known as far as their postures determine them."
    )

    def check() -> None:
        before, after = (figures[f"com_rms_{name}_mm"] for name in ("before", "after"))
        if after > MUST_SHRINK * before:
            raise RunError(f"the CoM was {before} mm off and still is {after} mm off")
        if after > COVERS * figures["com_std_mm"]:
            std = figures["com_std_mm"]
            raise RunError(
                f"the CoM is {after} mm off with a standard deviation of {std} mm"
            )

    path = options.output / f"{robot.name}_identify.json"
    demonstration.finish(
        figures, path, check, verdict, then, f"{robot.name}: a corrected URDF"
    )


def launch_command(
    robot: RobotFiles, folder: Path, options: argparse.Namespace
) -> list[str]:
    """Return the command that starts the launch file."""
    arguments: dict[str, object] = {
        "storage": folder.resolve(),
        "true_urdf": (folder / "truth.urdf").resolve(),
        "settings": (folder / "settings.yaml").resolve(),
        "sesc": "false",
        "state_publisher": "false",
        "tour": "true",
        "automatic": "true",
        "tour_count": options.postures,
        "tour_batch": options.postures,
        "tour_speed": 1.0,
        "publish_rate_hz": PUBLISH_HZ,
        "com_error": 0.0,
    }
    nodes = ("com_identification", "posture_tour", "identify_monitor")
    arguments |= demonstration.lockstep_arguments(options.speed, *nodes)
    return demonstration.launch_words("identification.launch.xml", robot, **arguments)


def judge(robot: RobotFiles, folder: Path) -> Comparison:
    """Compare the URDF as believed and the one that was written with the truth."""
    files = (folder / "truth.urdf", robot.urdf, corrected_urdf(folder))
    true, before, after = (RobotModel.from_file(file) for file in files)
    return compare(true, before, after, RobotConfig.from_file(str(robot.config)))


def corrected_urdf(folder: Path) -> Path:
    """Return the URDF that com_identification has written; RunError where there is none."""
    written = [path for path in folder.glob("*.urdf") if path.name != "truth.urdf"]
    if len(written) != 1:
        raise RunError(
            f"expected one URDF to be written into {folder}, found {len(written)}"
        )
    return written[0]


def prediction_std(model: RobotModel, config: RobotConfig, folder: Path) -> float:
    """Return the standard deviation of the identified horizontal CoM, m.

    It is the root mean square length over the postures in which judge compares, which need not be
    like those that were captured.

    Args:
        model: the robot by its URDF, with the sole frames of config attached.
        config: with the feet.
        folder: with the postures and the settings of the identification.
    """
    settings = IdentificationSettings.from_file(folder / "settings.yaml")
    settings = replace(settings, fit=replace(settings.fit, use_imu=True, folds=0))
    with PostureStore(folder / "postures.db", model, config.feet) as store:
        found = identify(model, config.feet, list(store.postures.values()), settings)
    Q, ups = standing_postures(model, config, COUNT, SEED)
    statics = Statics(model)
    rows = prediction_rows(statics, statics.poses(Q), ups, found.parameters)
    variances = np.einsum("pki,ij,pkj->p", rows, found.covariance, rows)
    return float(np.sqrt(variances.mean()))


main = partial(demonstration.run_demo, show, command_line)

if __name__ == "__main__":
    sys.exit(main())
