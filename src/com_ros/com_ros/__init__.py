"""Common base of the suite's nodes: conversions, inputs, parameters, outputs."""
