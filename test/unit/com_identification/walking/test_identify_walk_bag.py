"""The command identify with bags of walking."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from html_page import assert_report
from walk_recording import Recorded

from com_identification.commands.identify import main
from com_model import RobotModel
from com_model.robots import find_robot
from com_simulation.physics.bag_writer import BagWriter
from com_simulation.physics.sensors import PRESETS

UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


def _write(recorded: Recorded, path: Path, effort: np.ndarray) -> None:
    world = SimpleNamespace(robot=recorded.believed, feet=(), imu_link="base")
    log, nothing = recorded.log, np.zeros(3)
    with BagWriter(path, cast(Any, world), PRESETS["none"], 0) as bag:
        for k in range(len(effort)):
            reading = SimpleNamespace(
                time=float(log.time[k]),
                position=log.position[k],
                velocity=log.velocity[k],
                effort=effort[k],
                wrenches=(),
                imu_orientation=UPRIGHT,
                angular_velocity=log.angular_velocity[k],
                specific_force=log.specific_force[k],
                mass=0.0,
                com=nothing,
                com_velocity=nothing,
                gravity=nothing,
            )
            bag.write(cast(Any, reading))


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Go2's, with the feet and the IMU of the recording."""
    source = find_robot("go2").config
    assert source is not None
    text = source.read_text().replace("radius: 0.023", "radius: 0.0")
    (tmp_path / "go2.yaml").write_text(text.replace("imu: {link: imu}", "imu: {link: base}"))
    return str(tmp_path / "go2.yaml")


def test_bags_become_a_corrected_urdf(recorded: Recorded, tmp_path: Path, config: str) -> None:
    _write(recorded, tmp_path / "bag", recorded.log.effort)
    arguments = [str(tmp_path / "bag"), "--robot", "go2", "--config", config]
    arguments += ["--mass", str(recorded.true.mass), "--output", str(tmp_path / "out")]
    assert main(arguments) == 0
    found = RobotModel.from_file(tmp_path / "out" / "corrected.urdf")
    assert found.mass == pytest.approx(recorded.true.mass, rel=5e-3)
    trunks = [m.bodies.first_moment[0] / m.bodies.mass[0] for m in (found, recorded.true)]
    assert np.linalg.norm(trunks[0] - trunks[1]) < 5e-3
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "corrected.urdf", "posterior.npz"}
    page = assert_report((tmp_path / "out" / "report.html").read_text())
    assert page.paragraphs[0].startswith("total mass ")


def test_a_bag_without_torques_is_refused(
    recorded: Recorded, tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(recorded, tmp_path / "bag", np.zeros((100, recorded.believed.n_joints)))
    arguments = [str(tmp_path / "bag"), "--robot", "go2", "--config", config]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 1
    assert "effort" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
