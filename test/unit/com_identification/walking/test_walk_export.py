"""Results of a walk as files: URDF, posterior, draws that simulators load."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from walk_recording import Recorded

from com_identification.commands import com_randomise
from com_identification.exceptions import IdentificationError
from com_identification.walking.identify import WalkResult
from com_identification.walking.posterior import Posterior
from com_model import RobotModel

MJCF = """<mujoco><worldbody><body name="{0}"><freejoint/>{1}</body></worldbody></mujoco>"""


@pytest.fixture
def posterior(result: WalkResult, tmp_path: Path) -> Path:
    path = tmp_path / "posterior.npz"
    path.write_bytes(Posterior.of(result).to_bytes())
    return path


def test_draws_spread_as_the_posterior_does(result: WalkResult, posterior: Path) -> None:
    draws = Posterior.from_file(posterior).draw(2000, seed=1)
    mass = np.exp(2.0 * draws.eta[:, :, 0]).sum(axis=1)
    expected, std = result.total_mass
    assert mass.mean() == pytest.approx(expected, abs=0.1 * std)
    assert mass.std() == pytest.approx(std, rel=0.1)


def test_the_snippet_of_the_help_changes_a_mujoco_model(
    result: WalkResult, posterior: Path, tmp_path: Path
) -> None:
    arguments = [str(posterior), "--samples", "3", "--output", str(tmp_path / "out")]
    assert com_randomise.main(arguments) == 0
    names = [n for n, m in zip(result.model.bodies.names, result.theta[:, 0], strict=True) if m]
    inner = "".join(
        f'<body name="{n}"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        f'<joint name="{n}_j"/></body>'
        for n in names[1:]
    )
    own = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    model = mujoco.MjModel.from_xml_string(MJCF.format(names[0], own + inner))
    help_text = com_randomise._EPILOG
    code = help_text[help_text.index("  t = numpy") : help_text.index("\nExit status")]
    lines = "\n".join(line[2:] for line in code.splitlines())
    lines = lines.replace('"samples.npz"', repr(str(tmp_path / "out" / "samples.npz")))
    exec(lines, {"numpy": np, "mujoco": mujoco, "model": model, "s": 1})
    with np.load(tmp_path / "out" / "samples.npz") as table:
        for name, mass, inertia in zip(
            table["bodies"], table["mass"][1], table["inertia"][1], strict=True
        ):
            body = model.body(str(name))
            assert body.mass[0] == pytest.approx(mass)
            R = np.empty(9)
            mujoco.mju_quat2Mat(R, body.iquat)
            axes = R.reshape(3, 3)
            np.testing.assert_allclose(axes @ np.diag(body.inertia) @ axes.T, inertia, atol=1e-9)


def test_urdf_and_mjcf_files_of_draws_load(
    recorded: Recorded, result: WalkResult, posterior: Path, tmp_path: Path
) -> None:
    names = [n for n, m in zip(result.model.bodies.names, result.theta[:, 0], strict=True) if m]
    inner = "".join(f'<body name="{n}"><joint name="{n}_j"/></body>' for n in names[1:])
    source = tmp_path / "go2.xml"
    source.write_text(MJCF.format(names[0], inner))
    urdf, mjcf, text = (str(tmp_path / name) for name in ("urdf", "mjcf", "json"))
    common = [str(posterior), "--samples", "2", "--output"]
    assert com_randomise.main([*common, urdf, "--format", "urdf", "--robot", "go2"]) == 0
    assert com_randomise.main([*common, mjcf, "--format", "mjcf", "--mjcf", str(source)]) == 0
    assert com_randomise.main([*common, text, "--format", "json"]) == 0
    table = json.loads((tmp_path / "json" / "samples.json").read_text())
    for s in range(2):
        model = RobotModel.from_file(tmp_path / "urdf" / f"sample_{s:03d}.urdf")
        loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "mjcf" / f"sample_{s:03d}.xml"))
        assert loaded.body_mass.sum() == pytest.approx(sum(table["mass"][s]))
        assert model.mass == pytest.approx(sum(table["mass"][s]))


def test_another_robot_and_another_file_are_refused(posterior: Path, tmp_path: Path) -> None:
    assert (
        com_randomise.main(
            [
                str(posterior),
                "--output",
                str(tmp_path / "o"),
                "--format",
                "urdf",
                "--robot",
                "talos",
            ]
        )
        == 1
    )
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, a=1)
    with pytest.raises(IdentificationError, match=r"posterior\.npz"):
        Posterior.from_file(wrong)
