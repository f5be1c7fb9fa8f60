"""The joints of a robot for sliders: in groups, in degrees and millimetres."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from com_model import ComModelError, RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.setup.limbs import find_limbs
from com_model.shapes.hulls import read_outside


class JointRange(NamedTuple):
    """Range of one joint's slider.

    Attributes:
        joint: its index in q.
        label: text of the slider.
        low: deg or mm, smallest value of the slider.
        high: deg or mm, largest value of the slider.
        scale: deg per rad, or mm per m.
    """

    joint: int
    label: str
    low: float
    high: float
    scale: float

    def shown(self, q: Array) -> float:
        """Value of the slider for joint positions.

        Args:
            q: (n,) rad or m.

        Returns:
            deg or mm, within the slider's range.
        """
        return float(np.clip(round(q[self.joint] * self.scale, 1), self.low, self.high))


def joint_ranges(model: RobotModel, joints: Sequence[int]) -> list[JointRange]:
    """The ranges of joints in degrees or mm, at most half a turn or 1 m either way.

    Args:
        model: the robot.
        joints: their indices.
    """
    ranges = []
    for j in joints:
        sliding = model.joint_types[j] == "prismatic"
        scale, reach = (1e3, 1e3) if sliding else (180.0 / np.pi, 180.0)
        low = round(max(float(model.lower[j]) * scale, -reach), 1)
        high = round(min(float(model.upper[j]) * scale, reach), 1)
        label = model.joint_names[j] + " (mm)" * sliding
        ranges.append(JointRange(j, label, low, max(low, high), scale))
    return ranges


def joint_groups(
    model: RobotModel, config: RobotConfig, urdf: Path | None
) -> dict[str, list[JointRange]]:
    """Groups joints by limb: those of the configuration, or those found in the kinematic tree.

    Joints of neither are grouped by the link at which their branch of the tree starts.

    Args:
        model: the robot.
        config: its configuration, with or without joint_groups.
        urdf: path of the URDF, for the shapes of its feet; None if it has none.

    Returns:
        Ranges of the joints by name of the group; at most 300 outside named groups.
    """
    named = dict(config.joint_groups)
    if not named:
        with suppress(ComModelError):  # no legs
            named = find_limbs(model, read_outside(model, urdf)).groups
    groups = {
        name: [model.joint_index(joint) for joint in named[name]] for name in named
    }
    grouped = {j for joints in groups.values() for j in joints}
    # further joints stay in the posture
    for j in range(min(model.n_joints, 300)):
        if j not in grouped:
            groups.setdefault(_branch(model, j), []).append(j)
    return {
        name: joint_ranges(model, joints) for name, joints in groups.items() if joints
    }


def _branch(model: RobotModel, joint: int) -> str:
    """Name of the first link of the branch of the tree that a joint belongs to."""
    bodies = model.bodies
    path = bodies.path_to(np.flatnonzero(bodies.q_index == joint)[0])
    starts = [
        b for b in path if np.count_nonzero(bodies.parent == bodies.parent[b]) > 1
    ]
    return bodies.names[starts[-1] if starts else path[0]]
