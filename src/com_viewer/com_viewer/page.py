"""The page in the browser: a viser server, the drawn scene, and a recording of it.

Nothing leaves the machine: the server binds the loopback interface unless another host is given,
serves those who have its address with the token, and requests to share the page through viser's
public server are refused.
"""

import contextlib
import io
import re
import threading
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import viser

from com_model import RobotModel
from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.files import write_file
from com_model.text import listing
from com_simulation.drawing.shapes import RobotShape
from com_viewer import scene as scenes
from com_viewer.access import Access
from com_viewer.camera import FOV, WHOLE, Window, frame_box
from com_viewer.drawing import Drawing, RobotMeshes
from com_viewer.links import describe_links
from com_viewer.panel import Panel, table
from com_viewer.scene import Color, RobotScene, Snapshot

HOST, PORT = "127.0.0.1", 8080
ROBOT, COMPARED, LINK_COMS = "robot", "compared", "link CoMs"
ABOVE_PANEL = Window(bottom=0.2)


class _Server(viser.ViserServer):
    """A viser server that cannot be shared publicly."""

    def request_share_url(self, verbose: bool = True) -> None:
        """Does nothing: the page stays on this machine.

        Args:
            verbose: ignored.
        """


class Page(Panel):
    """A page in the browser, at the next free port if the given one is in use.

    Callbacks of the panel come from other threads: `lock` is held while a snapshot is shown.

    Args:
        host: address to bind.
        port: first port to try.
        token: of the address; empty: a random one.

    Attributes:
        server: viser's.
        lock: for callbacks that change what is shown.
        address: URL of the page, with its token.
    """

    def __init__(self, host: str = HOST, port: int = PORT, token: str = "") -> None:
        access = Access(host, token)
        quiet = contextlib.redirect_stdout(io.StringIO())  # it prints a box
        with quiet, access.guarding():
            self.server = _Server(
                host=host, port=port, label="centre of mass", verbose=False
            )
        self.lock = threading.RLock()
        port = self.server.get_port()
        self.address = f"http://{host}:{port}/?token={access.token}"
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)
        super().__init__(self.server.gui)
        self._layers: dict[str, tuple[Any, Any]] = {}  # frame, checkbox
        self._robots: dict[str, tuple[RobotModel, RobotMeshes, Drawing]] = {}
        # m, lowest and highest corner that the camera frames
        self._box = -np.ones(3), np.ones(3)
        self._followed: Array | None = None  # (3,) m, where the root link was then
        self._recorder: Any = None
        self.server.on_client_connect(self._frame)

    @property
    def watched(self) -> bool:
        """Whether a browser shows the page, or it is recorded."""
        return self._recorder is not None or bool(self.server.get_clients())

    def close(self) -> None:
        """Stops the server."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    # --- the scene -----------------------------------------------------------------------------
    def set_robot(self, scene: RobotScene, shape: RobotShape) -> None:
        """Shows another robot, upright in its neutral posture, until the first snapshot.

        Args:
            scene: of the robot.
            shape: its shapes.
        """
        with self.lock:
            for _, _, drawing in self._robots.values():
                drawing.remove()
            for frame, box in self._layers.values():
                frame.remove()  # with all below it
                box.remove()
            self._robots.clear()
            self._layers.clear()
            model = scene.model
            self._add(ROBOT, model, shape, None)
            self.server.scene.add_grid(
                "/ground", plane="xy", cell_size=0.1, section_size=1.0
            )
            self._followed = None
            shapes = f"{shape.declared - len(shape.missing)} of {shape.declared} shapes"
            if shape.missing:
                shapes += f"; missing: {listing(shape.missing, 3)}"
            self.set_status({"robot": f"{model.name}, {model.mass:.3f} kg, {shapes}"})

    def add_compared(self, scene: RobotScene, shape: RobotShape) -> None:
        """Overlays another URDF of the robot, in blue.

        Args:
            scene: of the other URDF.
            shape: its shapes.
        """
        with self.lock:
            self._add(COMPARED, scene.model, shape, scenes.BLUE)

    def _add(
        self, layer: str, model: RobotModel, shape: RobotShape, tint: Color | None
    ) -> None:
        scene = self.server.scene
        self._add_layer(layer)
        meshes = RobotMeshes(scene, layer, model, shape, tint)
        low, high = meshes.box(*body_poses(model.bodies, model.neutral))
        size = max(float((high - low).max()), 0.1)
        heavy = model.link_masses[model.link_masses > 0.0]
        self._robots[layer] = (
            model,
            meshes,
            Drawing(scene, size, heavy, self._add_layer),
        )
        meshes.on_click(lambda body: self._describe(layer, body))

    def show(self, snapshot: Snapshot, compared: Snapshot | None = None) -> None:
        """Draws an instant.

        Args:
            snapshot: of the robot.
            compared: of the URDF of `add_compared` at the same instant; None: it stays as it
                was.
        """
        with self.lock, self.server.atomic():
            _, meshes, drawing = self._robots[ROBOT]
            meshes.move(snapshot)
            drawing.draw(snapshot)
            self._follow(meshes, snapshot)
            if compared is not None:
                _, meshes, drawing = self._robots[COMPARED]
                meshes.move(compared)
                drawing.draw_compared(compared)

    def _add_layer(self, name: str) -> None:
        """Adds a checkbox for a layer; the links' centres of mass are hidden at first."""
        if name in self._layers:
            return
        path, shown = "/" + name.replace(" ", "_"), name != LINK_COMS
        frame = self.server.scene.add_frame(path, show_axes=False, visible=shown)
        with self.tab("Layers"):
            box = self.server.gui.add_checkbox(name, shown)
        box.on_update(lambda event: setattr(frame, "visible", event.target.value))
        self._layers[name] = frame, box

    def tint(self, colors: Mapping[str, Color]) -> None:
        """Colours bodies.

        Args:
            colors: by name of a body's link; bodies without one get their own colours.
        """
        with self.lock, self.server.atomic():
            self._robots[ROBOT][1].tint(colors)

    def _describe(self, layer: str, body: int) -> None:
        """Shows mass and CoM of a body's links as a status text."""
        model, other = self._robots[layer][0], self._robots.get(COMPARED)
        links = np.flatnonzero(model.bodies.body_of_link == body).tolist()
        compared = other[0] if other and layer == ROBOT else None
        self.set_status({"clicked": describe_links(model, links, compared)})

    # --- the camera ----------------------------------------------------------------------------
    def _frame(self, client: viser.ClientHandle) -> None:
        """Sets a browser's camera so that the whole robot is in view beside the panel."""
        camera = client.camera
        wide, high = max(camera.image_width, 1), max(camera.image_height, 1)
        # pixels of width, below which viser's panel covers the lower 60 % of the page
        window = ABOVE_PANEL if wide < 576 else WHOLE
        camera.fov = FOV
        camera.position, look_at = frame_box(*self._box, wide / high, window)
        camera.look_at = look_at

    def _follow(self, meshes: RobotMeshes, snapshot: Snapshot) -> None:
        """Frames a new robot; moves the cameras with a robot that moves by a third of its size."""
        new, root = self._followed is None, snapshot.p[0]
        moved = np.zeros(3) if self._followed is None else root - self._followed
        if not new and np.linalg.norm(moved) < 0.3 * float(
            (self._box[1] - self._box[0]).max()
        ):
            return
        self._box, self._followed = meshes.box(snapshot.R, snapshot.p), root.copy()
        camera = self.server.initial_camera
        camera.fov = FOV
        # of a telephone: what fits there is in view on any screen
        camera.position, camera.look_at = frame_box(*self._box, 0.46)
        for client in self.server.get_clients().values():
            if new:
                self._frame(client)
            else:
                client.camera.position = client.camera.position + moved

    # --- recording -----------------------------------------------------------------------------
    def start_recording(self) -> None:
        """Records everything that is shown from now on."""
        self._recorder = self.server.get_scene_serializer()

    def pause(self, seconds: float) -> None:
        """Adds time between two snapshots of the recording.

        viser encodes the times of a recording as they are: they must be Python's floats.

        Args:
            seconds: s.
        """
        self._recorder.insert_sleep(float(seconds))

    def write_html(self, path: str | Path) -> float:
        """Writes the recording as one file that needs no server.

        Args:
            path: of the file.

        Returns:
            Its size, 1e6 bytes.
        """
        html = self._recorder.as_html()
        self._recorder = None
        title = escape(self._rows.get("robot", "robot"))
        html = re.sub(
            "<title>.*?</title>", lambda _: f"<title>{title}</title>", html, count=1
        )
        style = "position:fixed;left:0;top:0;max-width:80vw;font:13px sans-serif;background:#fffc"
        fold = f"<details open><summary>{title}</summary>{table(self._rows)}</details>"
        html = f'<div style="{style}">{fold}</div></body>'.join(
            html.rsplit("</body>", 1)
        )
        write_file(path, html)
        return len(html.encode()) / 1e6
