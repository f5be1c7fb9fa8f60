"""Manifests: complete, consistent, and with all that is imported."""

import ast
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
MANIFESTS = [*sorted((ROOT / "src").glob("*/package.xml")), ROOT / "launch" / "package.xml"]
PYTHON = [path.parent for path in MANIFESTS if (path.parent / "setup.py").exists()]
KEYS = {
    "ament_index_python": "ament_index_python",
    "matplotlib": "python3-matplotlib",
    "numba": "python3-numba",
    "numpy": "python3-numpy",
    "PIL": "python3-pil",
    "rich": "python3-rich",
    "scipy": "python3-scipy",
    "tf_transformations": "tf_transformations",
    "yaml": "python3-yaml",
}
"""rosdep keys of Python modules; those of ROS packages are the modules' names."""
PIP_ONLY = {"mujoco", "rosbags"}
"""Modules without a rosdep key."""
SHARED = {"maintainer", "license", "version", "url"}


def manifest(package):
    return ElementTree.parse(package / "package.xml").getroot()


def imports(package):
    """Top-level modules that a package imports, its own and Python's left out."""
    found = set()
    for path in package.joinpath(package.name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {package.name}


@pytest.mark.parametrize("package", PYTHON, ids=lambda path: path.name)
def test_what_is_imported_is_depended_on(package):
    root = manifest(package)
    modules = imports(package)
    keys = {KEYS.get(module, module) for module in modules - PIP_ONLY}
    named = {element.text for element in root.iter("exec_depend")}
    without_module = {"com_bringup", "robot_descriptions"}  # found by the ament index
    assert named - without_module == keys
    assert {element.text for element in root.iter("pip_depend")} == modules & PIP_ONLY


def test_all_packages_have_the_same_maintainer_licence_version_and_url():
    values = [
        {tag: [e.text for e in ElementTree.parse(path).getroot().findall(tag)] for tag in SHARED}
        for path in MANIFESTS
    ]
    assert all(value == values[0] for value in values)
    assert all(len(texts) == 1 and texts[0] for texts in values[0].values())
