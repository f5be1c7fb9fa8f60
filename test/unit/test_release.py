"""Files of a release agree with the manifests: citation, container, RoboStack."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
set_version = importlib.import_module("set_version")
MANIFESTS = [
    *sorted((ROOT / "src").glob("*/package.xml")),
    *sorted((ROOT / "demos").glob("*/package.xml")),
    ROOT / "launch" / "package.xml",
]


def run_dependencies():
    """{rosdep key: versions, e.g. ">=1.1,<1.2", or "*"} of all packages, our own left out."""
    own = {path.parent.name for path in MANIFESTS} | {"com_bringup"}
    found = {}
    for path in MANIFESTS:
        for element in ElementTree.parse(path).getroot().iter("exec_depend"):
            if element.text not in own:
                bounds = {
                    ">=": element.get("version_gte"),
                    "<": element.get("version_lt"),
                }
                text = ",".join(
                    f"{sign}{value}" for sign, value in bounds.items() if value
                )
                found[element.text] = text or "*"
    return found


def test_citation_has_this_version_and_the_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    manifest = ElementTree.parse(MANIFESTS[0]).getroot()
    assert citation["version"] == manifest.findtext("version")
    assert citation["license"] == manifest.findtext("license")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    sources = (ROOT / "docs" / "conventions.md").read_text().lower()
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert reference["title"].lower() in sources
        assert reference["authors"]


def test_robostack_has_what_the_packages_need():
    tomllib = pytest.importorskip("tomllib")
    pixi = tomllib.loads((ROOT / "pixi.toml").read_text())
    offered = pixi["dependencies"] | pixi["pypi-dependencies"]
    for key, versions in run_dependencies().items():
        if key.startswith("python3-"):
            name = (
                key.removeprefix("python3-")
                .removesuffix("-pip")
                .replace("yaml", "pyyaml")
            )
            assert offered[name] == versions, name
    assert pixi["workspace"]["version"] == ElementTree.parse(MANIFESTS[0]).findtext(
        "version"
    )


def test_container_copies_what_exists_and_compiles_kernels():
    text = (ROOT / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (\S+) (\S+)$", text, re.MULTILINE)
    for source, target in copied:
        assert (ROOT / source).exists(), source
        assert target == source
    launch_file = re.search(r'"com_bringup", "([^"]+)"', text)[1]
    assert (ROOT / "launch" / "launch" / launch_file).exists() or list(
        (ROOT / "launch").rglob(launch_file)
    )
    workspace, *_ = re.findall(r"^WORKDIR (\S+)$", text, re.MULTILINE)
    places = {f"{workspace}/{target}" for _, target in copied}
    (run,) = re.findall(r"^RUN .*python3 (\S+\.py)$", text, re.MULTILINE)
    assert f"/ws/{run}" in places, "the container has no such file"


def test_quality_declaration_names_files_that_exist():
    text = (ROOT / "QUALITY_DECLARATION.md").read_text()
    for name in re.findall(
        r"(?<![\w/])([A-Z]+\.md|\.ci/run|benchmarks/\w+\.py|pixi\.toml)", text
    ):
        assert (ROOT / name).exists(), name


def test_every_file_has_the_same_version(tmp_path, capsys):
    assert set_version.main([]) == 0
    (version,) = capsys.readouterr().out.split()
    assert version == ElementTree.parse(MANIFESTS[0]).findtext("version")
    for pattern in set_version.PLACES:
        for path in ROOT.glob(pattern):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    assert set_version.main(["9.8.7"], tmp_path) == 0
    assert capsys.readouterr().out == "9.8.7\n"
    text = (tmp_path / "pyproject.toml").read_text()
    assert text.replace("9.8.7", version) == (ROOT / "pyproject.toml").read_text()
    assert set_version.main(["next"], tmp_path) == 1
    (tmp_path / "CITATION.cff").write_text("version: 1.0.0\n")
    assert set_version.main([], tmp_path) == 1
    assert "1.0.0: CITATION.cff" in capsys.readouterr().out


def test_what_pip_installs_is_what_the_packages_need():
    """The distribution's requirements are those of tools/requirements, its commands exist."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    offered = {*project["dependencies"], *optional["viewer"], *optional["simulation"]}
    lines = (ROOT / "tools" / "requirements" / "python.txt").read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    assert offered == {line for line in listed if not line.startswith("setuptools")}
    for name, function in project["scripts"].items():
        module, _, attribute = function.partition(":")
        package = module.partition(".")[0]
        path = ROOT / "src" / package / f"{module.replace('.', '/')}.py"
        assert name.startswith("com-"), name
        assert f"def {attribute}(" in path.read_text(), name


def test_colcon_still_finds_every_package():
    """A root setup.py would hide them; a [project] table does not."""
    listed = subprocess.run(
        [sys.executable, "-m", "colcon", "list", "--names-only"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named colcon" in listed.stderr:
        pytest.skip("colcon is not installed")
    names = {ElementTree.parse(path).findtext("name") for path in MANIFESTS}
    assert names <= set(listed.stdout.split()), listed.stderr
