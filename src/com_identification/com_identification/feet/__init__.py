"""Mass and CoM by the feet alone: reading, check of the wrenches, check of the model."""
