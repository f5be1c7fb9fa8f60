"""Planning of postures: collisions, feasible postures and paths, choice."""
