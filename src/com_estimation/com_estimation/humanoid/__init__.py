"""Which part of a moving robot's model or which sensor is wrong, by the wrenches of its feet."""
