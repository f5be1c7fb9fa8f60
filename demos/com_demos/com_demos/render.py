"""Shaded images of triangles: MuJoCo draws them off screen, by EGL, without a display."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter

from com_demos.exceptions import RenderError
from com_demos.scene import Part

_SUPERSAMPLE = 2
_AMBIENT, _DIFFUSE = 0.45, 0.55
_LIGHT = np.array([0.45, 0.55, 0.70])  # where it shines to, in camera axes
_OUTLINE_TONE, _OUTLINE_JUMP = 0.55, 0.02  # a jump is relative to the distance


@dataclass(frozen=True)
class Camera:
    """A pinhole camera; its axes are x right, y down, z into the picture."""

    R_camera_world: np.ndarray  # (3, 3) rotation
    position: np.ndarray  # (3,) of the pinhole, world frame, m
    scale: float = 1.0  # pixels per unit of x/z and y/z
    # (2,) pixel that the camera's z axis meets
    center: tuple[float, float] = 0.0, 0.0

    @classmethod
    def looking_at(
        cls,
        target: np.ndarray,
        azimuth_deg: float,
        elevation_deg: float,
        distance: float,
    ) -> Camera:
        """Place a camera at a distance, m, from a target (3,) m, its horizon horizontal.

        The azimuth is that of the camera from the target, from x towards y; the elevation likewise.
        """
        a, e = np.radians([azimuth_deg, elevation_deg])
        away = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        R = np.array([right, np.cross(-away, right), -away])
        return cls(R, np.asarray(target, dtype=float) + distance * away)

    def project(self, points: np.ndarray) -> np.ndarray:
        """Return (..., 3) for points (..., 3): pixel x, pixel y, distance along the view (m)."""
        x, y, z = np.moveaxis((points - self.position) @ self.R_camera_world.T, -1, 0)
        return np.stack(
            [
                self.scale * x / z + self.center[0],
                self.scale * y / z + self.center[1],
                z,
            ],
            axis=-1,
        )

    def fitted(
        self, points: np.ndarray, width: int, height: int, border: float = 0.05
    ) -> Camera:
        """Return this camera with scale and center such that points (k, 3) fill a picture.

        The border stays free on each side, as a fraction of the picture's size.
        """
        pixels = replace(self, scale=1.0, center=(0.0, 0.0)).project(points)[:, :2]
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        extent = np.maximum(high - low, 1e-9)
        room = (1 - 2 * border) * np.array([width, height])
        scale = float((room / extent).min())
        center = np.array([width, height]) / 2 - scale * (low + high) / 2
        return replace(self, scale=scale, center=(float(center[0]), float(center[1])))


def render(
    camera: Camera, parts: Sequence[Part], width: int, height: int
) -> NDArray[np.float32]:
    """Draw opaque triangles, each seen from both sides, with an outline where the distance jumps.

    The camera has scale and center for this width and height; what is behind it is not seen.
    Returns (height, width, 4) red, green, blue, coverage, 0 to 1, colour not premultiplied; or
    raises RenderError without EGL.
    """
    n = _SUPERSAMPLE
    corners = [camera.project(triangles) for triangles, _ in parts]
    visible = [(c[..., 2] > 0).all(axis=1) for c in corners]
    depths = [c[v][..., 2] for c, v in zip(corners, visible, strict=True)]
    seen = [
        (_facing(camera, triangles[v]), color)
        for (triangles, color), v in zip(parts, visible, strict=True)
        if v.any()
    ]
    if not seen:
        return np.zeros((height, width, 4), dtype=np.float32)
    near = 0.9 * min(float(d.min()) for d in depths if d.size)
    far = 1.1 * max(float(d.max()) for d in depths if d.size)
    with _drawing(seen, n * width, n * height) as (scene, context):
        _aim(scene, camera, near, far, width, height)
        color = np.empty((n * height, n * width, 3), dtype=np.uint8)
        depth = np.empty((n * height, n * width), dtype=np.float32)
        window = mujoco.MjrRect(0, 0, n * width, n * height)
        mujoco.mjr_render(window, scene, context)
        mujoco.mjr_readPixels(color, depth, window, context)
    covered = depth[::-1] < 1.0
    distance = np.float32(near * far) / (
        np.float32(far) - depth[::-1] * np.float32(far - near)
    )
    jump = maximum_filter(distance, 3) - minimum_filter(distance, 3)
    outline = covered & (jump > _OUTLINE_JUMP * distance)
    image = np.empty((*depth.shape, 4), dtype=np.float32)
    tone = np.where(outline, np.float32(_OUTLINE_TONE / 255.0), np.float32(1.0 / 255.0))
    image[..., :3] = color[::-1] * tone[..., None]
    image[..., 3] = covered
    return _shrink(image, n)


def _facing(camera: Camera, triangles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn all triangles' windings to the camera, for those of mesh files vary."""
    edges = triangles[:, 1:] - triangles[:, :1]
    normals = np.cross(edges[:, 0], edges[:, 1])
    away = np.sum(normals * (triangles[:, 0] - camera.position), axis=1) > 0
    return np.where(away[:, None, None], triangles[:, ::-1], triangles)


@contextmanager
def _drawing(
    parts: Sequence[Part], width: int, height: int
) -> Iterator[tuple[mujoco.MjvScene, mujoco.MjrContext]]:
    """Make a MuJoCo scene of a skin for each part, which takes any triangles, and draw it here."""
    _gl_context().make_current()
    spec = mujoco.MjSpec()
    spec.visual.quality.offsamples = 0
    spec.visual.global_.offwidth, spec.visual.global_.offheight = width, height
    light = spec.visual.headlight
    light.ambient, light.diffuse, light.specular = (
        [_AMBIENT] * 3,
        [_DIFFUSE] * 3,
        [0.0] * 3,
    )
    spec.worldbody.add_body(name="body")
    for triangles, color in parts:
        count = 3 * len(triangles)
        # Black parts a little lighter, else their shape could not be seen.
        rgba = [*(0.2 + 0.8 * np.array(color)), 1.0]
        skin = spec.add_skin(vert=triangles.ravel(), face=np.arange(count), rgba=rgba)
        skin.bodyname, skin.bindpos, skin.bindquat = ["body"], [0, 0, 0], [1, 0, 0, 0]
        skin.vertid, skin.vertweight = [list(range(count))], [[1.0] * count]
    mj = spec.compile()
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    scene = mujoco.MjvScene(mj, maxgeom=len(parts) + 10)
    everything = mujoco.mjtCatBit.mjCAT_ALL
    camera = mujoco.MjvCamera()
    mujoco.mjv_updateScene(
        mj, data, mujoco.MjvOption(), None, camera, everything, scene
    )
    context = mujoco.MjrContext(mj, mujoco.mjtFontScale.mjFONTSCALE_100)
    try:
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
        yield scene, context
    finally:
        context.free()


@cache
def _gl_context() -> mujoco.gl_context.GLContext:
    """Return a context of OpenGL that needs no display; one for the life of the process."""
    try:
        from mujoco.egl import GLContext  # looks for the library

        return GLContext(1, 1)
    except Exception as error:  # PyOpenGL raises many kinds
        raise RenderError(error) from error


def _aim(
    scene: mujoco.MjvScene,
    camera: Camera,
    near: float,
    far: float,
    width: int,
    height: int,
) -> None:
    """Give MuJoCo the camera: its pose, and the edges of the picture at the nearest distance."""
    _, down, forward = camera.R_camera_world
    scene.lights[0].dir = _LIGHT / np.linalg.norm(_LIGHT) @ camera.R_camera_world
    per_pixel = near / camera.scale
    x, y = camera.center
    for eye in scene.camera:  # left and right are the same
        eye.pos, eye.forward, eye.up = camera.position, forward, -down
        eye.frustum_near, eye.frustum_far = near, far
        eye.frustum_center = (0.5 * width - x) * per_pixel
        eye.frustum_width = 0.5 * width * per_pixel
        eye.frustum_top, eye.frustum_bottom = y * per_pixel, (y - height) * per_pixel


def _shrink(image: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """Average (n h, n w, 4) over n x n pixels, colours weighted by coverage."""
    height, width = image.shape[0] // n, image.shape[1] // n
    color = image[..., :3] * image[..., 3:]
    blocks = np.concatenate([color, image[..., 3:]], axis=-1).reshape(
        height, n, width, n, 4
    )
    small = blocks.mean(axis=(1, 3))
    small[..., :3] /= np.maximum(small[..., 3:], 1e-6)
    return small
