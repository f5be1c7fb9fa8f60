"""Checks of a robot: its URDF, and its configuration."""
