"""The centre of mass of a standing robot, its projection and margin: arrays in, ComState out.

Without ROS: the node sesc_publisher and offline tools use the same object.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress
from typing import NamedTuple

import numpy as np

from com_estimation.whole_body.stance import (
    STEEPEST,
    UNKNOWN_FORCES,
    Feet,
    FeetPoints,
    Stance,
    Thresholds,
    fall,
    stand,
)
from com_model import Foot, RobotModel, Sesc, Status, SupportPolygon, UnknownNameError
from com_model.arrays import Array, Flags, as_array
from com_model.compiled import compiled, entry_point
from com_model.dynamics.link_frames import Frames, LinkFrames, set_link_poses
from com_model.geometry.vector_kernels import dot, turned
from com_model.sesc.kernels import find_jacobian, keep_root
from com_model.sesc.sesc import pack

NOWHERE = np.full(3, np.nan)
NOWHERE.setflags(write=False)


class Ground(IntEnum):
    """The plane that the CoM was projected onto; values of com_msgs/CenterOfMass.

    Attributes:
        UNKNOWN: there is no projection.
        ROOT: through the root link's origin, perpendicular to gravity.
        FEET: the ground under the feet in contact.
    """

    UNKNOWN = 0
    ROOT = 1
    FEET = 2


class ComState(NamedTuple):
    """CoM of a robot; vectors in the frame of the root link, NaN where unknown.

    Attributes:
        status: OK, DEGRADED or UNKNOWN.
        reason: why the status is not OK.
        mass: kg, of the model.
        position: (3,) m.
        velocity: (3,) m/s, relative to the root link.
        gravity: (3,) unit vector, downwards.
        ground: the plane of the projection.
        projection: (3,) m, where the vertical through the CoM meets the ground.
        margin: m, signed distance of the projection to the support polygon's edge, positive
            inside.
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
        """The convex hull of the contact points, projected vertically.

        Returns:
            The polygon, in the frame of the root link; None without ground or feet.
        """
        if self.stance is None:
            return None
        return SupportPolygon.from_points(
            self.stance.points, self.stance.normal, self.gravity
        )


@dataclass(frozen=True, eq=False)
class Attitude:
    """Direction of gravity, from an IMU or assumed.

    Attributes:
        assume_level: the ground is assumed horizontal (no IMU is used).
        R_world_imu: (3, 3) orientation of the IMU, world z up; None when unknown.
        imu_link: link that carries the IMU.
        problem: why R_world_imu is None.
    """

    assume_level: bool
    R_world_imu: Array | None = None
    imu_link: str = ""
    problem: str = ""


LEVEL = Attitude(assume_level=True)


def unknown_state(reason: str, mass: float = float("nan")) -> ComState:
    """A state with the status UNKNOWN: every number except the mass is NaN.

    Args:
        reason: why nothing is known, and how to fix it.
        mass: kg, of the model; NaN when there is no model either.
    """
    return ComState(
        Status.UNKNOWN,
        reason,
        mass,
        NOWHERE,
        NOWHERE,
        NOWHERE,
        Ground.UNKNOWN,
        NOWHERE,
        np.nan,
    )


# What observe() returns: the ground, or why there is none.
UNKNOWN, ROOT, FEET = map(int, Ground)
NO_CONTACT, TILTED, NOT_FINITE = 3, 4, 5
GROUNDS = (*Ground, Ground.UNKNOWN, Ground.UNKNOWN)  # by what observe returns
PROBLEMS = {
    NO_CONTACT: "no foot is in contact: there is no ground to project onto",
    TILTED: "gravity does not point into the ground under the feet: check how the imu is "
    "mounted (imu_link) and its orientation",
}
UNKNOWN_ROTATION = np.full((3, 3), np.nan)


class Body(NamedTuple):
    """A robot for observe().

    Attributes:
        chain: its SESC, packed by com_model.sesc.
        frames: of the links of Feet.links, and that of the IMU's link as the last.
        feet: its f feet as points.
    """

    chain: Array
    frames: Frames
    feet: FeetPoints


class Given(NamedTuple):
    """Measurements for observe().

    Attributes:
        level: the ground is assumed horizontal.
        R_world_imu: (3, 3); NaN when unknown.
        forces: (f, 3) N of the ground on the feet, in the sensors' frames; (0, 3) when unknown.
    """

    level: bool
    R_world_imu: Array
    forces: Array


class Results(NamedTuple):
    """Results of observe(), root frame.

    Attributes:
        vectors: (6, 3) CoM m, velocity m/s, gravity, projection m, normal of the ground; the
            last row has the margin, m, and the number of contact points.
        jacobian: (3, n) m/rad or m/m.
        contact: (f,) feet in contact.
        points: (P, 3) m, the contact points in its first rows.
    """

    vectors: Array
    jacobian: Array
    contact: Flags
    points: Array


class ComObserver:
    """Computes the ComState of one robot from joints, IMU and foot forces.

    CoM and Jacobian come from the SESC. The ground is the plane of the soles in contact, or
    without feet the plane through the root link's origin perpendicular to gravity. Gravity is
    measured by the IMU; if the ground is assumed horizontal, it is against the ground's normal,
    and without feet against z of the root link.

    Args:
        model: the robot.
        feet: f feet; none: no contacts, no margin.
        contact_tolerance: m, see stance.Feet.
        contact_force: N, see stance.Feet.

    Attributes:
        model: as given.
        sesc: chain of the model.

    Raises:
        UnknownNameError: the frame of a foot is no link of the model.
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
        self._feet = Feet(feet, contact_tolerance, contact_force)
        self._chain, self._n_joints = pack(model.bodies), model.n_joints
        self._forces_shape = len(self._feet.names), 3
        self._imu_link, self._imu_problem = model.root_link, ""
        self._body = self._locate(model.root_link)
        q = np.empty(model.n_joints)
        given, results = (
            Given(True, UNKNOWN_ROTATION, UNKNOWN_FORCES),
            self._make_results(),
        )
        self._observe = entry_point(
            observe, q, q, self._body, self._feet.thresholds, given, results
        )

    def set_contact_thresholds(self, tolerance: float, force: float) -> None:
        """Changes the thresholds of contact, from the next sample on.

        Args:
            tolerance: m, height above the lowest point of all feet up to which a foot is in
                contact; used where no forces are known.
            force: N, normal to the sole (of a point foot: magnitude), from which a foot is in
                contact.
        """
        self._feet.thresholds = Thresholds(float(force), float(tolerance))

    def update(
        self,
        q: Array,
        qd: Array,
        attitude: Attitude = LEVEL,
        forces: Array | None = None,
        warnings: Sequence[str] = (),
    ) -> ComState:
        """Computes the state at one sample.

        Args:
            q: (n,) joint positions, rad or m.
            qd: (n,) joint velocities, rad/s or m/s; NaN where unknown.
            attitude: direction of gravity.
            forces: (f, 3) N, of the ground on the feet, each in its wrench frame; None when
                unknown: contacts then follow from the feet's poses.
            warnings: problems known to the caller; they degrade the state.

        Returns:
            The state: OK, DEGRADED with the reasons, or UNKNOWN when q is not finite.

        Raises:
            ComModelError: q, qd or forces have a wrong shape.
        """
        q, qd = self._vector("q", q), self._vector("qd", qd)
        problem = "" if attitude.assume_level else self._find_imu(attitude)
        given = self._given(attitude, problem, forces)
        results = self._make_results()
        found = self._observe(q, qd, self._body, self._feet.thresholds, given, results)
        if found == NOT_FINITE:
            return unknown_state("joint positions are not finite", self.model.mass)
        why = ""
        if warnings or problem or found in PROBLEMS:
            why = "; ".join(filter(None, (*warnings, problem, PROBLEMS.get(found))))
        com, velocity, gravity, projection, normal, numbers = results.vectors
        margin, count, _ = numbers.tolist()
        stance = None
        if found == FEET:
            stance = Stance(results.contact, results.points[: int(count)], normal)
        return ComState(
            Status.DEGRADED if why else Status.OK,
            why,
            self.model.mass,
            com,
            velocity,
            gravity,
            GROUNDS[found],
            projection,
            margin,
            tuple(compress(self._feet.names, results.contact)),
            results.jacobian,
            q,
            stance,
        )

    def _make_results(self) -> Results:
        """Allocates the arrays of one state."""
        contact = np.empty(len(self._feet.names), dtype=np.bool_)
        points = np.empty((len(self._feet.points.owner), 3))
        return Results(np.empty((6, 3)), np.empty((3, self._n_joints)), contact, points)

    def _vector(self, name: str, values: Array) -> Array:
        if getattr(values, "shape", None) != (self._n_joints,):
            return self.model.check_q(values, name)  # raises, and lists the joints
        return np.ascontiguousarray(values, dtype=np.float64)

    def _given(self, attitude: Attitude, problem: str, forces: Array | None) -> Given:
        level, rotation, shape = (
            attitude.assume_level,
            attitude.R_world_imu,
            self._forces_shape,
        )
        if problem or level or rotation is None:
            rotation = UNKNOWN_ROTATION
        if forces is None:
            return Given(level, rotation, UNKNOWN_FORCES)
        if np.shape(forces) != shape:
            as_array("forces", forces, shape)  # raises
        return Given(level, rotation, np.ascontiguousarray(forces, dtype=np.float64))

    def _find_imu(self, attitude: Attitude) -> str:
        """Returns why the IMU does not show gravity, or ""; looks up its link when that changes."""
        if attitude.R_world_imu is None:
            return attitude.problem
        if attitude.imu_link != self._imu_link:
            self._imu_link, self._imu_problem = attitude.imu_link, ""
            try:
                self._body = self._locate(attitude.imu_link)
            except UnknownNameError as error:
                self._imu_problem = (
                    f"frame of the imu: {error}; set the parameter imu_link"
                )
        return self._imu_problem

    def _locate(self, imu_link: str) -> Body:
        frames = LinkFrames(self.model, [*self._feet.links, imu_link]).frames
        return Body(self._chain, frames, self._feet.points)


@compiled()
def observe(
    q: Array,
    qd: Array,
    body: Body,
    thresholds: Thresholds,
    given: Given,
    results: Results,
) -> int:
    """Computes CoM, Jacobian, velocity, gravity, ground, projection and margin.

    With R the rotation from the IMU's axes to the root's, gravity is -R R_world_imu^T e_z. See
    ComObserver.

    Args:
        q: (n,) joint positions, rad or m.
        qd: (n,) joint velocities, rad/s or m/s; NaN where unknown.
        body: the robot's chain, the frames of feet and IMU, the feet's points.
        thresholds: of contact.
        given: measurements in addition to the joints.
        results: set; NaN where unknown.

    Returns:
        The ground, UNKNOWN, ROOT or FEET, or why there is none: NO_CONTACT, TILTED, NOT_FINITE.
    """
    chain, frames, feet = body
    vectors, contact, count = results.vectors, results.contact, feet.sole.size
    vectors[:] = np.nan
    contact[:] = False
    if not np.isfinite(q.sum()):
        return NOT_FINITE
    com, gravity, projection, normal = vectors[0], vectors[2], vectors[3], vectors[4]
    keep_root(chain)
    find_jacobian(q, chain, com, results.jacobian)
    if np.isfinite(qd.sum()):
        for i in range(3):  # a call of BLAS takes longer
            vectors[1, i] = (results.jacobian[i] * qd).sum()
    R, p = np.empty((frames.body.size, 3, 3)), np.empty((frames.body.size, 3))
    set_link_poses(q, frames, R, p)
    measured = given.R_world_imu[2]
    known = given.level or measured[0] == measured[0]
    down = np.array((0.0, 0.0, -1.0))
    if known and not given.level:
        up = turned(R[-1], measured)
        down[0], down[1], down[2] = -up[0], -up[1], -up[2]
        gravity[:] = down
    if count == 0:
        if not known:
            return UNKNOWN
        gravity[:], projection[:] = down, com - dot(down, com) * down
        return ROOT
    stance = Stance(contact, results.points, normal)
    touching = stand(R, p, -down, given.forces, feet, thresholds, stance)
    if touching == 0:
        return NO_CONTACT
    if not known:
        return UNKNOWN
    if given.level:
        down[:] = -normal
    if not -dot(down, normal) >= STEEPEST:  # also when gravity is NaN
        return TILTED
    vectors[5, 0] = fall(results.points[:touching], normal, down, com, projection)
    vectors[5, 1] = touching
    gravity[:] = down
    return FEET
