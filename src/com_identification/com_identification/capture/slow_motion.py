"""Postures of slow motion: means over half a second, less the uncertain inertial wrench.

The mean of the inertial wrench over a window T is the change of the momentum, which positions
show:

  mean of (F, M) = (P(t1) - P(t0), H(t1) - H(t0)) / T,  P = sum m v,  H = sum m c x v,

in the frame of the foot that carries most and does not move, by the URDF's masses; rotation of
the bodies about their own CoMs is neglected. It is subtracted from the reading. What remains
uncertain is noise of the posture: a part of the inertial wrench, the acceleration that encoder
noise causes, and the joints' speed times an uncertain delay between encoders and force sensors.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from com_identification.capture.detector import PostureBuilder, StationaryInterval
from com_identification.capture.streams import TimeSlice, join
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import sole_to_reading
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.geometry.rotations import skew


class SlowMotion:
    """Finds postures in windows in which the robot moves slowly.

    Args:
        model: the robot.
        feet: its feet with force sensors.
        settings: noise, gravity, and the length of a slice.
        builder: makes the postures.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        settings: IdentificationSettings,
        builder: PostureBuilder,
    ) -> None:
        self._model, self._feet, self._settings = model, tuple(feet), settings
        observations = ObservationModel(model, feet, gravity=settings.fit.gravity)
        self._statics, self._contacts = observations.statics, observations.contacts
        self._builder = builder
        self._weight = model.mass * settings.fit.gravity
        self._slice = settings.capture.slice_time
        # windows of 0.5 s
        self._count = max(2, round(0.5 / self._slice))

    def intervals(
        self,
        slices: Sequence[tuple[int, TimeSlice]],
        taken: Sequence[StationaryInterval],
    ) -> tuple[list[StationaryInterval], dict[str, float]]:
        """Finds an interval for each posture, in order of time.

        Args:
            slices: numbers and statistics of the slices in which all streams have readings.
            taken: intervals of the stationary robot, which are left out.

        Returns:
            The intervals, and seconds of motion by what became of them.
        """
        busy = [(each.t0_ns, each.t1_ns) for each in taken if each.posture is not None]
        L = self._count
        seconds: dict[str, float] = {}
        found: list[StationaryInterval] = []
        begin = 1
        while begin + L < len(slices):
            numbers, parts = zip(*slices[begin - 1 : begin + L + 1], strict=True)
            t0 = min(part.first_ns for part in parts[1])
            t1 = max(part.last_ns for part in parts[-2])
            begin += 1
            if numbers[-1] - numbers[0] != L + 1 or any(
                a <= t1 and t0 <= b for a, b in busy
            ):
                continue
            result = self._interval(parts, t0, t1)
            if isinstance(result, str):
                seconds[result] = seconds.get(result, 0.0) + self._slice
            else:
                found.append(result)
                begin += L - 1
        chosen = _spread(found, [each.posture.q for each in taken if each.posture])
        used = L * self._slice
        seconds["slow motion, used"] = used * len(chosen)
        seconds["slow motion, redundant"] = used * (len(found) - len(chosen))
        return chosen, seconds

    def _interval(
        self, window: Sequence[TimeSlice], t0_ns: int, t1_ns: int
    ) -> StationaryInterval | str:
        """The posture of the slices but the first and the last, or why there is none."""
        inner, n = window[1:-1], self._model.n_joints
        Q = np.array([each[0].mean[:n] for each in window])
        # rad or m, of a joint within a window
        if np.ptp(Q[1:-1], axis=0).max(initial=0.0) > 0.15:
            return "joints moved fast"
        means = [[part.mean for part in each] for each in inner]
        counts = [min(part.count for part in each) for each in inner]
        W = np.array([each[1 : 1 + len(self._feet)] for each in means])
        if not len(self._feet) or not np.isfinite(W).all():
            return "no wrenches"
        loaded = np.array([self._contacts.loaded(w) for w in W])
        if (loaded != loaded[0]).any():
            return "load changed feet"
        stance = int(np.argmax(np.linalg.norm(W.mean(axis=0)[:, :3], axis=1)))
        inertial, height = self._inertial(Q, stance)
        # the inertial moment may shift the centre of pressure by 3 cm
        if np.abs(inertial[3:5]).max() > 0.03 * self._weight:
            return "accelerated"
        readings = join(inner)
        for part, stream in zip(readings, zip(*means, strict=True), strict=True):
            part.total = part.count * np.mean(
                stream, axis=0
            )  # each instant counts the same
        if self._builder.issues(readings):
            return "no contact"
        posture = self._builder.posture(readings, "", t0_ns, t1_ns)
        R = sole_to_reading(self._model, self._feet[stance])
        wrenches, rows = posture.wrenches.copy(), slice(6 * stance, 6 * stance + 6)
        wrenches[stance] -= R @ inertial
        position = self._settings.noise.position / np.sqrt(min(counts))
        force = (
            self._weight
            / self._settings.fit.gravity
            * 2.0
            * np.sqrt(3.0)
            * height
            * position
        )
        force /= self._slice**2 * self._count
        apparent = np.vstack((np.eye(3), skew(np.array([0.0, 0.0, height]))))[:, :2]
        extra = np.zeros((wrenches.size + n, 4))
        # 30 % of the inertial wrench are uncertain
        extra[rows, 0] = 0.3 * (R @ inertial)
        extra[rows, 1:3] = force * (R @ apparent)
        # 5 ms between the streams
        extra[wrenches.size :, 3] = (
            0.005 * (Q[-2] - Q[1]) / (self._slice * (self._count - 1))
        )
        # an accelerometer also measures the motion
        up = np.full(3, np.nan) if self._contacts.flat(posture).any() else posture.up
        noise, effort = np.hstack((posture.noise, extra)), np.full(n, np.nan)
        posture = replace(posture, wrenches=wrenches, noise=noise, up=up, effort=effort)
        return StationaryInterval(t0_ns, t1_ns, posture)

    def _inertial(self, Q: Array, stance: int) -> tuple[Array, float]:
        """Mean inertial wrench (6,) in the stance sole's frame; height of the CoM over it, m."""
        poses = self._statics.poses(Q[[0, 1, -2, -1]])
        links = [self._model.link_index(self._feet[stance].frame)]
        R, p = (array[:, 0] for array in self._statics.link_frames(poses, links))
        bodies = self._statics.bodies
        heavy = bodies.mass > 0.0
        m = bodies.mass[heavy]
        com = bodies.first_moment[heavy] / m[:, None]
        centers = poses.p[:, heavy] + np.einsum("nbij,bj->nbi", poses.R[:, heavy], com)
        c = np.einsum("nji,nbj->nbi", R, centers - p[:, None])
        v, middle = np.diff(c, axis=0)[::2] / self._slice, 0.5 * (c[1:] + c[:-1])[::2]
        momenta = np.hstack((m @ v, np.einsum("b,nbi->ni", m, np.cross(middle, v))))
        return (momenta[1] - momenta[0]) / (self._slice * (len(Q) - 2)), float(
            (m @ c[1])[2] / m.sum()
        )


def _spread(
    found: Sequence[StationaryInterval], others: list[Array]
) -> list[StationaryInterval]:
    """Those that differ most from each other and from the others, in order of time."""
    Q = [each.posture.q for each in found if each.posture is not None]
    far = np.full(len(Q), np.inf)
    chosen: list[int] = []
    for q in others:
        far = np.minimum(far, np.abs(Q - q).max(axis=1, initial=0.0))
    # at most 80 postures, between which some joint moves by 0.02 rad or m
    while len(chosen) < 80 and far.max(initial=0.0) >= 0.02:
        chosen.append(int(np.argmax(far)))
        far = np.minimum(far, np.abs(Q - Q[chosen[-1]]).max(axis=1))
    return [found[i] for i in sorted(chosen)]
