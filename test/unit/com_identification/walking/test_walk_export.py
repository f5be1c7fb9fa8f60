"""Results of a walk as files: URDF, posterior, draws that simulators load."""

import csv
import json
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from com_identification.commands import com_randomise
from com_identification.exceptions import IdentificationError
from com_identification.walking.identify import WalkResult
from com_identification.walking.posterior import RobotPosterior, to_npz
from com_model import RobotModel

MJCF = """<mujoco><worldbody><body name="{0}"><freejoint/>{1}</body></worldbody></mujoco>"""


@pytest.fixture
def posterior(result: WalkResult, tmp_path: Path) -> Path:
    path = tmp_path / "posterior.npz"
    path.write_bytes(to_npz(vars(RobotPosterior.of(result))))
    return path


def test_draws_spread_as_the_posterior_does(
    result: WalkResult, posterior: Path
) -> None:
    draws = RobotPosterior.from_file(posterior).draw(2000, seed=1)
    mass = np.exp(2.0 * draws["eta"][:, :, 0]).sum(axis=1)
    expected, std = result.total_mass
    assert mass.mean() == pytest.approx(expected, abs=0.1 * std)
    assert mass.std() == pytest.approx(std, rel=0.1)


def test_the_snippet_of_the_help_changes_a_mujoco_model(
    result: WalkResult, posterior: Path, tmp_path: Path
) -> None:
    arguments = [str(posterior), "--samples", "3", "--output", str(tmp_path / "out")]
    assert com_randomise.main(arguments) == 0
    names = [
        n
        for n, m in zip(result.model.bodies.names, result.theta[:, 0], strict=True)
        if m
    ]
    inner = "".join(
        f'<body name="{n}"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        f'<joint name="{n}_j"/></body>'
        for n in names[1:]
    )
    own = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    model = mujoco.MjModel.from_xml_string(MJCF.format(names[0], own + inner))
    help_text = Path(com_randomise.__file__).with_suffix(".txt").read_text()
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
            np.testing.assert_allclose(
                axes @ np.diag(body.inertia) @ axes.T, inertia, atol=1e-9
            )


def test_urdfs_of_draws_load(posterior: Path, tmp_path: Path) -> None:
    out = tmp_path / "urdf"
    arguments = [
        str(posterior),
        "--samples",
        "2",
        "--robot",
        "go2",
        "--output",
        str(out),
    ]
    assert com_randomise.main(arguments) == 0
    with np.load(out / "samples.npz") as table:
        for s in range(2):
            model = RobotModel.from_file(out / f"sample_{s:03d}.urdf")
            assert model.mass == pytest.approx(table["mass"][s].sum())


def test_mjcf_of_the_robot_gets_other_inertials_and_joints(
    posterior: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known, out, file = (
        RobotPosterior.from_file(posterior),
        tmp_path / "out",
        tmp_path / "robot.xml",
    )
    names, joints = known.bodies.tolist(), known.joints.tolist()
    inner = "".join(
        f'<body name="{names[k]}"><joint name="{name}"/><geom size="0.1"/></body>'
        for k, name in enumerate(joints, 1)
    )
    actuators = f'<actuator><motor joint="{joints[0]}"/></actuator>'
    own = MJCF.format(names[0], '<geom size="0.1"/>' + inner)
    file.write_text(own.replace("</mujoco>", actuators + "</mujoco>"))
    arguments = [
        str(posterior),
        "--samples",
        "2",
        "--mjcf",
        str(file),
        "--output",
        str(out),
    ]
    assert com_randomise.main(arguments) == 0
    model = mujoco.MjModel.from_xml_path(str(out / "sample_001.xml"))
    assert model.nu == 1
    with np.load(out / "samples.npz") as table:
        for k, name in enumerate(names):
            body = model.body(name)
            assert body.mass[0] == pytest.approx(table["mass"][1, k], rel=1e-4)
            np.testing.assert_allclose(body.ipos, table["com"][1, k], atol=1e-5)
            R = np.empty(9)
            mujoco.mju_quat2Mat(R, body.iquat)
            axes = R.reshape(3, 3)
            found = axes @ np.diag(body.inertia) @ axes.T
            np.testing.assert_allclose(
                found, table["inertia"][1, k], rtol=1e-3, atol=1e-5
            )
        for k, name in enumerate(joints):
            dof = model.joint(name).dofadr[0]
            found = [
                model.dof_armature[dof],
                model.dof_frictionloss[dof],
                model.dof_damping[dof],
            ]
            expected = [table[key][1, k] for key in ("armature", "coulomb", "viscous")]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)
    file.write_text(own.replace(names[1], "thigh"))
    assert com_randomise.main([*arguments, "--force"]) == 1
    assert f"robot.xml has no bodies or joints {names[1]}" in capsys.readouterr().err
    file.write_text("<mujoco><nothing/></mujoco>")
    assert com_randomise.main([*arguments, "--force"]) == 1
    assert "robot.xml is no MJCF model" in capsys.readouterr().err


def test_the_estimate_itself_and_other_tables(posterior: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = [
        str(posterior),
        "--samples",
        "0",
        "--robot",
        "go2",
        "--output",
        str(out),
    ]
    assert com_randomise.main([*arguments, "--table", "json"]) == 0
    assert com_randomise.main([*arguments, "--table", "csv", "--force"]) == 0
    known = RobotPosterior.from_file(posterior)
    mass = np.exp(2.0 * known.mean[: 10 * len(known.bodies) : 10])
    assert RobotModel.from_file(out / "estimate.urdf").mass == pytest.approx(mass.sum())
    table = json.loads((out / "estimate.json").read_text())
    np.testing.assert_allclose(table["mass"], [mass])
    with (out / "estimate.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = {
        row["name"]: float(row["value"]) for row in rows if row["quantity"] == "mass"
    }
    assert found == pytest.approx(dict(zip(known.bodies.tolist(), mass, strict=True)))
    heights = [row for row in rows if row["quantity"] == "com 2"]
    assert [float(row["value"]) for row in heights] == [
        com[2] for com in table["com"][0]
    ]


def test_another_robot_and_another_file_are_refused(
    posterior: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "o")
    assert (
        com_randomise.main([str(posterior), "--output", out, "--robot", "talos"]) == 1
    )
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, a=1)
    with pytest.raises(IdentificationError, match=r"posterior\.npz"):
        RobotPosterior.from_file(wrong)


def test_layers_over_a_usd_stage(
    posterior: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    base, out = str(tmp_path / "robot.usda"), tmp_path / "out"
    stage = Usd.Stage.CreateNew(base)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    names = [str(name) for name in RobotPosterior.from_file(posterior).bodies]
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
    arguments = [
        str(posterior),
        "--usd",
        "robot.usd",
        "--output",
        str(tmp_path / "out"),
    ]
    assert com_randomise.main(arguments) == 1
    assert "usd-core" in capsys.readouterr().err
