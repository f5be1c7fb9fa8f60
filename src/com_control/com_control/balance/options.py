"""How the centre of mass is controlled: gains, bounds, margins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BalanceOptions:
    """Options of a Balancer.

    Attributes:
        com_gain: 1/s, by which an error of the CoM decays; a robot that rocks on its drives at w
            rad/s with a damping ratio d needs less than 2 d w.
        trunk_gain: 1/s, likewise of the trunk's orientation.
        posture_gain: 1/s, likewise of the joints that the rest leaves free.
        feet_gain: 1/s, likewise of the measured place of the soles to each other.
        strain_gain: 1/s, likewise of the commanded one, which strains the legs of feet that stand.
        upright: Keep the trunk upright, whatever the slope of the ground.
        margin: m, that the CoM keeps from the edge of the support polygon, seen along gravity.
        com_speed: m/s, of the reference at most.
        com_acceleration: m/s^2, likewise.
        speed_share: Of the joints' velocity limits, at most.
        joint_speed: rad/s or m/s, at most, also where the URDF has no limit.
        joint_acceleration: rad/s^2 or m/s^2, of the commands at most.
        joint_margin: rad or m, that joints keep from their limits.
        give: rad or m, of a command from where its joint is, at most.
        slope_time: s, over which the turning of the ground is smoothed.
        friction: Of the ground: slopes steeper than its arc tangent are spoken of.
        height_weight: Of an error of the CoM's height against one along the ground: what keeps the
            robot from falling goes first.
        trunk_weight: m, of an error of 1 rad/s of the trunk against 1 m/s of the CoM.
        posture_weight: m, likewise of the legs' joints; it also damps near singular postures.
        body_weight: m, likewise of the other joints.
        feet_weight: Of an error of the soles against one of the CoM.
    """

    com_gain: float = 4.0
    trunk_gain: float = 4.0
    posture_gain: float = 1.0
    feet_gain: float = 4.0
    strain_gain: float = 0.4
    upright: bool = True
    margin: float = 0.01
    com_speed: float = 0.1
    com_acceleration: float = 0.5
    speed_share: float = 0.5
    joint_speed: float = 2.0
    joint_acceleration: float = 20.0
    joint_margin: float = 0.01
    give: float = 0.2
    slope_time: float = 0.05
    friction: float = 0.5
    height_weight: float = 0.1
    trunk_weight: float = 0.05
    posture_weight: float = 0.001
    body_weight: float = 0.005
    feet_weight: float = 100.0
