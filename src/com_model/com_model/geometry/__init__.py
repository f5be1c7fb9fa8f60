"""Rotations, convex hulls, support polygons, shapes."""
