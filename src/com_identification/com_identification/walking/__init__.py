"""Inertial parameters from ordinary walking: joint torques and an IMU, no foot force sensors."""
