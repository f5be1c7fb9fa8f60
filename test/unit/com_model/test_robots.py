"""Robots are found by name or path; for a wrong name the valid ones are listed."""

from pathlib import Path

import pytest

from com_model import ConfigError, ConfigWarning, UnknownRobotError, load_robot
from com_model.robots import collection_robots, find_robot, known_robots


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "prefix/share/robot_descriptions/urdf/hoap2.urdf",
        "prefix/share/robot_descriptions/config/hoap2.yaml",
        "prefix/share/robot_descriptions/config/hopper.yaml",
        "prefix/share/example-robot-data/robots/hopper_description/urdf/hopper.urdf",
        "prefix/share/example-robot-data/robots/hopper_b_description/robots/hopper.urdf",
        "prefix/share/example-robot-data/robots/talos_data/robots/talos_full.urdf",
        "prefix/share/example-robot-data/robots/talos_data/robots/talos_reduced.urdf",
        "prefix/share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf",
        "prefix/share/example-robot-data/robots/ur_description/urdf/ur5_gripper.urdf",
        "prefix/share/example-robot-data/robots/empty_description/readme",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    monkeypatch.setattr("com_model.robots._python_collection", lambda: ())
    return tmp_path / "prefix" / "share"


def test_names_of_a_collection(share: Path) -> None:
    robots = share / "example-robot-data" / "robots"
    found = {
        name: str(p.relative_to(robots))
        for name, p in collection_robots(robots).items()
    }
    assert found == {
        "hopper": "hopper_b_description/robots/hopper.urdf",
        "hopper_b": "hopper_b_description/robots/hopper.urdf",
        "talos": "talos_data/robots/talos_reduced.urdf",
        "talos_full": "talos_data/robots/talos_full.urdf",
        "talos_reduced": "talos_data/robots/talos_reduced.urdf",
        "ur": "ur_description/urdf/ur5_robot.urdf",
        "ur5": "ur_description/urdf/ur5_robot.urdf",
        "ur5_gripper": "ur_description/urdf/ur5_gripper.urdf",
        "ur5_robot": "ur_description/urdf/ur5_robot.urdf",
    }


def test_own_robot_with_its_configuration(share: Path) -> None:
    robot = find_robot("hoap2")
    assert robot.name == "hoap2"
    assert robot.urdf == share / "robot_descriptions/urdf/hoap2.urdf"
    assert robot.config == share / "robot_descriptions/config/hoap2.yaml"
    assert (
        find_robot("hopper").config == share / "robot_descriptions/config/hopper.yaml"
    )
    assert find_robot("talos").config is None


def test_path_of_a_urdf(
    share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.urdf").write_text("")
    monkeypatch.chdir(tmp_path)
    for path in ("mine.urdf", "./mine.urdf", str(tmp_path / "mine.urdf")):
        robot = find_robot(path)
        assert (robot.name, robot.urdf, robot.config) == (
            "mine",
            tmp_path / "mine.urdf",
            None,
        )
    with pytest.raises(
        UnknownRobotError, match=r"robot '\./gone\.urdf': there is no such file"
    ):
        find_robot("./gone.urdf")


def test_unknown_name_lists_the_valid_ones_like_ones_first(share: Path) -> None:
    with pytest.raises(
        UnknownRobotError, match="robot 'hop2': unknown, and no URDF"
    ) as caught:
        find_robot("hop2")
    assert caught.value.valid[0] == "hoap2"
    valid = ("hoap2", "hopper", "talos", "talos_full", "ur", "ur5_gripper")
    assert tuple(sorted(caught.value.valid)) == valid
    assert set(valid) < set(known_robots())
    assert "valid names: hoap2, hopper" in str(caught.value)


def test_nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.setattr("com_model.robots._python_collection", lambda: ())
    with pytest.raises(UnknownRobotError, match="robot 'hoap2': unknown"):
        find_robot("hoap2")


URDF = """<robot name="r"><link name="base"><inertial><mass value="1"/></inertial></link>
  <link name="ankle"/><joint name="knee" type="continuous"><parent link="base"/>
  <child link="ankle"/></joint></robot>"""
CONFIG = "{name: mine, feet: {sole: {link: ankle, xyz: [0, 0, -1], size: [0.2, 0.1]}}}"


@pytest.fixture
def mine(share: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.urdf").write_text(URDF)
    return folder


def test_the_configuration_beside_a_urdf(mine: Path) -> None:
    urdf, named, common = (
        mine / name for name in ("mine.urdf", "mine.yaml", "robot.yaml")
    )
    assert find_robot(urdf).config is None
    common.write_text("{name: mine, urdf: other.urdf}")
    assert find_robot(urdf).config is None
    common.write_text(CONFIG)
    assert find_robot(urdf).config == common
    named.write_text(CONFIG)
    assert find_robot(urdf).config == named
    assert find_robot(urdf, common).config == common
    other = mine / "other.yaml"
    assert find_robot("hoap2", other).config == other


def test_a_configuration_names_its_urdf(mine: Path) -> None:
    file = mine / "set.yaml"
    file.write_text(CONFIG.replace("{name", "{urdf: mine.urdf, name"))
    robot = find_robot(file)
    assert (robot.urdf, robot.config) == (mine / "mine.urdf", file)
    file.write_text(CONFIG)
    with pytest.raises(
        ConfigError, match="urdf: names no URDF: give the path of the URDF"
    ):
        find_robot(file)


def test_load_robot(mine: Path) -> None:
    model, config = load_robot(mine / "mine.urdf")
    assert (config.name, config.feet, model.frames) == ("mine", (), ())
    (mine / "mine.yaml").write_text(CONFIG)
    model, config = load_robot(mine / "mine.urdf")
    assert [foot.frame for foot in config.feet] == ["sole"]
    assert model.link_names == ("base", "ankle", "sole")
    (mine / "mine.yaml").write_text(
        CONFIG.replace("0.2, 0.1", "0.2, 0.1], xyz: [9, 0, 0")
    )
    with pytest.raises(ConfigError, match="'xyz' is there twice"):
        load_robot(mine / "mine.urdf")
    far = CONFIG.replace("[0, 0, -1]", "[0.5, 0, -1]")
    (mine / "mine.yaml").write_text(far)
    with pytest.warns(
        ConfigWarning, match=r"mine\.yaml: posture: the CoM is 400 mm outside"
    ):
        load_robot(str(mine / "mine.urdf"))
