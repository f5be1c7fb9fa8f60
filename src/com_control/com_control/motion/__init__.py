"""Motion files of robots: reading, writing, checking, smooth beginnings (no ROS)."""
