"""Trot of quadrupeds: leg inverse kinematics, foot trajectories, feedback."""
