"""The page in the browser: a viser server, its scene and its panel.

Handles are made once and updated together; what is not known is hidden. Nothing leaves the
machine: the server binds the loopback interface unless told otherwise, and requests to share the
page through viser's public server are refused.
"""

import contextlib
import io
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import viser
from viser._messages import SetOrientationMessage, SetPositionMessage

from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses
from com_model.files import write_file
from com_model.text import listing
from com_simulation.drawing.shapes import RobotShape, body_meshes
from com_viewer import scene as scenes
from com_viewer.scene import GREY, Color, Mark, RobotScene, Snapshot

LAYERS = ("robot", "com", "chain", "support", "forces", "marks", "footsteps")
HOST, PORT = "127.0.0.1", 8080
PLOT_EVERY_S, PLOT_SAMPLES = 0.25, 900
HIDDEN = Mark(np.full(3, np.nan), GREY)
FORCE = 0.6  # length of an arrow as large as the weight, over the size of the robot


class _Server(viser.ViserServer):
    """Refuses to be shared."""

    def request_share_url(self, verbose: bool = True) -> None:
        """Do nothing: the page stays on this machine."""


class Page:
    """One page, at the next free port where it is taken.

    Callbacks of the panel come from other threads: `lock` is held while a snapshot is shown.
    """

    def __init__(self, host: str = HOST, port: int = PORT) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a box
            self.server = _Server(host=host, port=port, label="centre of mass", verbose=False)
        self.lock = threading.RLock()
        self.address = f"http://{host}:{self.server.get_port()}"
        scene, gui = self.server.scene, self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False)
        self._status = gui.add_html("")
        self._rows: dict[str, str] = {}
        self._layers: dict[str, Any] = {}
        with gui.add_folder("Show", expand_by_default=True):
            for name in LAYERS:
                self._layers[name] = scene.add_frame(f"/{name}", show_axes=False)
                box = gui.add_checkbox(name, True)
                box.on_update(
                    lambda event, name=name: setattr(
                        self._layers[name], "visible", event.target.value
                    )
                )
        self._plots: dict[str, tuple[Any, deque[tuple[float, float]]]] = {}
        self._plotted = 0.0
        self._plot_folder = gui.add_folder("Plots", expand_by_default=False)
        self._actions: Any = None
        self._labels: tuple[str, ...] = ()
        self._handles: dict[str, Any] = {}
        self._bodies: list[Any] = []
        self._meshes: list[tuple[int, Color, Any]] = []
        self._size, self._weight = 1.0, 1.0
        self._marked: set[str] = set()
        self._recorder: Any = None

    @property
    def watched(self) -> bool:
        """Whether anybody looks at the page, or it is recorded."""
        return self._recorder is not None or bool(self.server.get_clients())

    def close(self) -> None:
        """Stop the server."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    # --- the scene -----------------------------------------------------------------------------
    def set_robot(self, scene: RobotScene, shape: RobotShape) -> None:
        """Show another robot, upright in its neutral posture, until the first snapshot."""
        with self.lock:
            for handle in (*self._bodies, *self._handles.values()):
                handle.remove()
            model = scene.model
            names = [f"/robot/{name.replace('/', '_')}" for name in model.bodies.names]
            add = self.server.scene
            self._handles = {}
            self._bodies = [add.add_frame(name, show_axes=False) for name in names]
            self._meshes = []
            R, p = body_poses(model.bodies, model.neutral)
            extent = [p]
            for n, ((b, rgb), triangles) in enumerate(body_meshes(model, shape).items()):
                red, green, blue = (round(255 * part) for part in rgb)
                color, (vertices, faces) = (red, green, blue), scenes.indexed(triangles)
                mesh = self._mesh(f"{names[b]}/{n}", vertices, faces, color)
                self._meshes.append((b, color, mesh))
                placed = vertices @ R[b].T + p[b]
                extent += [placed.min(axis=0, keepdims=True), placed.max(axis=0, keepdims=True)]
            self._size = max(float(np.ptp(np.concatenate(extent), axis=0).max()), 0.1)
            self._weight = GRAVITY * model.mass
            add.add_grid("/ground", plane="xy", cell_size=0.1, section_size=1.0)
            camera, far = self.server.initial_camera, 0.9 * self._size
            camera.position, camera.look_at = (far, -far, far), (0.0, 0.0, 0.4 * self._size)
            shapes = f"{shape.declared - len(shape.missing)} of {shape.declared} shapes"
            if shape.missing:
                shapes += f"; missing: {listing(shape.missing, 3)}"
            self.set_status({"robot": f"{model.name}, {model.mass:.3f} kg, {shapes}"})

    def show(self, snapshot: Snapshot) -> None:
        """Draw an instant."""
        with self.lock, self.server.atomic():
            for body, wxyz, p in zip(
                self._bodies,
                scenes.quaternions(snapshot.R).tolist(),
                snapshot.p.tolist(),
                strict=True,
            ):
                _move(body, wxyz, p)
            small = 0.012 * self._size
            com, ground = snapshot.com, snapshot.projection
            self._ball("com/point", Mark(com, scenes.VERMILLION), 1.5 * small)
            self._ball("com/projection", Mark(ground, scenes.VERMILLION), 0.8 * small)
            self._lines("com/plumb_line", np.array([[com, ground]]), scenes.VERMILLION)
            self._arrows("com/velocity", np.array([[com, com + snapshot.velocity]]), scenes.ORANGE)
            self._lines("chain/links", scenes.segments(snapshot.chain), scenes.PURPLE, 0.006)
            style: dict[str, Any] = {"point_size": small, "point_shape": "circle"}
            joints, add = snapshot.chain[1:-1], self.server.scene.add_point_cloud
            cloud = self._handle("chain/joints", add, joints, scenes.PURPLE, **style)
            cloud.points = np.nan_to_num(joints)
            self._polygon(snapshot)
            feet, arrows = snapshot.forces[:, 0], snapshot.forces[:, 1]
            ends = feet + FORCE * self._size / self._weight * arrows
            self._arrows("forces/feet", np.stack([feet, ends], axis=1), scenes.GREEN)
            self._marked |= snapshot.marks.keys()
            for name in self._marked:
                self._ball(f"marks/{name}", snapshot.marks.get(name, HIDDEN), small, name)
            self._lines("footsteps/soles", scenes.closed(snapshot.footsteps), scenes.SKY)

    def tint(self, colors: Mapping[str, Color]) -> None:
        """Colour bodies by the names of their links; the others get their own colours."""
        with self.lock, self.server.atomic():
            for b, own, mesh in self._meshes:
                name = self._bodies[b].name.removeprefix("/robot/")
                mesh.color = colors.get(name, own)

    def _polygon(self, snapshot: Snapshot) -> None:
        corners = snapshot.polygon + np.array([0.0, 0.0, 0.002 * self._size])
        color, name = scenes.margin_color(snapshot.state.margin), "support/polygon"
        self._lines("support/outline", scenes.closed(corners[None]), color)
        known = len(corners) > 2
        if known or name in self._handles:
            handle = self._handle(name, self._mesh, np.eye(3), np.array([[0, 1, 2]]), color)
            handle.visible = known
        if known:
            handle.vertices, handle.faces, handle.color = corners, scenes.fan(corners), color

    def _handle(self, name: str, add: Callable[..., Any], *values: Any, **options: Any) -> Any:
        """What is shown by a name; added by one of viser's functions where it is not there yet."""
        if name not in self._handles:
            self._handles[name] = add("/" + name.replace(" ", "_"), *values, **options)
        return self._handles[name]

    def _mesh(self, path: str, vertices: Array, faces: Array, color: Color = GREY) -> Any:
        """A translucent mesh."""
        options: dict[str, Any] = {"opacity": 0.3, "side": "double", "flat_shading": True}
        options |= {"cast_shadow": False, "receive_shadow": False}
        return self.server.scene.add_mesh_simple(path, vertices, faces, color=color, **options)

    def _ball(self, name: str, mark: Mark, radius: float, label: str = "") -> None:
        """A ball, with the ellipsoid of two standard deviations where the covariance is known."""
        add, cloud_name, fresh = self.server.scene, f"{name}_std", name not in self._handles
        known = bool(np.isfinite(mark.position).all())
        if fresh and not known:
            return
        style: dict[str, Any] = {"subdivisions": 2, "cast_shadow": False}
        ball = self._handle(name, add.add_icosphere, radius, mark.color, **style)
        if fresh and label:
            add.add_label(f"{ball.name}/label", label, position=(0.0, 0.0, 2.0 * radius))
        ball.visible = known
        if known:
            ball.position = mark.position
        certain = known and mark.covariance is not None and np.isfinite(mark.covariance).all()
        if certain or cloud_name in self._handles:
            style = {"opacity": 0.25, "cast_shadow": False}
            cloud = self._handle(cloud_name, add.add_icosphere, 1.0, mark.color, **style)
            cloud.visible = certain
        if certain:
            R, lengths = scenes.ellipsoid(np.asarray(mark.covariance))
            cloud.position, cloud.wxyz = mark.position, scenes.quaternions(R[None])[0]
            cloud.scale = tuple(np.maximum(lengths, 1e-6).tolist())

    def _lines(self, name: str, points: Array, color: Color, thickness: float = 0.004) -> None:
        """Segments (m, 2, 3)."""
        add = self.server.scene.add_line_segments
        self._strokes(name, points, color, add, thickness=thickness)

    def _arrows(self, name: str, points: Array, color: Color) -> None:
        """Arrows (m, 2, 3)."""
        sizes = {"shaft_radius": 0.006, "head_radius": 0.015, "head_length": 0.03}
        self._strokes(name, points, color, self.server.scene.add_arrows, **sizes)

    def _strokes(
        self, name: str, points: Array, color: Color, add: Callable[..., Any], **sizes: float
    ) -> None:
        """What is not finite, or has no length, is left out; sizes over that of the robot."""
        long = np.abs(points[:, 1] - points[:, 0]).max(axis=1, initial=0.0) > 1e-6
        points = points[long & np.isfinite(points).all(axis=(1, 2))]
        sizes = {part: size * self._size for part, size in sizes.items()}
        some = np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 1e-3]]])
        handle = self._handle(name, add, some, GREY, **sizes)
        handle.visible, handle.colors = len(points) > 0, np.array(color, dtype=np.uint8)
        if len(points):
            handle.points = points

    # --- the panel -----------------------------------------------------------------------------
    def set_status(self, rows: Mapping[str, str]) -> None:
        """Add or replace lines of the table of status texts."""
        rows = {**self._rows, **rows}
        if rows != self._rows:
            self._rows = rows
            self._status.content = _table(rows)

    def plot(self, numbers: Mapping[str, float], at: float) -> None:
        """Append to the time plots, by name with unit; `at` is the time, s."""
        for name, value in numbers.items():
            if name not in self._plots:
                line = {"label": name, "stroke": "#0072b2", "width": 2}
                options = {"title": name, "axes": ({"label": "time (s)"}, {}), "aspect": 2.0}
                data, series = (np.zeros(1), np.zeros(1)), ({"label": "s"}, line)
                with self._plot_folder:
                    chart = self.server.gui.add_uplot(
                        data, series, scales={"x": {"time": False}}, **options
                    )
                self._plots[name] = chart, deque(maxlen=PLOT_SAMPLES)
            points = self._plots[name][1]
            if points and at < points[-1][0]:
                points.clear()  # another run, or a bag went back
            points.append((at, value))
        now = time.monotonic()
        if now - self._plotted > PLOT_EVERY_S:
            self._plotted = now
            for chart, points in self._plots.values():
                chart.data = tuple(np.array(points).reshape(-1, 2).T.copy())

    def add_sliders(
        self, names: Sequence[str], bounds: Array, start: Array, move: Callable[[int, float], None]
    ) -> None:
        """Sliders by which joints move; bounds (n, 2)."""
        with self.server.gui.add_folder("Joints", expand_by_default=True):
            for i, (name, (low, high), value) in enumerate(zip(names, bounds, start, strict=True)):
                step = max((high - low) / 500.0, 1e-6)
                first = float(np.clip(value, low, high))
                slider = self.server.gui.add_slider(name, float(low), float(high), step, first)
                slider.on_update(lambda event, i=i: move(i, float(event.target.value)))

    def add_player(self, seconds: float, show: Callable[[float], None]) -> Callable[[float], None]:
        """Play, pause and scrub; returns what lets real time pass, s."""
        gui = self.server.gui
        with gui.add_folder("Recording"):
            slider = gui.add_slider("time (s)", 0.0, max(seconds, 0.01), 0.01, 0.0)
            speed = gui.add_dropdown("speed", ("0.25", "0.5", "1", "2", "4"), initial_value="1")
            button = gui.add_button("pause")

        def toggle(_: Any) -> None:
            button.label = "play" if button.label == "pause" else "pause"

        def step(passed: float) -> None:
            if button.label == "pause":
                at = slider.value + passed * float(speed.value)
                slider.value = 0.0 if at > seconds else round(at, 2)

        button.on_click(toggle)
        slider.on_update(lambda event: show(event.target.value))
        return step

    def set_actions(self, labels: Sequence[str], press: Callable[[str], None]) -> None:
        """Buttons; `press` is called with the label, from another thread."""
        if tuple(labels) == self._labels:
            return
        self._labels = tuple(labels)
        gui = self.server.gui
        if self._actions is not None:
            self._actions.remove()
        self._actions = gui.add_folder("Services", visible=bool(labels))
        with self._actions:
            for label in labels:
                gui.add_button(label).on_click(lambda _, label=label: press(label))

    # --- recording -----------------------------------------------------------------------------
    def start_recording(self) -> None:
        """Record all that is shown from now on."""
        self._recorder = self.server.get_scene_serializer()

    def pause(self, seconds: float) -> None:
        """Time between two snapshots of the recording."""
        self._recorder.insert_sleep(seconds)

    def write_html(self, path: str | Path) -> float:
        """Write the recording as one file that needs no server; return its size, 1e6 bytes."""
        html = self._recorder.as_html()
        self._recorder = None
        title = escape(self._rows.get("robot", "robot"))
        html = re.sub("<title>.*?</title>", lambda _: f"<title>{title}</title>", html, count=1)
        style = (
            "position:fixed;left:1em;bottom:1em;font:13px sans-serif;background:#fffc;color:#222"
        )
        caption = f'<div style="{style}">{_table(self._rows)}</div></body>'
        html = caption.join(html.rsplit("</body>", 1))
        write_file(path, html)
        return len(html.encode()) / 1e6


def _move(handle: Any, wxyz: list[float], position: list[float]) -> None:
    """Assign wxyz and position, without viser's comparisons, which take most of the time."""
    state = handle._impl
    state.wxyz[:], state.position[:] = wxyz, position
    state.api._queue_scene_message(SetOrientationMessage(state.name, tuple(wxyz)))
    state.api._queue_scene_message(SetPositionMessage(state.name, tuple(position)))


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(
        f"<tr><td style='opacity:.6;padding-right:.8em;vertical-align:top'>{escape(name)}</td>"
        f"<td>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    return f"<table style='font-size:13px;padding:.6em'>{cells}</table>"
