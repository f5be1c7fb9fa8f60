"""Readings of a stationary robot: measured, or predicted by statics."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import PostureError
from com_identification.regression.statics import Poses, Statics
from com_identification.settings import SensorPriors
from com_model import Foot, RobotModel
from com_model.arrays import Array, Flags, FrozenArrays, as_array, freeze
from com_model.contact import CONTACT_LOAD, SUPPORT_LOAD
from com_model.geometry.rotations import skew
from com_model.robot_config import wrench_signs


@dataclass(frozen=True, eq=False)
class ComConstraint:
    """A linear constraint on the CoM: normal . (CoM - origin of the link) = offset.

    For instance the CoM is above an edge over which the robot is about to tip, or one component
    of it is known. The normal must be constant in the link: for a sole on horizontal ground,
    horizontal directions and the vertical are.

    Attributes:
        link: name of the link, often a sole frame.
        normal: (3,) unit vector in the link's axes.
        offset: m.
        std: m, standard deviation of the offset.
    """

    link: str
    normal: Array
    offset: float
    std: float

    def __post_init__(self) -> None:
        normal = as_array("normal", self.normal, (3,))
        if not abs(float(normal @ normal) - 1.0) < 1e-6:
            raise PostureError(
                f"the normal {normal} of a constraint is not a unit vector"
            )
        if not (np.isfinite(self.offset) and self.std > 0.0):
            raise PostureError(
                f"expected a finite offset and a std above 0 of a constraint, got {self.offset} "
                f"m, {self.std} m"
            )
        object.__setattr__(self, "normal", normal)
        freeze(self)


@dataclass(frozen=True, eq=False)
class Posture(FrozenArrays):
    """Readings of a stationary robot; means of `samples` readings.

    Attributes:
        q: (n,) rad or m, joint positions by the encoders.
        wrenches: (f, 6) force N and moment N m of each foot's sensor, in its frame and with
            its sign; about 0 of a foot in the air, NaN of one without reading; (0, 6)
            without sensors.
        effort: (n,) N m or N that the actuators apply; NaN where not known.
        up: (3,) unit vector against gravity in root axes, by the IMU; NaN: the ground is
            horizontal, and the soles of the loaded feet give the direction.
        constraints: what else is known of the CoM.
        samples: number of readings behind the means.
        label: a name, for messages.
        noise: (6 f + n, k) standard deviations of errors of these readings alone, k of them:
            how each changes the wrenches (N, N m) and q (rad or m); of what a sensor does
            not measure large ones.
    """

    q: Array
    wrenches: Array
    effort: Array
    up: Array
    constraints: tuple[ComConstraint, ...] = ()
    samples: int = 1
    label: str = ""
    noise: Array = field(default_factory=lambda: np.zeros((0, 0)))


def make_posture(
    model: RobotModel,
    q: ArrayLike,
    wrenches: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    up: ArrayLike | None = None,
    constraints: tuple[ComConstraint, ...] = (),
    samples: int = 1,
    label: str = "",
    noise: ArrayLike | None = None,
) -> Posture:
    """Checks readings and makes a Posture of them; None: not known.

    Args:
        model: the robot, n joints.
        q: (n,) rad or m.
        wrenches: (f, 6) N and N m of each foot's sensor, in its frame; NaN without reading.
        effort: (n,) N m or N; NaN where not known.
        up: (3,) unit vector against gravity in root axes, by the IMU.
        constraints: additional knowledge of the CoM.
        samples: number of readings that were averaged.
        label: name of the posture, for messages.
        noise: (6 f + n, k) standard deviations of k errors of these readings alone.

    Raises:
        ShapeError: an array has the wrong shape.
        PostureError: q is not finite, up is no unit vector, samples is below 1, or noise is not
            finite.
    """
    q = model.check_q(q)
    n = model.n_joints
    if not np.isfinite(q).all():
        bad = [model.joint_names[i] for i in np.flatnonzero(~np.isfinite(q))]
        raise PostureError(
            f"no position of {', '.join(bad)}: every joint's position is needed"
        )
    if not samples >= 1:
        raise PostureError(f"samples: expected 1 or more, got {samples}")
    direction = np.full(3, np.nan) if up is None else as_array("up", up, (3,))
    if (
        np.isfinite(direction).any()
        and not abs(float(np.linalg.norm(direction)) - 1.0) < 1e-6
    ):
        raise PostureError(f"up is not a unit vector: {direction}")
    forces = (
        np.zeros((0, 6))
        if wrenches is None
        else as_array("wrenches", wrenches, (None, 6))
    )
    rows = forces.size + n
    errors = (
        np.zeros((rows, 0)) if noise is None else as_array("noise", noise, (rows, None))
    )
    if not np.isfinite(errors).all():
        raise PostureError("noise: expected finite numbers")
    return Posture(
        q=q,
        wrenches=forces,
        effort=np.full(n, np.nan)
        if effort is None
        else as_array("effort", effort, (n,)),
        up=direction,
        constraints=tuple(constraints),
        samples=int(samples),
        label=label,
        noise=errors,
    )


def wrench_transform(R: Array, p: Array) -> Array:
    """Returns the (6, 6) matrix that maps wrenches to other axes and another origin.

    Args:
        R: (3, 3) R_ab, from the wrench's axes b to the new axes a.
        p: (3,) p_ab, m, origin of the wrench in the new axes.
    """
    X = np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = R
    X[3:, :3] = skew(p) @ R
    return X


def sole_to_reading(model: RobotModel, foot: Foot) -> Array:
    """Returns the (6, 6) map from the ground's wrench in the sole's frame to the reading.

    Args:
        model: the robot.
        foot: with its sole's and its sensor's frame.

    Raises:
        PostureError: a joint lies between them.
    """
    links = [model.link_index(name) for name in (foot.frame, foot.wrench_frame)]
    bodies = model.bodies
    if bodies.body_of_link[links[0]] != bodies.body_of_link[links[1]]:
        raise PostureError(f"a joint lies between {foot.frame} and {foot.wrench_frame}")
    (R, R_s), (p, p_s) = bodies.R_body_link[links], bodies.p_body_link[links]
    return foot.wrench_sign * wrench_transform(R_s.T @ R, R_s.T @ (p - p_s))


class SensorPrediction:
    """Predicts foot wrenches and joint efforts of static postures.

    Where several feet are in contact, statics alone do not determine their wrenches: those of
    least norm are used, with moments divided by a lever of 0.05 m.

    Args:
        statics: of the robot.
        feet: its f feet.
        parameters: (4 B,) masses (kg) and first moments (kg m).
        gravity: m/s^2.
    """

    def __init__(
        self, statics: Statics, feet: Sequence[Foot], parameters: Array, gravity: float
    ) -> None:
        self.statics, self.feet = statics, tuple(feet)
        self._parameters, self._gravity = parameters, gravity
        self._links = [statics.model.link_index(foot.wrench_frame) for foot in feet]
        self._signs = wrench_signs(feet)

    def wrenches_and_efforts(
        self, poses: Poses, up: Array, stand: tuple[int, ...]
    ) -> tuple[Array, Array]:
        """Returns the ground's wrenches on the feet and the joint efforts.

        Of all wrenches W with sum of G_i W_i = w, the one with the least |S^-1 W|:
          W = S^2 G^T (G S^2 G^T)^-1 w,  S = diag(1 N, lever N m)

        Args:
            poses: of N postures.
            up: (N, 3) unit vectors against gravity in root axes.
            stand: indices of the feet in contact.

        Returns:
            (N, f, 6) N and N m in the sensors' axes, and (N, n) N m or N.
        """
        a = self._gravity * up
        wrench, torque = self.statics.wrench_and_torques(poses, a, self._parameters)
        root, joints = self.statics.contact_maps(poses, self._links)
        # 0.05 m, about half a sole, weighs moments against forces
        scale = np.repeat([1.0, 0.05], 3) ** 2
        maps = root[:, list(stand)]  # (N, s, 6, 6)
        weighted = scale[:, None] * maps.transpose(0, 1, 3, 2)
        factors = np.linalg.solve((maps @ weighted).sum(axis=1), wrench[..., None])
        wrenches = np.zeros((len(up), len(self.feet), 6))
        wrenches[:, list(stand)] = (weighted @ factors[:, None])[..., 0]
        return wrenches, torque - np.einsum("nfij,nfj->ni", joints, wrenches)

    def posture(
        self, q: Array, up: Array, stand: tuple[int, ...], efforts: bool, samples: int
    ) -> Posture:
        """Returns the readings of a posture, without noise.

        With point feet the IMU's direction is among them, as these do not show the direction of
        gravity.

        Args:
            q: (n,) rad or m.
            up: (3,) unit vector against gravity in root axes.
            stand: indices of the feet in contact.
            efforts: whether efforts are measured.
            samples: number of readings that are averaged.
        """
        poses = self.statics.poses(q[None])
        wrenches, effort = self.wrenches_and_efforts(poses, up[None], stand)
        return make_posture(
            self.statics.model,
            q,
            self._signs * wrenches[0],
            effort[0] if efforts else None,
            None if any(len(self.feet[i].corners) for i in stand) else up,
            samples=samples,
        )


class FootContacts:
    """Which of a robot's f feet are in contact, by their forces and the kinematics.

    Args:
        statics: of the robot.
        feet: its feet.
        priors: errors of the sensors; the floor's slope is one of them.
        weight: N, of the robot by its URDF.
        lever: m, half a sole.
    """

    def __init__(
        self,
        statics: Statics,
        feet: Sequence[Foot],
        priors: SensorPriors,
        weight: float,
        lever: float,
    ) -> None:
        self._statics, self._feet, self._priors = statics, tuple(feet), priors
        self._weight, self._lever = weight, lever
        self._soles = [statics.model.link_index(foot.frame) for foot in feet]
        self._on_floor: WeakKeyDictionary[Posture, bool] = WeakKeyDictionary()
        self._corners = np.array(
            [len(foot.corners) > 0 for foot in feet], dtype=np.bool_
        )

    def loaded(self, wrenches: Array) -> Flags:
        """Returns which feet carry more than a tenth of the sum of all forces, (f,).

        Args:
            wrenches: (f, 6) N and N m, in any axes; NaN counts as 0.
        """
        if not len(wrenches):
            return np.zeros(len(self._feet), dtype=np.bool_)
        force = np.linalg.norm(np.nan_to_num(wrenches[:, :3]), axis=1)
        return np.asarray(force > CONTACT_LOAD * max(float(force.sum()), 1e-9))

    def flat(self, posture: Posture) -> Flags:
        """Returns which feet are in contact with a flat sole, (f,).

        Args:
            posture: readings.
        """
        return self.loaded(posture.wrenches) & self._corners

    def on_floor(self, posture: Posture) -> bool:
        """Returns whether the loaded soles are on the floor: horizontal up to its slope.

        Args:
            posture: readings; without the IMU's direction a flat sole in contact suffices.
        """
        if posture not in self._on_floor:
            self._on_floor[posture] = self._stands_flat(posture)
        return self._on_floor[posture]

    def _stands_flat(self, posture: Posture) -> bool:
        flat = self.flat(posture)
        if not flat.any() or not np.isfinite(posture.up).all():
            return bool(flat.any())
        poses = self._statics.poses(posture.q[None])
        R, _ = self._statics.link_frames(
            poses, [self._soles[i] for i in np.flatnonzero(flat)]
        )
        normal = R[0, :, :, 2].sum(axis=0)
        sine = np.linalg.norm(np.cross(normal, posture.up)) / np.linalg.norm(normal)
        # soles tilted by five standard deviations against the IMU are not on the floor
        return bool(self._priors.slope > 0.0 and sine < 5.0 * self._priors.slope)

    def carries(self, posture: Posture) -> bool:
        """Returns whether the feet carry the robot.

        If not, it hangs, and the force sensors show their biases.

        Args:
            posture: readings.
        """
        force = np.nan_to_num(posture.wrenches)[:, :3].sum(axis=0)
        return bool(np.linalg.norm(force) > SUPPORT_LOAD * self._weight)

    def in_air(self, posture: Posture) -> Flags:
        """Returns which feet are certainly in the air, (f,).

        Args:
            posture: readings.
        """
        f = len(self._feet)
        if not len(posture.wrenches) or not self._priors.force_bias:
            return np.zeros(f, dtype=np.bool_)
        known = np.isfinite(posture.wrenches).all(axis=1)
        if not self.carries(posture):
            return np.asarray(known)
        flat, loaded = self.flat(posture), self.loaded(posture.wrenches)
        if not flat.any():
            return np.zeros(f, dtype=np.bool_)
        poses = self._statics.poses(posture.q[None])
        R, p = (array[0] for array in self._statics.link_frames(poses, self._soles))
        first = int(np.argmax(flat))
        lowest = np.full(f, np.inf)
        for i, foot in enumerate(self._feet):
            corners = foot.corners if len(foot.corners) else np.zeros((1, 2))
            points = p[i] + corners @ R[i, :, :2].T
            lowest[i] = ((points - p[first]) @ R[first, :, 2]).min()
        # a foot that is higher by a quarter of half a sole is in the air
        return np.asarray(known & ~loaded & (lowest > 0.25 * self._lever))
