"""ROS nodes of com_identification."""
