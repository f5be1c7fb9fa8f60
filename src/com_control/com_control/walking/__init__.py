"""Walking on two legs: footsteps, pendulum, swing feet, inverse kinematics that place the CoM."""
