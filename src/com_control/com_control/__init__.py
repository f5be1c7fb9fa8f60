"""Trot gait of robots on four legs: legs' inverse kinematics, foot trajectories, feedback."""
