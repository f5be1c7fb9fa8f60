"""Whether a configuration that was written can be used: it is loaded, and the robot stands."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from com_model.arrays import Array
from com_model.exceptions import (
    ComModelError,
    ConfigWarning,
    import_optional,
    listing,
    pip_install,
)

Loader = Callable[[Path, Path], tuple[Any, Any]]  # model and configuration
SUPPORT = 3  # points on the ground, at least, to stand without feedback


def check_written(load: Loader, urdf: Path, config: Path, up: Array) -> tuple[str, str]:
    """Loads a configuration as every node does, and lets the robot stand for 2 s.

    It stands in simulation, by its servos alone (com_simulation.physics.standing), where MuJoCo
    is installed and its feet have three points or more.

    Args:
        load: Reads a URDF with a configuration: load_robot.
        urdf: The robot's URDF.
        config: Its configuration.
        up: (3,) unit vector in the root link's axes that points upwards where it stands.

    Returns:
        A note for people, and what is wrong, with the line to edit; "" where nothing is.
    """
    try:
        with warnings.catch_warnings():  # com_setup lists what is unsure
            warnings.simplefilter("ignore", ConfigWarning)
            model, found = load(urdf, config)
    except ComModelError as error:
        return "", f"what it wrote cannot be loaded: {error}"
    sides = [foot.side for foot in found.feet]
    if len(sides) in (2, 4) and sides.count("left") != sides.count("right"):
        where = _place(config, "feet")
        return "", f"{where}: half of them are left ones, not {listing(sides)}"
    if sum(len(foot.points) for foot in found.feet) < SUPPORT:
        note = (
            "not tried to stand in simulation: its feet are no support without feedback"
        )
        return note, ""
    fix = f"in the suite's folder: {pip_install('./src/com_simulation mujoco')}"
    try:
        name = "com_simulation.physics.standing"
        try_standing = import_optional(name, fix).try_standing
    except ComModelError as error:
        return f"not tried to stand in simulation: {error}", ""
    try:
        stood = try_standing(model, found, urdf, up=up)
    except ComModelError as error:
        return "", f"{_place(config, 'servo')}: it cannot be simulated: {error}"
    if stood.problem:
        where = _place(config, "posture")
        return "", f"{where}, or feet, or servo: in simulation {stood.problem}"
    return f"stands for 2 s in simulation, tilts by {stood.tilt:.1f} degrees", ""


def _place(config: Path, key: str) -> str:
    """Words for a key of a file: its path and line."""
    lines = config.read_text().splitlines()
    line = next((i for i, row in enumerate(lines, 1) if row.startswith(f"{key}:")), 1)
    return f"{config}, line {line}, {key}"
