"""MuJoCo in the place of a robot and its drivers: the same topics, plus the true centre of mass."""
