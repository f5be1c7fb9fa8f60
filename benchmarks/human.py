"""A person's centre of mass from force plates and motion capture, against the table of de Leva.

A body of 35 joints whose segments' masses are 10 % and CoMs 20 mm off the table (RMS length),
1.80 m, 70 kg. 40 postures on force plates with noise of 2 N and 1 N m. Joint angles and the root by
a fit to four markers a segment, whose soft tissue moves each by 5 to 10 mm, new in each posture;
`angles` has angles with 2 degrees of noise and the root exactly instead, `by_angles` with 0.5, 1
and 2 degrees and 40 or 100 postures. The true CoM is Pinocchio's. The error is that of the CoM
relative to the root, horizontal, in 40 other postures. Nothing is averaged: each posture is read
once, and its noise is new.

table_mm       RMS error of the table, mean of the seeds
identified_mm  of the identification from markers
nees           squared error over its covariance, mean: 1 is honest, below 1 cautious
angles         the same three of `angles`
by_angles      {degrees of noise: {postures: identified_mm}}, one reading of each posture
by_readings    {readings: [identified_mm, nees]}: 2 degrees, 40 postures, means of so many readings
               of angles and plates, each with its own noise
chosen         {readings: [identified_mm, nees]}: the same, but the 40 postures are those of 400
               random ones that the planner's criterion finds most informative by the table; the
               person takes each of them 5 degrees off in each joint

--full: 10 seeds instead of 3. The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import csv
import json
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio

from com_identification.human import (
    MarkerFit,
    human_posture,
    human_settings,
    human_urdf,
    plate_foot,
)
from com_identification.planning.planner import (
    choose_greedily,
    covariance_without,
    prediction_score,
)
from com_identification.regression.identify import identify
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.regression.priors import body_priors
from com_identification.regression.rows import whiten
from com_identification.regression.statics import Statics, prediction_rows
from com_identification.store.results import corrected_inertials
from com_model import RobotModel
from com_model.arrays import Array
from com_model.geometry.rotations import rotations_about
from com_model.urdf.editing import edit_inertials

POSTURES, HELD_OUT, G = 40, 40, 9.80665
TABLE = Path(__file__).parents[1] / "src/robot_descriptions/data/human_segments.csv"
NOISE_DEG, MANY, READINGS = (0.5, 1.0, 2.0), 100, (1, 2, 10)
# to choose from; how far off each joint is taken
CANDIDATES, TAKEN = 400, np.radians(5.0)
FORCE, MOMENT = 2.0, 1.0
Pose = tuple[Array, Array, Array]  # q, R and p of the root
TISSUE = 0.005, 0.010  # m


class Person:
    """A true person, by Pinocchio, and the table's model."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.model = RobotModel.from_urdf(human_urdf(1.80, 70.0, "m"))
        bodies, normal = self.model.bodies, self.rng.normal
        heavy = bodies.mass > 0.0
        com = np.zeros((bodies.count, 3))
        com[heavy] = bodies.first_moment[heavy] / bodies.mass[heavy, None]
        mass = bodies.mass * (1.0 + 0.1 * normal(size=bodies.count))
        mass *= bodies.mass.sum() / mass.sum()  # the person was weighed
        com += normal(0.0, 0.02 / np.sqrt(3.0), com.shape) * heavy[:, None]
        xml = edit_inertials(self.model.xml, corrected_inertials(self.model, mass, com))
        self.pin = pinocchio.buildModelFromXML(xml, pinocchio.JointModelFreeFlyer())
        self.data = self.pin.createData()
        self.places = [
            self.pin.joints[self.pin.getJointId(name)].idx_q
            for name in self.model.joint_names
        ]
        self.weight = G * mass.sum()

    def com(self, q: Array) -> Array:
        """In root axes."""
        full = pinocchio.neutral(self.pin)
        full[self.places] = q
        return np.array(pinocchio.centerOfMass(self.pin, self.data, full))

    def pose(self) -> Pose:
        """A random posture over the plates."""
        q = self.rng.normal(0.0, 0.45, self.model.n_joints)
        axis = self.rng.normal(size=3)
        R = rotations_about(
            axis[None] / np.linalg.norm(axis), self.rng.normal(0.0, 0.2, 1)
        )[0]
        return q, R, np.array([0.3, 0.2, 0.9]) + self.rng.normal(0.0, 0.05, 3)

    def wrench(self, q: Array, R: Array, p: Array) -> Array:
        """(6,) of the plates about their origin, with noise."""
        force = np.array([0.0, 0.0, self.weight])
        true = np.concatenate((force, np.cross(p + R @ self.com(q), force)))
        return true + self.rng.normal(size=6) * np.repeat([FORCE, MOMENT], 3)


def markers(model: RobotModel) -> dict[str, tuple[str, Array]]:
    """Four markers along each segment, 5 cm beside its middle line."""
    beside = np.array([[0.05, 0.0], [0.0, 0.05], [-0.05, 0.0], [0.0, -0.05]])
    found: dict[str, tuple[str, Array]] = {}
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        lengths = {row["segment"]: float(row["length_m_mm"]) / 1000.0 for row in rows}
    for link in model.link_names:
        name = link.removeprefix("l_").removeprefix("r_")
        if name in lengths:
            length = lengths[name]
            down = 1.0 if name.endswith("trunk") or name == "head" else -1.0
            along = down * length * np.array([0.05, 0.95, 0.4, 0.7])
            places = np.column_stack((beside, along))
            if name == "foot":
                places = np.column_stack((-along - 0.25 * length, beside[:, ::-1]))
            found |= {f"{link}{k}": (link, at) for k, at in enumerate(places)}
    return found


def judge(
    person: Person, parameters: Array, covariance: Array | None
) -> tuple[float, float]:
    """RMS error in other postures, mm, and NEES."""
    statics, errors, nees = Statics(person.model), [], []
    for _ in range(HELD_OUT):
        q, R, _ = person.pose()
        poses, up = statics.poses(q[None]), R.T[:, 2]
        gap = statics.com(poses, parameters)[0] - person.com(q)
        basis = np.linalg.svd(up[None])[2][1:]  # perpendicular to gravity
        errors.append(basis @ gap)
        if covariance is not None:
            rows = basis @ prediction_rows(statics, poses, up[None], parameters)[0]
            nees.append(
                errors[-1]
                @ np.linalg.solve(rows @ covariance @ rows.T, errors[-1])
                / 2.0
            )
    rms = 1e3 * float(np.sqrt(np.mean(np.sum(np.square(errors), axis=1))))
    return rms, float(np.mean(nees)) if nees else float("nan")


def angle_errors(model: RobotModel, noise: float) -> Array:
    """Of joint positions with such noise, rad, and of an exact root; see human_posture()."""
    return noise * np.eye(model.n_joints + 6, model.n_joints)


def choose(
    person: Person, count: int, noise: float, plates: tuple[float, float]
) -> list[Pose]:
    """Chooses postures by the table, as the planner does by its criterion `prediction`."""
    model, poses = person.model, [person.pose() for _ in range(CANDIDATES)]
    settings, statics = human_settings(model, 0.0), Statics(model)
    priors, errors = body_priors(model, settings), angle_errors(model, noise)
    foot, gravity = [plate_foot()], settings.fit.gravity
    observations = ObservationModel(
        model, foot, settings.noise, gravity, settings.sensors
    )

    def rows(pose: Pose) -> Array:
        q, R, p = pose
        force = np.array([0.0, 0.0, gravity * model.mass])
        com = p + R @ statics.com(statics.poses(q[None]), statics.parameters)[0]
        posture = human_posture(
            model, *pose, np.hstack((force, np.cross(com, force))), plates, errors
        )
        found = observations.linearize(
            posture, priors.parameters, observations.errors.means
        )
        return whiten(found.bodies @ priors.factor, found.total_noise)

    matrices, Q = (
        np.array([rows(pose) for pose in poses]),
        np.array([q for q, _, _ in poses]),
    )
    up = np.array([R[2] for _, R, _ in poses])
    columns = prediction_rows(statics, statics.poses(Q), up, priors.parameters)
    columns = columns.reshape(-1, len(priors.parameters)) @ priors.factor
    score, scatter = (
        prediction_score(columns.T @ columns / len(poses)),
        np.eye(priors.count),
    )
    chosen = choose_greedily(matrices, count, scatter, score)
    for place in range(count):  # exchange
        values = score(covariance_without(scatter, matrices[chosen], place), matrices)
        values[chosen[:place] + chosen[place + 1 :]] = -np.inf
        chosen[place] = int(np.argmax(values))
    return [poses[i] for i in chosen]


def run(
    seed: int,
    by_markers: bool,
    noise_deg: float = 2.0,
    count: int = POSTURES,
    readings: int = 1,
    by_choice: bool = False,
) -> dict[str, Any]:
    """One person, identified from markers, or from angles with such noise of each reading."""
    person = Person(seed)
    fit, rng = MarkerFit(person.model, markers(person.model)), person.rng
    noise = float(np.radians(noise_deg) / np.sqrt(readings))
    plates = FORCE / readings**0.5, MOMENT / readings**0.5
    postures, angles, errors = list[Posture](), [], angle_errors(person.model, noise)
    planned = choose(person, count, noise, plates) if by_choice else []
    for index in range(count):
        q, R, p = planned[index] if planned else person.pose()
        q = q + rng.normal(0.0, TAKEN, q.shape) if planned else q
        wrench = np.mean([person.wrench(q, R, p) for _ in range(readings)], axis=0)
        if by_markers:
            seen = fit.place(q[None], R[None], p[None])[0]
            way = rng.normal(size=seen.shape)
            way *= (
                rng.uniform(*TISSUE, (len(seen), 1))
                / np.linalg.norm(way, axis=1)[:, None]
            )
            q_read, R, p = fit.solve(seen + way)
            errors = fit.errors(
                seen + way, q_read, R, p, float(np.mean(TISSUE)) / 3**0.5
            )
        else:
            q_read = q + rng.normal(0.0, noise, q.shape)
        angles.append(q_read - q)
        postures.append(
            human_posture(person.model, q_read, R, p, wrench, plates, errors)
        )
    angle = float(np.sqrt(np.mean(np.square(angles))))
    settings = human_settings(person.model, 0.0)
    settings = replace(
        settings, fit=replace(settings.fit, folds=0)
    )  # judged by other postures
    found = identify(person.model, [plate_foot()], postures, settings)
    table, _ = judge(person, Statics(person.model).parameters, None)
    error, nees = judge(person, found.parameters, found.covariance)
    return {
        "table": table,
        "error": error,
        "nees": nees,
        "angle_deg": float(np.degrees(angle)),
    }


def main() -> None:
    """Prints the table of figures."""
    seeds, figures = range(10 if "--full" in sys.argv else 3), {}
    for name, by_markers in (("markers", True), ("angles", False)):
        runs = [run(seed, by_markers) for seed in seeds]
        figures[name] = {
            key: float(np.mean([each[key] for each in runs])) for key in runs[0]
        }
        print(
            name,
            {key: round(value, 3) for key, value in figures[name].items()},
            flush=True,
        )
    keys = {"table_mm": "table", "identified_mm": "error", "nees": "nees"}
    own, angles = (
        {key: round(figures[kind][name], 2) for key, name in keys.items()}
        for kind in ("markers", "angles")
    )
    by_angles: dict[str, dict[str, float]] = {}
    for noise, count in product(NOISE_DEG, (POSTURES, MANY)):
        error = np.mean([run(seed, False, noise, count)["error"] for seed in seeds])
        by_angles.setdefault(f"{noise:g}", {})[str(count)] = round(float(error), 2)
    print("by_angles", by_angles, flush=True)
    several: dict[str, Any] = {"by_angles": by_angles}
    for name, by_choice in (("by_readings", False), ("chosen", True)):
        several[name] = {}
        for count in READINGS:
            runs = [
                run(seed, False, readings=count, by_choice=by_choice) for seed in seeds
            ]
            means = (np.mean([each[key] for each in runs]) for key in ("error", "nees"))
            several[name][str(count)] = [round(float(mean), 2) for mean in means]
        print(name, several[name], flush=True)
    print(json.dumps({**own, "angles": angles, **several}))


if __name__ == "__main__":
    main()
