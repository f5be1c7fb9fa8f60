"""The whole command on recordings whose truth is known."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest
import yaml
from html_page import assert_report

from com_identification.settings import IdentificationSettings, SensorPriors
from com_model import RobotModel, Sesc

pytestmark = pytest.mark.slow

FILES = ["corrected.urdf", "postures.db", "report.html", "result.yaml"]


@pytest.fixture(scope="module")
def done(recording, tmp_path_factory):
    """A run on the biped: the output directory."""
    from com_identification.commands.identify import main

    out = tmp_path_factory.mktemp("done") / "results"

    def run_once(robot):
        if not out.exists():
            assert main([str(recording("biped")), *robot, "--output", str(out)]) == 0
        return out

    return run_once


def test_the_truth_is_found_within_the_stds(done, robot, biped):
    out = done(robot)
    assert sorted(path.name for path in out.iterdir()) == FILES
    model = biped.model
    corrected = RobotModel.from_file(out / "corrected.urdf")
    truth = RobotModel.from_urdf(biped.xml)
    for q in biped.postures(15, seed=9):
        error = Sesc(corrected).com(q) - Sesc(truth).com(q)
        before = Sesc(model).com(q) - Sesc(truth).com(q)
        up = biped.readings(q)[2]
        flat = np.eye(3) - np.outer(up, up)
        assert np.linalg.norm(flat @ error) < 3e-4 < np.linalg.norm(flat @ before)


def test_links_and_their_deviations_in_the_result(done, robot, biped):
    result = yaml.safe_load((done(robot) / "result.yaml").read_text())
    text = json.dumps(result)
    assert "/tmp" not in text.replace(json.dumps(result["recording"]["inputs"]), "")
    assert result["recording"]["topics"][0] == {
        "role": "joint states",
        "name": "/joint_states",
        "type": "sensor_msgs/msg/JointState",
        "messages": 5000,
    }
    for body, truth in zip(result["bodies"], biped.com, strict=True):
        error = np.abs(np.array(body["com"]) - truth)
        assert (error < 4.0 * np.array(body["com_std"])).all(), body
    assert min(min(body["com_std"]) for body in result["bodies"]) < 2e-4
    assert len(result["stationary_intervals"]) == 20
    assert all(interval["used"] for interval in result["stationary_intervals"])


def test_the_postures_are_those_of_the_node(done, robot, biped, tmp_path):
    from com_identification.store.store import PostureStore

    source = done(robot) / "postures.db"
    with PostureStore(tmp_path / "node.db", biped.model, biped.feet) as store:
        assert store.load(source) == 20
        labels = [posture.label for posture in store.postures.values()]
    assert labels[:2] == ["0.50 s", "3.00 s"]


@pytest.mark.exhaustive
def test_two_runs_give_the_same_bytes(robot, recording, tmp_path):
    program = [sys.executable, "-m", "com_identification.commands.identify"]
    arguments = [str(recording("biped")), *robot, "--output"]
    outs = [tmp_path / "first", tmp_path / "again"]
    runs = [
        subprocess.Popen(
            [*program, *arguments, str(out)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.DEVNULL,
        )
        for out, seed in zip(outs, "12", strict=True)
    ]
    assert [run.wait(timeout=250) for run in runs] == [0, 0]
    for name in FILES:
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes(), name


def test_mcap_and_sqlite3_give_the_same_numbers(done, robot, recording, run, tmp_path):
    status, _, _ = run(
        recording("sqlite", storage="sqlite3"), *robot, "--output", tmp_path / "out"
    )
    assert status == 0
    urdf = (tmp_path / "out/corrected.urdf").read_bytes()
    assert urdf == (done(robot) / "corrected.urdf").read_bytes()


def test_the_report_needs_no_other_file_and_holds_no_date(done, robot):
    page = (done(robot) / "report.html").read_text()
    assert_report(page)
    assert not re.search(r"20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]", page)
    for words in (
        "Total CoM before and after",
        "l_thigh",
        "Sign, axes, units and weight are plausible",
        "combinations",
    ):
        assert words in page
    assert page.count("<svg") > 3


def test_with_imu_and_efforts(robot, recording, run, tmp_path):
    out = tmp_path / "out"
    status, text, _ = run(
        recording("biped"), *robot, "--output", out, "--imu", "/imu", "--effort"
    )
    assert status == 0
    assert "/imu" in (out / "report.html").read_text()
    assert "20 postures of 20 stationary intervals" in text


def test_marked_postures(robot, recording, run, tmp_path):
    marks = tmp_path / "marks.csv"
    lines = [f"{2.5 * i + 0.4},{2.5 * i + 1.9},number {i}" for i in range(20)]
    marks.write_text("start,end,label\n" + "\n".join(lines))
    out = tmp_path / "out"
    status, _, error = run(
        recording("biped"), *robot, "--output", out, "--marks", marks
    )
    assert (status, error) == (0, "")
    assert "number 19" in (out / "report.html").read_text()


def test_postures_that_a_topic_marks(robot, run, bags, biped, tmp_path):
    with bags.BagWriter(tmp_path / "marked", biped) as writer:
        (block,) = bags.samples(
            biped, biped.postures(20), bags.Tour(rate=100.0, moving=0.5)
        )
        for i in range(20):
            start, end = 250 * i + 40, 250 * i + 190
            writer.write(block.part(slice(start - 40, start)))
            writer.mark(f"number {i}", int(block.times[start]))
            writer.write(block.part(slice(start, end)))
            writer.mark("", int(block.times[end]))
            writer.write(block.part(slice(end, end + 60)))
    out = tmp_path / "out"
    arguments = ["--output", out, "--marker-topic", "/mark", "--time", "received"]
    status, text, error = run(tmp_path / "marked", *robot, *arguments)
    assert (status, error) == (0, "")
    assert "20 postures of 20" in text
    result = yaml.safe_load((out / "result.yaml").read_text())
    marks = result["stationary_intervals"]
    assert [mark["label"] for mark in marks] == [f"number {i}" for i in range(20)]
    np.testing.assert_allclose(
        [mark["start"] for mark in marks], 2.5 * np.arange(20) + 0.4, atol=0.02
    )
    np.testing.assert_allclose(
        [mark["end"] for mark in marks], 2.5 * np.arange(20) + 1.9, atol=0.02
    )


def test_topics_are_listed(run, recording):
    status, text, _ = run(recording("biped"), "--list-topics")
    assert status == 0
    assert re.search(
        r"^/joint_states +sensor_msgs/msg/JointState +5000$", text, re.MULTILINE
    )


def test_a_dry_run_writes_nothing(robot, run, recording, tmp_path):
    status, text, _ = run(
        recording("biped"), *robot, "--dry-run", "--output", tmp_path / "out"
    )
    assert status == 0
    assert re.search(r"^wrench of l_sole +/l_sole/wrench", text, re.MULTILINE)
    assert not (tmp_path / "out").exists()


def test_the_help_teaches_by_example(run):
    status, text, _ = run("--help")
    assert status == 0
    assert "identify walk_lab --robot hoap2 --output results" in text
    assert "Exit status" in text
    example = text[text.index("  sensors: {") : text.index("Other sections are")]
    sensors = IdentificationSettings.from_dict(yaml.safe_load(example)).sensors
    narrow, default = asdict(sensors), asdict(SensorPriors())
    assert all(narrow[name] <= default[name] for name in default), (
        "narrower than the default"
    )
    assert sum(narrow[name] < default[name] for name in default) == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--output", "x"], "--robot is missing"),
        (["--robot", "x.urdf"], "--output is missing"),
        (
            ["--robot", "x", "--output", "y", "--wrench", "foot"],
            "expected FOOT=TOPIC, got 'foot'",
        ),
        (
            ["--robot", "x", "--output", "y", "--marks", "a", "--marker-topic", "b"],
            "not both",
        ),
    ],
)
def test_wrong_arguments(run, arguments, words):
    status, _, error = run("bag", *arguments)
    assert status == 2
    assert words in error


def test_an_output_directory_with_other_things_is_left_alone(
    robot, run, recording, tmp_path
):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("dear")
    (out / "report.html").write_text("old")
    status, _, error = run(recording("biped"), *robot, "--output", out)
    assert status == 3
    assert "is not empty: it holds report.html, thesis.tex" in error
    assert "--force" in error
    assert (out / "report.html").read_text() == "old"
    status, _, error = run(recording("biped"), *robot, "--output", out, "--force")
    assert (status, error) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "thesis.tex"])
    assert (out / "thesis.tex").read_text() == "dear"
    assert (out / "report.html").read_text() != "old"


def test_a_recording_that_was_cut_is_used_as_far_as_it_goes(
    robot, run, recording, tmp_path
):
    path = tmp_path / "cut.mcap"
    shutil.copy(recording("biped") / "biped.mcap", path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 7 // 10])
    status, text, _ = run(path, *robot, "--output", tmp_path / "out")
    assert status == 0
    assert "note: cut.mcap: damaged" in text
    assert re.search(r"^1[0-4] postures", text, re.MULTILINE)


@pytest.mark.exhaustive
def test_the_record_of_the_robot(robot, recording, run, tmp_path):
    from com_identification.health.records import HealthDatabase

    record = tmp_path / "robots.db"
    arguments = [recording("biped"), *robot, "--record", record, "--serial", "7"]
    said = [run(*arguments, "--output", tmp_path / f"out{i}") for i in range(2)]
    assert [status for status, *_ in said] == [0, 0]
    assert f"added to {record}" in said[0][1]
    assert f"this recording is in {record} already" in said[1][1]
    (found,) = HealthDatabase(record).records("biped3", "7")
    document = yaml.safe_load((tmp_path / "out0/result.yaml").read_text())
    assert found.total_mass[0] == pytest.approx(document["total_mass"]["value"])
    assert found.taken == "2023-11-14 22:13:20+00:00"
    assert found.mass_on_feet[0] == pytest.approx(found.total_mass[0], rel=0.02)
    assert found.data_hash
    record.write_bytes(b"damaged" * 200)
    status, _, errors = run(*arguments, "--output", tmp_path / "out2")
    assert status == 3
    assert "is added with the next one" in errors
    assert (tmp_path / "out2/result.yaml").exists()
