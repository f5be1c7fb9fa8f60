"""Moves robots with their true centre of mass where it is desired; the nodes are in nodes/.

walking, trot, balance and motion import no ROS; command_guard is what every commanding node sends
through. An argument of another shape than documented raises com_model's ShapeError.
"""
