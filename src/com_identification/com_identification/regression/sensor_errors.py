"""The sensors' constant errors, by kind and name, with priors scaled to the robot."""

from collections.abc import Mapping, Sequence

import numpy as np

from com_identification.settings import SensorPriors
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.geometry.rotations import skew

_POINT = 0.05  # m, half a sole where none is known
_PRISMATIC_SCALE = 0.1  # m/rad
_AXES = ("fx", "fy", "fz", "mx", "my", "mz")
_OTHER = ~np.eye(6, dtype=np.bool_)


class SensorErrors:
    """Which entry of a vector of S constant errors is which, and its prior standard deviation."""

    def __init__(
        self, model: RobotModel, feet: Sequence[Foot], priors: SensorPriors, gravity: float
    ) -> None:
        weight = gravity * model.mass
        corners = [np.ptp(foot.corners, axis=0).max() / 2.0 for foot in feet if len(foot.corners)]
        self.lever = lever = float(np.mean(corners)) if corners else _POINT
        self.priors, self.weight = priors, weight
        prismatic = np.array([kind == "prismatic" for kind in model.joint_types])
        self.joint_scale = np.where(prismatic, _PRISMATIC_SCALE, 1.0)
        torque = np.where(prismatic, weight / lever, weight)
        n, f = model.n_joints, len(feet)
        mixed = np.kron([[1.0, 1.0 / lever], [lever, 1.0]], np.ones((3, 3)))[_OTHER]
        names = [foot.frame for foot in feet]
        axes = [f"{name} {axis}" for name in names for axis in "xyz"]
        pairs = [f"{_AXES[i]} from {_AXES[j]}" for i, j in np.argwhere(_OTHER)]
        joints = list(model.joint_names)
        kinds: dict[str, tuple[list[str], Array]] = {
            "force_bias": (axes, np.full(3 * f, priors.force_bias * weight)),
            "moment_bias": (axes, np.full(3 * f, priors.moment_bias * weight)),
            "wrench_gain": (
                [f"{name} {axis}" for name in names for axis in _AXES],
                np.full(6 * f, priors.wrench_gain),
            ),
            "crosstalk": (
                [f"{name} {pair}" for name in names for pair in pairs],
                np.tile(priors.crosstalk * mixed, f),
            ),
            "sensor_position": (axes, np.full(3 * f, priors.sensor_position)),
            "sensor_rotation": (axes, np.full(3 * f, priors.sensor_rotation)),
            "joint_offset": (joints, priors.joint_offset * self.joint_scale),
            "compliance": (joints, priors.compliance * self.joint_scale / (torque * lever)),
            "effort_gain": (joints, np.full(n, priors.effort_gain)),
            "effort_offset": (joints, priors.effort_offset * torque),
            "slope": (["x", "y"], np.full(2, priors.slope)),
            "tilt": (["x", "y", "z"], np.full(3, priors.tilt)),
        }
        self.friction = priors.friction * torque
        self.stds = np.concatenate([stds for _, stds in kinds.values()])
        self.names = [(kind, name) for kind, (some, _) in kinds.items() for name in some]
        ends = np.cumsum([len(some) for some, _ in kinds.values()])
        self.kinds = {
            kind: slice(int(end) - len(some), int(end))
            for end, (kind, (some, _)) in zip(ends, kinds.items(), strict=True)
        }

    @property
    def count(self) -> int:
        """S."""
        return len(self.names)

    def wrench_matrices(self, errors: Array) -> Array:
        """Returns 1 + E of each foot's sensor, (f, 6, 6)."""
        parts = {kind: errors[s] for kind, s in self.kinds.items()}
        position = parts["sensor_position"].reshape(-1, 3)
        matrices = np.tile(np.eye(6), (len(position), 1, 1))
        for i, (t, phi) in enumerate(
            zip(position, parts["sensor_rotation"].reshape(-1, 3), strict=True)
        ):
            matrices[i] += np.kron(np.eye(2), skew(phi))
            matrices[i, 3:, :3] += skew(t)
            matrices[i] += np.diag(parts["wrench_gain"].reshape(-1, 6)[i])
            matrices[i][_OTHER] += parts["crosstalk"].reshape(-1, 30)[i]
        return matrices

    def unbiased(self, wrenches: Array, errors: Array) -> Array:
        """Returns readings (f, 6) N and N m less their biases; zeros without sensors."""
        force, moment = (errors[self.kinds[kind]] for kind in ("force_bias", "moment_bias"))
        biases = np.hstack((force.reshape(-1, 3), moment.reshape(-1, 3)))
        return np.nan_to_num(wrenches) - biases if len(wrenches) else np.zeros(biases.shape)

    def by_name(self, values: Array) -> Mapping[str, dict[str, float]]:
        """Sorts values by kind and name; only those that have a prior above 0."""
        result: dict[str, dict[str, float]] = {}
        for (kind, name), value, std in zip(self.names, values, self.stds, strict=True):
            if std > 0.0:
                result.setdefault(kind, {})[name] = float(value)
        return result

    def wrench_columns(self, maps: Array, sensors: Array, read: Array) -> dict[str, Array]:
        """Derivatives of -(maps @ true wrenches) by the errors of wrenches (R, ...), by kind.

        maps (R, f, 6) are from true wrenches in the sensors' axes, sensors (R, f, 6) from readings,
        to rows; read (f, 6) are readings less bias.
        """
        pairs = np.einsum("rfi,fj->rfij", maps, read)
        force, moment = (
            np.array([skew(v) for v in part]).reshape(-1, 3, 3) for part in np.hsplit(read, 2)
        )
        by_force = np.einsum("rfi,fij->rfj", maps[:, :, :3], force)
        return {
            "force_bias": sensors[:, :, :3],
            "moment_bias": sensors[:, :, 3:],
            "wrench_gain": -np.einsum("rfii->rfi", pairs),
            "crosstalk": -pairs[:, :, _OTHER],
            "sensor_position": np.einsum("rfi,fij->rfj", maps[:, :, 3:], force),
            "sensor_rotation": by_force + np.einsum("rfi,fij->rfj", maps[:, :, 3:], moment),
        }
