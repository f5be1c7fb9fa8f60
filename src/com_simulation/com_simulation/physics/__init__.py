"""MuJoCo worlds, sensors, servos and motions."""
