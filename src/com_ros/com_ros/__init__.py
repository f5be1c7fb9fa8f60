"""What the nodes of the Center of Mass suite share: conversions, inputs, parameters, outputs."""
