"""What the setup.py of all Python packages share: the metadata of package.xml, names of commands.

colcon puts a command `audit` into lib/<package>, for `ros2 run <package> audit`; pip puts it on the
PATH as `com-audit`, and installs what package.xml names and PyPI has.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

PIP_NAMES = {"python3-yaml": "PyYAML"}
FROM_PIP = ("python3-", "com_bags", "com_model")
WHEEL = {"dist_info", "bdist_wheel", "editable_wheel"}  # what pip asks setuptools for


def setup_package(setup_file: str, commands: dict[str, str]) -> None:
    """Calls setuptools for a package.

    Args:
        setup_file: __file__ of its setup.py, which has package.xml beside it.
        commands: Names of the modules that are commands, by their folder ("": the package's own);
            name=module where the command has another name.
    """
    manifest = ElementTree.parse(Path(setup_file).resolve().with_name("package.xml")).getroot()
    name, maintainer = manifest.findtext("name"), manifest.find("maintainer")
    by_pip = bool(WHEEL & set(sys.argv))
    needed = [d for d in manifest.iter("exec_depend") if str(d.text).startswith(FROM_PIP)]
    needed += manifest.iter("pip_depend")  # what has no rosdep key
    setup(
        name=name,
        version=manifest.findtext("version"),
        description=manifest.findtext("description"),
        license=manifest.findtext("license"),
        url=manifest.findtext("url"),
        maintainer=maintainer.text if maintainer is not None else None,
        maintainer_email=maintainer.get("email") if maintainer is not None else None,
        packages=find_packages(),
        data_files=[
            ("share/ament_index/resource_index/packages", [f"resource/{name}"]),
            (f"share/{name}", ["package.xml"]),
        ],
        python_requires=">=3.10",
        install_requires=[_requirement(dependency) for dependency in needed if by_pip],
        entry_points={
            "console_scripts": [
                f"{_name_on_path(command) if by_pip else command} = {module}:main"
                for command, module in _modules(str(name), commands)
            ]
        },
    )


def _modules(package: str, commands: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each command with its module."""
    for folder, words in commands.items():
        for word in words.split():
            command, _, module = word.partition("=")
            yield command, ".".join(filter(None, (package, folder, module or command)))


def _requirement(dependency: ElementTree.Element) -> str:
    key = str(dependency.text)
    name = PIP_NAMES.get(key, key.removeprefix("python3-"))
    return f"{name}>={dependency.get('version_gte', '0')}"


def _name_on_path(command: str) -> str:
    return "com-" + command.removeprefix("com_").replace("_", "-")
