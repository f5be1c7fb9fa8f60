"""Centres of mass of a robot that moves: of the whole robot, and of a trotting quadruped's trunk.

The public names are those of com_estimation.whole_body and com_estimation.trunk, which import no
ROS; the nodes are in com_estimation.nodes.
"""
