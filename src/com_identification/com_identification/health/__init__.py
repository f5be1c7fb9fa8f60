"""The record of a robot: its identifications over time, and what changed."""
