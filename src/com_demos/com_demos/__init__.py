"""Demonstrations of the suite: what `make demo` and its kin run."""
