"""Files of robots: URDFs by name (the suite's, those of example-robot-data, any file)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path

from com_model.shapes.resources import package_shares
from com_simulation.exceptions import UnknownRobotError

DESCRIPTIONS = "robot_descriptions"
COLLECTION = "example-robot-data"
_FOLDER_ENDINGS = ("_description", "_data", "_simple")
_USUAL = {"talos": "talos_reduced", "ur": "ur5_robot"}  # where no file has the folder's name


@dataclass(frozen=True)
class RobotFiles:
    """Where a robot's files are.

    Attributes:
        name: short name, fit for file names.
        urdf: its URDF.
        config: its configuration; None when there is none.
    """

    name: str
    urdf: Path
    config: Path | None


def find_robot(robot: str) -> RobotFiles:
    """Find a robot by its name or the path of its URDF.

    Raises:
        UnknownRobotError: there is no such file or name; lists the valid names, like ones first.
    """
    path = Path(robot).expanduser()
    if robot.lower().endswith((".urdf", ".xml")) or "/" in robot:
        if not path.is_file():
            raise UnknownRobotError(robot, (), "there is no such file")
        return RobotFiles(path.stem, path.resolve(), _config(path.stem))
    known = known_robots()
    if robot not in known:
        raise UnknownRobotError(robot, _suggestions(robot, known), "unknown, and no URDF's path")
    return RobotFiles(robot, known[robot], _config(robot))


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
        short = _short(robot_folder.name)
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
    alike = get_close_matches(robot, names, n=3, cutoff=0.5)
    return (*alike, *(name for name in names if name not in alike))


def _short(folder: str) -> str:
    for ending in _FOLDER_ENDINGS:
        folder = folder.removesuffix(ending)
    return folder


def _config(name: str) -> Path | None:
    candidates = [share / "config" / f"{name}.yaml" for share in package_shares(DESCRIPTIONS)]
    return next((path for path in candidates if path.is_file()), None)


def _collection_folders() -> Iterable[Path]:
    """Return the folders of the collection: of an installed ROS package or a Python package."""
    folders = [share / "robots" for share in package_shares(COLLECTION)]
    try:
        files = metadata.files(COLLECTION) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-3:] == ("share", COLLECTION, "package.xml"):
            folders.append(Path(str(file.locate())).parent / "robots")
    return [folder for folder in folders if folder.is_dir()]
