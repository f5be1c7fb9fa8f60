"""Draws moving pictures: TALOS walks six steps in MuJoCo, as the viewer shows it.

README's walk is open loop on stiff ground. With --pushed, TALOS walks on soft ground and is pushed
in the third step, open loop (left) and with the stabiliser (right), as in walk_robustness.py.
It needs Chromium, which draws the viewer's page, and what the tests need.

    tools/in_env python tools/moving_picture.py docs/images/walk.png
    tools/in_env python tools/moving_picture.py docs/images/walk_pushed.png --pushed
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "test/helpers")]

# ruff: noqa: E402 - these folders are no packages
import walk_robustness as robustness
from browser import Browser
from humanoid_walk import HUMANOIDS
from walk_plots import footprints
from walk_scenarios import load_robot, simulate, walk_by, world_for

from com_control.walking.stance import find_stance
from com_control.walking.walk import make_plan
from com_estimation.whole_body.com_state import ComObserver
from com_model.arrays import Array
from com_model.files import write_file
from com_simulation.drawing.shapes import robot_shape
from com_viewer import scene as scenes
from com_viewer.page import Page

FRAMES, PUSHED_FRAMES, HZ = 20, 14, 4.0
SIZE, PANEL = (790, 380), 350  # pixels of the page, and of its panel, which is cut off
FROM = np.array([1.8, -2.9, 0.5])  # m, of the camera from where it looks
SHIFT = np.array(
    [0.78, 0.49, -0.1]
)  # m, of that from the middle of the walk: the panel is cut off
WARNING = "document.querySelector('.mantine-Notification-closeButton')"
PUSHED = robustness.Cell("soft, pushed", contact="soft", push=(0.2, 0.0))
COLORS = 64  # of all frames together: what does not move is the same in each


@dataclass(frozen=True, eq=False)
class Film:
    """A walk at some times; one that ended early stays as it was."""

    robot: Any  # as load_robot has it
    footsteps: Any
    middle: Array  # (3,) m, of the way of the CoM
    poses: list[
        tuple[Array, Array, Array, Array]
    ]  # q, R and p of the root, forces on the feet


def open_loop() -> Film:
    """README's walk."""
    talos = HUMANOIDS[0]
    robot = load_robot(talos.name, talos.urdf)
    stance = find_stance(robot.biped, robot.biped.posture)
    walk = walk_by("refined", robot, make_plan(talos.request, robot.biped, stance))
    record = simulate(world_for(robot, walk, "stiff", None), walk)
    poses = [
        (
            record.position[k],
            record.R_root[k],
            record.root[k],
            record.wrenches[k, :, :3],
        )
        for k in np.linspace(0, len(record.time) - 1, FRAMES).astype(int)
    ]
    return Film(robot, footprints(walk), 0.5 * (record.com[0] + record.com[-1]), poses)


def pushed(with_stabiliser: bool) -> Film:
    """A walk on soft ground with a push."""
    robot, walk = load_robot("talos", HUMANOIDS[0].urdf), robustness.load("talos")[2]
    seen: list[robustness.Reading] = []
    robustness.simulate(
        robustness.Run("talos", PUSHED, with_stabiliser, 0), seen.append
    )
    last, poses = seen[-1].time, []
    for time_s in np.linspace(0.0, walk.duration + robustness.REST, PUSHED_FRAMES):
        now = seen[min(round(time_s / robustness.PERIOD), len(seen) - 1)]
        R = robustness.turned(now.root_orientation)
        poses.append((now.position, R, now.root_position, now.wrenches[:, :3]))
    print(f"with stabiliser: {with_stabiliser}; the walk ended after {last:.1f} s")
    com = walk.samples.com
    return Film(robot, footprints(walk), 0.5 * (com[0] + com[-1]), poses)


def frames(page: Page, browser: Browser, film: Film) -> list[Image.Image]:
    """What the page shows of the walk."""
    robot, middle = film.robot, film.middle + SHIFT
    scene = scenes.RobotScene(robot.model, robot.config.feet)
    observer = ComObserver(robot.model, robot.config.feet)
    page.set_robot(scene, robot_shape(robot.model, robot.path))
    camera = page.server.initial_camera
    camera.position, camera.look_at, camera.fov = middle + FROM, middle, 0.6
    width, height = SIZE
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=False,
    )
    pictures: list[Image.Image] = []
    for q, R, root, forces in film.poses:
        state = observer.update(q, np.zeros_like(q), forces=forces)
        shown = scene.place(q, state, (R, root), forces=forces)
        edges = np.concatenate([scenes.closed(sole) for sole in film.footsteps])
        page.show(replace(shown, footsteps=edges))
        if not pictures:
            browser.open(page.address)
            browser.wait_for_text(robot.model.name)
            time.sleep(8.0)  # the meshes
            browser.js(f"{WARNING}?.click()")  # of a machine without a graphics card
            time.sleep(1.0)
        time.sleep(0.4)
        pictures.append(
            Image.fromarray(browser.pixels()[:, : width - PANEL]).convert("RGB")
        )
    return pictures


def side_by_side(films: list[list[Image.Image]]) -> list[Image.Image]:
    """Pictures of walks, each beside the others' at that time, with one palette."""
    joined = [
        np.concatenate([np.asarray(p) for p in each], axis=1)
        for each in zip(*films, strict=True)
    ]
    together = Image.fromarray(np.concatenate(joined))
    palette = together.quantize(COLORS, Image.Quantize.FASTOCTREE)
    pictures = map(Image.fromarray, joined)
    return [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="picture, .png")
    parser.add_argument(
        "--pushed", action="store_true", help="on soft ground, with a push"
    )
    args = parser.parse_args()
    films = [pushed(False), pushed(True)] if args.pushed else [open_loop()]
    page = Page()
    try:
        with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
            first, *others = side_by_side(
                [frames(page, browser, film) for film in films]
            )
    finally:
        page.close()
    data = io.BytesIO()
    first.save(
        data,
        "PNG",
        save_all=True,
        append_images=others,
        duration=1000.0 / HZ,
        loop=0,
        optimize=True,
    )
    write_file(args.output, data.getvalue())
    print(f"{args.output}: {len(data.getvalue()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
