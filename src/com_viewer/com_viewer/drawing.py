"""What viser's scene shows: the robot, points, lines, arrows and polygons, made once, then updated.

The robot has a frame for each moving body, with its meshes.

Unknown quantities are hidden; those that were never known are not in the scene.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from viser import SceneApi
from viser._messages import SetOrientationMessage, SetPositionMessage

from com_model import RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.shapes.urdf_shapes import SPHERE, Shape
from com_simulation.drawing.shapes import RobotShape, body_meshes, shape_triangles
from com_viewer import scene as scenes
from com_viewer.scene import GREY, Color, Mark, Snapshot


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


HIDDEN = Mark(np.full(3, np.nan), GREY)


class Drawing:
    """Draws snapshots of one robot.

    Attributes:
        handles: viser's handles by the names of drawn objects, "layer/name".
    """

    def __init__(
        self,
        scene: SceneApi,
        size: float,
        link_masses: Array,
        add_layer: Callable[[str], None],
    ) -> None:
        """Prepares the drawing; objects are added when they are first known.

        Args:
            scene: viser's.
            size: m, of the robot.
            link_masses: (m,) kg, of the links that have mass.
            add_layer: called with the name of a layer before something is added to it.
        """
        mass = float(link_masses.sum())
        self.handles: dict[str, Any] = {}
        self._scene, self._size, self._weight = scene, size, GRAVITY * mass
        self._add_layer = add_layer
        self._radii = 0.05 * size * np.cbrt(link_masses / mass)
        self._marked: set[str] = set()

    def remove(self) -> None:
        """Removes all drawn objects."""
        for handle in self.handles.values():
            handle.remove()

    def draw(self, snapshot: Snapshot) -> None:
        """Draws an instant.

        Args:
            snapshot: of the robot.
        """
        small = 0.012 * self._size
        com, ground = snapshot.com, snapshot.projection
        self._ball("com/point", Mark(com, scenes.VERMILLION), 1.5 * small)
        self._ball("com/projection", Mark(ground, scenes.VERMILLION), 0.8 * small)
        self._lines("com/plumb_line", np.array([[com, ground]]), scenes.VERMILLION)
        self._arrows(
            "com/velocity", np.array([[com, com + snapshot.velocity]]), scenes.ORANGE
        )
        self._lines(
            "chain/links", scenes.segments(snapshot.chain), scenes.PURPLE, 0.006
        )
        style: dict[str, Any] = {"point_size": small, "point_shape": "circle"}
        joints, add = snapshot.chain[1:-1], self._scene.add_point_cloud
        cloud = self._handle("chain/joints", add, joints, scenes.PURPLE, **style)
        cloud.points = np.nan_to_num(joints)
        self._polygon(snapshot)
        feet, arrows = snapshot.forces[:, 0], snapshot.forces[:, 1]
        # length of an arrow as large as the weight, over the size of the robot
        ends = feet + 0.6 * self._size / self._weight * arrows
        self._arrows("forces/feet", np.stack([feet, ends], axis=1), scenes.GREEN)
        self._marked |= snapshot.marks.keys()
        for name in self._marked:
            self._ball(f"marks/{name}", snapshot.marks.get(name, HIDDEN), small, name)
        self._lines("footsteps/soles", snapshot.footsteps, scenes.SKY)
        self._link_coms("link CoMs/own", snapshot, scenes.ORANGE)

    def draw_compared(self, snapshot: Snapshot) -> None:
        """Draws the centres of mass of another URDF of the robot.

        Args:
            snapshot: of the other URDF.
        """
        self._ball(
            "compared/com",
            Mark(snapshot.com, scenes.BLUE),
            0.018 * self._size,
            "compared",
        )
        self._link_coms("link CoMs/compared", snapshot, scenes.BLUE)

    def _link_coms(self, name: str, snapshot: Snapshot, color: Color) -> None:
        """Draws spheres at the links' centres of mass, with volumes proportional to the masses."""
        points = np.nan_to_num(snapshot.link_coms).astype(np.float32)
        ball = Shape("", SPHERE, (1.0,), np.eye(3), np.zeros(3))
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (len(points), 1))
        style = {
            "batched_scales": self._radii,
            "batched_colors": color,
            "cast_shadow": False,
        }
        add = self._scene.add_batched_meshes_simple
        if name not in self.handles:
            sphere = scenes.indexed(shape_triangles(ball))
            self._handle(name, add, *sphere, turns, points, **style)
        self.handles[name].batched_positions = points

    def _polygon(self, snapshot: Snapshot) -> None:
        corners = snapshot.polygon + np.array([0.0, 0.0, 0.002 * self._size])
        color, name = scenes.margin_color(snapshot.state.margin), "support/polygon"
        self._lines("support/outline", scenes.closed(corners), color)
        known = len(corners) > 2
        if known or name in self.handles:
            add = partial(add_mesh, self._scene)
            handle = self._handle(name, add, np.eye(3), np.array([[0, 1, 2]]), color)
            handle.visible = known
        if known:
            handle.vertices, handle.faces, handle.color = (
                corners,
                scenes.fan(corners),
                color,
            )

    def _handle(
        self, name: str, add: Callable[..., Any], *values: Any, **options: Any
    ) -> Any:
        """The object of a name; added by one of viser's functions if it does not exist yet."""
        if name not in self.handles:
            self._add_layer(name.partition("/")[0])
            self.handles[name] = add("/" + name.replace(" ", "_"), *values, **options)
        return self.handles[name]

    def _ball(self, name: str, mark: Mark, radius: float, label: str = "") -> None:
        """Draws a ball, and the ellipsoid of two standard deviations where it is known."""
        add, cloud_name, fresh = self._scene, f"{name}_std", name not in self.handles
        known = bool(np.isfinite(mark.position).all())
        if fresh and not known:
            return
        style: dict[str, Any] = {"subdivisions": 2, "cast_shadow": False}
        ball = self._handle(name, add.add_icosphere, radius, mark.color, **style)
        if fresh and label:
            add.add_label(
                f"{ball.name}/label", label, position=(0.0, 0.0, 2.0 * radius)
            )
        ball.visible = known
        if known:
            ball.position = mark.position
        certain = (
            known and mark.covariance is not None and np.isfinite(mark.covariance).all()
        )
        if certain or cloud_name in self.handles:
            style = {"opacity": 0.25, "cast_shadow": False}
            cloud = self._handle(
                cloud_name, add.add_icosphere, 1.0, mark.color, **style
            )
            cloud.visible = bool(certain)
        if certain:
            R, lengths = scenes.ellipsoid(np.asarray(mark.covariance))
            cloud.position, cloud.wxyz = mark.position, scenes.quaternions(R[None])[0]
            cloud.scale = tuple(np.maximum(lengths, 1e-6).tolist())

    def _lines(
        self, name: str, points: Array, color: Color, thickness: float = 0.004
    ) -> None:
        """Draws segments (m, 2, 3) m."""
        add = self._scene.add_line_segments
        self._strokes(name, points, color, add, thickness=thickness)

    def _arrows(self, name: str, points: Array, color: Color) -> None:
        """Draws arrows (m, 2, 3) m."""
        sizes = {"shaft_radius": 0.006, "head_radius": 0.015, "head_length": 0.03}
        self._strokes(name, points, color, self._scene.add_arrows, **sizes)

    def _strokes(
        self,
        name: str,
        points: Array,
        color: Color,
        add: Callable[..., Any],
        **sizes: float,
    ) -> None:
        """Draws finite strokes (m, 2, 3) m of nonzero length; sizes are relative to the robot's."""
        long = np.abs(points[:, 1] - points[:, 0]).max(axis=1, initial=0.0) > 1e-6
        points = points[long & np.isfinite(points).all(axis=(1, 2))]
        if not len(points) and name not in self.handles:
            return
        sizes = {part: size * self._size for part, size in sizes.items()}
        handle = self._handle(name, add, points, GREY, **sizes)
        handle.visible, handle.colors = len(points) > 0, np.array(color, dtype=np.uint8)
        if len(points):
            handle.points = points
