"""What a recording cannot identify is refused, with what to do."""

import errno
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from com_model.strict_yaml import read_yaml

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

START_NS = 1_700_000_000_000_000_000


def refused(result, status, *words):
    """Checks exit status and words; nothing but these errors is printed."""
    got, _, error = result
    assert got == status, error
    for word in words:
        assert re.search(word, error), f"{word!r} is not in: {error}"
    assert "Traceback" not in error


def test_a_missing_topic(robot, run, recording, tmp_path):
    result = run(
        recording("biped"), *robot, "--output", tmp_path / "o", "--joint-states", "/js"
    )
    refused(
        result, 2, r"no topic /js for the joint states", r"/joint_states \(sensor_msgs"
    )
    assert not (tmp_path / "o").exists()


def test_the_wrong_sign(robot, run, recording, tmp_path):
    path = recording("sign", change=lambda b: replace(b, wrenches=-b.wrenches))
    result = run(path, *robot, "--output", tmp_path / "out")
    refused(
        result, 1, "the wrenches cannot be the robot's", "sign", "--ignore-wrench-check"
    )
    assert not (tmp_path / "out").exists()


def held(block, first, last, sign=1.0):
    """A hand carries a third of the weight and pulls, from one second to another."""
    seconds = (block.times - START_NS) / 1e9
    wrenches = sign * block.wrenches
    wrenches[(seconds >= first) & (seconds < last)] *= 0.65
    wrenches[(seconds >= first) & (seconds < last), 0, :3] += [0.0, 20.0, 0.0]
    return replace(block, wrenches=wrenches)


def test_postures_in_which_somebody_held_the_robot_are_left_out(
    robot, run, recording, tmp_path
):
    path = recording("held", change=lambda b: held(b, 7.0, 17.0))
    status, text, error = run(path, *robot, "--output", tmp_path / "out")
    assert status == 0, error
    result = read_yaml(tmp_path / "out/result.yaml")
    reasons = [
        each["reasons"] for each in result["stationary_intervals"] if not each["used"]
    ]
    assert len(reasons) == 4
    assert all(
        "Something else carried or pulled the robot" in reason[0] for reason in reasons
    )
    assert result["fit"]["residual"]["rms"] < 1e-3
    assert "16 postures of 20 stationary intervals (4 refused)" in text


def test_the_wrong_sign_is_found_among_postures_that_say_nothing(
    robot, run, recording, tmp_path
):
    path = recording("held and wrong", change=lambda b: held(b, 0.0, 32.0, -1.0))
    result = run(path, *robot, "--output", tmp_path / "out")
    refused(result, 1, "the wrenches cannot be the robot's", "change the sign")


def test_the_wrong_frame(robot, run, recording, tmp_path):
    turn = np.kron(np.eye(2), [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    path = recording("axes", change=lambda b: replace(b, wrenches=b.wrenches @ turn.T))
    refused(run(path, *robot, "--output", tmp_path / "out"), 1, "wrench.frame")


def test_postures_that_are_all_alike(robot, run, recording, bags, biped, tmp_path):
    path = tmp_path / "alike"
    posture = biped.postures(1)[0]
    postures = np.array([posture + 0.012 * (i % 2) for i in range(12)])
    with bags.BagWriter(path, biped) as writer:
        for block in bags.samples(biped, postures, bags.Tour(rate=100.0, moving=0.5)):
            writer.write(block)
    status, text, error = run(path, *robot, "--output", tmp_path / "out")
    assert status == 0, error
    for words in (
        r"warning: 12 postures determine \d+ of \d+ combinations, the rest stays as uncertain",
        r"These postures would help most \(rad or m\):",
        r"1\. on l_sole, r_sole: l_knee -?\d\.\d+",
    ):
        assert re.search(words, text), words


def test_no_stationary_posture(robot, run, recording, tmp_path):
    path = recording("restless", still=0.0, moving=0.5)
    refused(
        run(path, *robot, "--output", tmp_path / "out"),
        1,
        r"no stationary posture in 10\.0 s of joint states",
        r"s: joints moved",
        "Let the robot be stationary for a second or two",
    )


def test_degrees_are_no_motion(robot, run, recording, tmp_path):
    """Their noise is 57 times that of radians, and no posture seems to be at rest."""

    def in_degrees(block):
        return replace(block, q=np.rad2deg(block.q))

    path = recording("degrees", change=in_degrees)
    result = run(path, *robot, "--output", tmp_path / "out")
    refused(result, 2, "the positions are in degrees", "unit: deg")


def test_time_that_goes_back_is_told(robot, run, bags, biped, tmp_path):
    tour = bags.Tour(rate=100.0, moving=0.5)
    with bags.BagWriter(tmp_path / "back", biped) as writer:
        for block in bags.samples(biped, biped.postures(20), tour):
            times = block.times.copy()
            times[len(times) // 2 :] -= 20_000_000_000
            writer.write(replace(block, times=times), block.times)
    out = tmp_path / "out"
    status, _, _ = run(tmp_path / "back", *robot, "--output", out)
    assert status == 0
    assert "time jumped back 1 times" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--config", "name: x\nfeet: {nowhere: {}}", "nowhere"),
        ("--config", "name: x", "no feet with force sensors"),
        ("--settings", "capture: {sample: 3}", "unknown key 'sample'"),
        ("--robot", "<robot/>", "error: "),
    ],
)
def test_files_that_do_not_fit(robot, run, recording, tmp_path, option, text, words):
    file = tmp_path / "file"
    file.write_text(text)
    result = run(recording("biped"), *robot, option, file, "--output", tmp_path / "out")
    refused(result, 2, words)


def test_an_imu_whose_place_is_not_known(run, robot, recording, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("name: biped3\nfeet: {l_sole: {}, r_sole: {}}")
    result = run(
        recording("biped"),
        *robot[:2],
        "--config",
        config,
        "--imu",
        "/imu",
        "--output",
        tmp_path / "o",
    )
    refused(result, 2, r"say which link carries it, as imu: \{link: NAME\}")


def test_output_paths_that_cannot_be(robot, run, recording, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    bag = recording("biped")
    refused(run(bag, *robot, "--output", file), 3, "is not a directory")
    refused(
        run(bag, *robot, "--output", file / "below"),
        3,
        "cannot be used: Not a directory",
    )
    refused(
        run(bag, *robot, "--output", "/proc/nothing/here"),
        3,
        "cannot be used: No such file",
    )
    refused(run(bag, *robot, "--output", "a\0b"), 3, "is not a path")


def test_a_link_in_the_output_directory_is_replaced_not_followed(
    robot, run, recording, tmp_path
):
    precious, out = tmp_path / "precious", tmp_path / "out"
    precious.write_text("dear")
    out.mkdir()
    (out / "report.html").symlink_to(precious)
    status, _, error = run(recording("biped"), *robot, "--output", out, "--force")
    assert (status, error) == (0, "")
    assert precious.read_text() == "dear"
    assert not (out / "report.html").is_symlink()


def test_a_full_disk_leaves_nothing_behind(
    robot, run, recording, tmp_path, monkeypatch
):
    bag, replace_file, calls = recording("biped"), os.replace, []

    def full(source, target):
        if "results" in str(target):
            calls.append(target)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace_file(source, target)

    monkeypatch.setattr(os, "replace", full)
    result = run(bag, *robot, "--output", tmp_path / "results")
    assert calls
    refused(result, 3, "No space left on device. Free space on the disk")
    assert not (tmp_path / "results").exists()


def test_what_a_killed_run_left_behind_does_not_bar_the_next(
    robot, run, recording, tmp_path
):
    out = tmp_path / "out"
    (out / ".identify_bag.abc").mkdir(parents=True)
    status, _, error = run(recording("biped"), *robot, "--output", out)
    assert (status, error) == (0, "")


def test_texts_of_the_bag_and_the_urdf_are_escaped(run, robot, recording, tmp_path):
    urdf = tmp_path / "evil.urdf"
    with open(robot[1]) as stream:
        text = stream.read()
    urdf.write_text(
        text.replace('"l_thigh"', '"&lt;script&gt;alert(1)&lt;/script&gt;"')
    )
    out = tmp_path / "out"
    status, _, error = run(
        recording("biped"), "--robot", urdf, *robot[2:], "--output", out
    )
    assert (status, error) == (0, "")
    page = (out / "report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_posture_that_contradicts_itself_is_left_out_with_the_reason(
    robot, run, recording, tmp_path
):
    first = []

    def push(block):
        """In the second posture, the centre of pressure is 0.4 m in front of the left sole."""
        first.append(block.times[0])
        time = (block.times - first[0]) / 1e9
        W = block.wrenches.copy()
        inside = (time > 2.4) & (time < 4.6)
        W[inside, 0, 4] -= 0.4 * W[inside, 0, 2]
        return replace(block, wrenches=W)

    path = recording("off the sole", count=12, change=push)
    status, text, error = run(path, *robot, "--output", tmp_path / "out")
    assert status == 0, error
    (line,) = [line for line in text.splitlines() if line.startswith("left out: ")]
    assert re.search(
        r"left out: 3\.00 s: .*centre of pressure of l_sole is \d+ mm off", line
    ), line
