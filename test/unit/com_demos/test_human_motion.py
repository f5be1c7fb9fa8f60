"""The CoM of a person over time: the truth is found, the force agrees, and the command's files."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from com_bags import read_table
from com_demos.human_motion import com_trajectory, main
from com_identification.human import MarkerFit, MarkerTrial, human_urdf
from com_identification.regression.statics import Statics
from com_model import RobotModel

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]
G = 9.80665
SPREAD = np.array([[0.06, 0.04, 0.0], [-0.05, 0.05, -0.1], [0.03, -0.06, -0.2]])


@pytest.fixture(scope="module")
def person() -> RobotModel:
    return RobotModel.from_urdf(human_urdf(1.75, 68.0, "f"))


@pytest.fixture(scope="module")
def where(person):
    links = [
        n
        for n, mass in zip(person.link_names, person.link_masses, strict=True)
        if mass > 0.0
    ]
    return {f"{link}{k}": (link, at) for link in links for k, at in enumerate(SPREAD)}


def test_the_path_of_the_centre_of_mass_agrees_with_the_integrated_force(person, where):
    rng, rate = np.random.default_rng(6), 50.0
    statics, fit = Statics(person), MarkerFit(person, where)
    theta = statics.parameters.reshape(-1, 4).copy()
    theta[:, 1:] += theta[:, :1] * rng.normal(0.0, 0.012, (len(theta), 3))
    theta = theta.ravel()
    time = np.arange(0.0, 6.0, 1.0 / rate)
    size, phase = (
        rng.normal(0.0, 0.3, person.n_joints),
        rng.uniform(0.0, 6.0, person.n_joints),
    )
    Q = size * np.sin(2.0 * time[:, None] + phase)
    R, p = np.eye(3), np.array([0.2, 0.1, 0.9])
    true = p + statics.com(statics.poses(Q), theta)
    force = person.mass * (np.gradient(np.gradient(true, time, axis=0), time, axis=0))
    force[:, 2] += G * person.mass
    turns, places = np.tile(R, (len(Q), 1, 1)), np.tile(p, (len(Q), 1))
    seen = fit.place(Q, turns, places) + rng.normal(0.0, 1e-3, (len(Q), len(where), 3))
    seen[40:44] = np.nan  # nobody is seen
    trial = MarkerTrial(
        rate, tuple(where), seen, np.hstack((force, np.zeros((len(Q), 3))))
    )
    known = np.diag(np.tile([0.0, 1e-4, 1e-4, 1e-4], len(theta) // 4))
    found = SimpleNamespace(parameters=theta, covariance=known, total_mass=person.mass)
    path = com_trajectory(person, found, trial, where, 1e-3)
    assert np.isnan(path["com"][20:22]).all()
    there = np.isfinite(path["com"]).all(axis=1)
    assert there.sum() == len(there) - 2

    def rms(gap):
        return float(np.sqrt(np.mean(np.sum(gap[there] ** 2, axis=1))))

    assert rms(path["com"] - true[::2]) < 1.5e-3
    assert rms(path["table"] - true[::2]) > 3e-3
    assert rms(path["force"] - path["com"]) < 0.7 * rms(path["force"] - path["table"])
    assert (path["std"][there] > 0.0).all()


def test_the_command_writes_a_table_and_a_page(person, where, tmp_path, capsys):
    rng, rate, n = np.random.default_rng(2), 10.0, person.n_joints
    statics, fit = Statics(person), MarkerFit(person, where)
    Q = np.repeat(rng.normal(0.0, 0.4, (6, n)), 5, axis=0)
    p = np.array([0.2, 0.1, 0.9])
    com = p + statics.com(statics.poses(Q), statics.parameters)
    seen = fit.place(Q, np.tile(np.eye(3), (len(Q), 1, 1)), np.tile(p, (len(Q), 1)))
    seen += rng.normal(0.0, 2e-3, seen.shape)
    columns = {"time": np.arange(len(Q)) / rate}
    for k, name in enumerate(where):
        columns |= {f"{name}.{axis}": seen[:, k, i] for i, axis in enumerate("xyz")}
    up, zero = np.full(len(Q), G * person.mass), np.zeros(len(Q))
    point = com * [1.0, 1.0, 0.0]
    force = np.column_stack((zero, zero, up))
    for word, values in (
        ("force_v", force),
        ("force_p", point),
        ("torque_", 0.0 * force),
    ):
        columns |= {
            f"ground_{word}{axis}": values[:, i] for i, axis in enumerate("xyz")
        }
    rows = np.column_stack(list(columns.values())).tolist()
    lines = [
        ",".join(columns),
        *(",".join(f"{value:.6f}" for value in row) for row in rows),
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    markers = {
        name: {"link": link, "at": at.tolist()} for name, (link, at) in where.items()
    }
    (tmp_path / "markers.yaml").write_text(yaml.safe_dump(markers))
    words = ["--height", "1.75", "--mass", "68", "--sex", "f", "--marker-std", "2"]
    words += [
        "--trial",
        str(tmp_path / "a.csv"),
        "--markers",
        str(tmp_path / "markers.yaml"),
    ]
    assert main([*words, "--output", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "a.csv: 6 postures" in text
    assert re.search(r"a.csv: .* [\d.]+ mm by the table, [\d.]+ mm as identified", text)
    path = read_table(tmp_path / "out" / "com.csv").columns
    assert list(path)[:5] == ["trial", "time", "com_x", "com_y", "com_z"]
    assert len(path["time"]) == len(Q)
    found = np.column_stack([path[f"com_{axis}"] for axis in "xyz"])
    assert np.abs(found - com).max() < 0.01
    assert 0.0 < path["std_x"].min() < path["std_x"].max() < 0.01
    page = (tmp_path / "out" / "human_motion.html").read_text()
    assert all(f"<td>{link}</td>" in page for link in ("r_thigh", "head"))
    assert page.count("<svg") == 2
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--output", str(tmp_path / "out")])
    assert "--force" in capsys.readouterr().err
