"""MuJoCo in the place of a robot and its drivers, and pictures of robots; the nodes are in nodes/.

The names below are imported when they are used: MuJoCo takes a while.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "NoiseLevels": "physics.noise",
    "Reading": "physics.sensors",
    "Simulation": "physics.simulation",
    "World": "physics.world",
    "build_world": "physics.world_builder",
    "draw_picture": "drawing.pictures",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
