"""Converts a result from walking to a record of the robot."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from com_bags import Bag, is_table
from com_identification.health.records import Record, hash_files
from com_identification.regression.result import by_body
from com_identification.walking.identify import WalkResult
from com_identification.walking.kernels import BODY, IMU
from com_identification.walking.unknowns import KINDS

_OF_IMU = {"accelerometer_bias": slice(-IMU, -3), "imu_mounting": slice(-3, None)}


def walk_record(
    result: WalkResult, bags: Sequence[str | Path], serial: str, source: str
) -> Record:
    """Returns the record of a result from the recordings in bags.

    Of the bodies masses and first moments t, with the covariance T C T^T, t = T z to first order;
    friction, armature, gain, torque bias and encoder bias of each joint and the IMU's errors as
    those of sensors.

    Args:
        result: of the walk.
        bags: the recordings.
        serial: serial number of the robot.
        source: "bag" or "node".
    """
    u, z, C, C_0 = (
        result.unknowns,
        result.z,
        result.covariance,
        np.diag(result.unknowns.std**2),
    )
    shared = (
        BODY * np.arange(result.model.bodies.count)[:, None] + np.arange(4)
    ).ravel()
    T, T_0 = (u.jacobian(point)[shared] for point in (z, u.mean))
    prior = by_body(u.theta(u.mean)[:, :4].ravel(), T_0 @ C_0 @ T_0.T)
    sensors = {}
    for kind in KINDS:
        values = u.joints(z, kind), u.joint_stds(C, kind), u.joint_stds(C_0, kind)
        sensors[kind] = dict(
            zip(result.model.joint_names, zip(*values, strict=True), strict=True)
        )
    for kind, part in _OF_IMU.items():
        values = z[part], np.sqrt(np.diag(C)[part]), u.std[part]
        sensors[kind] = dict(zip("xyz", zip(*values, strict=True), strict=True))
    return Record.from_model(
        result.model,
        min(map(_begin_ns, bags)),
        serial=serial,
        source=source,
        path=", ".join(map(str, bags)),
        data_hash="".join(map(hash_files, bags)),
        bodies=tuple(result.model.bodies.names),
        parameters=result.theta[:, :4].ravel(),
        covariance=T @ C @ T.T,
        prior_mass=prior[0],
        prior_com=prior[1],
        prior_mass_std=prior[2],
        prior_com_std=np.nan_to_num(prior[3]),
        total_mass=result.total_mass,
        mass_on_feet=None,
        sensors=sensors,
        issues=tuple(
            f"{gate.name}: {gate.text}" for gate in result.gates if not gate.passed
        ),
    )


def _begin_ns(path: str | Path) -> int:
    """When a recording begins, ns since 1970; of a table when it was written."""
    if is_table(path):
        return Path(path).stat().st_mtime_ns
    with Bag(path) as bag:
        return next(bag.messages([topic.name for topic in bag.topics()]))[1]
