"""Whether a robot can lean to the edge of its soles, by its kinematics alone."""

import numpy as np

from com_control.balance.balancer import Balancer
from com_control.balance.demonstrations import DemonstrationPlayer
from com_control.balance.options import BalanceOptions
from com_control.balance.soles import Soles, mean_normal
from com_control.exceptions import BalanceError
from com_model import RobotConfig, RobotModel
from com_model.text import listing

STEP = 0.04
"""s, of the control: coarse, for nothing moves but by commands."""


def lean_problem(
    model: RobotModel, config: RobotConfig, margin: float, seconds: float
) -> str:
    """Let the balancer lean a robot whose joints do exactly what they are commanded.

    A robot whose straight legs are at the limits of their joints cannot move its CoM without
    changing its height, and falls.

    Args:
        model: the robot, with the sole frames of config attached.
        config: with two feet that have soles.
        margin: m, of the CoM to the edge of the soles.
        seconds: s, of the demonstration "reach" that is tried.

    Returns:
        Why it cannot lean; "" where it can.
    """
    soles, q = Soles(model, config.feet), config.nominal_posture(model)
    upright = mean_normal(soles.poses(q))
    balancer = Balancer(
        model, config.feet, upright, BalanceOptions(margin=margin), config.servo
    )
    try:
        balancer.start(q, upright)
    except BalanceError as error:
        return str(error)
    player = DemonstrationPlayer("reach", margin)
    desired, velocity = balancer.reference.position.copy(), np.zeros(3)
    limits: set[str] = set()
    for k in range(round(seconds / STEP)):
        step = balancer.step(STEP, q, upright, desired, velocity)
        q, limits = step.position, limits | set(step.limits)
        desired, velocity = player.next(k * STEP, step) or (desired, velocity)
        upright = mean_normal(soles.poses(q))
    if not limits:
        return ""
    return (
        f"the limits of {listing(sorted(limits))} do not let its CoM move at the height at which "
        "it stands; bend its knees in the configuration's posture, or correct these limits"
    )
