"""What is above the legs: its mass and first moment about the pelvis, wherever its joints are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types

from com_control.walking import upper_body_kernels as kernels
from com_control.walking.biped import Biped
from com_model.arrays import Array
from com_model.bodies import PRISMATIC, Bodies
from com_model.sesc.packing import pack


class UpperBody:
    """The upper body of a biped by its statically equivalent serial chain.

    The robot's CoM with the legs at their zero pose, less what the legs bring to it there. Calls
    work in memory of their own object: use one object per thread.

    Args:
        biped: The robot.
    """

    def __init__(self, biped: Biped) -> None:
        bodies = biped.model.bodies
        self._robot = pack(bodies)
        self._legs = np.concatenate([leg.joints for leg in biped.legs])
        self._share = 1.0 - sum(leg.masses.sum() for leg in biped.legs) / biped.model.mass
        moments = [leg.moments.sum(axis=0) for leg in biped.legs]
        self._leg_moment = np.sum(moments, axis=0) / biped.model.mass
        self._path = _path(bodies, biped.pelvis)
        self._moment = _compiled("moment_above")

    def root_in_pelvis(self, q: Array) -> tuple[Array, Array]:
        """Pose of the root link in the pelvis' frame, (3, 3) and (3,) m, at q (n,)."""
        root = np.empty((3, 4))
        _compiled("pose_of_root")(self._path, q, root)
        return root[:, :3].copy(), root[:, 3].copy()

    def packed(self, q: Array) -> Array:
        """Moment (m) about the pelvis' origin, in its axes, and mass, over the robot's; (2, 3)."""
        result = np.zeros((2, 3))
        self.pack(q, result)
        return result

    def pack(self, q: Array, result: Array) -> None:
        """As packed, into result (2, 3); microseconds, hence no checks: q (n,) float64."""
        self._moment(self._path, self._robot, self._legs, self._leg_moment, q, result[0])
        result[1, 0] = self._share


def _path(bodies: Bodies, pelvis: int) -> Array:
    """The bodies from the root (without it) to the pelvis, (k, kernels.COLUMNS)."""
    path = bodies.path_to(pelvis)
    packed = np.zeros((len(path), kernels.COLUMNS))
    packed[:, kernels.DRIVER] = bodies.q_index[path]
    packed[:, kernels.MULTIPLIER] = bodies.multiplier[path]
    packed[:, kernels.OFFSET] = bodies.offset[path]
    packed[:, kernels.SLIDES] = bodies.joint_type[path] == PRISMATIC
    packed[:, kernels.AXIS : kernels.SHIFT] = bodies.axis[path]
    packed[:, kernels.SHIFT : kernels.TURN] = bodies.d[path]
    packed[:, kernels.TURN :] = bodies.R[path].reshape(-1, 9)
    return packed


@cache
def _compiled(name: str) -> Any:
    """Compiles a kernel for contiguous arrays: it then does not look at its arguments' types."""
    vector, matrix, whole = types.float64[::1], types.float64[:, ::1], types.int64[::1]
    arguments = {
        "moment_above": (matrix, matrix, whole, vector, vector, vector),
        "pose_of_root": (matrix, vector, matrix),
    }
    kernel: Any = getattr(kernels, name)
    return kernel.compile(arguments[name]) if hasattr(kernel, "compile") else kernel
