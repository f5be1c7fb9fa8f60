"""A robot, its centre of mass and what follows from it, in a web browser."""
