"""Shaded images of triangles: a camera, a depth buffer, light and outlines."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

_SUPERSAMPLE = 3
_KEY_LIGHT = np.array([-0.45, -0.55, -0.70])  # where to look for the lights, in camera axes
_FILL_LIGHT = np.array([0.70, -0.10, -0.55])
_OUTLINE_TONE = 0.55


@dataclass(frozen=True)
class Camera:
    """A pinhole camera; its axes are x right, y down, z into the picture.

    Attributes:
        R_camera_world: (3, 3) rotation.
        position: (3,) of the pinhole, world frame, m.
        scale: pixels per unit of x/z and y/z.
        center: (2,) pixel that the camera's z axis meets.
    """

    R_camera_world: np.ndarray
    position: np.ndarray
    scale: float = 1.0
    center: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def looking_at(
        cls, target: np.ndarray, azimuth_deg: float, elevation_deg: float, distance: float
    ) -> Camera:
        """Place a camera around a target (3,), level with the horizon.

        Args:
            target: the point in the middle of the view, m.
            azimuth_deg: of the camera as seen from the target, from x towards y.
            elevation_deg: of the camera above the horizontal plane through the target.
            distance: from the target, m.
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
            [self.scale * x / z + self.center[0], self.scale * y / z + self.center[1], z], axis=-1
        )

    def fitted(self, points: np.ndarray, width: int, height: int, border: float = 0.05) -> Camera:
        """Return this camera with scale and center such that points (k, 3) fill a picture.

        Args:
            points: what must be seen.
            width: of the picture, pixels.
            height: of the picture, pixels.
            border: to leave free on each side, as a share of the picture's size.
        """
        pixels = replace(self, scale=1.0, center=(0.0, 0.0)).project(points)[:, :2]
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        extent = np.maximum(high - low, 1e-9)
        room = (1 - 2 * border) * np.array([width, height])
        scale = float((room / extent).min())
        center = np.array([width, height]) / 2 - scale * (low + high) / 2
        return replace(self, scale=scale, center=(float(center[0]), float(center[1])))


def render(
    camera: Camera,
    triangles: np.ndarray,
    colors: np.ndarray,
    owners: np.ndarray,
    width: int,
    height: int,
) -> np.ndarray:
    """Draw opaque triangles, each seen from both sides, with a thin outline around each owner.

    Args:
        camera: with scale and center for this width and height.
        triangles: corners (m, 3, 3), world frame, m.
        colors: (m, 3) red, green, blue, 0 to 1.
        owners: (m,) int, number of the part that a triangle belongs to.
        width: pixels.
        height: pixels.

    Returns:
        (height, width, 4) red, green, blue, coverage, 0 to 1; colour is not premultiplied.
    """
    n = _SUPERSAMPLE
    fine = replace(
        camera, scale=n * camera.scale, center=(n * camera.center[0], n * camera.center[1])
    )
    corners = fine.project(triangles)
    visible = np.flatnonzero((corners[..., 2] > 0).all(axis=1))
    depth = np.zeros((n * height, n * width), dtype=np.float32)
    nearest = np.full(depth.shape, -1, dtype=np.int64)
    fill_depth(np.ascontiguousarray(corners[visible]), visible, depth, nearest)

    covered = nearest >= 0
    # Black parts a little lighter, else their shape could not be seen.
    shaded = (0.2 + 0.8 * colors) * _brightness(camera, triangles)[:, None]
    image = np.zeros((*depth.shape, 4), dtype=np.float32)
    image[covered, :3] = np.clip(shaded, 0, 1)[nearest[covered]]
    image[covered, 3] = 1
    seen = np.full(depth.shape, -1)
    seen[covered] = owners[nearest[covered]]
    image[_outline(seen, depth) & covered, :3] *= _OUTLINE_TONE
    return _shrink(image, n)


@njit(cache=True)
def fill_depth(
    corners: np.ndarray, numbers: np.ndarray, depth: np.ndarray, nearest: np.ndarray
) -> None:
    """Write into each pixel the number of the nearest triangle that covers its middle.

    Args:
        corners: (m, 3, 3) pixel x, pixel y, distance > 0.
        numbers: (m,) what to write for each triangle.
        depth: (height, width) in and out: 1 / distance, which is linear in the picture; 0 is far.
        nearest: (height, width) in and out.
    """
    height, width = depth.shape
    for k in range(corners.shape[0]):
        x0, y0, x1, y1 = corners[k, 0, 0], corners[k, 0, 1], corners[k, 1, 0], corners[k, 1, 1]
        x2, y2 = corners[k, 2, 0], corners[k, 2, 1]
        area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        if area == 0.0:
            continue
        w0, w1, w2 = 1 / corners[k, 0, 2], 1 / corners[k, 1, 2], 1 / corners[k, 2, 2]
        left = max(0, int(np.floor(min(x0, x1, x2))))
        right = min(width, int(np.ceil(max(x0, x1, x2))) + 1)
        top = max(0, int(np.floor(min(y0, y1, y2))))
        bottom = min(height, int(np.ceil(max(y0, y1, y2))) + 1)
        # Along a row, the weights of corners 1, 2 and 0 grow by:
        g1, g2 = (y2 - y0) / area, (y0 - y1) / area
        for i in range(top, bottom):
            y = i + 0.5
            start1 = (-x0 * (y2 - y0) - (x2 - x0) * (y - y0)) / area
            start2 = ((x1 - x0) * (y - y0) + x0 * (y1 - y0)) / area
            first, end = float(left), float(right)
            for start, growth in ((start1, g1), (start2, g2), (1 - start1 - start2, -g1 - g2)):
                if growth > 0:  # from the pixel on where the weight is positive, less one
                    first = min(max(first, np.floor(-start / growth) - 1), right)
                elif growth < 0:
                    end = max(min(end, np.ceil(-start / growth) + 1), left)
            for j in range(int(first), int(end)):
                x = j + 0.5
                b1 = ((x - x0) * (y2 - y0) - (x2 - x0) * (y - y0)) / area
                b2 = ((x1 - x0) * (y - y0) - (x - x0) * (y1 - y0)) / area
                if b1 < 0 or b2 < 0 or b1 + b2 > 1:
                    continue
                w = w0 + b1 * (w1 - w0) + b2 * (w2 - w0)
                if w > depth[i, j]:
                    depth[i, j] = w
                    nearest[i, j] = numbers[k]


def _brightness(camera: Camera, triangles: np.ndarray) -> np.ndarray:
    """Return (m,) how bright triangles are: both sides alike, as meshes' windings vary."""
    edges = (triangles[:, 1:] - triangles[:, :1]) @ camera.R_camera_world.T
    normals = np.cross(edges[:, 0], edges[:, 1])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    middle = triangles.mean(axis=1) - camera.position
    facing = np.sum(normals * (middle @ camera.R_camera_world.T), axis=1)
    normals[facing > 0] *= -1
    key = np.clip(normals @ _KEY_LIGHT / np.linalg.norm(_KEY_LIGHT), 0, None)
    fill = np.clip(normals @ _FILL_LIGHT / np.linalg.norm(_FILL_LIGHT), 0, None)
    return 0.42 + 0.52 * key + 0.14 * fill


def _outline(owners: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Return (h, w) where a part or a fold ends: the owner changes or the distance jumps."""
    edge = np.zeros(owners.shape, dtype=bool)
    for axis in (0, 1):
        here = [slice(None), slice(None)]
        there = [slice(None), slice(None)]
        here[axis], there[axis] = slice(None, -1), slice(1, None)
        a, b = tuple(here), tuple(there)
        jump = np.abs(depth[a] - depth[b]) > 0.01 * np.maximum(depth[a], depth[b])
        change = (owners[a] != owners[b]) | jump
        edge[a] |= change
        edge[b] |= change
    return edge


def _shrink(image: np.ndarray, n: int) -> np.ndarray:
    """Average (n h, n w, 4) over n x n pixels, colours weighted by coverage."""
    height, width = image.shape[0] // n, image.shape[1] // n
    color = image[..., :3] * image[..., 3:]
    blocks = np.concatenate([color, image[..., 3:]], axis=-1).reshape(height, n, width, n, 4)
    small = blocks.mean(axis=(1, 3))
    small[..., :3] /= np.maximum(small[..., 3:], 1e-6)
    return small
