"""Baselines: other methods than those of the nodes, which benchmarks and tests compare with."""
