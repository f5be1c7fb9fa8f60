"""Planning of postures: stances, collisions, feasible postures and paths, choice."""
