"""Regression: observations of static postures, priors, least squares, identifiability."""
