"""What is known of the whole robot's CoM because it walked on foot force sensors, as a posture.

By the diagnosis of the moving robot where it runs, else by the walk's stabiliser: both come from
the same wrenches, so that only one of them counts, once. Messages are com_msgs' own, or as they
are read from a bag.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from com_bags import Bag, BagError, last_message
from com_identification.regression.postures import ComConstraint, Posture, make_posture
from com_identification.settings import SensorPriors
from com_model import Foot, RobotModel, Sesc
from com_model.arrays import Array
from com_model.dynamics.kinematics import link_pose

DIAGNOSIS, WALK_STATE = "com_msgs/msg/CentroidalDiagnosis", "com_msgs/msg/WalkState"
FARTHEST = 0.5  # m; more is no offset


class WalkEvidence:
    """Makes postures of messages, for one robot that is about at rest (n,) as it walks.

    With the offset b of a message from the model's CoM c, along unit vectors e_k in root axes,

      e_k . CoM = e_k . c + b_k

    b is the model's error where the robot walked; at rest it differs in second order.
    """

    def __init__(
        self, model: RobotModel, feet: Sequence[Foot], rest: Array, sensors: SensorPriors
    ) -> None:
        self._model, self._feet, self._rest, self._sensors = model, feet, rest, sensors

    def from_walk_state(self, state: Any) -> Posture | None:
        """By the stabiliser, forwards and to the left by the soles; None: it is not known.

          std^2 = com_offset_std^2 + (h tilt)^2 + moment_bias^2

        h is the CoM's height over the soles: a tilted IMU and zeros of moments look like an offset.
        """
        poses = [link_pose(self._model, self._rest, foot.frame) for foot in self._feet]
        R, sole = (np.mean([pose[i] for pose in poses], axis=0) for i in range(2))
        up, left = R[:, 2] / np.linalg.norm(R[:, 2]), np.cross(R[:, 2], R[:, 0])
        left /= np.linalg.norm(left)
        height = (Sesc(self._model).com(self._rest) - sole) @ up
        own = np.hypot(height * self._sensors.tilt, self._sensors.moment_bias)
        std = np.hypot(state.com_offset_std, own)
        axes = np.array([np.cross(left, up), left])
        return self._posture("stabiliser", axes, np.array(state.com_offset), std)

    def from_diagnosis(self, msg: Any) -> Posture | None:
        """By the diagnosis, along the axes of its covariance; None: it is not known."""
        covariance = np.array(msg.covariance).reshape(3, 3)
        if not np.isfinite(covariance).all():
            return None
        variances, axes = np.linalg.eigh(covariance)
        offset = np.array([getattr(msg.com_correction, name) for name in "xyz"])
        return self._posture("diagnosis", axes.T, axes.T @ offset, np.sqrt(variances.clip(1e-12)))

    def from_bags(self, bags: Sequence[str]) -> Posture:
        """By the newest message of recordings; raises BagError where none is of use."""
        for kind, make in ((DIAGNOSIS, self.from_diagnosis), (WALK_STATE, self.from_walk_state)):
            for path in reversed(bags):
                with Bag(path) as bag:
                    posture = last_message(bag, kind, make)
                if posture is not None:
                    return posture
        raise BagError(
            f"no {DIAGNOSIS} with a CoM, and no {WALK_STATE} with its offset: record diagnosis, or "
            "gait/state of ccgd_gait with stabiliser:=true, or leave out --use-diagnosis",
            ", ".join(bags) or "--use-diagnosis",
        )

    def _posture(self, source: str, axes: Array, offset: Array, std: Array) -> Posture | None:
        """The posture of offsets (k,) m along unit vectors (k, 3) with their std (k,)."""
        if not (np.abs(offset) < FARTHEST).all() or not np.isfinite(std).all():
            return None
        places = axes @ Sesc(self._model).com(self._rest) + offset
        limits = tuple(map(ComConstraint, [self._model.root_link] * len(std), axes, places, std))
        label = f"CoM of the {source} while walking"
        return make_posture(self._model, self._rest, constraints=limits, label=label)
