"""Servo gains for simulation, and the sizes of steps, from what each joint carries.

A position servo tau = k (target - q) - d qd with armature J on an inertia I has, as the usual
second-order system, w = sqrt(k / I) and d = 2 zeta w I. Here
  k = max(w^2 I, SAG_RATIO m g r),  d = 2 zeta sqrt(k I)
with I the inertia about the joint's axis of all that the joint carries in the standing posture, and
m g r the moment that its weight could have there. A joint between a foot and the trunk carries the
rest of the robot, on one leg; any other what is beyond it, about its worst axis. Of a biped's legs
r is the height of the CoM and the ratio 80, so that it walks without feedback.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from com_model.arrays import Array
from com_model.bodies import loads_about
from com_model.dynamics import GRAVITY
from com_model.model import RobotModel
from com_model.setup.parts import HUMANOID, Gains, Limbs, RobotSetup, Standing

BANDWIDTH = 20.0  # rad/s, of a joint with what it carries
DAMPING_RATIO = 0.3
SAG_RATIO = 15.0  # stiffness over the weight's moment: it sags by 1/15 rad at most


def find_gains(model: RobotModel, limbs: Limbs, standing: Standing) -> Gains:
    """Chooses the servo gains of all joints.

    Args:
        model: The robot.
        limbs: Its limbs.
        standing: Its standing posture, in which the joints carry their loads.

    Returns:
        Stiffness, damping and armature (n,) each.
    """
    bodies, n = model.bodies, model.n_joints
    carried, beyond, moment = np.zeros(n), np.zeros(n), np.zeros(n)
    legs = {b for leg in limbs.legs for b in leg.bodies}
    height = float(standing.com[2]) - standing.ground
    for b in range(1, bodies.count):
        i, ratio = int(bodies.q_index[b]), abs(float(bodies.multiplier[b]))
        loads = loads_about(bodies, standing.R, standing.p, b)
        (own, own_moment), (rest, rest_moment) = (
            (inertia, GRAVITY * float(np.linalg.norm(lever)))
            for inertia, lever in loads
        )
        if (
            b not in legs
        ):  # arms that hang or stretch along an axis have hardly any load about it
            rest, lever = loads_about(bodies, standing.R, standing.p, b, any_axis=True)[
                0
            ]
            rest_moment = GRAVITY * float(np.linalg.norm(lever))
        elif limbs.kind == HUMANOID:
            # of a biped's legs: at 40 GR1 falls as its feet land 60 ms early
            rest_moment = GRAVITY * model.mass * height * 80.0 / SAG_RATIO
        carried[i] += ratio**2 * max(own, rest)
        beyond[i] += ratio**2 * own
        moment[i] += ratio * max(own_moment, rest_moment)
    chains = [bodies.q_index[list(leg.bodies)] for leg in limbs.legs]
    if (
        len({len(chain) for chain in chains}) == 1
    ):  # joints at the same place of all legs
        for same in np.transpose(chains):
            for values in (carried, moment):
                values[same] = values[same].max()
    least = 1e-5  # kg m^2 or kg
    inertia = np.maximum(carried, least)
    stiffness = np.maximum(BANDWIDTH**2 * inertia, SAG_RATIO * moment)
    damping = 2.0 * DAMPING_RATIO * np.sqrt(stiffness * inertia)
    # a tenth of the inertia beyond the joint, or what 250 rad/s of its free end need: the
    # physics has steps of 1 to 2 ms
    armature = np.maximum(0.1 * beyond, stiffness / 250.0**2 - beyond)
    armature = np.maximum(armature, least)
    return Gains(_round(stiffness), _round(damping), _round(armature))


def with_drives(
    setup: RobotSetup, drives: Mapping[str, Mapping[str, float]]
) -> RobotSetup:
    """A robot with the gains of a model of MuJoCo in place of chosen ones.

    Policies that balance a robot are trained with soft servos, on which it cannot stand without
    them: then the stiffness and the damping stay the chosen ones.

    Args:
        setup: With chosen gains.
        drives: See mjcf.drives_of_mjcf.
    """
    names, chosen = setup.model.joint_names, setup.gains

    def known(key: str, values: Array) -> Array:
        pairs = zip(names, values.tolist(), strict=True)
        return np.array([drives.get(name, {}).get(key, value) for name, value in pairs])

    gains = Gains(*(known(key, values) for key, values in chosen._asdict().items()))
    if not _too_soft(setup, gains):
        return replace(setup, gains=gains)
    issue = (
        "the model's servos are too soft to stand by them alone: stiffness and damping are "
        "com_setup's. Check what the drives have"
    )
    gains = chosen._replace(armature=gains.armature)
    return replace(setup, gains=gains, issues=(*setup.issues, ("servo", issue)))


def _too_soft(setup: RobotSetup, gains: Gains) -> bool:
    """Whether a biped falls when it stands by its servos alone, however small the push.

    The joints of a leg give way one after the other; both legs together must turn back with
    twice the moment of the weight, m g h for each radian by which it leans.
    """
    if setup.limbs.kind != HUMANOID:
        return False
    places = setup.model.bodies.q_index
    chains = (gains.stiffness[places[list(leg.bodies)]] for leg in setup.limbs.legs)
    stiffness = sum(1.0 / float((1.0 / own).sum()) for own in chains)
    height = float(setup.standing.com[2]) - setup.standing.ground
    return stiffness < 2.0 * GRAVITY * setup.model.mass * height


def _round(values: Array) -> Array:
    """Two significant digits."""
    return np.array([float(f"{value:.2g}") for value in values])


def overloaded_joints(
    model: RobotModel, limbs: Limbs, standing: Standing
) -> tuple[str, ...]:
    """Names the joints, but those of legs, that cannot hold what they carry while it stands.

    A torque limit of 0 counts as not known.

    Args:
        model: The robot.
        limbs: Its limbs.
        standing: Its standing posture.

    Returns:
        Names of joints whose effort limit in the URDF is below the moment of gravity.
    """
    bodies, needed = model.bodies, np.zeros(model.n_joints)
    legs = {b for leg in limbs.legs for b in leg.bodies}
    for b in sorted(set(range(1, bodies.count)) - legs):
        _, lever = loads_about(bodies, standing.R, standing.p, b)[0]
        moment = GRAVITY * abs(float(lever[2] * bodies.multiplier[b]))
        needed[bodies.q_index[b]] += moment
    limits = model.effort_limits
    weak = np.flatnonzero((limits > 0.0) & (needed > limits))
    return tuple(model.joint_names[i] for i in weak)


def weak_hips(model: RobotModel, limbs: Limbs, standing: Standing) -> tuple[str, ...]:
    """Names the joints at the hips that cannot hold the weight on one leg.

    A torque limit of 0 counts as not known.

    Args:
        model: The robot.
        limbs: Its limbs.
        standing: Its standing posture.

    Returns:
        Names of joints whose effort limit in the URDF is below the moment of the weight.
    """
    hips = [b for leg in limbs.legs for b in leg.bodies[:3]]
    axes = np.einsum("bij,bj->bi", standing.R[hips], model.bodies.axis[hips])
    arms = np.cross(standing.com - standing.p[hips], [0.0, 0.0, GRAVITY * model.mass])
    indices = model.bodies.q_index[hips]
    limits = model.effort_limits[indices]
    weak = (np.abs(np.sum(axes * arms, axis=1)) > limits) & (limits > 0.0)
    return tuple(model.joint_names[i] for i in indices[weak])


def gait_parameters(
    model: RobotModel, limbs: Limbs, standing: Standing, points: list[Array]
) -> dict[str, dict[str, float]]:
    """Chooses the sizes of a biped's steps or of a quadruped's trot.

    Times go with that of a pendulum of the CoM's or the hips' height h, sqrt(h / g).
    Walking, the CoM is lower than standing by what keeps the knees bent when it is sideways, over
    one foot, but by half of what the legs' limits allow at most.

    Args:
        model: The robot.
        limbs: Its limbs.
        standing: Its standing posture.
        points: Per foot (k, 3) m, where it touches the ground.

    Returns:
        Sizes in m, s and 1/s by name, of "walking" or of "trot"; none of other robots.
    """
    if limbs.kind == HUMANOID:
        height = float(standing.com[2]) - standing.ground
        middles = [0.5 * (c[:, 1].min() + c[:, 1].max()) for c in points]
        width = float(max(middles) - min(middles))
        legs = [standing.p[leg.bodies[0]][2] - standing.ground for leg in limbs.legs]
        sideways = 0.125 * width**2 / float(np.mean(legs))
        sideways = min(sideways, 0.5 * standing.lower)
        # Times of a step over a pendulum's: the longer a robot is on one foot, the more it moves
        # sideways on drives that give, and the earlier the other foot touches down (GR1, with soles
        # of 40 mm, falls at 2 and above). Without a roll at the ankle Atlas falls from 1.15 on,
        # H1 from 1.6 on, and at 0.7 and below.
        no_roll = min(len(leg.bodies) for leg in limbs.legs) < 6
        time = 0.85 if no_roll else 1.5
        steps = {
            "step_width": round(width, 3),
            "step_length": round(0.1 * height, 3),
            "step_height": round(0.035 * height, 3),
            "step_time": round(time * float(np.sqrt(height / GRAVITY)), 2),
            "com_height": round(height - sideways, 3),
        }
        return {"walking": steps}
    if len(limbs.legs) != 4:
        return {}
    height = (
        float(np.mean([standing.p[leg.bodies[0]][2] for leg in limbs.legs]))
        - standing.ground
    )
    trot = {
        "frequency": round(float(np.clip(np.sqrt(0.6 / height), 0.8, 2.0)), 2),
        "step_height": round(height / 9.0, 3),
        "body_height": round(0.93 * height, 3),
    }
    return {"trot": trot}
