"""A robot's configuration from its URDF: legs, feet, posture, sensors, servos, gait (no ROS)."""

from com_model.setup.describe import describe as describe
from com_model.setup.parts import RobotSetup as RobotSetup
from com_model.setup.writing import to_yaml as to_yaml
