"""Moves robots with their true centre of mass where it is desired; the nodes are in nodes/.

walking, trot, balance and motion import no ROS; command_guard is what every commanding node sends
through.
"""
