"""A walk of a biped with its true CoM on the planned path, as a film that any browser plays.

python examples/plan_walk.py talos walk.html
"""

import sys

import numpy as np

from com_control.walking import Biped, Walker, WalkRequest
from com_estimation.whole_body.com_state import ComObserver
from com_model import find_robot, load_robot
from com_simulation.drawing.shapes import robot_shape
from com_viewer.page import Page
from com_viewer.scene import RobotScene


def main(robot: str, output: str, steps: str = "4", film_hz: str = "20") -> None:
    """Plan the walk, print what it is, and write the film."""
    model, config = load_robot(robot)
    biped = Biped.from_config(model, config)
    walk = Walker(biped).plan(WalkRequest(steps=int(steps)), biped.posture)
    length = walk.samples.com[-1, 0] - walk.samples.com[0, 0]
    print(f"{walk.duration:.1f} s, {length:.3f} m, {len(walk.path.time)} points")
    page, scene = Page(), RobotScene(model, config.feet)
    page.set_robot(scene, robot_shape(model, find_robot(robot).urdf))
    page.start_recording()
    observer, period = ComObserver(model, config.feet), 1.0 / float(film_hz)
    for t in np.arange(0.0, walk.duration, period):
        q = walk.path.q[np.searchsorted(walk.path.time, t)]
        page.show(scene.place(q, observer.update(q, np.zeros_like(q))))
        page.pause(period)
    print(f"{output}: {page.write_html(output):.1f} MB")
    page.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
