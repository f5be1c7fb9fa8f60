"""Results of a walk as files: URDF, posterior, draws that simulators load."""

import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from com_identification.commands import com_randomise
from com_identification.exceptions import IdentificationError
from com_identification.walking.identify import WalkResult
from com_identification.walking.posterior import Posterior, to_npz
from com_model import RobotModel

MJCF = """<mujoco><worldbody><body name="{0}"><freejoint/>{1}</body></worldbody></mujoco>"""


@pytest.fixture
def posterior(result: WalkResult, tmp_path: Path) -> Path:
    path = tmp_path / "posterior.npz"
    path.write_bytes(to_npz(vars(Posterior.of(result))))
    return path


def test_draws_spread_as_the_posterior_does(result: WalkResult, posterior: Path) -> None:
    draws = Posterior.from_file(posterior).draw(2000, seed=1)
    mass = np.exp(2.0 * draws["eta"][:, :, 0]).sum(axis=1)
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
    code = help_text[help_text.index("  t = numpy") : help_text.index("\nWith --robot")]
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


def test_urdfs_of_draws_load(posterior: Path, tmp_path: Path) -> None:
    out = tmp_path / "urdf"
    arguments = [str(posterior), "--samples", "2", "--robot", "go2", "--output", str(out)]
    assert com_randomise.main(arguments) == 0
    with np.load(out / "samples.npz") as table:
        for s in range(2):
            model = RobotModel.from_file(out / f"sample_{s:03d}.urdf")
            assert model.mass == pytest.approx(table["mass"][s].sum())


def test_another_robot_and_another_file_are_refused(posterior: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "o")
    assert com_randomise.main([str(posterior), "--output", out, "--robot", "talos"]) == 1
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, a=1)
    with pytest.raises(IdentificationError, match=r"posterior\.npz"):
        Posterior.from_file(wrong)


def test_layers_over_a_usd_stage(
    posterior: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    base, out = str(tmp_path / "robot.usda"), tmp_path / "out"
    stage = Usd.Stage.CreateNew(base)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    names = [str(name) for name in Posterior.from_file(posterior).bodies]
    for name in names[1:]:
        UsdPhysics.RigidBodyAPI.Apply(stage.DefinePrim(f"/robot/{name}", "Xform"))
    stage.Save()
    arguments = [str(posterior), "--samples", "2", "--usd", base, "--output", str(out)]
    assert com_randomise.main(arguments) == 1
    assert f"robot.usda has no rigid bodies {names[0]}" in capsys.readouterr().err
    assert not out.exists()
    UsdPhysics.RigidBodyAPI.Apply(stage.DefinePrim(f"/robot/{names[0]}", "Xform"))
    stage.Save()
    assert com_randomise.main(arguments) == 0
    layer = Usd.Stage.Open(str(out / "sample_001.usda"))
    assert UsdGeom.GetStageMetersPerUnit(layer) == 0.01
    with np.load(out / "samples.npz") as table:
        for k, name in enumerate(names):
            body = UsdPhysics.MassAPI(layer.GetPrimAtPath(f"/robot/{name}"))
            assert body.GetMassAttr().Get() == pytest.approx(table["mass"][1, k])
            com = 0.01 * np.array(body.GetCenterOfMassAttr().Get())
            np.testing.assert_allclose(com, table["com"][1, k], atol=1e-6)
            turn = Gf.Rotation(Gf.Quatd(body.GetPrincipalAxesAttr().Get()))
            R = np.array(Gf.Matrix3d(turn)).T  # of row vectors
            inertia = R * (1e-4 * np.array(body.GetDiagonalInertiaAttr().Get())) @ R.T
            np.testing.assert_allclose(inertia, table["inertia"][1, k], atol=1e-6)
    arguments[4] = str(posterior)
    assert com_randomise.main([*arguments, "--force"]) == 1
    assert "is no USD stage" in capsys.readouterr().err


def test_without_usd_core_it_says_what_to_install(
    posterior: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("pxr", "pxr.Gf"):
        monkeypatch.setitem(sys.modules, name, None)
    arguments = [str(posterior), "--usd", "robot.usd", "--output", str(tmp_path / "out")]
    assert com_randomise.main(arguments) == 1
    assert "pip install usd-core" in capsys.readouterr().err
