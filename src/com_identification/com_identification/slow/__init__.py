"""Identification and check-up from slow motions: swaying on both feet, hanging from a rope."""
