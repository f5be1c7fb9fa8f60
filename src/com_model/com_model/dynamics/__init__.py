"""Kinematics and inverse dynamics of a tree of bodies."""
