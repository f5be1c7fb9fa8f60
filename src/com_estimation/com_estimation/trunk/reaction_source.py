"""Forces of the ground on the feet of a robot that moves, by a method that is chosen by name."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_estimation.trunk.ground_reaction import (
    INVERSE_DYNAMICS,
    METHODS,
    SENSOR,
    ForceNoise,
    GroundReaction,
    LegGeometry,
    sensor_forces,
    torque_forces,
)
from com_estimation.trunk.motion import Motion
from com_model import RobotModel
from com_model.arrays import Array
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.legs import Leg

_LEVEL = np.array([0.0, 0.0, 1.0])


class ReactionSource:
    """Forces of the ground on four feet.

    Args:
        method: "torque" ([Ding] eq. 21), "inverse_dynamics" or "sensor" ([Ding] eq. 20).
        armature: (n,) kg m^2 or kg, reflected inertia of the drives; none by default.

    Raises:
        ValueError: There is no such method.
    """

    def __init__(
        self,
        model: RobotModel,
        legs: Sequence[Leg],
        method: str,
        noise: ForceNoise | None = None,
        armature: ArrayLike | None = None,
    ) -> None:
        if method not in METHODS:
            raise ValueError(f"no method {method!r} for forces: expected one of {METHODS}")
        self._method = method
        self._noise = noise or ForceNoise()
        self._names = [leg.name for leg in legs]
        self._geometry = LegGeometry(model, legs)
        self._dynamics = Dynamics(model, armature)

    def at(self, motion: Motion) -> tuple[GroundReaction, Array]:
        """Forces and contact points (4, 3) m in the root frame; NaN where not known.

        Where gravity is not known, the lowest point of a ball is taken along -z of the root link
        for its points, and forces from torques are exact but for the ball's radius.
        """
        up = motion.up if np.isfinite(motion.up).all() else _LEVEL
        contacts = self._geometry.contacts(motion.q, up)
        if self._method == SENSOR:
            axes = np.broadcast_to(np.eye(3), (4, 3, 3))
            found = sensor_forces(motion.foot_forces, axes, np.ones(4), self._noise)
            return found, contacts.points
        joints = self._geometry.joints
        needed = None
        if self._method == INVERSE_DYNAMICS:
            needed = self._inverse_dynamics(motion)[joints]
        efforts = motion.efforts[joints]
        found = torque_forces(contacts.jacobians, efforts, needed, self._noise, self._names)
        return found, contacts.points

    def unknown(self) -> GroundReaction:
        """Before the first sample: nothing is known."""
        nothing = np.full((4, 3), np.nan)
        return GroundReaction(nothing, nothing, np.zeros(4, dtype=np.bool_), self._method)

    def _inverse_dynamics(self, motion: Motion) -> Array:
        return self._dynamics.inverse_dynamics(
            motion.q, motion.qd, motion.qdd, motion.omega, motion.omega_dot, motion.specific_force
        )[1]
