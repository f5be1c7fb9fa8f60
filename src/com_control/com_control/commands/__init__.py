"""Commands of com_control (no ROS)."""
