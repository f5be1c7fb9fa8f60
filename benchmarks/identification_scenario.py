"""HOAP-2 whose centres of mass are not where its URDF says, with sensors; truth by Pinocchio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pinocchio
from numpy.typing import NDArray

from com_identification.planning.planner import PlannedPosture, PosturePlanner
from com_identification.regression.postures import Posture, make_posture
from com_identification.regression.priors import BodyPriors, urdf_priors
from com_identification.settings import (
    IdentificationSettings,
    PlanOptions,
    SensorNoise,
    SensorPriors,
)
from com_identification.store.results import corrected_inertials
from com_model import Foot, RobotModel, load_robot
from com_model.dynamics import GRAVITY
from com_model.urdf.editing import edit_inertials

Array = NDArray[np.float64]

OFF = 0.005  # m, standard deviation of each centre of mass, each axis
SAMPLES = 100
PLAN = PlanOptions(margin=0.015, most_tilt=np.pi, one_foot=0.0)
NOISE = SensorNoise(
    force=0.5, moment=0.025, effort=0.02, position=float(np.radians(0.05))
)


@dataclass(frozen=True, eq=False)
class Scenario:
    """The robot as its URDF has it.

    Attributes:
        model: The robot.
        feet: Its feet.
        rest: (n,) rad, a posture in which it stands.
        priors: Of bodies whose centres of mass are off by OFF.
    """

    model: RobotModel
    feet: tuple[Foot, ...]
    rest: Array
    priors: BodyPriors

    @cache  # noqa: B019 - scenarios live as long as the benchmark
    def planner(self, plan: PlanOptions) -> PosturePlanner:
        """A planner for this robot's sensors."""
        settings = IdentificationSettings(
            noise=NOISE, sensors=SensorPriors.calibrated(), plan=plan
        )
        return PosturePlanner(self.model, self.feet, self.rest, settings, self.priors)

    @cache  # noqa: B019
    def planned(self, plan: PlanOptions, count: int) -> tuple[PlannedPosture, ...]:
        """So many planned postures."""
        return self.planner(plan).propose(count, samples=SAMPLES)


@cache
def scenario_of(robot: str) -> Scenario:
    """A robot of the suite with all its joints."""
    model, config = load_robot(robot)
    rest = config.nominal_posture(model)
    return Scenario(model, tuple(config.feet), rest, urdf_priors(model, OFF))


def hoap2() -> Scenario:
    """HOAP-2 with all its joints."""
    return scenario_of("hoap2")


class PinocchioRobot:
    """A robot that stands on flat feet; what its sensors read, by Pinocchio.

    Args:
        xml: The true URDF.
        model: What the URDF is taken to be; the joints' order.
        feet: Its feet.
    """

    def __init__(self, xml: str, model: RobotModel, feet: Sequence[Foot]) -> None:
        self.xml, self.model, self.feet = xml, model, tuple(feet)
        self.pin = pinocchio.buildModelFromXML(xml, pinocchio.JointModelFreeFlyer())
        self.data = self.pin.createData()
        ids = [self.pin.getJointId(name) for name in model.bodies.joint_names[1:]]
        self.joints = [
            self.pin.joints[i] for i in ids
        ]  # of the bodies; a follower is free, too
        self.v_index = [
            self.pin.joints[self.pin.getJointId(j)].idx_v for j in model.joint_names
        ]
        self.mass = float(pinocchio.computeTotalMass(self.pin))

    def full(self, q: Array) -> Array:
        """Pinocchio's configuration of joint positions (n,), root at the origin."""
        bodies, result = self.model.bodies, pinocchio.neutral(self.pin)
        for b, joint in enumerate(self.joints, start=1):
            angle = bodies.multiplier[b] * q[bodies.q_index[b]] + bodies.offset[b]
            values = [np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle]
            result[joint.idx_q : joint.idx_q + joint.nq] = values
        return np.asarray(result)

    def com(self, q: Array) -> Array:
        """The centre of mass (3,) m in root axes."""
        return np.array(pinocchio.centerOfMass(self.pin, self.data, self.full(q)))

    def frame(self, q: Array, name: str) -> tuple[Array, Array]:
        """R (3, 3), p (3,) of a link, or sole frame of a configuration, in root axes."""
        pinocchio.framesForwardKinematics(self.pin, self.data, self.full(q))
        bodies, link = self.model.bodies, self.model.link_index(name)
        body = int(bodies.body_of_link[link])
        pose = self.data.oMf[self.pin.getFrameId(bodies.names[body])]
        if self.pin.existFrame(name):
            pose, R, p = (
                self.data.oMf[self.pin.getFrameId(name)],
                np.eye(3),
                np.zeros(3),
            )
        else:
            R, p = bodies.R_body_link[link], bodies.p_body_link[link]
        return np.array(pose.rotation) @ R, np.array(pose.translation) + np.array(
            pose.rotation
        ) @ p

    def read(self, q: Array, load: Array) -> tuple[Array, Array]:
        """Wrenches (f, 6) of feet that share the weight as `load`, and efforts (n,)."""
        frames = [self.frame(q, foot.wrench_frame) for foot in self.feet]
        up = self.frame(q, self.feet[int(np.argmax(load))].frame)[0][:, 2]
        weight = self.mass * GRAVITY * up
        moment = np.cross(self.com(q), weight)
        rest = moment - sum(
            np.cross(p, fraction * weight)
            for fraction, (_, p) in zip(load, frames, strict=True)
        )
        local = [
            f * np.concatenate((R.T @ weight, R.T @ rest))
            for f, (R, _) in zip(load, frames, strict=True)
        ]
        signs = np.array([[foot.wrench_sign] for foot in self.feet])
        return signs * np.array(local), self.efforts(q, up, np.array(local))

    def efforts(self, q: Array, up: Array, wrenches: Array) -> Array:
        """Efforts (n,) that hold a posture on wrenches (f, 6) of the ground, sensor axes."""
        self.pin.gravity.linear = -GRAVITY * up
        full = self.full(q)
        torque = np.array(
            pinocchio.computeGeneralizedGravity(self.pin, self.data, full)
        )
        for foot, (force, moment) in zip(
            self.feet, wrenches.reshape(-1, 2, 3), strict=True
        ):
            R, p = self.frame(q, foot.wrench_frame)
            body = self.model.bodies.body_of_link[
                self.model.link_index(foot.wrench_frame)
            ]
            frame = self.pin.getFrameId(self.model.bodies.names[body])
            J = pinocchio.computeFrameJacobian(
                self.pin, self.data, full, frame, pinocchio.WORLD
            )
            torque -= J.T @ np.concatenate(
                (R @ force, R @ moment + np.cross(p, R @ force))
            )
        return np.asarray(torque[self.v_index])

    def posture(
        self,
        q: Array,
        rng: np.random.Generator,
        stand: Sequence[int] = (),
        effort: bool = False,
    ) -> Posture:
        """What the sensors read, means of SAMPLES readings.

        Args:
            q: (n,) rad, true joint positions.
            rng: Of the noise and of how the feet share the weight.
            stand: The feet that stand; all by default.
            effort: Whether joint torques are read.
        """
        load = np.zeros(len(self.feet))
        stand = list(stand) or list(range(len(self.feet)))
        load[stand] = rng.uniform(0.3, 0.7, len(stand))
        wrenches, torque = self.read(q, load / load.sum())
        ratio = NOISE.std_ratio(SAMPLES)
        spread = np.repeat([NOISE.force, NOISE.moment], 3) * ratio
        return make_posture(
            self.model,
            q + rng.normal(0.0, NOISE.position * ratio, q.shape),
            wrenches + rng.normal(0.0, 1.0, wrenches.shape) * spread,
            torque + rng.normal(0.0, NOISE.effort * ratio, torque.shape)
            if effort
            else None,
            samples=SAMPLES,
        )


def wrong_robot(
    scenario: Scenario, rng: np.random.Generator
) -> tuple[PinocchioRobot, Array]:
    """A robot with all centres of mass off by OFF, and its (4 B,) masses and first moments."""
    bodies = scenario.model.bodies
    com = bodies.first_moment / bodies.mass[:, None] + rng.normal(
        0.0, OFF, (bodies.count, 3)
    )
    xml = edit_inertials(
        scenario.model.xml, corrected_inertials(scenario.model, bodies.mass, com)
    )
    truth = np.column_stack((bodies.mass, bodies.mass[:, None] * com)).ravel()
    return PinocchioRobot(xml, scenario.model, scenario.feet), truth


def com_error(truth: PinocchioRobot, q: Array, com: Array) -> Array:
    """Error (2,) m of a CoM (3,) in root axes, in x and y of the first sole."""
    R, _ = truth.frame(q, truth.feet[0].frame)
    return np.asarray((R.T @ (com - truth.com(q)))[:2])


def rms_length(errors: Sequence[Array]) -> float:
    """Root of the mean square of the lengths of vectors."""
    return float(np.sqrt(np.mean(np.sum(np.square(errors), axis=1))))
