"""Kinematics and inverse dynamics of a tree of bodies."""

GRAVITY = 9.81
"""m/s^2, used wherever no other value is given; MuJoCo has the same by default."""
