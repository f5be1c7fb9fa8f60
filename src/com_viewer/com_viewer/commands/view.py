"""The command com-viewer: a robot from its URDF, from a recording, or live."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from com_bags import BagError
from com_estimation.whole_body.com_state import ComObserver
from com_model import ComModelError, find_robot, load_robot
from com_model.arrays import Array
from com_model.commands import add_robot, command_parser
from com_simulation.drawing.shapes import robot_shape
from com_viewer.bag_run import BagRun, read_run
from com_viewer.page import HOST, PORT, Page
from com_viewer.scene import RobotScene, describe

RATE_HZ = 30.0


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, see the help."""
    words = list(sys.argv[1:] if words is None else words)
    if not words or words[0] in ("live", "--ros-args"):
        from com_viewer.nodes.live import main as run_node

        sys.argv[1:] = words[1:] if words[:1] == ["live"] else words
        return run_node()
    parser = command_parser("com-viewer", "Shows a robot in the browser.", __file__)
    if words[0] == "bag":
        parser.add_argument("bag", choices=["bag"], help=argparse.SUPPRESS)
        parser.add_argument("recording", metavar="BAG", help="directory, .mcap or .db3 file")
        add_robot(parser)
    else:
        parser.add_argument("robot", metavar="ROBOT", help="a name, or the path of a URDF")
        parser.add_argument("--config", metavar="YAML", help="configuration of the robot")
    parser.add_argument("--host", default=HOST, help="address to bind (default: %(default)s)")
    parser.add_argument("--port", type=int, default=PORT, help="port (default: %(default)s)")
    parser.add_argument("--record", metavar="HTML", help="write this file and exit")
    options = parser.parse_args(words)
    try:
        return _view(options)
    except (ComModelError, OSError) as error:
        print(f"com-viewer: {error}", file=sys.stderr)
        return 1 if isinstance(error, BagError) else 2
    except KeyboardInterrupt:
        return 0


def _view(options: argparse.Namespace) -> int:
    files = find_robot(options.robot, options.config)
    model, config = load_robot(options.robot, options.config)
    scene, observer = RobotScene(model, config.feet), ComObserver(model, config.feet)
    page = Page(options.host, options.port)
    try:
        page.set_robot(scene, robot_shape(model, files.urdf))
        if "bag" in options:
            run = read_run(options.recording, model, config, RATE_HZ)
            step = _play(page, scene, observer, run, bool(options.record))
        else:
            step = _add_sliders(page, scene, observer, config.nominal_posture(model))
        if options.record:
            page.start_recording()
            step(0.0)
            print(f"{options.record}: {page.write_html(options.record):.1f} MB")
            return 0
        print(f"viewer: {page.address} (Ctrl-C ends it)", flush=True)
        while True:
            time.sleep(1.0 / RATE_HZ)
            step(1.0 / RATE_HZ)
    finally:
        page.close()


def _add_sliders(
    page: Page, scene: RobotScene, observer: ComObserver, q: Array
) -> Callable[[float], None]:
    """Sliders; returns what does nothing more."""
    model, still = scene.model, np.zeros(len(q))

    def show() -> None:
        state = observer.update(q, still)
        page.show(scene.place(q, state))
        page.set_status(describe(state))

    def move(joint: int, value: float) -> None:
        with page.lock:
            q[joint] = value
            show()

    reach = np.where([kind == "prismatic" for kind in model.joint_types], 1.0, np.pi)
    bounds = np.column_stack([np.maximum(model.lower, -reach), np.minimum(model.upper, reach)])
    page.add_sliders(model.joint_names, bounds, q, move)
    show()
    return lambda _: None


def _play(
    page: Page, scene: RobotScene, observer: ComObserver, run: BagRun, record: bool
) -> Callable[[float], None]:
    """A player; returns what lets time pass, or records all of it."""
    for note in run.notes:
        print(f"warning: {note}", file=sys.stderr)

    def show(at: float) -> None:
        with page.lock:
            snapshot = run.snapshot(scene, observer, at)
            page.show(snapshot)
            time_shown = {"time": f"{at:.2f} of {run.seconds:.2f} s"}
            page.set_status(time_shown | describe(snapshot.state))
            page.plot({"support margin (mm)": 1e3 * snapshot.state.margin}, at)

    show(0.0)
    if not record:
        return page.add_player(run.seconds, show)

    def show_all(_: float) -> None:
        for before, at in pairwise(run.times):
            page.pause(at - before)
            show(at)

    return show_all


if __name__ == "__main__":
    sys.exit(main())
