"""Posture protocol: the joint angles at which a standing robot tips over (no ROS)."""
