"""What is known of the CoM directly: its position, an edge of tipping, the estimate of a walk.

A table or a test gives the position or an edge over which the robot tipped. A walk on foot force
sensors gives an offset, either by the diagnosis of the moving robot, or by the walk's stabiliser:
both are estimated from the same wrenches, so that only one of them is used, once.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from rosbags.interfaces import Connection
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from com_bags import Bag, BagError
from com_bags.decoding import foreign_types
from com_identification.regression.postures import ComConstraint, Posture, make_posture
from com_identification.settings import SensorNoise, SensorPriors
from com_model import Foot, RobotModel, Sesc
from com_model.arrays import Array
from com_model.dynamics.kinematics import link_pose
from com_model.strict_yaml import Section

Channel = Callable[[Any, Section, str], Array]
"""Reads a channel (N,) from its value, the section that contains it, and its key."""


class ComEvidence:
    """Constraints on the CoM of each row of a table.

    com: {link, x, y, z, std} is the CoM of the whole robot in a link's frame, e.g. by another
    method: with it [Muscolo]'s second formulation needs no force. tip_over: {link, edge_x,
    edge_y, direction, tilt, std} is a robot about to fall over the edge of its sole through
    (edge_x, edge_y) m along e = (cos, sin, 0) of `direction`, the outside o = e x z to its right,
    where the ground slopes down by `tilt`:

      (cos(tilt) o + sin(tilt) z) . (CoM - edge) = 0

    An empty cell is no constraint.

    Args:
        mapping: of the table, with the sections com and tip_over.
        channel: reads a channel of the table.
        model: the robot.

    Attributes:
        known: link, CoM (N, 3) m in its frame, standard deviation m; None without `com`.

    Raises:
        ConfigError: a key is missing or wrong.
    """

    def __init__(self, mapping: Section, channel: Channel, model: RobotModel) -> None:
        self._rows: list[
            tuple[str, Array, Array, float]
        ] = []  # link, normals, offsets, std
        self.known: tuple[str, Array, float] | None = None  # link, CoM (N, 3) m, std m
        for key in ("com", "tip_over"):
            if mapping.raw(key) is None:
                continue
            section = mapping.section(key)
            link = section.text("link", model.root_link, model.link_names)
            std = section.number("std", SensorNoise().known_com, 1e-6)
            if key == "com":
                com = self._com(section, channel)
                self.known = link, com, std
                pairs = [
                    (np.tile(np.eye(3)[k], (len(com), 1)), com[:, k]) for k in range(3)
                ]
            else:
                values = (
                    channel(section.raw(name), section, name)
                    for name in ("edge_x", "edge_y", "direction", "tilt")
                )
                pairs = [tip_over_planes(section, "tilt", *values)]
            self._rows += [(link, *pair, std) for pair in pairs]
            section.finish()

    def __bool__(self) -> bool:
        return bool(self._rows)

    def constraints(self, row: int) -> tuple[ComConstraint, ...]:
        """Returns the constraints of a row.

        Args:
            row: its index.
        """
        return tuple(
            ComConstraint(link, normals[row], float(offsets[row]), std)
            for link, normals, offsets, std in self._rows
            if np.isfinite(offsets[row])
        )

    def _com(self, section: Section, channel: Channel) -> Array:
        """(N, 3) m, NaN of components that are not given."""
        given = [
            (axis, key)
            for axis, key in enumerate("xyz")
            if section.raw(key) is not None
        ]
        if not given:
            raise section.error("expected x, y or z: the column of the CoM")
        places = {axis: channel(section.raw(key), section, key) for axis, key in given}
        unknown = np.full(len(next(iter(places.values()))), np.nan)
        return np.column_stack([places.get(axis, unknown) for axis in range(3)])


def tip_over_planes(
    section: Section, key: str, x: Array, y: Array, direction: Array, tilt: Array
) -> tuple[Array, Array]:
    """Returns the normals (N, 3) and offsets (N,) m of the planes of ComEvidence through edges.

    Args:
        section: of the mapping, for messages.
        key: of the tilt, for messages.
        x: (N,) m, of a point of the edge in the link's frame.
        y: (N,) m, of that point.
        direction: (N,) rad, of the edge about z.
        tilt: (N,) rad, by which the ground slopes down outside of the edge.

    Raises:
        ConfigError: a tilt is larger than 1.2 rad.
    """
    steepest = 1.2  # rad, of a ramp
    if (np.abs(tilt[np.isfinite(tilt)]) > steepest).any():
        text = f"is more than {steepest} rad: correct its unit, or the column"
        raise section.error(f"a tilt {text}" if key != "tilt" else text, key)
    c, s = np.cos(tilt), np.sin(tilt)
    normals = np.column_stack((c * np.sin(direction), -c * np.cos(direction), s))
    return normals, normals[:, 0] * x + normals[:, 1] * y


DIAGNOSIS, WALK_STATE = "com_msgs/msg/CentroidalDiagnosis", "com_msgs/msg/WalkState"
KINDS = {
    DIAGNOSIS: "covariance",
    WALK_STATE: "com_offset_std",
}  # finite where the CoM is known


def walk_posture(
    model: RobotModel,
    feet: Sequence[Foot],
    rest: Array,
    sensors: SensorPriors,
    msg: Any,
) -> Posture | None:
    """Makes a posture at rest, about as the robot walks, with the CoM of a message.

    With the offset b from the model's CoM c, along unit vectors e_k in root axes,

      e_k . CoM = e_k . c + b_k

    they are the axes of the covariance of a diagnosis; of the stabiliser, by the soles, forwards
    and to the left. Then std^2 = com_offset_std^2 + (h tilt)^2 + moment_bias^2, h being the CoM's
    height over the soles: a tilted IMU and biases of moments look like an offset. b is the
    model's error where the robot walked; at rest it differs in second order.

    Args:
        model: the robot.
        feet: its feet.
        rest: (n,) rad or m, about as it walks.
        sensors: errors of the sensors.
        msg: a CentroidalDiagnosis or a WalkState, of ROS or as read from a bag.

    Returns:
        None where the message contains no CoM, or an offset of 0.5 m or more.
    """
    com = Sesc(model).com(rest)
    if hasattr(msg, "com_offset"):
        poses = [link_pose(model, rest, foot.frame) for foot in feet]
        R, sole = (np.mean([pose[i] for pose in poses], axis=0) for i in range(2))
        up, left = R[:, 2] / np.linalg.norm(R[:, 2]), np.cross(R[:, 2], R[:, 0])
        left /= np.linalg.norm(left)
        axes, offset = np.array([np.cross(left, up), left]), np.array(msg.com_offset)
        own = np.hypot((com - sole) @ up * sensors.tilt, sensors.moment_bias)
        std, source = np.hypot(msg.com_offset_std, own), "stabiliser"
    else:
        vector, source = msg.com_correction, "diagnosis"
        variances, axes = np.linalg.eigh(np.nan_to_num(msg.covariance).reshape(3, 3))
        axes, std = axes.T, np.sqrt(np.maximum(variances, 1e-12))
        offset = axes @ [vector.x, vector.y, vector.z]
    known = [
        getattr(msg, KINDS[DIAGNOSIS if source == "diagnosis" else WALK_STATE]),
        std,
    ]
    # an offset of half a metre or more is none
    if not ((np.abs(offset) < 0.5).all() and np.isfinite(np.concatenate(known)).all()):
        return None
    limits = map(
        ComConstraint, [model.root_link] * len(std), axes, axes @ com + offset, std
    )
    return make_posture(
        model,
        rest,
        constraints=tuple(limits),
        label=f"CoM of the {source} while walking",
    )


def newest_message(bags: Sequence[str]) -> Any:
    """Returns the newest message that contains the CoM: of a diagnosis, else of a stabiliser.

    Args:
        bags: paths.

    Raises:
        BagError: there is none.
    """
    newest: dict[str, Any] = {}
    for path in bags:
        with Bag(path) as bag:
            own = {c.topic: _store(c) for c in bag.connections if c.msgtype in KINDS}
            for connection, _, payload in bag.messages(list(own)) if own else ():
                kind, store = connection.msgtype, own[connection.topic]
                with suppress(
                    Exception
                ):  # rosbags raises many types for damaged messages
                    message = store.deserialize_cdr(payload, kind) if store else None
                    if np.isfinite(getattr(message, KINDS[kind])).all():
                        newest[kind] = message
    for kind in KINDS:
        if kind in newest:
            return newest[kind]
    raise BagError(
        f"no {DIAGNOSIS} with a CoM, and no {WALK_STATE} with its offset: record diagnosis, or "
        "gait/state of ccgd_gait with stabiliser:=true, or leave out --use-diagnosis",
        ", ".join(bags) or "--use-diagnosis",
    )


def _store(connection: Connection) -> Typestore | None:
    """What reads a connection's messages by the bag's definitions; None where it has none."""
    types = foreign_types(connection)
    if types is None:
        return None
    store = get_typestore(Stores.EMPTY)
    store.register(dict(types))
    return store
