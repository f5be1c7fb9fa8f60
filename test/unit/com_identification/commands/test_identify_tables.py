"""Tables of the biped in each kind of evidence: the truth within sigma, and what is refused."""

import numpy as np
import pytest
import yaml

from com_bags import Table, TableError
from com_identification.capture.from_table import TableReader
from com_identification.capture.mapping_guess import guess_mapping
from com_identification.regression.identify import identify
from com_identification.settings import (
    IdentificationSettings,
    PriorSettings,
    SensorPriors,
)
from com_model import RobotModel, Sesc
from com_model.exceptions import ConfigError
from com_model.strict_yaml import Section

pytestmark = pytest.mark.slow

EXACT = IdentificationSettings(
    sensors=SensorPriors.calibrated(), prior=PriorSettings(mass_std_fraction=0.0)
)
CELLS = np.array([[0.14, 0.06], [0.14, -0.06], [-0.1, 0.06], [-0.1, -0.06]])


@pytest.fixture(scope="module")
def rows(biped):
    """Postures (P, n) and their wrenches (P, f, 6); the sensors are at the soles."""
    Q = biped.postures(24)
    rng = np.random.default_rng(0)
    W = np.array([biped.readings(q)[0] for q in Q])
    return Q, W + rng.normal(0.0, 1.0, W.shape) * np.repeat([0.05, 0.0025], 3)


def pressures(w):
    """Vertical forces (P,) and centres of pressure (P, 2) of wrenches (P, 6)."""
    return w[:, 2], np.column_stack((-w[:, 4], w[:, 3])) / w[:, 2:3]


def table_of(rows, biped, kind):
    """The columns and the mapping of a kind of evidence, a row for each posture."""
    Q, W = rows
    names = biped.model.joint_names
    columns = {f"j{i}": -np.degrees(Q[:, i]) for i in range(Q.shape[1])}
    channel = {"unit": "deg", "scale": -1.0}
    joints = {name: {"column": f"j{i}", **channel} for i, name in enumerate(names)}
    what = {"rows": "postures", "samples": 100, "joints": joints}
    if kind == "plate":
        total = W[:, 0].copy()
        for k, q in enumerate(
            Q
        ):  # of both feet about the left sole, then about the plate
            R, p = _right_in_left(biped, q)
            f, m = R @ W[k, 1, :3], R @ W[k, 1, 3:]
            total[k] += np.concatenate((f, m + np.cross(p, f)))
        total[:, 3:] += np.cross([0.3, 0.2, 0.0], total[:, :3])
        fz, cop = pressures(total)
        columns |= {"fz": fz, "x": cop[:, 0], "y": cop[:, 1]}
        return columns, what | {"plate": {"pose": [0.3, 0.2, 0.0], "cop": ["x", "y"]}}
    feet = {}
    for i, foot in enumerate(biped.feet):
        name, (fz, cop) = foot.frame, pressures(W[:, i])
        if kind == "wrench":
            columns |= {f"{name}_{k}": W[:, i, k] for k in range(6)}
            parts = [[f"{name}_{k}" for k in range(a, a + 3)] for a in (0, 3)]
            feet[name] = {"force": parts[0], "moment": parts[1]}
        elif kind == "pressure":
            columns |= {f"{name}_z": fz / 9.80665, f"{name}_x": 1e3 * cop[:, 0]}
            columns |= {f"{name}_y": 1e3 * cop[:, 1]}
            point = [{"column": f"{name}_{axis}", "unit": "mm"} for axis in "xy"]
            feet[name] = {
                "vertical": {"column": f"{name}_z", "unit": "kgf"},
                "cop": point,
            }
        else:
            A = np.vstack((np.ones(4), CELLS.T))
            forces = (
                fz[:, None] * np.column_stack((np.ones(len(fz)), cop))
            ) @ np.linalg.pinv(A).T
            columns |= {f"{name}_{k}": (forces[:, k] - 1.0) / 2.0 for k in range(4)}
            cells = [
                {"column": f"{name}_{k}", "at": at}
                for k, at in enumerate(CELLS.tolist())
            ]
            calibrated = (
                {"polynomial": [1.0, 2.0]},
                {"table": [[-200.0, -399.0], [200.0, 401.0]]},
            )
            feet[name] = {
                "cells": [cell | calibrated[k % 2] for k, cell in enumerate(cells)]
            }
    return columns, what | {"feet": feet}


def _right_in_left(biped, q):
    from com_model.dynamics.kinematics import link_pose

    (R, p), (R_2, p_2) = (link_pose(biped.model, q, foot.frame) for foot in biped.feet)
    return R.T @ R_2, R.T @ (p_2 - p)


def reader_of(columns, what, biped):
    table = Table(columns, len(next(iter(columns.values()))), "log.csv")
    return TableReader(table, Section(what, "mapping.yaml"), biped.model, biped.feet)


@pytest.mark.parametrize("kind", ["wrench", "pressure", "cells", "plate"])
def test_each_kind_of_evidence_finds_the_truth_within_sigma(kind, rows, biped):
    reader = reader_of(*table_of(rows, biped, kind), biped)
    postures = [reader.complete(each.posture) for each in reader.intervals()]
    found = identify(biped.model, biped.feet, postures, EXACT)
    before, after = [], []
    believed, true = Sesc(biped.model), Sesc(RobotModel.from_urdf(biped.xml))
    for q in biped.postures(15, seed=9):
        up = biped.readings(q)[2]
        flat = np.eye(3) - np.outer(up, up)
        statics_com = _com(biped.model, found.parameters, q)
        truth = true.com(q)
        before.append(np.linalg.norm(flat @ (believed.com(q) - truth)))
        after.append(np.linalg.norm(flat @ (statics_com - truth)))
    rms = np.sqrt(np.mean(np.square(after)))
    assert rms < 3.0 * found.prediction_std
    assert rms < 0.4 * np.sqrt(np.mean(np.square(before)))
    assert found.prediction_std < 2e-3


def _com(model, parameters, q):
    from com_identification.regression.statics import Statics

    statics = Statics(model)
    return statics.com(statics.poses(q[None]), parameters)[0]


def test_what_is_not_measured_is_no_information(rows, biped):
    """Nonsense in the horizontal forces of a pressure sole changes nothing."""
    columns, what = table_of(rows, biped, "pressure")
    reader = reader_of(columns, what, biped)
    posture = reader.complete(reader.intervals()[0].posture)
    wrong = posture.wrenches.copy()
    wrong[:, [0, 1]] += 5.0
    pairs = [posture, type(posture)(**{**vars(posture), "wrenches": wrong})]
    a, b = (identify(biped.model, biped.feet, [p], EXACT) for p in pairs)
    shift = np.abs(a.com - b.com)[np.isfinite(a.com)].max()
    full = type(posture)(**{**vars(pairs[1]), "noise": posture.noise[:, :0]})
    c = identify(biped.model, biped.feet, [full], EXACT)
    assert 10.0 * shift < 2e-4 < np.abs(c.com - a.com)[np.isfinite(a.com)].max()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"joints": {}},
            ConfigError,
            "joints: expected a column, or its constant value, .*l_knee",
        ),
        ({"joins": {}}, ConfigError, "unknown key 'joins'; did you mean 'joints'"),
        ({"rows": "readings"}, ConfigError, "expected the column of time, or rate"),
        (
            {"feet": {}},
            ConfigError,
            "feet.l_sole: expected force and moment, .* got nothing",
        ),
        (
            {"joints": {"l_kneee": "j0"}},
            ConfigError,
            "joints: .*l_knee,.* got l_kneee",
        ),
        ({"plate": {"cop": ["a", "b"]}}, ConfigError, "give plate or feet, not both"),
        ({"leave_out": [[0, 100]]}, TableError, "no row is left"),
    ],
)
def test_mappings_that_are_wrong(change, error, message, rows, biped):
    columns, what = table_of(rows, biped, "wrench")
    with pytest.raises(error, match=message):
        reader_of(columns, what | change, biped)


def test_a_column_that_is_missing_and_segments(rows, biped):
    columns, what = table_of(rows, biped, "wrench")
    lost = {name: column for name, column in columns.items() if name != "j1"}
    with pytest.raises(
        ConfigError, match=r"'j1' is not a column of numbers; .*There are: "
    ):
        reader_of(lost, what, biped)
    reader = reader_of(columns, what | {"use": [[0, 9]], "leave_out": [[3, 4]]}, biped)
    assert [each.t0_ns for each in reader.intervals()] == [
        10**9 * k for k in (1, 2, 3, *range(6, 11))
    ]
    assert reader.warnings() == ["16 of 24 rows are left out by the mapping"]


def test_a_time_that_goes_back_is_a_later_run(rows, biped):
    columns, what = table_of(rows, biped, "wrench")
    columns = {name: np.repeat(column, 100) for name, column in columns.items()}
    time = 0.01 * np.arange(2400)
    time[1200:] -= 5.0
    mapping = {key: each for key, each in what.items() if key != "rows"}
    reader = reader_of(columns | {"t": time}, mapping | {"time": "t"}, biped)
    (note,) = reader.warnings()
    assert "time goes back at row 1201: read as a later run" in note
    blocks = list(reader.blocks())
    assert sum(len(block.joint_times) for block in blocks) == 2400
    assert all((np.diff(block.joint_times) > 0).all() for block in blocks)


def test_the_command_takes_tables_and_bags_together(
    recording, biped, bags, robot, run, tmp_path
):
    tour = bags.Tour(rate=100.0, still=2.0, moving=0.5)
    blocks = list(bags.samples(biped, biped.postures(8, seed=5), tour))
    names = biped.model.joint_names
    columns = {"t_ms": np.concatenate([b.times for b in blocks]) / 1e6}
    q = np.degrees(np.concatenate([b.q for b in blocks]))
    columns |= {f"{name}_pos": q[:, i] for i, name in enumerate(names)}
    W = np.concatenate([b.wrenches for b in blocks])
    for i, foot in enumerate(biped.feet):
        for k, axis in enumerate(("Fx", "Fy", "Fz", "Mx", "My", "Mz")):
            columns[f"{foot.frame}.{axis}"] = W[:, i, k]
    path = tmp_path / "log.npz"
    np.savez(path, **columns)
    status, text, error = run(path, *robot, "--guess")
    assert status == 0, error
    assert "missing" not in text
    guessed = yaml.safe_load(text)
    assert guessed["time"] == {"column": "t_ms", "unit": "ms"}
    assert guessed["joints"]["l_knee"] == {"column": "l_knee_pos", "unit": "deg"}
    (tmp_path / "mapping.yaml").write_text(text)
    words = [path, recording("biped"), *robot, "--mapping", tmp_path / "mapping.yaml"]
    status, text, error = run(*words, "--output", tmp_path / "out")
    assert status == 0, error
    assert "28 postures of 28 stationary intervals (0 refused)" in text
    result = yaml.safe_load((tmp_path / "out/result.yaml").read_text())
    assert (
        0.5 < result["recording"]["used_seconds"] / result["recording"]["seconds"] < 0.9
    )
    for body, truth in zip(result["bodies"], biped.com, strict=True):
        assert (
            np.abs(np.array(body["com"]) - truth) < 4.0 * np.array(body["com_std"])
        ).all()


def test_the_mapping_guesses_pressure_soles(rows, biped):
    columns, _ = table_of(rows, biped, "pressure")
    columns = {
        f"{n.replace('_z', '_Fz').replace('sole_', 'sole_cop_')}": c
        for n, c in columns.items()
    }
    table = Table({"time": np.arange(24) * 0.01, **columns}, 24, "log.csv")
    guessed = guess_mapping(table, biped.model, biped.feet)
    assert yaml.safe_load(guessed)["feet"]["l_sole"]["cop"][0]["unit"] == "mm"
    assert "# missing: joints.l_knee" in guessed


def test_the_mapping_guesses_loads_and_pressure_cells(rows, biped):
    pressed, _ = table_of(rows, biped, "pressure")
    named = {n.replace("_z", "_kgf"): c for n, c in pressed.items()}
    table = Table({"time": np.arange(24) * 0.01, **named}, 24, "log.csv")
    foot = yaml.safe_load(guess_mapping(table, biped.model, biped.feet))["feet"][
        "l_sole"
    ]
    assert foot["vertical"] == {"column": "l_sole_kgf", "unit": "kgf"}
    assert foot["cop"] == [{"column": f"l_sole_{axis}", "unit": "mm"} for axis in "xy"]

    cells = {
        f"{side}_sole[{k}]": np.full(24, 100.0 + k) for side in "lr" for k in range(4)
    }
    table = Table({"time": np.arange(24) * 0.01, **cells}, 24, "log.npz")
    text = guess_mapping(table, biped.model, biped.feet)
    (first, *rest) = yaml.safe_load(text)["feet"]["l_sole"]["cells"]
    assert first == {
        "column": "l_sole[0]",
        "at": [0.14, 0.06],
        "polynomial": [0.0, 1.0],
    }
    assert len(rest) == 3
    assert (
        "# missing: feet.l_sole.cells: their positions (here the sole's corners)"
        in text
    )


def test_rows_that_contradict_themselves_are_left_out_with_the_reason(
    rows, biped, robot, run, tmp_path
):
    columns, what = table_of(rows, biped, "pressure")
    columns = {name: np.array(column) for name, column in columns.items()}
    columns["l_sole_x"][4] += 400.0  # mm, far in front of the sole
    columns["l_sole_z"][7] += 6.0  # kgf, a third of the weight
    np.savez(tmp_path / "log.npz", **columns)
    (tmp_path / "mapping.yaml").write_text(yaml.safe_dump(what))
    words = [tmp_path / "log.npz", *robot, "--mapping", tmp_path / "mapping.yaml"]
    status, text, error = run(*words, "--output", tmp_path / "out")
    assert status == 0, error
    assert "22 postures of 24 stationary intervals (2 refused)" in text
    intervals = yaml.safe_load((tmp_path / "out/result.yaml").read_text())[
        "stationary_intervals"
    ]
    refused = {i["label"]: i["reasons"][0] for i in intervals if not i["used"]}
    assert "centre of pressure of l_sole is" in refused["row 5"]
    assert "N together, the robot weighs" in refused["row 8"]
    assert "left out: row 5: " in text
