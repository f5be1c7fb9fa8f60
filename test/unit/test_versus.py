"""benchmarks/versus.py judges anybody's estimate, from bags in which the truth is not."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import versus
from identification_bags import START_NS, Moving, Samples
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation
from versus_estimates import Recorded

from com_bags import Bag, SensorReader, TopicRequest, find_topics
from com_estimation.commands import diagnose_bag, trunk_bag
from com_estimation.humanoid.estimator import HumanoidEstimator
from com_model import RobotConfig, load_robot
from com_model.dynamics.link_frames import LinkFrames

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

COUNT, PERIOD, FIRST = 400, 0.01, 200
STD = 0.004


@pytest.fixture(scope="module")
def motion():
    """A motion of readings without physics, whose root turns."""
    rng, (model, config) = np.random.default_rng(1), load_robot("hoap2")
    q = rng.normal(size=(COUNT, model.n_joints))
    R = Rotation.from_rotvec(rng.normal(0.0, 0.5, (COUNT, 3))).as_matrix()
    moving = Moving(
        R, 2.0 * q, rng.normal(size=(COUNT, 3)), rng.normal(size=(COUNT, 3))
    )
    times = START_NS + np.round(1e9 * PERIOD * np.arange(COUNT)).astype(np.int64)
    wrenches = rng.normal(size=(COUNT, 2, 6))
    readings = Samples(times, q, 3.0 * q, wrenches, R[:, 2], moving)
    com = rng.normal(size=(COUNT, 3))
    return Recorded(
        "hoap2", model, config, readings, com, R, FIRST, lambda _: com + R[:, 0] * 0.002
    )


def table(motion, forward=0.003, columns=4, rows=slice(None)):
    """Estimates that are wrong by so much horizontally, and by much more vertically."""
    com = motion.com + np.einsum("nji,j->ni", motion.R, [forward, 0.0, 0.5])
    parts = [motion.time, com, np.full((COUNT, 3), STD)]
    return np.column_stack(parts)[rows, :columns]


@pytest.mark.parametrize("columns", [4, 7])
def test_a_table_is_judged_in_the_horizontal_plane_from_the_first_sample_that_counts(
    motion, tmp_path, columns
):
    rows = table(motion, columns=columns)
    rows[:FIRST, 1:4] += 1.0  # not judged
    np.savetxt(tmp_path / "com.csv", rows, delimiter=",")
    score = motion.judge(str(tmp_path / "com.csv"))
    assert score.error_mm == pytest.approx(3.0)
    expected = None if columns == 4 else pytest.approx((0.003 / STD) ** 2 / 2.0)
    assert score.nees == expected


def test_messages_of_a_bag_are_judged_likewise(motion, tmp_path):
    store, kind = get_typestore(Stores.ROS2_JAZZY), "geometry_msgs/msg/PointStamped"
    types = store.types
    with Writer(tmp_path / "bag", version=9) as writer:
        connection = writer.add_connection("/com", kind, typestore=store)
        for row in table(motion):
            ns = START_NS + round(1e9 * row[0])
            stamp = types["builtin_interfaces/msg/Time"](*divmod(ns, 10**9))
            header = types["std_msgs/msg/Header"](stamp, "base")
            message = types[kind](header, types["geometry_msgs/msg/Point"](*row[1:]))
            writer.write(connection, ns, store.serialize_cdr(message, kind))
    score = motion.judge(f"{tmp_path}/bag:/com")
    assert score.error_mm == pytest.approx(3.0, abs=1e-6)
    with pytest.raises(SystemExit, match="no topic '/other'; there are /com"):
        motion.judge(f"{tmp_path}/bag:/other")
    motion.write(tmp_path / "case")
    with pytest.raises(
        SystemExit, match=r"expected geometry_msgs.*, got sensor_msgs/msg/Imu"
    ):
        motion.judge(f"{tmp_path}/case/readings:/imu")


def test_a_urdf_is_judged_by_its_com(motion):
    turned = replace(
        motion, R=np.tile(np.eye(3), (COUNT, 1, 1)), of_urdf=lambda _: motion.com + 1
    )
    assert turned.judge("a.urdf").error_mm == pytest.approx(1e3 * np.sqrt(2.0))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            slice(0, 250),
            r"expected estimates from 2\.0 to 4\.0 s.* got 50, 1\.5 s apart",
        ),
        (slice(300, None), r"got 100, 1\.0 s apart"),
        (slice(0, 100), r"got 0, 2\.0 s apart"),
    ],
)
def test_estimates_of_a_part_of_the_time_are_refused(motion, tmp_path, rows, why):
    np.savetxt(tmp_path / "com.csv", table(motion, rows=rows), delimiter=",")
    with pytest.raises(SystemExit, match=why):
        motion.judge(str(tmp_path / "com.csv"))


@pytest.mark.parametrize(("columns", "value"), [(3, 0.0), (6, 0.0), (4, np.nan)])
def test_tables_of_another_form_are_refused(motion, tmp_path, columns, value):
    rows = table(motion, columns=columns)
    rows[-1, -1] = value or rows[-1, -1]
    np.savetxt(tmp_path / "com.csv", rows, delimiter=",")
    with pytest.raises(SystemExit, match=r"expected (4 or 7 columns|finite numbers)"):
        motion.judge(str(tmp_path / "com.csv"))


def test_a_table_may_name_its_columns_and_must_have_numbers(motion, tmp_path):
    path = tmp_path / "com.csv"
    np.savetxt(path, table(motion), delimiter=",", header="time,x,y,z", comments="")
    assert motion.judge(str(path)).error_mm == pytest.approx(3.0)
    path.write_text("time,x,y,z\n0.0,a,b,c\n")
    with pytest.raises(
        SystemExit, match=r"expected time,x,y,z\[,std_x,std_y,std_z\]: .*'a'"
    ):
        motion.judge(str(path))
    path.write_text("time,x,y,z\n")
    with pytest.raises(SystemExit, match="has no estimates"):
        motion.judge(str(path))


def test_the_bag_has_the_readings_and_not_the_truth(motion, tmp_path):
    motion.write(tmp_path / "case")
    feet, model = motion.config.feet, motion.model
    with Bag(tmp_path / "case/readings") as bag:
        names = {topic.name.lstrip("/") for topic in bag.topics()}
        assert names == {"joint_states", "imu", *(foot.wrench_topic for foot in feet)}
        topics = find_topics(bag.topics(), feet, TopicRequest(), True, "bag")
        reader = SensorReader(
            bag, model, feet, topics, motion.config.imu_link or model.root_link
        )
        blocks = list(reader.blocks())
    assert (
        np.concatenate([block.Q for block in blocks]).tolist()
        == motion.readings.q.tolist()
    )
    for i in range(len(feet)):
        found = np.concatenate([block.wrenches[i][1] for block in blocks])
        np.testing.assert_array_equal(found, motion.readings.wrenches[:, i])
    moving = motion.readings.moving
    for name, expected in (
        ("angular_velocity", moving.rate),
        ("linear_acceleration", moving.force),
    ):
        found = np.concatenate([block.imu.values(name) for block in blocks])
        np.testing.assert_array_equal(found, expected, name)
    assert (tmp_path / "case/robot.urdf").read_text() == model.xml
    assert (
        RobotConfig.from_file(tmp_path / "case/robot.yaml").feet[0].frame
        == feet[0].frame
    )


def test_a_method_without_estimates_in_all_held_out_postures_is_refused(tmp_path):
    log = SimpleNamespace(others=np.zeros((40, 2)))
    np.savetxt(
        tmp_path / "com.csv",
        [[0.1, 0.0, 0.0, 0.0], [2.6, 0.0, 0.0, 0.0]],
        delimiter=",",
    )
    with pytest.raises(SystemExit, match="no estimate in 38 of 40 held-out postures"):
        versus.judge_file(str(tmp_path / "com.csv"), log)


@pytest.mark.parametrize("estimate", ["a.urdf", "mine=", "=a.urdf", "mine=none.urdf"])
def test_an_estimate_has_a_name_and_a_file(monkeypatch, capsys, tmp_path, estimate):
    (tmp_path / "a.urdf").touch()
    monkeypatch.chdir(tmp_path)
    words = ["versus.py", "--only", "walk, clean", "--estimate", estimate]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        versus.main()
    said = "expected NAME=FILE of a file that exists, got " + repr(estimate)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("only", ["walk", "nothing"])
def test_an_estimate_is_for_one_scenario(monkeypatch, capsys, tmp_path, only):
    (tmp_path / "a.urdf").touch()
    words = ["versus.py", "--only", only, "--estimate", f"mine={tmp_path}/a.urdf"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        versus.main()
    assert (
        "--estimate is for one scenario: choose it by --only, got ["
        in capsys.readouterr().err
    )


def test_a_trot_is_estimated_from_its_bag_by_another_program(tmp_path, capsys):
    recorded = versus.trot_recorded(versus.trot_log("trot, clean", 0, seconds=3.0))
    recorded.write(tmp_path / "trot")
    words = [tmp_path / "trot/readings", "--robot", tmp_path / "trot/robot.urdf"]
    assert trunk_bag.main([*map(str, words), "--output", str(tmp_path / "out")]) == 0
    before = recorded.judge(str(tmp_path / "trot/robot.urdf")).error_mm
    after = recorded.judge(str(tmp_path / "out/corrected.urdf")).error_mm
    assert before == pytest.approx(1e3 * np.hypot(0.03, 0.10), abs=0.1)
    assert after < 0.02 * before


def test_a_walk_is_estimated_from_its_bag_as_from_the_log(tmp_path):
    case = versus.walk_case(versus.WALKS["walk, clean"], 0)
    recorded = case.recorded()
    recorded.write(tmp_path / "walk")
    model, config = case.model, case.config
    link = LinkFrames(model, [config.imu_link or model.root_link])
    rows, estimator = [], HumanoidEstimator(model, config)
    with Bag(tmp_path / "walk/readings") as bag:
        topics = find_topics(bag.topics(), config.feet, TopicRequest(), True, "bag")
        reader = SensorReader(bag, model, config.feet, topics, link.links[0])
        for time, *sample in diagnose_bag.samples(reader.blocks(), config, link, 0.005):
            out = estimator.update(time - START_NS / 1e9, *sample)
            estimator.process()
            rows.append(
                [time - START_NS / 1e9, *out.com, *np.sqrt(np.diag(out.covariance))]
            )
    known = [row for row in rows if np.isfinite(row).all()]
    assert len(known) > 0.8 * len(rows)
    np.savetxt(tmp_path / "com.csv", known, delimiter=",")
    score = recorded.judge(str(tmp_path / "com.csv"))
    urdf = recorded.judge(str(tmp_path / "walk/robot.urdf")).error_mm
    assert score.error_mm < 0.3 * urdf
    assert 0.0 < score.nees < 4.0
    direct = versus.walk_scores(versus.WALKS["walk, clean"], 0)["ours"]
    assert score.error_mm == pytest.approx(direct.error_mm, rel=0.1)
