"""Identification of the centre of mass of every link from a robot's own sensors (no ROS)."""
