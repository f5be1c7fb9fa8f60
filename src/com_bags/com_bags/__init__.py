"""Readings of a robot's sensors out of rosbag2 recordings, without ROS."""
