"""MuJoCo in the place of a robot and its drivers, and shapes of robots; the nodes are in nodes/.

The names below are imported when they are used: MuJoCo takes a while.
"""

from typing import TYPE_CHECKING

from com_model.public_names import import_when_used

if TYPE_CHECKING:
    from com_simulation.physics.sensors import NoiseLevels, Reading
    from com_simulation.physics.simulation import Simulation
    from com_simulation.physics.world_builder import World, build_world

__getattr__, __all__ = import_when_used(__name__, __file__)
