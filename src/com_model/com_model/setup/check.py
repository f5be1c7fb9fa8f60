"""Whether a configuration that was written can be used: it is loaded, the robot stands, walks."""

import warnings
from collections.abc import Callable
from dataclasses import replace
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
from com_model.setup.parts import RobotSetup

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
    try:
        try_standing = _physics().try_standing
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


def with_steps(
    setup: RobotSetup, load: Loader, urdf: Path, config: Path
) -> tuple[RobotSetup, str]:
    """Chooses a biped's steps by planning them and, in simulation, walking them.

    The first four steps are tried that are within the joints' limits and on which the robot does
    not fall, by its servos alone: those of setup.gait, then slower and quicker ones, for robots
    that rock on their soles, then shorter ones. Where com_control or MuJoCo is not installed the
    steps stay.

    Args:
        setup: The robot.
        load: Reads a URDF with a configuration: load_robot.
        urdf: The robot's URDF.
        config: Its configuration, which can be loaded.

    Returns:
        The robot with the steps that were found, and a note for people. Where none is within the
        limits it has no steps, and an issue that says why; where it falls by all, those of
        setup.gait, and an issue.
    """
    sizes = setup.gait.get("walking", {})
    if not sizes:
        return setup, ""
    fix = f"in the suite's folder: {pip_install('./src/com_control ./src/com_ros')}"
    try:
        plan_steps = import_optional("com_control.walking.walker", fix).plan_steps
        time_of_fall = _physics().time_of_fall
    except ComModelError as error:
        return setup, f"its steps were not tried: {error}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        model, found = load(urdf, config)
    why, fell = "", ""
    for slower, shorter in (
        (1, 1),
        (1.3, 1),
        (1.6, 1),
        (0.75, 1),
        (1, 0.5),
        (1.6, 0.5),
    ):
        tried = sizes | {
            "step_time": round(slower * sizes["step_time"], 2),
            "step_length": round(shorter * sizes["step_length"], 3),
        }
        steps = replace(found, walking=type(found.walking)(**tried))
        try:
            path = plan_steps(model, steps, count=4).path
            fall = time_of_fall(model, steps, path, urdf)
        except ComModelError as error:
            why = why or str(error)
            continue
        if not fall > 0.0:
            note = f"walks 4 steps of {tried['step_time']:g} s in simulation"
            return replace(setup, gait={"walking": tried}), note
        fell = fell or f"falls {fall:.1f} s after the start of 4 steps in simulation"
    if fell:
        issues = (*setup.issues, ("walking", f"without feedback it {fell}"))
        return replace(setup, issues=issues), ""
    issues = (*setup.issues, ("kind", f"it does not walk: {why}"))
    return replace(setup, gait={}, issues=issues), ""


def _physics() -> Any:
    """What lets a robot stand and walk; ComModelError where there is no MuJoCo."""
    fix = f"in the suite's folder: {pip_install('./src/com_simulation mujoco')}"
    return import_optional("com_simulation.physics.standing", fix)


def _place(config: Path, key: str) -> str:
    """Words for a key of a file: its path and line."""
    lines = config.read_text().splitlines()
    line = next((i for i, row in enumerate(lines, 1) if row.startswith(f"{key}:")), 1)
    return f"{config}, line {line}, {key}"
