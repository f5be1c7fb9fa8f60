"""Files of a release agree with the manifests: citation, container, RoboStack."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[2]
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
