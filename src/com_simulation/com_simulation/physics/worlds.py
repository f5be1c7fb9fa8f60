"""Environments to test a robot in, by name, so that a trial can be repeated.

stiff, soft, noise, tiles_5mm, step_3cm, slope_5deg, ramp_5deg, friction_0.3, zeros_0.5deg,
delay_20ms, backlash_0.3deg, flexible_0.05mrad, with any number; several joined by "+".
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import mujoco
import numpy as np

from com_model.arrays import Array
from com_model.geometry.rotations import rotation_from_rpy
from com_simulation.exceptions import WorldError
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.spec import quaternion_wxyz

LENGTH, ANGLE = {"mm": 1e-3, "cm": 1e-2}, {"deg": np.pi / 180.0}
SIZES = {"tiles": LENGTH, "step": LENGTH, "delay": {"ms": 1e-3}, "friction": {"": 1.0}}
SIZES |= dict.fromkeys(
    ("ramp", "slope", "zeros", "backlash"), ANGLE
)  # unit of each kind
SIZES["flexible"] = {"mrad": 1e-3}
PLAIN = ("stiff", "soft", "noise")  # kinds without a number
DEPTH = 0.05  # m, half thickness of tiles and plates
AHEAD = 1.5  # sole lengths from the middle of the feet to a step or ramp


@dataclass(frozen=True)
class Surroundings:
    """An environment: ground, contacts, and errors of sensors and drives; SI units.

    Attributes:
        soft: 1: contacts are soft as in [CCGD].
        noise: 1: sensors have errors, see walking_noise.
        tiles: m, largest random height or depth of tiles of half a sole's length.
        step: m, upwards, AHEAD of the robot.
        ramp: rad, of the ground from there on.
        slope: rad, of all the ground, which rises forwards.
        friction: coefficient of feet on the ground.
        zeros: rad, largest encoder bias of a joint, and of its servo.
        delay: s, of all sensors.
        backlash: rad, of each drive.
        flexible: rad/(N m), compliance of each joint between its encoder and its link.
    """

    soft: float = 0.0
    noise: float = 0.0
    tiles: float = 0.0
    step: float = 0.0
    ramp: float = 0.0
    slope: float = 0.0
    friction: float = 1.0
    zeros: float = 0.0
    delay: float = 0.0
    backlash: float = 0.0
    flexible: float = 0.0


def find_world(name: str) -> Surroundings:
    """Parses the name of an environment; see the module's docstring.

    Args:
        name: parts joined by "+"; empty: flat, stiff ground.

    Returns:
        The environment.

    Raises:
        WorldError: a part is not one of these.
    """
    found: dict[str, float] = {}
    for part in filter(None, name.split("+")):
        kind, _, size = part.partition("_")
        number = re.fullmatch(r"([0-9]*\.?[0-9]+)([a-z]*)", size)
        if part in PLAIN:
            found |= {} if part == "stiff" else {part: 1.0}
        elif number is not None and number[2] in SIZES.get(kind, {}):
            found[kind] = float(number[1]) * SIZES[kind][number[2]]
        else:
            sized = ", ".join(
                f"{kind}_5{next(iter(units))}" for kind, units in SIZES.items()
            )
            raise WorldError(
                f"world {part!r}: give {', '.join(PLAIN)}, {sized}, or another number"
            )
    return Surroundings(**found)


def walking_noise(weight: float) -> NoiseLevels:
    """Errors of a walking humanoid's sensors.

    Args:
        weight: N, of the robot.
    """
    return NoiseLevels(
        position=2e-4,
        orientation=5e-4,
        orientation_bias=3e-3,
        force=2e-3 * weight,
        torque=1e-4 * weight,
        force_bias=3e-3 * weight,
        torque_bias=1.5e-4 * weight,
    )


def lay_ground(
    around: Surroundings, sole: float, seed: int, reach: float = 2.0
) -> Callable[[mujoco.MjSpec], None]:
    """Makes an edit of build_world that adds tiles, a step or a ramp.

    Tiles within two sole lengths of the robot are at height 0.

    Args:
        around: the environment.
        sole: m, length of a sole.
        seed: of the tiles' heights.
        reach: m, from the robot, of the tiles.

    Returns:
        Changes a specification.
    """
    rng, size, half = (
        np.random.default_rng(seed),
        0.5 * sole,
        np.array([10.0, 10.0, DEPTH]),
    )

    def edit(spec: mujoco.MjSpec) -> None:
        ground = spec.geom("ground")

        def lay(top: Array, half: Array, R: Array) -> None:
            """Adds a box whose top is part of the ground.

            Args:
                top: (3,) m, centre of its upper face.
                half: (3,) m, half sizes.
                R: (3, 3) its orientation.
            """
            geom = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half)
            geom.pos, geom.quat = top - DEPTH * R[:, 2], quaternion_wxyz(R)
            geom.contype, geom.conaffinity = ground.contype, ground.conaffinity
            geom.friction, geom.condim = ground.friction, ground.condim

        if around.tiles:
            ground.pos = [0.0, 0.0, -3.0 * around.tiles]
            for x, y in product(np.arange(-reach, reach + size, size), repeat=2):
                level = max(abs(x), abs(y)) < 2.0 * sole
                z = 0.0 if level else rng.uniform(-around.tiles, around.tiles)
                lay(
                    np.array([x, y, z]),
                    np.array([0.5 * size, 0.5 * size, DEPTH]),
                    np.eye(3),
                )
        if around.step or around.ramp:
            R = rotation_from_rpy((0.0, -around.ramp, 0.0))
            lay([AHEAD * sole, 0.0, around.step] + half[0] * R[:, 0], half, R)

    return edit
