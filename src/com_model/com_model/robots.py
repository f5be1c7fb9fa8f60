"""Robots by name or file: the one way in which commands, launch files and Python find them.

A robot is the name of one of the suite or of example-robot-data, or the path of its URDF, or that
of a configuration that names its URDF. Its configuration is, in this order: the one that is given;
of robot.urdf the robot.yaml beside it (the same name); the file robot.yaml in its folder, unless
that names another URDF; that of the suite for a robot of this name.

Launch files ask for paths at each start: what reads files is imported when it is needed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, reduce
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from com_model.exceptions import ConfigError, ConfigWarning, UnknownRobotError
from com_model.shapes.resources import package_shares

if TYPE_CHECKING:
    from com_model.model import RobotModel
    from com_model.robot_config import RobotConfig

DESCRIPTIONS = "robot_descriptions"
COLLECTION = "example-robot-data"
_FOLDER_ENDINGS = ("_description", "_data", "_simple")
_USUAL = {
    "talos": "talos_reduced",
    "ur": "ur5_robot",
}  # where no file has the folder's name


@dataclass(frozen=True)
class RobotFiles:
    """Where a robot's files are.

    Attributes:
        name: Short name, fit for file names.
        config: Its configuration; None when there is none.
    """

    name: str
    urdf: Path
    config: Path | None


def find_robot(
    robot: str | os.PathLike[str], config: str | os.PathLike[str] | None = None
) -> RobotFiles:
    """Finds a robot by its name, or by the path of its URDF or configuration.

    Args:
        robot: Name, or path of a URDF (.urdf, .xml) or of a configuration (.yaml).
        config: Path of the configuration, where it is not beside the URDF.

    Returns:
        The robot's files.

    Raises:
        UnknownRobotError: There is no such robot; lists the valid names, like ones first.
        ConfigError: The configuration names no URDF.
    """
    text, path = os.fspath(robot), Path(robot).expanduser()
    given = None if config is None else Path(config).expanduser()
    if text.lower().endswith((".urdf", ".xml", ".yaml", ".yml")) or "/" in text:
        if not path.is_file():
            raise UnknownRobotError(text, (), "there is no such file")
        path = path.resolve()
        if path.suffix not in (".yaml", ".yml"):
            return RobotFiles(path.stem, path, given or _config_of(path))
        if (urdf := _urdf_of(path)) is not None:
            return RobotFiles(path.stem, urdf, given or path)
        problem = (
            "names no URDF: give the path of the URDF for the robot, and this as config"
        )
        raise ConfigError(problem, str(path), "urdf")
    known = known_robots()
    if text not in known:
        problem = "unknown, and no URDF's path"
        if not list(_collection_folders()):
            problem += (
                "; robots like talos, icub, anymal, go2, panda come with example-robot-data, which "
                "is not installed (tools/setup.sh run none talos, or pip install --no-deps "
                "example-robot-data)"
            )
        raise UnknownRobotError(text, _suggestions(text, known), problem)
    return RobotFiles(text, known[text], given or find_robot_config(text))


def load_robot(
    robot: str | os.PathLike[str], config: str | os.PathLike[str] | None = None
) -> tuple[RobotModel, RobotConfig]:
    """Load a robot: its model, with the sole frames of its configuration, and its configuration.

        model, config = load_robot("robot.urdf")    # with robot.yaml beside it

    A robot that has no configuration gets one without feet. What seems wrong with a URDF or a
    configuration is a ConfigWarning. Raises as find_robot, UrdfError where the URDF cannot be read,
    ConfigError where the configuration cannot, or is another robot's.
    """
    from com_model.checks.config_check import config_warnings
    from com_model.model import RobotModel
    from com_model.robot_config import RobotConfig

    files = find_robot(robot, config)
    model = RobotModel.from_file(files.urdf)
    for text in model.warnings:
        warnings.warn(f"{files.urdf}: {text}", ConfigWarning, stacklevel=2)
    if files.config is None:
        return model, RobotConfig.from_dict({"name": files.name})
    found = RobotConfig.from_file(files.config)
    model = found.attach(model)
    for text in config_warnings(model, found, files.urdf):
        warnings.warn(text, ConfigWarning, stacklevel=2)
    return model, found


def known_robots() -> dict[str, Path]:
    """Return the URDFs of all robots that have a name here, by that name."""
    found: dict[str, Path] = {}
    for folder in _collection_folders():
        found |= collection_robots(folder)
    for share in package_shares(DESCRIPTIONS):
        found |= {path.stem: path for path in sorted((share / "urdf").glob("*.urdf"))}
    return found


def collection_robots(folder: Path) -> dict[str, Path]:
    """Return the URDFs below a folder of robot folders, by name.

    A robot's name is that of its file, with or without "_robot"; of files of the same name in
    several folders the first has it. The short name of a folder stands for its usual file.
    """
    by_name: dict[str, list[Path]] = {}
    usual: dict[str, Path] = {}
    for robot_folder in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = {path.stem: path for path in sorted(robot_folder.rglob("*.urdf"))}
        short = reduce(str.removesuffix, _FOLDER_ENDINGS, robot_folder.name)
        for stem, path in files.items():
            by_name.setdefault(stem, []).append(path)
        likely = (short, _USUAL.get(short, ""), min(files, key=len, default=""))
        chosen = next((files[name] for name in likely if name in files), None)
        if chosen is not None:
            usual[short] = chosen
    named = {stem: paths[0] for stem, paths in by_name.items()}
    plain = {stem.removesuffix("_robot"): path for stem, path in named.items()}
    return usual | plain | named


def _suggestions(robot: str, known: Mapping[str, Path]) -> tuple[str, ...]:
    """Return one name for each known file, the shortest, those most like a wrong name first."""
    shortest = {known[name]: name for name in sorted(known, key=len, reverse=True)}
    names = sorted(shortest.values(), key=str.lower)
    similar = get_close_matches(robot, names, n=3, cutoff=0.5)
    return (*similar, *(name for name in names if name not in similar))


def _config_of(urdf: Path) -> Path | None:
    """Return the configuration of a URDF: beside it, else the suite's for its name."""
    own, common = urdf.with_suffix(".yaml"), urdf.with_name("robot.yaml")
    if own.is_file():
        return own
    if common.is_file() and _urdf_of(common) in (None, urdf):
        return common
    return find_robot_config(urdf.stem)


def _urdf_of(config: Path) -> Path | None:
    """Return the URDF that a configuration names."""
    from com_model.robot_config import RobotConfig

    return RobotConfig.from_file(config).urdf


def find_robot_config(name: str) -> Path | None:
    """Return the suite's configuration of a name; None where there is none."""
    candidates = [
        share / "config" / f"{name}.yaml" for share in package_shares(DESCRIPTIONS)
    ]
    return next((path for path in candidates if path.is_file()), None)


def _collection_folders() -> Iterable[Path]:
    """Return the folders of the collection: of an installed ROS package or a Python package."""
    folders = [share / "robots" for share in package_shares(COLLECTION)]
    return [folder for folder in (*folders, *_python_collection()) if folder.is_dir()]


@cache
def _python_collection() -> tuple[Path, ...]:
    """Return the folders of the Python package, whose list of files is long."""
    try:
        files = metadata.files(COLLECTION) or []
    except metadata.PackageNotFoundError:
        return ()
    manifests = [
        f for f in files if f.parts[-3:] == ("share", COLLECTION, "package.xml")
    ]
    return tuple(Path(str(file.locate())).parent / "robots" for file in manifests)
