"""Regression: postures on flat ground, observations, priors, least squares, identifiability."""
