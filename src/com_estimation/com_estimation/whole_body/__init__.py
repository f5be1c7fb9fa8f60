"""The centre of mass of the whole robot, its stance and its support: com_state, stance."""
