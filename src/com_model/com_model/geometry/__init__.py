"""Rotations, vectors, convex hulls, support polygons."""
