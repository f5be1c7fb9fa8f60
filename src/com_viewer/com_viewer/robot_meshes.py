"""A robot's shapes in viser's scene: a frame for each moving body, with its meshes."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from viser import SceneApi
from viser._messages import SetOrientationMessage, SetPositionMessage

from com_model import RobotModel
from com_model.arrays import Array
from com_simulation.drawing.shapes import RobotShape, body_meshes
from com_viewer import scene as scenes
from com_viewer.scene import GREY, Color, Snapshot


class RobotMeshes:
    """The shapes of one robot.

    Attributes:
        bodies: viser's frames, in the order of the model's bodies.
        meshes: body, own colour and viser's handle of each mesh.
    """

    def __init__(
        self,
        scene: SceneApi,
        layer: str,
        model: RobotModel,
        shape: RobotShape,
        tint: Color | None,
    ) -> None:
        """Adds the robot to the scene, upright in its neutral posture.

        Args:
            scene: viser's.
            layer: name of the frame above its bodies.
            model: the robot.
            shape: its triangles.
            tint: one colour for all of it; None: its own colours.
        """
        names = [f"/{layer}/{name.replace('/', '_')}" for name in model.bodies.names]
        self.bodies = [scene.add_frame(name, show_axes=False) for name in names]
        self.meshes: list[tuple[int, Color, Any]] = []
        self._corners: list[tuple[int, Array]] = [
            (b, np.zeros((1, 3))) for b in range(len(names))
        ]
        for n, ((b, rgb), triangles) in enumerate(body_meshes(model, shape).items()):
            red, green, blue = (round(255 * part) for part in rgb)
            color, (vertices, faces) = (
                tint or (red, green, blue),
                scenes.indexed(triangles),
            )
            mesh = add_mesh(scene, f"{names[b]}/{n}", vertices, faces, color)
            # the first robot shines through
            mesh.opacity = 0.3 if tint is None else 0.12
            self.meshes.append((b, color, mesh))
            ends = zip(vertices.min(axis=0), vertices.max(axis=0), strict=True)
            self._corners.append((b, np.array([*product(*ends)])))

    def box(self, R: Array, p: Array) -> tuple[Array, Array]:
        """The box around the robot.

        Args:
            R: (B, 3, 3) orientations of its bodies.
            p: (B, 3) m, their origins.

        Returns:
            Lowest and highest corner, (3,) m each.
        """
        corners = np.concatenate([c @ R[b].T + p[b] for b, c in self._corners])
        return corners.min(axis=0), corners.max(axis=0)

    def move(self, snapshot: Snapshot) -> None:
        """Moves the bodies to their poses in a snapshot.

        Args:
            snapshot: of the robot.
        """
        turns = scenes.quaternions(snapshot.R).tolist()
        for body, wxyz, p in zip(self.bodies, turns, snapshot.p.tolist(), strict=True):
            _move(body, wxyz, p)

    def tint(self, colors: Mapping[str, Color]) -> None:
        """Colours bodies.

        Args:
            colors: by name of a body; the others get their own colours.
        """
        for b, own, mesh in self.meshes:
            mesh.color = colors.get(self.bodies[b].name.rpartition("/")[2], own)

    def on_click(self, clicked: Callable[[int], None]) -> None:
        """Registers a function to be called with the body that is clicked.

        Args:
            clicked: called with the index of the body, from another thread.
        """
        for b, _, mesh in self.meshes:
            mesh.on_click(lambda _, body=b: clicked(body))


def add_mesh(
    scene: SceneApi, path: str, vertices: Array, faces: Array, color: Color = GREY
) -> Any:
    """Adds a translucent mesh.

    Args:
        scene: of viser's server.
        path: of the mesh in the scene.
        vertices: (v, 3) m.
        faces: (m, 3) indices of vertices.
        color: red, green, blue, 0 to 255.

    Returns:
        Viser's handle.
    """
    options: dict[str, Any] = {"opacity": 0.3, "side": "double", "flat_shading": True}
    options |= {"cast_shadow": False, "receive_shadow": False}
    return scene.add_mesh_simple(path, vertices, faces, color=color, **options)


def _move(handle: Any, wxyz: list[float], position: list[float]) -> None:
    """Assigns quaternion and position, without viser's comparisons, which take most of the time."""
    state = handle._impl
    state.wxyz[:], state.position[:] = wxyz, position
    state.api._queue_scene_message(SetOrientationMessage(state.name, tuple(wxyz)))
    state.api._queue_scene_message(SetPositionMessage(state.name, tuple(position)))
