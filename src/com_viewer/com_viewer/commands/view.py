"""The command com-view: a robot from its URDF, from a recording, or live."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from com_bags import BagError, LogFormat, add_log_options
from com_estimation.whole_body.com_state import ComObserver
from com_model import ComModelError, RobotConfig, RobotModel, find_robot, load_robot
from com_model.arrays import Array
from com_model.commands import add_robot, command_parser
from com_simulation.drawing.shapes import robot_shape
from com_viewer.bag_run import BagRun, read_run
from com_viewer.compare import Comparison
from com_viewer.page import HOST, PORT, Page
from com_viewer.panel import JOINTS, PLOTS, JointRange, joint_groups
from com_viewer.scene import RobotScene, Snapshot, describe
from com_viewer.timeline import make_timeline

RATE_HZ = 30.0
PAUSE_S = 1.0 / RATE_HZ


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        words: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0, 1 for a bag that cannot be read, 2 for any other error.
    """
    words = list(sys.argv[1:] if words is None else words)
    if not words or words[0] in ("live", "--ros-args"):
        from com_viewer.nodes.live import Viewer

        sys.argv[1:] = words[1:] if words[:1] == ["live"] else words
        return Viewer.main()
    if words[0] not in ("view", "bag", "-h", "--help"):
        words.insert(0, "view")
    options = _parser().parse_args(words)
    try:
        return _view(options)
    except (ComModelError, OSError) as error:
        print(f"com-view: {error}", file=sys.stderr)
        return 1 if isinstance(error, BagError) else 2
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("com-view", "Shows a robot in the browser.", __file__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    view = commands.add_parser(
        "view", help="a robot from its URDF, with sliders (the default)"
    )
    view.add_argument(
        "robot", metavar="ROBOT", help="a name (hoap2, talos, ...), or a URDF's path"
    )
    view.add_argument(
        "--config",
        metavar="YAML",
        help="its feet, joint groups and nominal posture; default: the one beside the URDF, or the "
        "suite's of its name",
    )
    commands.add_parser(
        "live", help="what running nodes publish (also where no word is given)"
    )
    bag = commands.add_parser("bag", help="a recording: play, scrub, events, plots")
    bag.add_argument("recording", metavar="BAG", help="directory, .mcap or .db3 file")
    add_robot(bag)
    add_log_options(bag)
    for command in (view, bag):
        add = command.add_argument
        add(
            "--compare",
            metavar="URDF",
            help="a second URDF of the robot, laid over it in blue",
        )
        add(
            "--host",
            default=HOST,
            help="address to bind; 0.0.0.0: all networks of this machine",
        )
        add(
            "--port",
            type=int,
            default=PORT,
            help="of the page; the next free one if it is taken",
        )
        add(
            "--record",
            metavar="HTML",
            help="write this file, which needs no server, and exit",
        )
    return parser


def _view(options: argparse.Namespace) -> int:
    files = find_robot(options.robot, options.config)
    model, config = load_robot(options.robot, options.config)
    page = Page(options.host, options.port)
    try:
        page.tab(PLOTS if "recording" in options else JOINTS)  # the first one is open
        shown = ShownRobot(page, model, config, files.urdf)
        if options.compare:
            shown.compare(options.compare, config)
        if "recording" in options:
            about = LogFormat.of(model, config.feet, options)
            run = read_run(options.recording, model, config, RATE_HZ, about)
            step = _play(shown, run, bool(options.record))
        else:
            groups = joint_groups(model, config, files.urdf)
            step = add_sliders(shown, groups, config.nominal_posture(model))
        if options.record:
            page.start_recording()
            step(0.0)
            print(f"{options.record}: {page.write_html(options.record):.1f} MB")
            return 0
        print(f"viewer: {page.address} (Ctrl-C ends it)", flush=True)
        while True:
            time.sleep(PAUSE_S)
            step(PAUSE_S)
    finally:
        page.close()


class ShownRobot:
    """A robot on a page, optionally with a second URDF of it.

    Args:
        page: in the browser.
        model: the robot.
        config: its feet.
        urdf: its file, to which names of meshes may be relative.

    Attributes:
        page: as given.
        scene: places the robot.
        observer: computes its CoM.
    """

    def __init__(
        self, page: Page, model: RobotModel, config: RobotConfig, urdf: Path | None
    ) -> None:
        self.page, self.scene = page, RobotScene(model, config.feet)
        self.observer = ComObserver(model, config.feet)
        self._comparison: Comparison | None = None
        page.set_robot(self.scene, robot_shape(model, urdf))

    def compare(self, urdf: str, config: RobotConfig) -> None:
        """Overlays another URDF of the robot.

        Args:
            urdf: its path, or the name of a robot.
            config: of the robot, whose frames are added to the other one.
        """
        path = find_robot(urdf).urdf
        other = config.attach(RobotModel.from_file(path))
        self.overlay(other, path, path.name)

    def overlay(self, other: RobotModel, urdf: Path, name: str) -> None:
        """Overlays another model of the robot.

        Args:
            other: the model.
            urdf: a file, to which its names of meshes may be relative.
            name: what the table of status calls it.
        """
        self._comparison = Comparison(self.scene.model, other, name)
        self.page.add_compared(self._comparison.scene, robot_shape(other, urdf))

    def show(self, snapshot: Snapshot, rows: Mapping[str, str]) -> None:
        """Shows an instant.

        Args:
            snapshot: of the robot.
            rows: name and text, of the status table.
        """
        compared = None
        if self._comparison and snapshot.state.q is not None:
            compared, differences = self._comparison.place(snapshot)
            rows = {**rows, **differences}
        self.page.show(snapshot, compared)
        self.page.set_status(rows)


def add_sliders(
    shown: ShownRobot, groups: Mapping[str, Sequence[JointRange]], nominal: Array
) -> Callable[[float], None]:
    """Adds sliders of the joints; returns a function of the passed time that does nothing."""
    model, page = shown.scene.model, shown.page
    q, rest = nominal.copy(), np.zeros(len(nominal))

    def move(positions: Mapping[int, float]) -> None:
        with page.lock:
            before = q.copy()
            q[[*positions]] = [*positions.values()]
            np.clip(q, model.lower, model.upper, out=q)
            if (
                np.abs(q - before).max(initial=0.0) > 1e-3
            ):  # a slider shows rounded values
                show()

    def show() -> None:
        state = shown.observer.update(q, rest)
        shown.show(shown.scene.place(q, state), describe(state))

    page.add_sliders(groups, {"nominal": nominal, "zero": model.neutral}, move)
    show()
    return lambda _: None


def _play(shown: ShownRobot, run: BagRun, record: bool) -> Callable[[float], None]:
    """Adds a player; returns a function that lets time (s) pass, or records all of it."""
    for note in run.notes:
        print(f"warning: {note}", file=sys.stderr)
    timeline = make_timeline(run, shown.observer)

    def show(at: float) -> None:
        with shown.page.lock:
            snapshot = run.snapshot(shown.scene, shown.observer, at)
            last = [event for event in timeline.events if event.time <= at][-1:]
            rows = {"time": f"{at:.2f} of {run.seconds:.2f} s"} | describe(
                snapshot.state
            )
            rows["event"] = (
                last[0].text + f", at {last[0].time:.2f} s" if last else "none so far"
            )
            shown.show(snapshot, {} if record else rows)

    known = np.isfinite(timeline.margin)
    show(float(timeline.times[known.argmax()]))  # the camera frames a robot on its feet
    if not record:
        return shown.page.add_player(run.seconds, timeline, show)

    def show_all(_: float) -> None:
        # of a film; as long as a minute takes about 10 MB
        times = run.times[:: -(-len(run.times) // 3000)]
        for before, at in pairwise(times):
            shown.page.pause(at - before)
            show(at)
        low, high = 1e3 * np.nanmin(timeline.margin), 1e3 * np.nanmax(timeline.margin)
        rows = {"time": f"{run.seconds:.2f} s", "margin": f"{low:.1f} to {high:.1f} mm"}
        shown.page.set_status(rows)

    return show_all


if __name__ == "__main__":
    sys.exit(main())
