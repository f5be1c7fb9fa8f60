"""Estimators of the centre of mass and their nodes."""
