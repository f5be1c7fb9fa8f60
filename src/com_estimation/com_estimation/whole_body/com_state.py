"""The centre of mass of a standing robot and what follows from it: arrays in, ComState out.

No ROS here: the node sesc_publisher and offline tools feed the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from com_estimation.whole_body.stance import Feet, Stance
from com_estimation.whole_body.stance_kernels import Thresholds
from com_model import (
    Foot,
    RobotModel,
    Sesc,
    SupportPolygon,
    UnknownNameError,
)
from com_model.dynamics.link_frames import LinkFrames

Array = NDArray[np.float64]

UP = np.array([0.0, 0.0, 1.0])
UP.setflags(write=False)
NOWHERE = np.full(3, np.nan)
NOWHERE.setflags(write=False)


class Status(IntEnum):
    """How far the numbers can be trusted; the values of com_msgs/CenterOfMass."""

    UNKNOWN = 0
    OK = 1
    DEGRADED = 2


class Ground(IntEnum):
    """What the projection was made onto; the values of com_msgs/CenterOfMass."""

    UNKNOWN = 0
    ROOT = 1
    FEET = 2


@dataclass(frozen=True, eq=False)
class ComState:
    """Vectors are in the frame of the root link; what is not known is NaN.

    Attributes:
        status: how far to trust it.
        reason: why the status is not OK.
        mass: kg, of the model.
        position: (3,) m.
        velocity: (3,) m/s, relative to the root link.
        gravity: (3,) unit vector, downwards.
        ground: what the projection was made onto.
        projection: (3,) m, where the line of gravity through the CoM meets the ground.
        margin: m, of the projection in the support polygon, positive inside.
        contacts: sole frames in contact.
        jacobian: (3, n) m/rad or m/m, or None with the status UNKNOWN.
        q: (n,) rad or m, the joint positions that it belongs to, or None.
        stance: contact points and ground, or None.
    """

    status: Status
    reason: str
    mass: float
    position: Array
    velocity: Array
    gravity: Array
    ground: Ground
    projection: Array
    margin: float
    contacts: tuple[str, ...] = ()
    jacobian: Array | None = None
    q: Array | None = None
    stance: Stance | None = None

    def support_polygon(self) -> SupportPolygon | None:
        """The support polygon, or None without ground or feet."""
        if self.stance is None:
            return None
        return SupportPolygon.from_points(self.stance.points, self.stance.normal, self.gravity)


@dataclass(frozen=True, eq=False)
class Attitude:
    """What is known of the direction of gravity besides the joints.

    Attributes:
        assume_level: True to take the ground for level (no IMU is used).
        R_world_imu: (3, 3) orientation of the IMU, world z up; None when it is not known.
        imu_link: link that carries the IMU.
        problem: why R_world_imu is None.
    """

    assume_level: bool
    R_world_imu: Array | None = None
    imu_link: str = ""
    problem: str = ""


LEVEL = Attitude(assume_level=True)


@dataclass(frozen=True, eq=False)
class _Support:
    """The part of ComState that depends on gravity and the ground."""

    gravity: Array = field(default_factory=lambda: NOWHERE)
    ground: Ground = Ground.UNKNOWN
    projection: Array = field(default_factory=lambda: NOWHERE)
    margin: float = float("nan")
    contacts: tuple[str, ...] = ()
    stance: Stance | None = None


def unknown_state(reason: str, mass: float = float("nan")) -> ComState:
    """The state when there is no CoM: every number but the mass is NaN."""
    return ComState(
        Status.UNKNOWN, reason, mass, NOWHERE, NOWHERE, NOWHERE, Ground.UNKNOWN, NOWHERE, np.nan
    )


class ComObserver:
    """Computes ComState for one robot.

    CoM and Jacobian come from the SESC. The ground is the plane of the soles in contact, or with
    no feet known the plane through the root link's origin across gravity. Gravity is measured by
    the IMU, or with level ground assumed it is against the normal of the ground; with no feet
    known then against z of the root link.

    Args:
        model: the robot.
        feet: f feet; their frames and wrench frames are links of the model.
        contact_tolerance: m, see stance.Feet.
        contact_force: N, see stance.Feet.

    Raises:
        UnknownNameError: a foot's frame is not a link of the model.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot] = (),
        contact_tolerance: float = 0.005,
        contact_force: float = 5.0,
    ) -> None:
        self.model = model
        self.sesc = Sesc(model)
        self._n_feet = len(feet)
        self._feet = Feet(feet, contact_tolerance, contact_force)
        self._foot_frames = LinkFrames(model, self._feet.links)
        self._imu_link, self._imu_problem = model.root_link, ""
        self._imu_frame = LinkFrames(model, [model.root_link])
        self._compile()

    def set_contact_thresholds(self, tolerance: float, force: float) -> None:
        """Change contact_tolerance (m) and contact_force (N)."""
        self._feet.thresholds = Thresholds(float(force), float(tolerance))

    def _compile(self) -> None:
        """Compile, or load from the cache, what else would be compiled at the first sample."""
        still = np.zeros(self.model.n_joints)
        self.update(self.model.neutral, still)
        press = np.full((self._n_feet, 3), 1e9)
        imu = Attitude(False, np.eye(3), self.model.root_link)
        self.update(self.model.neutral, still, imu, press if self._n_feet else None)

    def update(
        self,
        q: Array,
        qd: Array,
        attitude: Attitude = LEVEL,
        forces: Array | None = None,
        warnings: Sequence[str] = (),
    ) -> ComState:
        """Compute the state at one sample.

        Args:
            q: (n,) joint positions, rad or m.
            qd: (n,) joint velocities, rad/s or m/s; NaN where not known.
            attitude: what is known of gravity.
            forces: (f, 3) N, of the ground on the feet, each in its wrench frame; None when they
                are not known: the feet's poses then say which feet stand.
            warnings: what the caller knows to be wrong; they degrade the state.

        Returns:
            The state: OK, DEGRADED with the reasons, or UNKNOWN when q is not finite.

        Raises:
            ShapeError: q has the wrong shape; lists the joints.
        """
        if not np.isfinite(q).all():
            return unknown_state("joint positions are not finite", self.model.mass)
        com, jacobian = self.sesc.com_and_jacobian(q)
        velocity = jacobian @ qd if np.isfinite(qd).all() else np.full(3, np.nan)
        problems = list(warnings)
        gravity = self._measured_gravity(q, attitude, problems)
        support = self._support(q, com, gravity, attitude.assume_level, forces, problems)
        return ComState(
            status=Status.DEGRADED if problems else Status.OK,
            reason="; ".join(problems),
            mass=self.model.mass,
            position=com,
            velocity=velocity,
            jacobian=jacobian,
            q=q,
            gravity=support.gravity,
            ground=support.ground,
            projection=support.projection,
            margin=support.margin,
            contacts=support.contacts,
            stance=support.stance,
        )

    def _measured_gravity(self, q: Array, attitude: Attitude, problems: list[str]) -> Array | None:
        """Unit vector of gravity in the root frame, g = R_root_imu R_world_imu^T (0, 0, -1)."""
        if attitude.assume_level:
            return None
        if attitude.R_world_imu is None:
            problems.append(attitude.problem)
            return None
        if attitude.imu_link != self._imu_link:
            self._find_imu(attitude.imu_link)
        if self._imu_problem:
            problems.append(self._imu_problem)
            return None
        R_root_imu = self._imu_frame.poses(q)[0][0]
        return np.asarray(-(R_root_imu @ attitude.R_world_imu[2]))

    def _find_imu(self, link: str) -> None:
        """Look for the IMU's link; once, because the search for what was meant takes long."""
        self._imu_link, self._imu_problem = link, ""
        try:
            self._imu_frame = LinkFrames(self.model, [link])
        except UnknownNameError as error:
            self._imu_problem = f"frame of the imu: {error}; set the parameter imu_link"

    def _support(
        self,
        q: Array,
        com: Array,
        gravity: Array | None,
        assume_level: bool,
        forces: Array | None,
        problems: list[str],
    ) -> _Support:
        """Ground, projection and margin; what stops them is added to `problems`."""
        if not self._n_feet:
            down = -UP if assume_level else gravity
            if down is None:
                return _Support()
            return _Support(down, Ground.ROOT, com - (down @ com) * down)
        known = _Support() if gravity is None else _Support(gravity)
        up = UP if gravity is None else -gravity
        stance = self._feet.stand(*self._foot_frames.poses(q), up, forces)
        if stance is None:
            problems.append("no foot is in contact: there is no ground to project onto")
            return known
        contacts = tuple(compress(self._feet.names, stance.contact))
        down = -stance.normal if assume_level else gravity
        if down is None:
            return replace(known, contacts=contacts)
        fallen = stance.fall(com, down)
        if fallen is None:
            problems.append(
                "gravity does not point into the ground under the feet: check how the imu is "
                "mounted (imu_link) and its orientation"
            )
            return replace(known, contacts=contacts)
        projection, margin = fallen
        return _Support(down, Ground.FEET, projection, margin, contacts, stance)
