"""Stationary postures found in streams of readings, live or from a bag."""
