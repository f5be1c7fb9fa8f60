"""ROS nodes of com_simulation."""
