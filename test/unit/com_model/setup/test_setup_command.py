"""com_setup writes a file that is read back, and never overwrites one unasked."""

import re
import subprocess
import sys

import numpy as np
import pytest
import yaml

from com_model import RobotConfig, RobotModel
from com_model.commands.setup import main
from com_model.exceptions import pip_install
from com_model.robots import known_robots


@pytest.fixture
def urdf(tmp_path, biped):
    path = tmp_path / "robot.urdf"
    path.write_text(biped())
    return path


def test_what_it_writes_is_a_configuration(urdf, capsys):
    assert main([str(urdf)]) == 0
    config = RobotConfig.from_file(urdf.with_suffix(".yaml"))
    model = config.attach(RobotModel.from_file(config.urdf))
    assert (config.name, config.kind, config.trunk) == ("robot", "humanoid", "pelvis")
    assert [foot.frame for foot in config.feet] == ["left_sole", "right_sole"]
    assert model.link_index("left_sole") > 0
    assert config.servo.gains("l_knee_joint").stiffness > 100.0
    assert config.walking.step_width == pytest.approx(0.2, abs=0.01)
    out = capsys.readouterr().out
    for text in (
        "humanoid, 2 legs",
        "sole 200 x 100 mm",
        "make demo-walk ROBOT=",
        "Unsure",
    ):
        assert text in out


def test_unsure_lines_are_those_of_the_file(urdf, capsys):
    main([str(urdf)])
    lines = urdf.with_suffix(".yaml").read_text().splitlines()
    rows = capsys.readouterr().out.splitlines()
    unsure = [row.split()[1].rstrip(",") for row in rows if "wrench:" in row]
    assert len(unsure) == 2
    assert all("wrench:" in lines[int(number) - 1] for number in unsure)


def test_an_existing_file_stays(urdf, capsys):
    output = urdf.with_suffix(".yaml")
    output.write_text("name: mine\n")
    assert main([str(urdf)]) == 2
    assert (
        "exists already: --update keeps its edits, --force overwrites"
        in capsys.readouterr().err
    )
    assert output.read_text() == "name: mine\n"
    assert main([str(urdf), "--force", "--quiet"]) == 0
    assert RobotConfig.from_file(output).name == "robot"
    assert capsys.readouterr().out == ""


def test_update_keeps_edits(urdf):
    output = urdf.with_suffix(".yaml")
    main([str(urdf)])
    data = yaml.safe_load(output.read_text())
    data["imu"] = {"link": "pelvis"}
    data["feet"]["left_sole"]["wrench"]["sign"] = -1
    data["encoder"] = {"counts_per_degree": 100}
    del data["walking"]
    output.write_text(yaml.safe_dump(data))
    assert main([str(urdf), "--update"]) == 0
    config = RobotConfig.from_file(output)
    assert config.imu_link == "pelvis"
    assert [foot.wrench_sign for foot in config.feet] == [-1, 1]
    assert config.encoder_counts_per_degree == 100
    assert config.walking.step_length is not None


def test_interactive_asks_and_an_empty_answer_keeps(urdf, monkeypatch):
    answers = iter(["walker", "pelvis", "", "right/force"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert main([str(urdf), "--interactive", "--quiet"]) == 0
    config = RobotConfig.from_file(urdf.with_suffix(".yaml"))
    assert (config.name, config.imu_link) == ("walker", "pelvis")
    assert [foot.wrench_topic for foot in config.feet] == [
        "left_sole/wrench",
        "right/force",
    ]
    assert len(config.feet[1].corners) == 4


def test_no_legs(data, capsys):
    assert main([str(data / "arm.urdf"), "--output", "/nowhere/x.yaml"]) == 1
    assert "no legs: " in capsys.readouterr().err


def test_the_next_commands_name_the_robot_from_any_folder(
    urdf, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    main(["robot.urdf"])
    assert f"  make demo-walk ROBOT={urdf}\n" in capsys.readouterr().out
    main(["robot.urdf", "--output", "my config.yaml"])
    assert (
        f"ROBOT={urdf} CONFIG='{tmp_path}/my config.yaml'\n" in capsys.readouterr().out
    )


def test_no_command_is_proposed_that_must_fail(tmp_path, capsys):
    """Bolt has two point feet; simple_humanoid straight legs and a weak waist by its limits."""
    robots = known_robots()
    if "bolt" not in robots:
        pytest.skip("example-robot-data is not installed")
    proposed, reasons = [], []
    for name in ("bolt", "simple_humanoid", "romeo"):
        main([str(robots[name]), "--output", str(tmp_path / f"{name}.yaml")])
        out = capsys.readouterr().out
        proposed.append(re.findall(r"make ([\w-]+) ", out))
        reasons.append(re.findall(r"\(not (.*)\)", out))
    assert proposed == [["view"], ["view"], ["demo", "demo-walk", "demo-identify"]]
    knees, waist = reasons[1]
    assert "demo, demo-walk: " in knees
    assert "knees straight" in knees
    assert "demo-identify: " in waist
    assert "WAIST_P" in waist
    assert not reasons[2]


def test_a_missing_file(tmp_path, capsys):
    assert main([str(tmp_path / "gone.urdf")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_xacro_without_the_package(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    path = tmp_path / "robot.urdf.xacro"
    path.write_text("<robot/>")
    assert main([str(path)]) == 2
    assert pip_install("xacro") in capsys.readouterr().err


def test_the_command_that_installs_a_package_works():
    """Of what is installed it changes nothing."""
    command = f"{pip_install('numpy')} --dry-run"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_picture(urdf, tmp_path):
    assert main([str(urdf), "--picture", str(tmp_path / "robot.png"), "--quiet"]) == 0
    assert (tmp_path / "robot.png").read_bytes().startswith(b"\x89PNG")


def test_picture_that_turns(urdf, tmp_path, monkeypatch, capsys):
    page = tmp_path / "robot.html"
    words = [str(urdf), "--force", "--picture", str(page), "--quiet"]
    monkeypatch.setitem(sys.modules, "com_viewer.commands.view", None)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "write robot.png" in error
    assert "./src/com_viewer" in error
    monkeypatch.undo()
    pytest.importorskip("viser")
    assert main(words) == 0
    assert "<html" in page.read_text()


@pytest.mark.parametrize("suffix", ["png", "html"])
def test_a_picture_alone_is_that_of_the_file_that_is_there(urdf, tmp_path, suffix):
    pytest.importorskip("viser")
    main([str(urdf), "--quiet"])
    config, picture = urdf.with_suffix(".yaml"), tmp_path / f"robot.{suffix}"
    edited = config.read_text().replace("name: ", "name: my_", 1)
    config.write_text(edited)
    assert main([str(urdf), "--picture", str(picture), "--quiet"]) == 0
    assert picture.stat().st_size > 1000
    assert config.read_text() == edited


def test_a_posture_in_the_file_has_the_soles_flat(urdf):
    main([str(urdf), "--quiet"])
    config = RobotConfig.from_file(urdf.with_suffix(".yaml"))
    model = config.attach(RobotModel.from_file(urdf))
    from com_model.dynamics.kinematics import link_pose

    for foot in config.feet:
        R, _ = link_pose(model, config.nominal_posture(model), foot.frame)
        np.testing.assert_allclose(R, np.eye(3), atol=2e-3)


def test_xacro_finds_packages_beside_it(tmp_path, biped, capsys):
    """Of which nothing is installed, as in a folder that was downloaded."""
    for name in ("robot_a", "parts_b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "package.xml").touch()
    (tmp_path / "parts_b" / "all.xacro").write_text(biped())
    path = tmp_path / "robot_a" / "robot.urdf.xacro"
    text = (
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="$(find {})/all.xacro"/></robot>'
    )
    path.write_text(text.format("parts_b"))
    assert main([str(path), "--quiet"]) == 0
    path.write_text(text.format("parts_c"))
    assert main([str(path), "--force"]) == 2
    error = capsys.readouterr().err
    assert error.count("no package parts_c") == 1
    assert "put its folder" in error


def test_xacro_arguments(tmp_path, biped, capsys):
    path = tmp_path / "robot.urdf.xacro"
    head = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" '
    if_debug = '<xacro:if value="$(arg DEBUG)"><link name="spare"/></xacro:if></robot>'
    text = biped().replace("<robot ", head, 1).replace("</robot>", if_debug)
    path.write_text(text)
    assert main([str(path)]) == 2
    assert "--xacro-arg DEBUG:=VALUE" in capsys.readouterr().err
    assert main([str(path), "--xacro-arg", "DEBUG=false"]) == 2
    assert "NAME:=VALUE" in capsys.readouterr().err
    assert main([str(path), "--xacro-arg", "DEBUG:=false", "--quiet"]) == 0
    assert "spare" not in RobotModel.from_file(tmp_path / "robot.urdf").link_names


def test_xacro_finds_its_own_package_by_package_xml(tmp_path, biped):
    """In a folder of another name, as a download has."""
    (tmp_path / "robot-main" / "urdf").mkdir(parents=True)
    (tmp_path / "robot-main" / "package.xml").write_text("<name>my_robot</name>")
    path = tmp_path / "robot-main" / "urdf" / "robot.urdf.xacro"
    path.with_name("all.xacro").write_text(biped())
    path.write_text(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="$(find my_robot)/urdf/all.xacro"/></robot>'
    )
    assert main([str(path), "--quiet"]) == 0


def test_every_mesh_that_is_missing_is_named(tmp_path, biped, capsys):
    boxes = iter(["left.stl", "right.stl", "trunk.stl"])
    path = tmp_path / "robot.urdf"
    path.write_text(
        re.sub(r"<box [^>]*>", lambda m: mesh_or(next(boxes, ""), m[0]), biped())
    )
    (tmp_path / "trunk.stl").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    main([str(path)])
    out = capsys.readouterr().out
    assert re.search(
        r"shapes not read \(file not found in .*\): left.stl, right.stl", out
    )
    assert re.search(r"shapes not read \(.*git lfs pull\): trunk.stl", out)


def mesh_or(mesh, box):
    return f'<mesh filename="{mesh}"/>' if mesh else box


def test_xacro_is_expanded_into_a_urdf_beside_it(tmp_path, biped):
    path, text = tmp_path / "robot.urdf.xacro", biped()
    path.write_text(
        text.replace(
            "<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ', 1
        )
    )
    assert main([str(path), "--quiet"]) == 0
    expanded = RobotModel.from_file(tmp_path / "robot.urdf")
    assert expanded.joint_names == RobotModel.from_urdf(text).joint_names
    assert RobotConfig.from_file(tmp_path / "robot.yaml").kind == "humanoid"


def legged_mjcf(trunk):
    """A biped with legs of 3 kg and a trunk of that mass, kg."""
    legs = "".join(
        f"""<body name="{side}_thigh" pos="0 {y} -.1">
          <joint name="{side}_hip" axis="0 1 0" range="-90 90"/>
          <geom type="capsule" fromto="0 0 -.05 0 0 -.25" size=".04" mass="1"/>
          <body pos="0 0 -.3" name="{side}_shank">
            <joint name="{side}_knee" axis="0 1 0" range="0 120"/>
            <geom type="capsule" fromto="0 0 -.05 0 0 -.25" size=".03" mass="1"/>
            <body pos="0 0 -.3" name="{side}_foot">
              <joint name="{side}_ankle" axis="0 1 0" range="-60 60"/>
              <geom type="box" pos=".03 0 -.03" size=".1 .05 .02" mass="1"/>
            </body></body></body>"""
        for side, y in (("left", 0.1), ("right", -0.1))
    )
    return f"""<mujoco model="walker"><worldbody><body name="trunk" pos="0 0 .75">
      <freejoint/><geom type="box" size=".08 .12 .15" pos="0 0 .1" mass="{trunk}"/>
      {legs}</body></worldbody></mujoco>"""


def test_a_urdf_beside_an_mjcf_is_another_model_and_stays(tmp_path, biped, capsys):
    pytest.importorskip("mujoco")
    other, mjcf = tmp_path / "robot.urdf", tmp_path / "robot.xml"
    other.write_text(biped())
    mjcf.write_text(legged_mjcf(7))
    assert main([str(mjcf), "--quiet", "--no-check"]) == 0
    assert other.read_text() == biped()
    made = tmp_path / "robot_from_xml.urdf"
    assert RobotModel.from_file(made).mass == pytest.approx(13.0)
    assert made.with_suffix(".yaml").exists()
    mjcf.write_text(legged_mjcf(8))
    capsys.readouterr()
    output = ["--quiet", "--no-check", "--output", str(tmp_path / "second.yaml")]
    assert main([str(mjcf), *output]) == 2
    assert "robot_from_xml.urdf exists" in capsys.readouterr().err
    assert main([str(mjcf), *output, "--force"]) == 0
    assert RobotModel.from_file(made).mass == pytest.approx(14.0)


def edited(urdf, edit):
    """Exit status of --update after an edit of the file that com_setup wrote."""
    output = urdf.with_suffix(".yaml")
    assert main([str(urdf), "--quiet"]) == 0
    data = yaml.safe_load(output.read_text())
    edit(data)
    output.write_text(yaml.safe_dump(data))
    return main([str(urdf), "--update", "--quiet"])


def test_what_it_writes_stands_in_simulation(urdf, capsys):
    pytest.importorskip("mujoco")
    assert main([str(urdf)]) == 0
    assert "stands for 2 s in simulation" in capsys.readouterr().out
    assert main([str(urdf), "--force", "--no-check"]) == 0
    assert "in simulation" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("edit", "key", "words"),
    [
        (lambda d: d["posture"].update(l_knee_joint=1.5), "posture", "it falls"),
        (lambda d: d["feet"]["left_sole"].update(side="right"), "feet", "right, right"),
        (
            lambda d: d["posture"].update(l_pitch_joint=-1.6, r_pitch_joint=-1.6),
            "posture",
            "it lies",
        ),
    ],
)
def test_what_does_not_stand_is_refused_with_the_line(urdf, capsys, edit, key, words):
    pytest.importorskip("mujoco")
    assert edited(urdf, edit) == 2
    error = capsys.readouterr().err
    line = int(re.search(r"robot.yaml, line (\d+)", error)[1])
    rows = urdf.with_suffix(".yaml").read_text().splitlines()
    assert rows[line - 1].startswith(key)
    assert words in error


def test_what_the_loader_refuses_is_no_success(urdf, capsys):
    assert edited(urdf, lambda data: data.update(imu={"link": "nowhere"})) == 2
    error = capsys.readouterr().err
    for words in ("cannot be loaded", "nowhere", "imu"):
        assert words in error


def test_without_mujoco_it_says_so(urdf, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "com_simulation.physics.standing", None)
    assert main([str(urdf)]) == 0
    out = capsys.readouterr().out
    assert "not tried to stand in simulation" in out
    assert "mujoco" in out


def test_errors_of_the_urdf_are_named_and_no_walk_is_proposed(urdf, capsys):
    """As of an impossible inertia, with which a walk falls at step 4."""
    ones = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="0"/>'
    urdf.write_text(re.sub(r"<inertia [^>]*>", ones, urdf.read_text()))
    main([str(urdf), "--no-check"])
    out = capsys.readouterr().out
    assert re.search(r"line \d+, urdf: audit: .*inertia", out)
    assert "make demo-walk" not in out
    assert "audit finds" in out
