"""The CoM where it is known, where the robot tipped over, and by two tilts of one shape."""

import re

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

from com_bags import Table
from com_identification.capture.from_table import TableReader
from com_identification.commands.bag_results import two_postures_text
from com_identification.exceptions import PostureError
from com_identification.regression.identify import identify
from com_identification.regression.postures import make_posture
from com_identification.regression.statics import Statics
from com_identification.settings import (
    IdentificationSettings,
    PriorSettings,
    SensorPriors,
)
from com_model import RobotModel, Sesc, link_pose
from com_model.exceptions import ConfigError
from com_model.strict_yaml import Section

pytestmark = pytest.mark.slow

EXACT = IdentificationSettings(
    sensors=SensorPriors.calibrated(), prior=PriorSettings(mass_std_fraction=0.0)
)
# a point of each edge of the sole, m, and the outside to the right of a direction, rad
EDGES = (
    (0.14, 0.0, np.pi / 2),
    (-0.1, 0.0, -np.pi / 2),
    (0.0, 0.06, np.pi),
    (0.0, -0.06, 0.0),
)


def reader_of(columns, what, biped):
    names = biped.model.joint_names
    mapping = {
        "rows": "postures",
        "joints": {name: f"j{i}" for i, name in enumerate(names)},
    }
    table = Table(columns, len(next(iter(columns.values()))), "log.csv")
    return TableReader(
        table, Section(mapping | what, "map.yaml"), biped.model, biped.feet
    )


def joints(Q):
    return {f"j{i}": Q[:, i].copy() for i in range(Q.shape[1])}


def truth(biped):
    return Sesc(RobotModel.from_urdf(biped.xml))


def known(biped, Q):
    """Columns of the true CoM, read to 0.5 mm."""
    com = np.array([truth(biped).com(q) for q in Q])
    com += np.random.default_rng(1).normal(0.0, 0.5e-3, com.shape)
    columns = joints(Q) | {f"c{k}": 1e3 * com[:, k] for k in range(3)}
    channels = {axis: {"column": f"c{k}", "unit": "mm"} for k, axis in enumerate("xyz")}
    return columns, {"com": channels | {"std": 0.0005}}


def tipped(biped, Q):
    """Columns of the ramp's tilt at which each posture falls over an edge, read to 0.05 degrees."""
    columns = {name: [] for name in (*joints(Q), "x", "y", "yaw", "tilt")}
    rng = np.random.default_rng(2)
    for k, q in enumerate(Q):
        R, p = link_pose(biped.model, q, "l_sole")
        c = R.T @ (truth(biped).com(q) - p)
        x, y, yaw = EDGES[k % 4]
        inwards = (np.array([x, y]) - c[:2]) @ [np.sin(yaw), -np.cos(yaw)]
        tilt = np.degrees(np.arctan2(inwards, c[2])) + rng.normal(0.0, 0.05)
        # steeper than any ramp: not measured
        tilt = tilt if abs(tilt) < 60.0 else np.nan
        for name, value in zip(columns, (*q, x, y, yaw, tilt), strict=True):
            columns[name].append(value)
    what = {"link": "l_sole", "edge_x": "x", "edge_y": "y", "direction": "yaw"}
    what |= {"tilt": {"column": "tilt", "unit": "deg"}, "std": 0.001}
    return {name: np.array(column) for name, column in columns.items()}, {
        "tip_over": what
    }


def errors(biped, postures):
    """RMS of the believed and the found CoM in other postures, and what is said of it, m."""
    found = identify(biped.model, biped.feet, postures, EXACT)
    statics, Q = Statics(biped.model), biped.postures(15, seed=9)
    true = np.array([truth(biped).com(q) for q in Q])
    believed = np.array([Sesc(biped.model).com(q) for q in Q]) - true
    left = statics.com(statics.poses(Q), found.parameters) - true
    rms = (float(np.sqrt((gap**2).sum(axis=1).mean())) for gap in (believed, left))
    return *rms, found.prediction_std


@pytest.mark.parametrize(("make", "count"), [(known, 24), (tipped, 80)])
def test_evidence_on_the_com_alone_finds_the_truth(make, count, biped):
    reader = reader_of(*make(biped, biped.postures(count)), biped)
    own = [each.posture for each in reader.intervals() if each.posture is not None]
    postures = [reader.complete(posture) for posture in own]
    assert len(postures) > count / 2
    assert all(np.isnan(posture.wrenches).all() for posture in postures)
    before, after, said = errors(biped, postures)
    assert after < 0.4 * before
    assert after < 3.0 * said


def test_it_is_mixed_with_wrenches(biped):
    Q = biped.postures(4)
    columns, what = known(biped, Q)
    feet = {}
    for i, foot in enumerate(biped.feet):
        own = [f"{foot.frame}{k}" for k in range(6)]
        columns |= {
            name: np.array([biped.readings(q)[0][i, k] for q in Q])
            for k, name in enumerate(own)
        }
        feet[foot.frame] = {"force": own[:3], "moment": own[3:]}
    both = [
        each.posture
        for each in reader_of(columns, what | {"feet": feet}, biped).intervals()
    ]
    alone = [
        each.posture for each in reader_of(columns, {"feet": feet}, biped).intervals()
    ]
    assert [len(posture.constraints) for posture in both] == [3] * 4
    assert errors(biped, both)[2] < errors(biped, alone)[2]


def test_empty_cells_say_nothing(biped):
    columns, what = known(biped, biped.postures(3))
    columns["c0"][0] = columns["c0"][1] = columns["c1"][1] = columns["c2"][1] = np.nan
    first, second, third = reader_of(columns, what, biped).intervals()
    assert len(first.posture.constraints) == 2
    assert second.posture is None
    assert second.reasons == ("row 2 has empty cells.",)
    assert len(third.posture.constraints) == 3


@pytest.mark.parametrize(
    ("make", "section", "change", "message"),
    [
        (known, "com", {"link": "nose"}, "com.link: expected one of .*, got 'nose'"),
        (
            known,
            "com",
            {"x": None, "y": None, "z": None},
            "expected x, y or z: the column",
        ),
        (known, "com", {"w": "c0"}, "unknown key 'w'"),
        (known, "com", {"std": 0.0}, "com.std"),
        (tipped, "tip_over", {"edge_x": None}, "edge_x: expected a channel"),
        (
            tipped,
            "tip_over",
            {"tilt": "tilt"},
            r"tip_over.tilt: is more than 1.2 rad: correct",
        ),
    ],
)
def test_what_is_wrong_is_named(make, section, change, message, biped):
    columns, what = make(biped, biped.postures(4))
    changed = {
        key: value
        for key, value in (what[section] | change).items()
        if value is not None
    }
    with pytest.raises(ConfigError, match=message):
        reader_of(columns, {section: changed}, biped)


def test_tip_over_columns_need_rows_that_are_postures(biped):
    columns, what = tipped(biped, biped.postures(4))
    text = "add rows: postures, or give the tests' times in a file with --tip-over"
    with pytest.raises(ConfigError, match=text):
        reader_of(columns, what | {"rows": "readings", "rate": 100.0}, biped)


# In recordings of a robot that moves.

HOLD = 200  # readings of a posture, at 100 per second


def moving(Q, columns):
    """A table of 100 readings per second: each posture held, half a second of motion between."""
    after = np.concatenate((Q[1:], Q[-1:]))
    rows = [
        [*[a] * HOLD, *np.linspace(a, b, 50)] for a, b in zip(Q, after, strict=True)
    ]
    table = joints(np.concatenate(rows))
    empty = np.full(50, np.nan)
    for name, values in columns.items():
        table[name] = np.concatenate(
            [[*np.full(HOLD, value), *empty] for value in values]
        )
    return table


def result_of(run, robot, folder, log, what, *words):
    """Runs the command on a log with a mapping; its output and result.yaml."""
    np.savez(folder / "log.npz", **log)
    (folder / "mapping.yaml").write_text(yaml.safe_dump(what | {"rate": 100.0}))
    mapping = ["--mapping", folder / "mapping.yaml", "--output", folder / "out"]
    status, text, error = run(folder / "log.npz", *robot, *mapping, *words)
    assert status == 0, error
    return text, yaml.safe_load((folder / "out/result.yaml").read_text())


def true_within(result, biped, deviations=4.0):
    return all(
        (
            np.abs(np.array(body["com"]) - true)
            < deviations * np.array(body["com_std"])
        ).all()
        for body, true in zip(result["bodies"], biped.com, strict=True)
    )


def left(biped, out):
    """RMS error of the corrected URDF's CoM in other postures, as a part of the URDF's."""
    robots = (
        truth(biped),
        Sesc(biped.model),
        Sesc(RobotModel.from_file(out / "corrected.urdf")),
    )
    true, before, after = (
        robot.com_batch(biped.postures(15, seed=9)) for robot in robots
    )
    return np.linalg.norm(after - true) / np.linalg.norm(before - true)


def joint_channels(biped):
    return {"joints": {name: f"j{i}" for i, name in enumerate(biped.model.joint_names)}}


@pytest.mark.exhaustive
def test_a_known_com_counts_in_a_moving_log(biped, robot, run, tmp_path):
    Q = biped.postures(24)
    columns, what = known(biped, Q)
    com = {
        name: column.copy() for name, column in columns.items() if name.startswith("c")
    }
    for column in com.values():
        column[5] = np.nan
    log = moving(Q, com)
    text, result = result_of(run, robot, tmp_path, log, what | joint_channels(biped))
    assert "23 postures of 24" in text
    assert (
        "There is neither a force nor a known CoM in it."
        in (tmp_path / "out/report.html").read_text()
    )
    assert true_within(result, biped)
    assert left(biped, tmp_path / "out") < 0.4


@pytest.mark.exhaustive
def test_tip_over_tests_count_in_a_moving_log(biped, robot, run, tmp_path):
    Q = biped.postures(40)
    columns, _ = tipped(biped, Q)
    tests = []
    for k, values in enumerate(
        zip(*(columns[n] for n in ("x", "y", "yaw", "tilt")), strict=True)
    ):
        if np.isfinite(values).all():
            start = k * (HOLD + 50) / 100.0
            tilt = float(np.radians(values[3]))
            tests.append([start + 0.5, start + 1.5, *map(float, values[:3]), tilt])
    tests[0][1] += 1.0  # into the motion
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"link": "l_sole", "std": 0.001, "tests": tests})
    )
    words = ("--tip-over", tmp_path / "tests.yaml")
    text, result = result_of(
        run, robot, tmp_path, moving(Q, {}), joint_channels(biped), *words
    )
    assert f"{len(tests) - 1} postures of" in text
    assert "tip-over test 1: " in (tmp_path / "out/report.html").read_text()
    assert (
        "give the moment at which the robot tips"
        in (tmp_path / "out/report.html").read_text()
    )
    assert true_within(result, biped)
    assert left(biped, tmp_path / "out") < 0.7


def bag_of(path, biped, Q, frame):
    """Joint states, and the true CoM in the root's frame while the robot stands."""
    store = get_typestore(Stores.ROS2_JAZZY)
    kinds = "sensor_msgs/msg/JointState", "geometry_msgs/msg/PointStamped"
    names, com = list(biped.model.joint_names), truth(biped)
    table = moving(Q, {"stands": np.ones(len(Q))})
    rows = np.column_stack([table[f"j{i}"] for i in range(len(names))])
    with Writer(path, version=9) as writer:
        joints, places = (
            writer.add_connection(topic, kind, typestore=store)
            for topic, kind in zip(("/joint_states", "/known_com"), kinds, strict=True)
        )
        for k, (q, stands) in enumerate(zip(rows, table["stands"], strict=True)):
            time = 10**18 + k * 10**7
            stamp = store.types["builtin_interfaces/msg/Time"](
                time // 10**9, time % 10**9
            )
            header = store.types["std_msgs/msg/Header"](stamp, frame)
            none = np.zeros(0)
            state = store.types[kinds[0]](header, names, q, none, none)
            writer.write(joints, time, store.serialize_cdr(state, kinds[0]))
            if np.isfinite(stands):
                point = store.types["geometry_msgs/msg/Point"](*com.com(q))
                place = store.types[kinds[1]](header, point)
                writer.write(places, time, store.serialize_cdr(place, kinds[1]))
    return path


@pytest.mark.exhaustive
def test_a_known_com_in_a_bag_without_force_sensors(biped, robot, run, tmp_path):
    Q = biped.postures(24)
    bag, out = (
        bag_of(tmp_path / "bag", biped, Q, biped.model.root_link),
        tmp_path / "out",
    )
    status, text, error = run(bag, *robot, "--known-com", "known_com", "--output", out)
    assert status == 0, error
    assert "24 postures of 24" in text
    result = yaml.safe_load((out / "result.yaml").read_text())
    assert true_within(result, biped)
    assert left(biped, out) < 0.4
    status, _, error = run(
        bag, *robot, "--known-com", "place", "--output", out, "--force"
    )
    assert status == 2
    assert (
        "no topic /place of geometry_msgs/msg/PointStamped for the known CoM" in error
    )
    wrong = bag_of(tmp_path / "wrong", biped, Q[:2], "nose")
    status, _, error = run(
        wrong, *robot, "--known-com", "known_com", "--output", out, "--force"
    )
    assert status == 2
    assert "its frame_id 'nose' is no link of the robot" in error


# Two postures.


def tilted(biped, angles, noise=0.0):
    """One shape, its ankles turned by angles (rad): joint positions and wrenches."""
    rng, rows = np.random.default_rng(4), []
    for angle in angles:
        q = biped.model.neutral.copy()
        for i, name in enumerate(biped.model.joint_names):
            q[i] = angle if "ankle" in name else 0.0
        W = biped.readings(q)[0]
        scale = np.repeat([0.05, 0.0025], 3)
        rows.append((q, W + noise * rng.normal(0.0, 1.0, W.shape) * scale))
    return rows


def test_two_tilts_of_one_shape_give_the_total_com_with_its_height(biped):
    rows = tilted(biped, (0.0, 0.15), noise=1.0)
    postures = [
        make_posture(biped.model, q, W, samples=100, label=f"p{k}")
        for k, (q, W) in enumerate(rows)
    ]
    text = two_postures_text(biped.model, biped.feet, postures, EXACT)
    print(text)
    said = re.search(r"x (\S+) ± (\S+), y (\S+) ± (\S+), z (\S+) ± (\S+);", text)
    offset, std = np.array(said.groups(), dtype=float).reshape(3, 2).T
    q = rows[0][0]
    true = 1e3 * (truth(biped).com(q) - Sesc(biped.model).com(q))
    assert np.linalg.norm(true) > 2.0
    assert (np.abs(offset - true) < 4.0 * std + 0.3).all()
    assert std.max() < 2.0


@pytest.mark.parametrize("angles", [(0.0,), (0.0, 0.05), (0.1, 0.1)])
def test_too_little_tilt_is_refused(angles, biped):
    postures = [make_posture(biped.model, q, W) for q, W in tilted(biped, angles)]
    with pytest.raises(
        PostureError, match="stand still, then with both ankles turned by 5 degrees"
    ):
        two_postures_text(biped.model, biped.feet, postures, EXACT)


def test_the_command_prints_it_and_refuses_what_was_not_tilted(
    biped, robot, run, tmp_path
):
    what = {"rows": "postures", "samples": 100, "feet": {}, "joints": {}}
    rows = tilted(biped, (0.0, 0.15))
    columns = {}
    for i, name in enumerate(biped.model.joint_names):
        columns[name] = np.array([q[i] for q, _ in rows])
        what["joints"][name] = name
    for i, foot in enumerate(biped.feet):
        own = [f"{foot.frame}{k}" for k in range(6)]
        columns |= {
            name: np.array([W[i, k] for _, W in rows]) for k, name in enumerate(own)
        }
        what["feet"][foot.frame] = {"force": own[:3], "moment": own[3:]}
    (tmp_path / "mapping.yaml").write_text(yaml.safe_dump(what))
    words = ["--mapping", tmp_path / "mapping.yaml", "--method", "two-postures"]
    np.savez(tmp_path / "log.npz", **columns)
    status, text, error = run(tmp_path / "log.npz", *robot, *words)
    assert status == 0, error
    assert "posture: total CoM in the root's frame (mm)" in text
    assert "the tilt is 8.6 deg" in text
    np.savez(
        tmp_path / "one.npz", **{n: column[[0, 0]] for n, column in columns.items()}
    )
    status, text, error = run(tmp_path / "one.npz", *robot, *words)
    assert status == 1, error
    assert "none of 2 postures is another one tilted" in error


def test_the_command_identifies_by_the_com_alone(biped, robot, run, tmp_path):
    columns, what = known(biped, biped.postures(24))
    names = biped.model.joint_names
    what |= {
        "rows": "postures",
        "joints": {name: f"j{i}" for i, name in enumerate(names)},
    }
    np.savez(tmp_path / "log.npz", **columns)
    (tmp_path / "mapping.yaml").write_text(yaml.safe_dump(what))
    words = [tmp_path / "log.npz", *robot, "--mapping", tmp_path / "mapping.yaml"]
    status, text, error = run(*words, "--output", tmp_path / "out")
    assert status == 0, error
    assert "24 postures of 24" in text
    result = yaml.safe_load((tmp_path / "out/result.yaml").read_text())
    for body, truth_of in zip(result["bodies"], biped.com, strict=True):
        assert (
            np.abs(np.array(body["com"]) - truth_of) < 4.0 * np.array(body["com_std"])
        ).all()
