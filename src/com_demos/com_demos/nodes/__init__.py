"""Nodes that listen to a demonstration."""
