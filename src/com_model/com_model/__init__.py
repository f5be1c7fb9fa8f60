"""The true centre of mass of any URDF by statically equivalent serial chains (no ROS)."""
