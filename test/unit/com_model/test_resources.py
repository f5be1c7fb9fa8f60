"""Mesh names of a URDF lead into the robot's own files and nowhere else."""

from pathlib import Path

import pytest

from com_model.shapes.resources import package_root, resolve_uri, where_searched


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    package = tmp_path / "ws" / "my_robot"
    for folder in ("urdf", "meshes"):
        (package / folder).mkdir(parents=True)
    (package / "package.xml").write_text("<package/>")
    (package / "meshes" / "arm 1.stl").write_text("solid")
    (tmp_path / "ws" / "secret.stl").write_text("solid")
    (package / "urdf" / "my.urdf").write_text("<robot/>")
    return package / "urdf" / "my.urdf"


@pytest.mark.parametrize(
    "uri",
    [
        "package://my_robot/meshes/arm 1.stl",
        "package:///my_robot/meshes/arm%201.stl",
        "../meshes/arm 1.stl",
    ],
)
def test_names_that_lead_to_the_mesh(urdf: Path, uri: str) -> None:
    assert resolve_uri(uri, urdf) == urdf.parent.parent / "meshes" / "arm 1.stl"


def test_a_package_without_a_path_is_a_file_beside_the_urdf(urdf: Path) -> None:
    (urdf.parent / "leg.stl").write_text("solid")
    assert resolve_uri("package://leg.stl", urdf) == urdf.parent / "leg.stl"
    missing = where_searched("package://arm.stl", urdf)
    assert missing == f"file not found in {package_root(urdf)}"


def test_file_scheme_and_absolute_path_inside_the_package(urdf: Path) -> None:
    mesh = urdf.parent.parent / "meshes" / "arm 1.stl"
    assert resolve_uri(f"file://{mesh}", urdf) == mesh
    assert resolve_uri(str(mesh), urdf) == mesh


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "package://",
        "package://..",
        "package://my_robot",
        "package://my_robot/../secret.stl",
        "package://my_robot/%2e%2e/secret.stl",
        "package://../secret.stl",
        "package://other_robot/meshes/arm 1.stl",
        "package://etc/passwd",
        "../../secret.stl",
        "file:///etc/passwd",
        "/etc/passwd",
        "../meshes/" + "x" * 5000,
        "../meshes/arm 1.stl\0.stl",
        "http://example.org/arm.stl",
    ],
)
def test_names_that_lead_nowhere(urdf: Path, uri: str) -> None:
    assert resolve_uri(uri, urdf) is None


def test_package_beside_an_ancestor(urdf: Path) -> None:
    other = urdf.parents[2] / "my_meshes"
    other.mkdir()
    (other / "leg.stl").write_text("solid")
    assert resolve_uri("package://my_meshes/leg.stl", urdf) is None  # not yet a package
    (other / "package.xml").write_text("<package/>")
    assert resolve_uri("package://my_meshes/leg.stl", urdf) == other / "leg.stl"


def test_a_folder_of_the_packages_name_near_the_urdf(tmp_path: Path) -> None:
    """As in a repository of robots, which has no package.xml."""
    urdf, mesh = (
        tmp_path / "mine" / "urdf" / "r.urdf",
        tmp_path / "mine" / "h9" / "leg.stl",
    )
    for file in (urdf, mesh, tmp_path / "h8" / "leg.stl"):
        file.parent.mkdir(parents=True)
        file.write_text("")
    assert resolve_uri("package://h9/leg.stl", urdf) == mesh
    assert (
        resolve_uri("package://h8/leg.stl", urdf) is None
    )  # not in the robot's own folders


def test_installed_package(
    urdf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = tmp_path / "prefix" / "share" / "installed_robot"
    share.mkdir(parents=True)
    (share / "leg.stl").symlink_to(
        urdf.parents[2] / "secret.stl"
    )  # as --symlink-install does
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    assert resolve_uri("package://installed_robot/leg.stl", None) == share / "leg.stl"
    assert resolve_uri("leg.stl", None) is None


@pytest.mark.parametrize("entry", ["source", "source/my_arm"])
def test_package_below_ros_package_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    package = tmp_path / "source" / "my_arm"
    package.mkdir(parents=True)
    (package / "leg.stl").write_text("solid")
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{tmp_path / entry}")
    assert resolve_uri("package://my_arm/leg.stl", None) == package / "leg.stl"
    assert resolve_uri("package://my_arm/../my_arm/../../x", None) is None


def test_package_root_without_package_xml(tmp_path: Path) -> None:
    assert package_root(tmp_path / "robot" / "urdf" / "a.urdf") == tmp_path / "robot"
    assert package_root("/urdf/a.urdf") == Path("/urdf")
    assert package_root("/a.urdf") == Path("/")


@pytest.fixture
def download(tmp_path: Path) -> Path:
    """A URDF in a package whose folder has another name, with a second package beside it."""
    for folder, name in (("robot-main", "my_robot"), ("meshes-2.0", "my_meshes")):
        (tmp_path / folder / "meshes").mkdir(parents=True)
        (tmp_path / folder / "package.xml").write_text(
            f"<package><name>{name}</name></package>"
        )
        (tmp_path / folder / "meshes" / "leg.stl").write_text("solid")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "leg.stl").write_text("solid")
    return tmp_path / "robot-main" / "urdf" / "my.urdf"


@pytest.mark.parametrize(
    ("name", "folder"), [("my_robot", "robot-main"), ("my_meshes", "meshes-2.0")]
)
def test_a_package_is_known_by_its_package_xml(
    download: Path, tmp_path: Path, name: str, folder: str
) -> None:
    mesh = tmp_path / folder / "meshes" / "leg.stl"
    assert resolve_uri(f"package://{name}/meshes/leg.stl", download) == mesh
    assert resolve_uri(f"file://{mesh}", download) == mesh
    assert resolve_uri(str(mesh), download) == mesh


def test_file_names_lead_into_packages_only(
    download: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = tmp_path / "prefix" / "share" / "installed_robot"
    share.mkdir(parents=True)
    mesh = share / "leg.stl"
    mesh.write_text("solid")
    (share / "package.xml").write_text("<name>installed_robot</name>")
    assert resolve_uri(f"file://{mesh}", download) is None
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    assert resolve_uri(f"file://{mesh}", download) == mesh
    assert resolve_uri(f"file://{tmp_path}/notes/leg.stl", download) is None
    assert resolve_uri("../../meshes-2.0/meshes/leg.stl", download) is None


def test_what_is_not_found_names_where_it_was_searched(
    download: Path, tmp_path: Path
) -> None:
    text = where_searched("package://my_meshes/arm.stl", download)
    assert text == f"file not found in {tmp_path / 'meshes-2.0'}"
    text = where_searched("package://gone/arm.stl", download)
    for words in ("no package gone", "AMENT_PREFIX_PATH", "package.xml"):
        assert words in text
