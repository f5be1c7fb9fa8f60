"""The checks that [Cominoli] made of its simulator, made of ours: boxes over an edge, the protocol.

Boxes (figures 27 and 28): one whose CoM is not in its middle is laid over the edge of a table, and
three are stacked, each over the edge of the one below. They fall when a CoM passes the edge that
carries it; how far beyond it that happens is found by bisection.

The protocol (section 7.3): one pair of joints after another turns slowly, from the start posture
on, until the standing feet tilt; the twelve tests that do not roll, the robot as its URDF says.
"""

from __future__ import annotations

import time
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from tip_ramp import Ramp, Turn, ramp_tip_angle, stiff_world
from tip_worlds import sagittal

from com_identification.tip_over.quasi_static import QuasiStatic
from com_model import RobotConfig
from com_simulation.physics.contacts import CONTACTS

Array = NDArray[np.float64]

LENGTH, HEIGHT, COM = 0.2, 0.05, 0.03  # m, of a box; its CoM before its middle
SECONDS, FALLEN = 3.0, np.radians(5.0)  # a box that has not turned by then stays
RAMP = Ramp(approach=0.1)


def boxes() -> dict[str, float]:
    """How far beyond the edge a CoM is when the boxes fall, mm; negative: before it."""
    thirds = np.array(
        [0.5, 0.25, 1.0 / 6.0]
    )  # of a box, the overhangs at which all CoMs pass
    one = _bisect(lambda beyond: falls([LENGTH / 2.0 - COM + beyond], COM))
    three = _bisect(
        lambda beyond: falls((thirds[::-1] * LENGTH + beyond).tolist(), 0.0)
    )
    return {"one_box_mm": round(1e3 * one, 2), "three_boxes_mm": round(1e3 * three, 2)}


def _bisect(falls: Any) -> float:
    """The least distance (m) at which the boxes fall, to 0.05 mm, between -5 and 5 mm."""
    stays, fell = -0.005, 0.005
    while fell - stays > 5e-5:
        middle = (stays + fell) / 2.0
        stays, fell = (stays, middle) if falls(middle) else (middle, fell)
    return fell


def falls(overhangs: list[float], com: float) -> bool:
    """Whether boxes fall, the lowest first, each so far (m) over the edge below it."""
    reference, impedance = (" ".join(map(str, v)) for v in CONTACTS["stiff"])
    xml, edge = "", 0.0
    for i, overhang in enumerate(overhangs):
        edge += overhang
        place = f"{edge - LENGTH / 2.0} 0 {HEIGHT * (i + 0.5)}"
        inertia = f"{HEIGHT**2 / 6} {(LENGTH**2 + HEIGHT**2) / 12} {(LENGTH**2 + HEIGHT**2) / 12}"
        xml += (
            f'<body pos="{place}"><freejoint/><inertial mass="1" pos="{com} 0 0" '
            f'diaginertia="{inertia}"/><geom type="box" size="{LENGTH / 2} {HEIGHT} {HEIGHT / 2}"/>'
            "</body>"
        )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><default><geom solref="{reference}" solimp="{impedance}"/></default><worldbody>'
        f'<geom type="box" size="1 1 0.5" pos="-1 0 -0.5"/>{xml}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    while data.time < SECONDS:
        mujoco.mj_step(model, data)
        if data.xmat[1:, 8].min() < np.cos(FALLEN):
            return True
    return False


def protocol(
    simulation: QuasiStatic, config: RobotConfig, real: Array
) -> dict[str, Any]:
    """Runs the sagittal tests one after the other; how long they take, how far off they are."""
    began, robot_s, away, differences = time.process_time(), 0.0, [], []
    expected = simulation.tip_angles()
    for i in sagittal(simulation):
        test = simulation.tests[i]
        limit = float(simulation.cases[i].limits[int(test.turn > 0)])
        world = stiff_world(simulation.model, config, test.start)
        turn = Turn(test.joints, test.feet, test.opposite)
        angle = ramp_tip_angle(world, turn, 0.0, limit, RAMP)
        turned = abs(limit if np.isnan(angle) else angle)
        robot_s += RAMP.settle + RAMP.approach + turned / RAMP.speed
        ours, robot = np.degrees([angle, real[i]])
        row = f"simulated {ours:7.2f}, real {robot:7.2f}, difference {ours - robot:+7.2f} deg"
        print(f"protocol {test.name:28} {row}", flush=True)
        away.append(abs(ours - np.degrees(expected[i])))
        differences.append(abs(ours - robot))
    return {
        "tests": len(away),
        "fell": int(np.isfinite(away).sum()),
        "robot_minutes": round(float(robot_s) / 60.0, 2),
        "cpu_minutes": round((time.process_time() - began) / 60.0, 2),
        "from_quasi_static_deg": round(float(np.nanmean(away)), 2),
        "from_robot_deg": round(float(np.nanmean(differences)), 2),
    }
