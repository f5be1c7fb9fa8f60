"""Postures and results on disk."""
