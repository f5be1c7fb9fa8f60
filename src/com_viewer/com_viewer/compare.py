"""Comparison of a robot with a second URDF of it."""

import numpy as np

from com_estimation.whole_body.com_state import ComObserver
from com_model import ComModelError, RobotModel
from com_model.text import listing
from com_viewer.scene import RobotScene, Snapshot


class Comparison:
    """Places another model of a robot in the posture of the first, with the same root link."""

    def __init__(self, model: RobotModel, other: RobotModel, name: str) -> None:
        """Checks that both models are of one robot.

        Args:
            model: the robot.
            other: the robot by another URDF.
            name: of that URDF, for the texts.

        Raises:
            ComModelError: the joints or root links differ.
        """
        different = set(model.joint_names) ^ set(other.joint_names)
        if different or model.root_link != other.root_link:
            what = (
                listing(sorted(different), 3)
                or f"root {other.root_link}, not {model.root_link}"
            )
            raise ComModelError(
                f"{name} is of another robot: {what}; compare URDFs of one robot"
            )
        self.scene, self._observer = RobotScene(other), ComObserver(other)
        self._order = [model.joint_index(joint) for joint in other.joint_names]
        self._name, self._added = name, other.mass - model.mass

    def place(self, shown: Snapshot) -> tuple[Snapshot, dict[str, str]]:
        """Places the other model where the first one is shown.

        Args:
            shown: the first robot; its state has the joint positions.

        Returns:
            The other model's snapshot, and the difference of CoM and mass as status rows.
        """
        q = np.asarray(shown.state.q)[self._order]
        root = shown.R[0], shown.p[0]
        placed = self.scene.place(
            q, self._observer.update(q, np.full(len(q), np.nan)), root
        )
        moved = 1e3 * shown.R[0].T @ (placed.com - shown.com)
        axes = " ".join(f"{value:.1f}" for value in moved)
        text = f"CoM {np.linalg.norm(moved):.1f} mm away ({axes} mm, root link)"
        return placed, {self._name: f"{text}; mass {self._added:+.3f} kg"}
