"""Manifests: complete, consistent, and with all that is imported."""

import ast
import sys
from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
MANIFESTS = [*sorted((ROOT / "src").glob("*/package.xml")), ROOT / "launch" / "package.xml"]
PYTHON = [path.parent for path in MANIFESTS if (path.parent / "setup.py").exists()]
KEYS = {
    "ament_index_python": "ament_index_python",
    "matplotlib": "python3-matplotlib",
    "mujoco": "python3-mujoco-pip",
    "numba": "python3-numba",
    "numpy": "python3-numpy",
    "PIL": "python3-pil",
    "rich": "python3-rich",
    "rosbags": "python3-rosbags-pip",
    "scipy": "python3-scipy",
    "tf_transformations": "tf_transformations",
    "viser": "python3-viser-pip",
    "yaml": "python3-yaml",
}
"""rosdep keys of Python modules; those of ROS packages are the modules' names."""
PIP = {"PIL": "pillow", "urdf_parser_py": "urdf-parser-py", "yaml": "PyYAML"}
"""What pip calls modules, where it is not their name."""
SHARED = {"maintainer", "license", "version"}


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
    keys = {KEYS.get(module, module) for module in modules}
    named = {element.text for element in root.iter("exec_depend")}
    without_module = {"com_bringup", "robot_descriptions"}  # found by the ament index
    assert named - without_module == keys


@pytest.mark.parametrize("package", PYTHON, ids=lambda path: path.name)
def test_pip_installs_what_rosdep_does(package):
    from_pip = {key: PIP.get(module, module) for module, key in KEYS.items()}
    needed = {
        from_pip.get(element.text, element.text)
        + (f">={element.get('version_gte')}" if element.get("version_gte") else "")
        + (f",<{element.get('version_lt')}" if element.get("version_lt") else "")
        for element in manifest(package).iter("exec_depend")
        if element.text.startswith(("python3-", "urdfdom", "com_bags", "com_model"))
    }
    config = ConfigParser()
    config.read(package / "setup.cfg")
    assert set(config["options"]["install_requires"].split()) == needed
    for key in ("name", "version", "license"):
        assert config["metadata"][key] == manifest(package).findtext(key)


def test_all_packages_have_the_same_maintainer_licence_and_version():
    values = [
        {tag: [e.text for e in ElementTree.parse(path).getroot().findall(tag)] for tag in SHARED}
        for path in MANIFESTS
    ]
    assert all(value == values[0] for value in values)
    assert all(len(texts) == 1 and texts[0] for texts in values[0].values())
