"""ROS nodes of com_estimation."""
