"""How far the feet are to be shifted for a trunk's centre of mass: the legs weigh too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_control.trot.leg_kinematics import LegKinematics
from com_model.arrays import Array
from com_model.legs import Leg
from com_model.model import RobotModel
from com_model.sesc.sesc import Sesc

_STEP = 0.01  # m, of the difference quotient


class RobotShift:
    """Shift s of the feet that puts the middle of the four below the robot's centre of mass.

    With the trunk's CoM c, its mass m and the legs' m_l, whose CoM is c_l + K s:

        s = (m c + m_l (c_l + K s)) / (m + m_l)

    All from the mean of the hips, x and y.

    Args:
        model: The robot, for the masses.
        legs: Its legs.
        kinematics: Of the legs.
        home: (4, 3) m, balls of the unshifted feet, root's frame.
    """

    def __init__(
        self,
        model: RobotModel,
        legs: Sequence[Leg],
        kinematics: Sequence[LegKinematics],
        home: Array,
    ) -> None:
        center = np.mean([leg.hip for leg in legs], axis=0)[:2]
        trunk = float(model.bodies.mass[0])
        trunk_moment = model.bodies.first_moment[0][:2]
        robot = Sesc(model)

        def moment_of_legs(shift: Array) -> Array:
            q = np.zeros(model.n_joints)
            for leg, solver, foot in zip(legs, kinematics, home, strict=True):
                q[leg.joints] = solver.solve(foot + np.append(shift, 0.0)).q
            com = np.asarray(robot.com(q))[:2]
            return np.asarray(model.mass * com - trunk_moment - (model.mass - trunk) * center)

        still = moment_of_legs(np.zeros(2))
        K = np.column_stack([(moment_of_legs(_STEP * e) - still) / _STEP for e in np.eye(2)])
        inverse = np.linalg.inv(model.mass * np.eye(2) - K)
        self._gain, self._constant = trunk * inverse, inverse @ still

    def of(self, com_offset: Array) -> Array:
        """Shift (2,), m, for the trunk's CoM (2,), m, from the mean of the hips."""
        return self._gain @ com_offset + self._constant
