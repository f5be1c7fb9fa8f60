"""Any robot, identified from planned postures: its readings are Pinocchio's, its URDF is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from identification_scenario import PinocchioRobot, rms_length
from numpy.typing import NDArray
from scipy.optimize import nnls

from com_identification.planning.feasible import FeasiblePostures
from com_identification.planning.planner import PosturePlanner
from com_identification.regression.identify import identify
from com_identification.regression.postures import Posture, make_posture
from com_identification.regression.priors import urdf_priors
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_identification.settings import (
    FitSettings,
    IdentificationSettings,
    PlanOptions,
    SensorNoise,
    SensorPriors,
)
from com_identification.store.results import corrected_inertials, corrected_urdf
from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_model.sesc.sesc import Sesc
from com_model.urdf.editing import edit_inertials

Array = NDArray[np.float64]

POSTURES, HELD_OUT, CANDIDATES = 20, 12, 60
SAMPLES = 100
OFF = 0.01  # of the CoM's height: standard deviation of each centre of mass, each axis
# of the weight; of the weight times 1 m: noise of one reading
FORCE, MOMENT = 5e-3, 3e-4
EVEN = 1e-3  # how strongly the ground's forces are spread
BEATEN = 0.5  # of the URDF's error, that an identified robot may have at most


@dataclass(frozen=True)
class Accuracy:
    """Errors of the predicted CoM in held-out postures, horizontal, RMS, m."""

    urdf: float
    identified: float

    def problem(self) -> str:
        """Why the robot does not count as identified; "" where it does."""
        if self.identified < BEATEN * self.urdf:
            return ""
        return f"{1e3 * self.identified:.2f} mm off, the URDF {1e3 * self.urdf:.2f} mm"


def identify_robot(model: RobotModel, config: RobotConfig, seed: int = 0) -> Accuracy:
    """Identifies a robot whose centres of mass are not where its URDF says.

    Args:
        model: The robot, with its sole frames.
        config: Its configuration.
        seed: Of the errors of URDF and sensors, and of the postures.
    """
    rng, rest, bodies = (
        np.random.default_rng(seed),
        config.nominal_posture(model),
        model.bodies,
    )
    feet, weight = config.feet, GRAVITY * model.mass
    stance = FlatStance(Statics(model), feet, rest)
    height = float(stance.up_directions(rest[None])[0] @ Sesc(model).com(rest))
    off = OFF * (height - float(stance.levels(rest[None])[0]))
    margin = min(PlanOptions().margin, 0.5 * stance.margin(rest))
    settings = IdentificationSettings(
        noise=SensorNoise(force=FORCE * weight, moment=MOMENT * weight),
        sensors=SensorPriors.calibrated(),
        fit=FitSettings(use_imu=not len(feet[0].corners), folds=0),
        plan=PlanOptions(
            candidates=CANDIDATES, refinements=0, margin=margin, one_foot=0.0
        ),
    )
    priors = urdf_priors(model, off)
    planner = PosturePlanner(model, feet, rest, settings, priors)
    planned = [posture.q for posture in planner.propose(POSTURES, samples=SAMPLES)]
    com = bodies.first_moment / np.maximum(bodies.mass, 1e-12)[:, None]
    com = com + rng.normal(0.0, off, com.shape)
    xml = edit_inertials(model.xml, corrected_inertials(model, bodies.mass, com))
    robot = PinocchioRobot(xml, model, feet)
    postures = [_read(robot, q, settings.noise, rng) for q in planned]
    found = identify(model, feet, postures, settings, priors)
    plan = replace(settings.plan, seed=1)
    others = [
        q
        for q, *_ in FeasiblePostures(Statics(model), feet, rest, plan).sample(HELD_OUT)
    ]
    errors = [
        rms_length(
            [_com_error(robot, PinocchioRobot(text, model, feet), q) for q in others]
        )
        for text in (model.xml, corrected_urdf(model, found))
    ]
    return Accuracy(*errors)


def _ground(robot: PinocchioRobot, q: Array) -> tuple[Array, list[Array]]:
    """The direction against gravity (3,), and each foot's contact points (k, 3) m, root axes.

    Of flat feet the first one's z; of point feet the normal of the plane of the balls' centers.
    """
    points = []
    for foot in robot.feet:
        R, p = robot.frame(q, foot.frame)
        flat = np.column_stack((foot.corners, np.zeros(len(foot.corners))))
        points.append((flat if len(flat) else foot.center[None]) @ R.T + p)
    if len(robot.feet[0].corners):
        return robot.frame(q, robot.feet[0].frame)[0][:, 2], points
    centers = np.concatenate(points)
    up = np.linalg.svd(centers - centers.mean(axis=0))[2][2]
    up = up * np.copysign(1.0, up @ (robot.com(q) - centers[0]))
    return up, [
        p - foot.radius * up for p, foot in zip(points, robot.feet, strict=True)
    ]


def _read(
    robot: PinocchioRobot, q: Array, noise: SensorNoise, rng: np.random.Generator
) -> Posture:
    """What the sensors read while the ground carries the robot by vertical forces at its contacts.

    The forces f >= 0 have the weight's sum and its moment about the horizontal axes; they are
    spread as evenly as least squares can.
    """
    up, points = _ground(robot, q)
    across = np.linalg.svd(up[None])[2][1:]
    places = np.concatenate(points) - robot.com(q)
    rows = np.vstack(
        (np.ones(len(places)), across @ places.T, EVEN * np.eye(len(places)))
    )
    force, _ = nnls(rows, np.append([1.0, 0.0, 0.0], np.zeros(len(places))))
    force *= GRAVITY * robot.mass / force.sum()
    ratio = noise.std_ratio(SAMPLES)
    wrenches = []
    for foot, own in zip(robot.feet, points, strict=True):
        own_force, force = force[: len(own), None] * up, force[len(own) :]
        R, p = robot.frame(q, foot.wrench_frame)
        wrench = np.append(
            own_force.sum(axis=0) @ R, np.cross(own - p, own_force).sum(axis=0) @ R
        )
        error = rng.normal(0.0, np.repeat([noise.force, noise.moment], 3)) * ratio
        wrenches.append(foot.wrench_sign * wrench + error)
    measured = q + rng.normal(0.0, noise.position * ratio, q.shape)
    return make_posture(robot.model, measured, wrenches, up=up, samples=SAMPLES)


def _com_error(truth: PinocchioRobot, other: PinocchioRobot, q: Array) -> Array:
    """Horizontal error (3,) m of another robot's CoM."""
    up, _ = _ground(truth, q)
    error = other.com(q) - truth.com(q)
    return np.asarray(error - (error @ up) * up)
