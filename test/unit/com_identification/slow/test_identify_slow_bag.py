"""The command identify with recordings of slow motions."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import yaml
from shipped_robot import SHARE
from slow_recording import hang, make_robot, sway

from com_demos.bag_writer import BagWriter
from com_identification.commands.identify import main
from com_model import RobotModel, Sesc
from com_simulation.physics.sensors import PRESETS


def write(robot, path, log):
    link = robot.believed.root_link
    world = SimpleNamespace(robot=robot.believed, feet=(), imu_link=link)
    nothing = np.zeros(3)
    with BagWriter(path, cast(Any, world), PRESETS["none"], 0) as bag:
        for k in range(len(log.time)):
            reading = SimpleNamespace(
                time=float(log.time[k]),
                position=log.position[k],
                velocity=np.zeros(robot.believed.n_joints),
                effort=log.effort[k],
                wrenches=np.zeros((0, 6)),
                imu_orientation=np.array([0.0, 0.0, 0.0, 1.0]),
                angular_velocity=log.angular_velocity[k],
                specific_force=log.specific_force[k],
                mass=0.0,
                com=nothing,
                com_velocity=nothing,
                gravity=nothing,
            )
            bag.write(cast(Any, reading))
    return str(path)


@pytest.fixture(scope="module")
def robot():
    return make_robot(3)


@pytest.fixture(scope="module")
def files(robot, tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    settings = yaml.safe_load((SHARE / "config" / "hoap3.yaml").read_text())
    settings["urdf"] = str(SHARE / "urdf" / "hoap3.urdf")
    settings["imu"] = {"link": robot.believed.root_link}
    config = folder / "robot.yaml"
    config.write_text(yaml.safe_dump(settings))
    return SimpleNamespace(
        config=str(config),
        sway=write(robot, folder / "sway", sway(robot, 40.0)),
        hang=write(robot, folder / "hang", hang(robot, 40.0)),
        folder=folder,
    )


def call(files, robot, *more):
    common = [
        "--robot",
        str(SHARE / "urdf" / "hoap3.urdf"),
        "--config",
        files.config,
    ]
    return main([*more, *common, "--mass", f"{robot.true.mass:.3f}", "--force"])


def test_sway_and_hang_become_a_corrected_urdf(robot, files, capsys):
    output = files.folder / "result"
    rope = [robot.rope.link, *(f"{value}" for value in robot.rope.xyz)]
    words = [files.sway, "--use", "sway", "--hung", files.hang, "--rope", *rope]
    assert call(files, robot, *words, "--output", str(output)) == 0
    text = capsys.readouterr().out
    assert "swaying and hanging agree" in text
    found = Sesc(RobotModel.from_file(output / "corrected.urdf"))
    q = robot.config.nominal_posture(robot.true)
    true, before = Sesc(robot.true).com(q), Sesc(robot.believed).com(q)
    error = np.linalg.norm(found.com(q) - true)
    assert error < 0.3 * np.linalg.norm(before - true)
    assert (output / "report.html").exists()


def test_a_rope_that_is_missing_or_wrong_is_named(robot, files, capsys):
    output = str(files.folder / "refused")
    assert call(files, robot, files.hang, "--use", "hang", "--output", output) != 0
    assert "--rope LINK X Y Z" in capsys.readouterr().err
    words = [files.hang, "--use", "hang", "--rope", "nowhere", "0", "0", "0.1"]
    assert call(files, robot, *words, "--output", output) != 0
    error = capsys.readouterr().err
    assert "nowhere" in error
    assert "Expected LINK X Y Z" in error
