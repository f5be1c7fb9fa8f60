"""HOAP-2's posture protocol: the thesis' tables, our quasi-static model, fits to the real robot.

Prints for each candidate the mean absolute error over the sixteen tests, then with one test, two
tests, one family of tests left out in turn and predicted by the rest. The last line is one JSON
object:
  table7_deg            mean absolute difference of each world to the robot, from Table 6 itself
  world3_sagittal_mean_deg, world5_...   our model against the thesis' simulation, twelve tests
  worlds_deg            [mean, largest] difference of each recomputed world to its column, likewise;
                        and mean of the four tests that roll
  torso_mm              [x, z, mean error in deg] of the torso's CoM that fits the columns of world2
                        and world6, and the real robot's angles, best
  standing              what a raised CoM, and joint zeros and compliance, predict of the robot that
                        stands with encoders at 0: lean of the trunk, CoP, height of the CoM
  real_mae_deg, loo_deg, l2o_deg, family_out_deg    of the candidate "offsets + compliance"
  fit_deg               its zero offsets, and compliance per N m
  pseudo_inverse_deg    error of [Cotton] eq. 15 on its own data
  lean_deg              [ankle, hip] of the standing robot that this fit predicts; measured: 2, 2
  candidates            [all, one out, two out, a family out ...] of each explanation, deg; two out
                        of every tenth pair only where it is not the adopted one
  ramp_vs_static_deg    mean difference of MuJoCo's slow ramps to the quasi-static angles, sagittal
  ramp_vs_static_max_deg  the largest
  boxes, protocol       the thesis' checks of its simulator, made of MuJoCo (tip_protocol.py)
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path

import numpy as np
from baselines.tip_over_chain import pseudo_inverse
from tip_protocol import boxes
from tip_protocol import protocol as run_protocol
from tip_ramp import Turn, ramp_tip_angle, stiff_world
from tip_worlds import SAGITTAL, find_torso, predictions, recompute, sagittal

from com_identification.exceptions import RefusedFitError
from com_identification.tip_over.fit import (
    TipFit,
    cross_validate,
    families,
    fit,
    known_candidates,
)
from com_identification.tip_over.protocol import TipProtocol, read_angles
from com_identification.tip_over.quasi_static import QuasiStatic
from com_identification.tip_over.report import mean_error
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array

DESCRIPTIONS = Path(__file__).resolve().parent.parent / "src/robot_descriptions"
ADOPTED = "offsets + compliance"
SLOW = "links"  # candidates with so many unknowns that two tests are not left out
Scores = tuple[
    Array, Array, Array
]  # degrees, with one test, two tests, a family left out


def ramps(simulation: QuasiStatic, config: RobotConfig, quick: bool) -> Array:
    """Ramps the sagittal tests in MuJoCo; differences to our angles, degrees.

    Rolling both ankles stands the robot on two edges at once, so those four are left out, and so
    are tests that do not tip before the limit of the joint.
    """
    angles, errors = simulation.tip_angles(), []
    for case, angle in zip(simulation.cases, angles, strict=True):
        test, limit = case.test, case.limits[case.test.turn > 0]
        if test.falls not in SAGITTAL or abs(angle - limit) < 1e-6:
            continue
        world = stiff_world(simulation.model, config, test.start)
        begin = float(angle) - test.turn * np.radians(5.0)
        end = float(angle) + test.turn * np.radians(5.0)
        turn = Turn(test.joints, test.feet, test.opposite)
        errors.append(np.degrees(ramp_tip_angle(world, turn, begin, end) - angle))
        print(
            f"ramp {test.name:28} {np.degrees(angle):7.2f} deg, MuJoCo {errors[-1]:+.2f}",
            flush=True,
        )
        if quick:
            break
    return np.abs(errors)


def validate(simulation: QuasiStatic, found: TipFit, quick: bool) -> Scores:
    """Leaves out one test, two tests, one family; degrees, errors of each group."""
    count = len(simulation.tests)
    pairs = list(combinations(range(count), 2))
    return (
        cross_validate(simulation, found, [(i,) for i in range(count)]),
        cross_validate(simulation, found, pairs[::10] if quick else pairs),
        cross_validate(simulation, found, list(families(simulation).values())),
    )


def lean(simulation: QuasiStatic, found: TipFit) -> list[float]:
    """Predicts how far the standing robot leans forward at ankle and hip, degrees."""
    moment = found.candidate.moments(simulation.model, found.x)
    joints = simulation.find_equilibrium(
        0, 0.0, found.candidate.errors(found.x), moment
    ).q
    names = ("LLEG_JOINT5", "LLEG_JOINT3")
    return [
        round(float(-np.degrees(joints[simulation.model.joint_index(n)])), 2)
        for n in names
    ]


def show_pseudo_inverse(simulation: QuasiStatic, real: Array) -> float:
    """Prints what eq. 15 gives, and why it is refused; its error, deg."""
    raw = pseudo_inverse(simulation, real)
    print(f"[Cotton] eq. 15: {raw.error_deg:.2f} deg on its own data, and")
    try:
        raw.check()
    except RefusedFitError as refusal:
        print("   ", refusal)
    return round(float(raw.error_deg), 2)


def compare(
    simulation: QuasiStatic, protocol: TipProtocol, real: Array, quick: bool
) -> tuple[TipFit, Scores, dict[str, list[float]]]:
    """Fits and validates the candidates, a line each; gives the adopted one, and all figures."""
    print(f"{'candidate':32}  all   one out   two out   family out")
    results, figures = {}, {}
    for name, candidate in known_candidates(simulation.model, protocol).items():
        if quick and name != ADOPTED:
            continue
        found = fit(simulation, real, candidate)
        scores = validate(simulation, found, quick or SLOW in name or name != ADOPTED)
        means = "   ".join(f"{group.mean():6.2f}" for group in scores[:2])
        each = " ".join(f"{value:5.2f}" for value in scores[2])
        print(f"{name:32} {found.mean_error_deg:5.2f}  {means}    {each}", flush=True)
        results[name] = found, scores
        values = found.mean_error_deg, scores[0].mean(), scores[1].mean(), *scores[2]
        figures[name.replace(" + ", " and ")] = [
            round(float(value), 3) for value in values
        ]
    return *results[ADOPTED], figures


def figures_of(
    simulation: QuasiStatic, found: TipFit, scores: Scores
) -> dict[str, object]:
    """Gives the figures of a fit for the last line."""
    by_family = zip(families(simulation), scores[2].tolist(), strict=True)
    return {
        "real_mae_deg": round(found.mean_error_deg, 3),
        "loo_deg": round(float(scores[0].mean()), 3),
        "l2o_deg": round(float(scores[1].mean()), 3),
        "family_out_deg": {name: round(value, 3) for name, value in by_family},
        "lean_deg": lean(simulation, found),
    }


def table7(table: dict[str, Array], real: Array) -> dict[str, float]:
    """Mean absolute difference of each world to the real robot, degrees."""
    names = [name for name in table if name != "real"]
    return {
        name: round(float(np.degrees(mean_error(table[name], real))), 2)
        for name in names
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="few pairs, ramps and candidates"
    )
    quick = parser.parse_args().quick
    config = RobotConfig.from_file(DESCRIPTIONS / "config/hoap2.yaml")
    assert config.urdf is not None
    protocol = TipProtocol.from_file(
        DESCRIPTIONS / "config/posture_protocol/hoap2.yaml"
    )
    simulation = QuasiStatic.from_protocol(
        RobotModel.from_file(config.urdf), config, protocol
    )
    table = read_angles(DESCRIPTIONS / "data/hoap2_posture_protocol.csv", protocol)
    real = table["real"]
    simulated = recompute(
        simulation, table, DESCRIPTIONS / "config/motion_lab/hoap2.yaml"
    )
    tests, torso, places = sagittal(simulation), {}, {}
    for name in ("world2", "world6", "real"):
        places[name], error = find_torso(simulation, table[name], tests)
        torso[name] = [*np.round(1e3 * places[name], 1).tolist(), round(error, 2)]
    found, scores, candidates = compare(simulation, protocol, real, quick)
    chain_error = show_pseudo_inverse(simulation, real)
    ramp_errors = ramps(simulation, config, quick)
    for label, value in zip(found.candidate.labels, found.x, strict=True):
        print(f"{label}: {np.degrees(value):.2f} deg")
    summary = {
        "table7_deg": table7(table, real),
        "world3_sagittal_mean_deg": simulated["world3"][0],
        "world5_sagittal_mean_deg": simulated["world5"][0],
        "worlds_deg": simulated,
        "torso_mm": torso,
        "standing": predictions(simulation, found, places["real"]),
        **figures_of(simulation, found, scores),
        "fit_deg": np.round(np.degrees(found.x), 2).tolist(),
        "pseudo_inverse_deg": chain_error,
        "candidates": candidates,
        "ramp_vs_static_deg": round(float(ramp_errors.mean()), 3),
        "ramp_vs_static_max_deg": round(float(ramp_errors.max()), 2),
        "boxes": boxes(),
        "protocol": {} if quick else run_protocol(simulation, config, real),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
