"""Draws README's moving picture: TALOS walks six steps in MuJoCo, as the viewer shows it.

It needs Chromium, which draws the viewer's page, and what the tests need.

    tools/in_env python tools/moving_picture.py docs/images/walk.png
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "test/helpers")]

# ruff: noqa: E402 - these folders are no packages
from browser import Browser
from humanoid_walk import HUMANOIDS
from walk_plots import footprints
from walk_scenarios import load_robot, simulate, walk_by, world_for

from com_control.walking.biped import find_stance
from com_control.walking.walker import make_plan
from com_estimation.whole_body.com_state import ComObserver
from com_model.files import write_file
from com_simulation.drawing.shapes import robot_shape
from com_viewer import scene as scenes
from com_viewer.page import Page

FRAMES, HZ = 20, 4.0
SIZE, PANEL = (790, 380), 350  # pixels of the page, and of its panel, which is cut off
FROM = np.array([1.8, -2.9, 0.5])  # m, of the camera from where it looks
SHIFT = np.array([0.78, 0.49, -0.1])  # m, of that from the middle of the walk: the panel is cut off
WARNING = "document.querySelector('.mantine-Notification-closeButton')"
COLORS = 64  # of all frames together: what does not move is the same in each


def frames(page: Page, browser: Browser) -> list[Image.Image]:
    """What the page shows of the walk."""
    talos = HUMANOIDS[0]
    robot = load_robot(talos.name, talos.urdf)
    stance = find_stance(robot.biped, robot.biped.posture)
    walk = walk_by("refined", robot, make_plan(talos.request, robot.biped, stance))
    record = simulate(world_for(robot, walk, "stiff", None), walk)
    scene = scenes.RobotScene(robot.model, robot.config.feet)
    observer = ComObserver(robot.model, robot.config.feet)
    page.set_robot(scene, robot_shape(robot.model, robot.path))
    middle = 0.5 * (record.com[0] + record.com[-1]) + SHIFT
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
    for k in np.linspace(0, len(record.time) - 1, FRAMES).astype(int):
        q = record.position[k]
        forces = record.wrenches[k, :, :3]
        state = observer.update(q, np.zeros_like(q), forces=forces)
        shown = scene.place(q, state, (record.R_root[k], record.root[k]), forces=forces)
        page.show(replace(shown, footsteps=footprints(walk)))
        if not pictures:
            browser.open(page.address)
            browser.wait_for_text(robot.model.name)
            time.sleep(8.0)  # the meshes
            browser.js(f"{WARNING}?.click()")  # of a machine without a graphics card
            time.sleep(1.0)
        time.sleep(0.4)
        pictures.append(Image.fromarray(browser.pixels()[:, : width - PANEL]).convert("RGB"))
    together = Image.fromarray(np.concatenate([np.asarray(p) for p in pictures]))
    palette = together.quantize(COLORS, Image.Quantize.FASTOCTREE)
    return [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]


def main(output: str) -> None:
    """Write the picture."""
    page = Page()
    try:
        with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
            first, *others = frames(page, browser)
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
    write_file(Path(output), data.getvalue())
    print(f"{output}: {len(data.getvalue()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
