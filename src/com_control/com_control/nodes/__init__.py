"""ROS nodes of com_control."""
