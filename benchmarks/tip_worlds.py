"""The thesis' simulated worlds, recomputed, and two explanations of the same tip angles.

Tip angles of HOAP-2 by [Cominoli] Table 6: WORLD1 to WORLD6 as config/motion_lab/hoap2.yaml has
them, against the column that the thesis prints; where it prints no place of the torso's CoM (2, 6),
the one that fits the column best. The real robot's angles are explained by a CoM that is higher and
shifted, or by joint zeros and compliance: what both predict for measurements that nobody made.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from com_identification.tip_over.fit import TipFit
from com_identification.tip_over.quasi_static import QuasiStatic, read_joint_errors
from com_model.strict_yaml import read_yaml

Array = NDArray[np.float64]
SAGITTAL = ("front", "back")
TORSO = "BODY1"
LEG = ("LLEG_JOINT3", "LLEG_JOINT4", "LLEG_JOINT5")


def sagittal(simulation: QuasiStatic) -> list[int]:
    """Numbers of the twelve tests that do not roll."""
    return [i for i, test in enumerate(simulation.tests) if test.falls in SAGITTAL]


def recompute(
    simulation: QuasiStatic, table: dict[str, Array], path: Path
) -> dict[str, list[float]]:
    """Our angles of each world against its column, deg.

    Mean and largest difference of the sagittal tests, mean of those that roll.
    """
    result, tests = {}, sagittal(simulation)
    rolls = [i for i in range(len(simulation.tests)) if i not in tests]
    model = simulation.model
    for name, world in read_yaml(path)["models"].items():
        if name in table:
            moment, errors = np.array(model.bodies.first_moment), None
            if world.get("com_at_joint"):
                moment[:] = 0.0
            for link, com in world.get("coms", {}).items():
                i = model.link_index(link)
                moved = com - model.link_coms[i]
                moment[model.bodies.body_of_link[i]] += model.link_masses[i] * moved
            if "joint_errors" in world:
                errors = read_joint_errors(path.parent / world["joint_errors"], model)
            angles = simulation.tip_angles(errors, moment)
            error = np.degrees(np.abs(angles - table[name]))
            flat, roll = error[tests], float(error[rolls].mean())
            result[name] = [
                round(float(flat.mean()), 3),
                round(float(flat.max()), 2),
                round(roll, 2),
            ]
    return result


def shifted(simulation: QuasiStatic, shift: Array) -> Array:
    """First moments of the bodies with the torso's CoM shifted by x, z (m)."""
    model = simulation.model
    link = model.link_index(TORSO)
    moment = np.array(model.bodies.first_moment)
    moment[model.bodies.body_of_link[link], [0, 2]] += model.link_masses[link] * shift
    return moment


def find_torso(
    simulation: QuasiStatic, angles: Array, tests: list[int]
) -> tuple[Array, float]:
    """Place x, z (m) of the torso's CoM that fits angles best, and the mean error, deg."""
    wanted = angles[tests]

    def errors(shift: Array) -> Array:
        found = simulation.tip_angles(moment=shifted(simulation, shift))[tests]
        return np.where(np.isnan(found), 1.0, found - wanted)

    start = np.array([0.0, 0.02])
    found = least_squares(
        errors, start, loss="soft_l1", f_scale=0.02, diff_step=1e-4, x_scale=0.05
    )
    place = (
        simulation.model.link_coms[simulation.model.link_index(TORSO)][[0, 2]] + found.x
    )
    return place, float(np.degrees(np.abs(errors(found.x)).mean()))


def predictions(
    simulation: QuasiStatic, found: TipFit, torso: Array
) -> dict[str, dict[str, float]]:
    """What both explanations predict of the robot that stands with all encoders at 0.

    lean_deg: of its trunk to the front, by an IMU; cop_mm: before the ankles, by its feet;
    com_height_mm: over the soles, as the robot lying on a plate, or hanging, shows it.
    """
    model = simulation.model
    x0 = model.link_coms[model.link_index(TORSO)][[0, 2]]
    errors = found.candidate.errors(found.x)
    cases = {
        "raised CoM": (None, shifted(simulation, torso - x0)),
        "joint zeros and compliance": (errors, found.candidate.moments(model, found.x)),
    }
    result = {}
    for name, (joints, moment) in cases.items():
        standing = simulation.find_equilibrium(0, 0.0, joints, moment)
        lean = -sum(standing.q[model.joint_index(joint)] for joint in LEG)
        rigid = simulation.find_equilibrium(0, 0.0, None, moment).com
        result[name] = {
            "lean_deg": round(float(np.degrees(lean)), 2),
            "cop_mm": round(1e3 * float(standing.com[0]), 1),
            "com_height_mm": round(1e3 * float(rigid[2]), 1),
        }
    return result
