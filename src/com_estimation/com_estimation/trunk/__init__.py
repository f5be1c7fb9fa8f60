"""Estimators of a quadruped's trunk."""
