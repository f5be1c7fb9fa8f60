"""MuJoCo in the place of a robot and its drivers, and pictures of robots; the nodes are in nodes/.

The names below are imported when they are used: MuJoCo takes a while.
"""

from com_model.public_names import import_when_used

_NAMES = {
    "physics.sensors": "NoiseLevels Reading",
    "physics.simulation": "Simulation",
    "physics.world_builder": "World build_world",
    "drawing.pictures": "draw_picture",
}
__getattr__, __all__ = import_when_used(__name__, _NAMES)
