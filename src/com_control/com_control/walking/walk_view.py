"""A walking robot as its sensors see it, in the frame of its walk.

The planned pose of a standing foot tells where the robot is; the measured joints tell the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from com_control.walking.biped import Biped
from com_control.walking.exceptions import PlanError
from com_control.walking.sole_zmp import SoleZmp
from com_control.walking.standing import soles_in_root, stance_of
from com_control.walking.walk_checks import Reading
from com_control.walking.walker import WalkInstant
from com_model.arrays import Array
from com_model.sesc.sesc import Sesc


@dataclass(frozen=True, eq=False)
class WalkView:
    """A robot in the walk's frame.

    Attributes:
        R_walk_root: (3, 3) orientation of the root link.
        p_walk_root: (3,) m, its origin.
        soles: (2, 3, 4) poses of the soles.
        com: (3,) m, by the URDF.
        zmp: (3,) m, by the feet's sensors; NaN: not known.
    """

    R_walk_root: Array
    p_walk_root: Array
    soles: Array
    com: Array
    zmp: Array


class Viewer:
    """Sees one robot.

    Args:
        biped: The robot.
    """

    def __init__(self, biped: Biped) -> None:
        self._biped = biped
        self._sesc = Sesc(biped.model)
        self._zmp = SoleZmp(biped)

    def see(self, reading: Reading, planned: WalkInstant | None) -> WalkView | None:
        """The robot at a reading.

        Args:
            reading: What is measured.
            planned: What the walk plans for that time; None before the first one: then the frame
                lies between the soles, and None comes back where they are not on one plane.
        """
        own = soles_in_root(self._biped, reading.position)
        pose = self._between(reading) if planned is None else self._standing(reading, own, planned)
        if pose is None:
            return None
        R, p = pose
        soles = np.concatenate((R @ own[:, :, :3], (own[:, :, 3] @ R.T + p)[:, :, None]), axis=2)
        zmp = np.full(3, np.nan)
        if reading.wrenches is not None:
            zmp = self._zmp.of_both(reading.wrenches, soles)
        return WalkView(R, p, soles, R @ self._sesc.com(reading.position) + p, zmp)

    def _between(self, reading: Reading) -> tuple[Array, Array] | None:
        try:
            stance = stance_of(self._biped, reading.position)
        except PlanError:
            return None
        return stance.R_walk_root, stance.p_walk_root

    def _standing(self, reading: Reading, own: Array, planned: WalkInstant) -> tuple[Array, Array]:
        """The root's pose by the foot that stands; of two, the one that carries more."""
        loads = np.ones(2) if reading.wrenches is None else self._zmp.loads(reading.wrenches)
        foot = int(np.argmax(np.where(planned.stance, np.nan_to_num(loads, nan=0.0), -np.inf)))
        aim = planned.soles[foot]
        R = aim[:, :3] @ own[foot, :, :3].T
        return R, aim[:, 3] - R @ own[foot, :, 3]
