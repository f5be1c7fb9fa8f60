"""The examples run, and what they print is right."""

import re
import runpy
from pathlib import Path

import mujoco
import numpy as np
import pytest
from walker_urdf import walker_urdf

from com_identification.regression.postures import make_posture
from com_identification.store.store import PostureStore
from com_model import RobotModel, Sesc, load_robot

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(capsys):
    """run(name, *words): what an example prints, as lines."""

    def run(name, *words):
        runpy.run_path(str(EXAMPLES / name))["main"](*map(str, words))
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def walker(tmp_path):
    path = tmp_path / "walker.urdf"
    path.write_text(walker_urdf())
    return path


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name
)
def test_examples_are_short_and_listed(path):
    assert len(path.read_text().splitlines()) <= 40
    listed = (EXAMPLES / "README.md").read_text()
    assert f"![{path.stem}](../docs/images/example_{path.stem}.png)" in listed
    assert f"`{path.name}`" in listed
    assert f"examples/{path.name}" in path.read_text()


def test_com_of_a_urdf(run, walker):
    lines = run("com_of_urdf.py", walker)
    assert lines[0] == "walker: 4.000 kg, CoM in base_link: [0.05 0.   0.  ] m"
    moved = run("com_of_urdf.py", walker, "l_hip=0.5")[0]
    x = Sesc(RobotModel.from_file(walker)).com([0.5, 0, 0, 0])[0]
    assert f"{x:.5f}"[:6] in moved
    assert [line.split()[0] for line in lines[1:]] == [
        "l_hip",
        "l_knee",
        "r_hip",
        "r_knee",
    ]


def test_two_urdfs(run, walker, tmp_path):
    other = tmp_path / "other.urdf"
    other.write_text(
        walker_urdf(trunk_mass=3.0).replace('xyz="0.1 0 0.5"', 'xyz="0.1 0.02 0.5"')
    )
    lines = run("compare_urdfs.py", walker, other)
    assert lines[0].split() == [
        "base_link",
        "+1.0000",
        "kg",
        "CoM",
        "by",
        "20.00",
        "mm",
    ]
    assert lines[1].startswith("whole robot")
    assert "+1.0000 kg" in lines[1]
    assert len(lines) == 2
    assert len(run("compare_urdfs.py", walker, walker)) == 1


def test_com_along_a_bag(run, walker, write_bag, messages):
    start, names = 1_700_000_000_000_000_000, ["r_hip", "r_knee", "l_hip", "l_knee"]
    angles = np.linspace(0.0, 0.5, 51)
    times = start + 20_000_000 * np.arange(51)
    bag = write_bag(
        [
            [
                "/joint_states",
                int(t),
                messages.joints(int(t), names, [0.0, 0.0, float(a), 0.0]),
            ]
            for t, a in zip(times, angles, strict=True)
        ]
    )
    header, *rows = run("com_along_bag.py", bag, walker)
    assert header == "time,x,y,z"
    found = np.array([row.split(",") for row in rows], dtype=float)
    Q = np.zeros((51, 4))
    Q[:, 0] = angles
    expected = Sesc(RobotModel.from_file(walker)).com_batch(Q)
    np.testing.assert_allclose(found[:, 0], 0.02 * np.arange(51), atol=1e-9)
    np.testing.assert_allclose(found[:, 1:], expected, atol=6e-7)


def test_a_log_as_arrays(run, tmp_path):
    model, _ = load_robot("go2")
    motors = [f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL")
              for part in ("hip", "thigh", "calf")]  # fmt: skip
    time = 0.002 * np.arange(300)
    table = {"time": time, "tick": 1e3 * time}
    for i in range(12):
        table |= {f"motor_state.{i}.q": 0.1 * i + 0.2 * time}
        table |= {f"motor_state.{i}.tau_est": -0.5 * i + 0.0 * time}
    for name, values in (("gyroscope", (1, 2, 3)), ("accelerometer", (0, 0, 9.8))):
        for i, value in enumerate(values):
            table[f"imu_state.{name}.{i}"] = value + 0.0 * time
    columns = np.column_stack(list(table.values()))
    np.savetxt(
        tmp_path / "run.csv",
        columns,
        delimiter=",",
        header=",".join(table),
        comments="",
    )
    said = run("log_to_arrays.py", tmp_path / "run.csv", "go2", tmp_path / "run.npz")
    assert any(line.split() == ["position", "(300,", "12)"] for line in said)
    found = np.load(tmp_path / "run.npz")
    order = [motors.index(name) for name in model.joint_names]
    np.testing.assert_allclose(found["position"][0], 0.1 * np.array(order), atol=1e-9)
    np.testing.assert_allclose(found["effort"][9], -0.5 * np.array(order), atol=1e-9)
    assert found["joint_names"].tolist() == list(model.joint_names)


def test_com_ik(run):
    found, *joints = run("solve_com_ik.py", "itu_biped", 0.01, 0.0, -0.02)
    assert float(found.split()[-5]) < 1e-3  # mm from the target
    assert len(joints) >= 6
    assert run("solve_com_ik.py", "itu_biped", 0.0, 0.0, 1.0)[0].startswith(
        "not reached: "
    )


def test_walk_as_a_film(run, tmp_path):
    plan, written = run("plan_walk.py", "itu_biped", tmp_path / "walk.html", 2, 2)
    seconds, length = (float(text.split()[0]) for text in plan.split(",")[:2])
    assert seconds > 2.0
    assert length > 0.02
    html = (tmp_path / "walk.html").read_text()
    assert "<title>itu_biped" in html
    assert written.endswith(f"{len(html.encode()) / 1e6:.1f} MB")


def test_identification_from_stored_postures(run, tmp_path, make_standing_robot):
    robot = make_standing_robot("biped3")
    _, config = load_robot("biped3")
    with PostureStore(tmp_path / "postures.db", robot.model, config.feet) as store:
        for _ in range(12):
            q, load = robot.random_posture()
            Q, W = robot.read(q, load, 20)
            store.add(
                make_posture(robot.model, Q.mean(axis=0), W.mean(axis=0), samples=20)
            )
    output = tmp_path / "corrected.urdf"
    verdict, *bodies = run(
        "identify_from_postures.py", "biped3", tmp_path / "postures.db", output
    )
    assert "In such postures the CoM is accurate to" in verdict
    assert [line.split()[0] for line in bodies] == list(robot.model.bodies.names)
    assert robot.error(output.read_text()) < 0.3 * robot.error(robot.model.xml)


def test_mjcf_has_the_masses_of_the_urdf(run, tmp_path):
    output = tmp_path / "robot.xml"
    run("export_mjcf.py", "biped3", output)
    model, config = load_robot("biped3")
    mj = mujoco.MjModel.from_xml_path(str(output))
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    q = config.nominal_posture(model)
    data.qpos[7:] = q
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    root = data.xmat[1].reshape(3, 3)
    com = root.T @ (data.subtree_com[0] - data.xpos[1])
    np.testing.assert_allclose(com, Sesc(model).com(q), atol=1e-9)


def test_the_chain_ends_at_the_mean_of_the_links_coms(run, walker):
    first, *points, mean = run("equivalent_chain.py", walker)
    assert first == f"walker: a chain of {len(points) - 1} links"
    assert points[-1].strip() == mean.partition(": ")[2]


def test_margin_of_a_standing_robot(run):
    first, *joints = run("support_margin.py", "hoap2")
    assert 20.0 < float(first.split()[1]) < 60.0
    ankle = [line for line in joints if "RLEG_JOINT5" in line]
    assert abs(float(ankle[0].split()[1])) > 1.0, "an ankle moves the CoM over the feet"


def test_a_urdf_in_grams_is_corrected(run, walker, tmp_path):
    wrong = tmp_path / "grams.urdf"
    text = walker.read_text()
    wrong.write_text(re.sub(r'mass value="([\d.]+)"', r'mass value="\g<1>e3"', text))
    lines = run("audit_and_fix.py", wrong, tmp_path / "fixed.urdf")
    done = [line for line in lines if line.startswith("corrected: ")]
    assert bool(done) == (tmp_path / "fixed.urdf").exists()
    assert RobotModel.from_file(wrong).mass == pytest.approx(4000.0)
    if done:
        assert RobotModel.from_file(tmp_path / "fixed.urdf").mass == pytest.approx(4.0)


def test_a_sway_as_csv(run, tmp_path):
    said = run("plan_sway.py", "hoap2", tmp_path / "sway.csv", 30)
    assert "of the usual amplitudes" in said[0]
    table = np.genfromtxt(tmp_path / "sway.csv", delimiter=",", names=True)
    assert table["time"][-1] == pytest.approx(30.0, abs=0.2)
    assert np.ptp(table["RLEG_JOINT5"]) > np.deg2rad(1.0)
