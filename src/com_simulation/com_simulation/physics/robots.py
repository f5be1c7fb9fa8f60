"""Files of robots: URDFs by name (the suite's, those of example-robot-data, any file), meshes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote

from com_simulation.exceptions import UnknownRobotError

DESCRIPTIONS = "robot_descriptions"
COLLECTION = "example-robot-data"
PACKAGE_SCHEME = "package://"
FILE_SCHEME = "file://"
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


def package_shares(package: str) -> list[Path]:
    """Return the share folders of an ament package, the first overlay first."""
    shares = [Path(prefix) / "share" / package for prefix in _paths("AMENT_PREFIX_PATH")]
    return [share for share in shares if share.is_dir()]


def resolve_uri(uri: str, urdf_path: str | Path | None) -> Path | None:
    """Find the file that a URDF's ``filename`` attribute means.

    A URDF comes from anywhere, so a name leads nowhere but into a robot's own files:
    ``package://NAME/REST`` into the package NAME (an ancestor folder of the URDF with that name, a
    folder with a package.xml beside one of them, else an installed package or one below
    ROS_PACKAGE_PATH), and a relative or ``file://`` name into the package of the URDF itself
    (:func:`package_root`).

    Args:
        uri: ``package://...``, ``file://...``, an absolute or a relative path.
        urdf_path: the URDF's file; None for a URDF that came as text, for which only installed
            packages are looked into.

    Returns:
        An absolute path without ``..`` to an existing file, or None when there is none.
    """
    if "\0" in uri:
        return None
    urdf = None if urdf_path is None else Path(os.path.abspath(urdf_path))
    if uri.startswith(PACKAGE_SCHEME):
        # Some robots write package:///NAME/...
        name, _, rest = unquote(uri[len(PACKAGE_SCHEME) :]).lstrip("/").partition("/")
        candidates = [(folder, rest) for folder in _package_folders(name, urdf)]
    elif urdf is None:
        return None
    else:
        path = unquote(uri[len(FILE_SCHEME) :]) if uri.startswith(FILE_SCHEME) else uri
        candidates = [(package_root(urdf), os.path.join(urdf.parent, path))]
    for folder, path in candidates:
        found = _file_inside(folder, path)
        if found is not None:
            return found
    return None


def package_root(urdf_path: str | Path) -> Path:
    """Return the folder of the package that a URDF belongs to.

    The nearest ancestor with a package.xml; without one, the parent of the URDF's folder
    (``robot/urdf/robot.urdf`` names ``../meshes/x.stl``), but never a bare top-level folder.
    """
    folder = Path(os.path.abspath(urdf_path)).parent
    for ancestor in (folder, *folder.parents):
        if (ancestor / "package.xml").is_file():
            return ancestor
    return folder.parent if len(folder.parents) > 1 else folder


def _package_folders(name: str, urdf: Path | None) -> list[Path]:
    """Return the folders that may be the package ``name``: the URDF's own first."""
    if not name or name in (".", ".."):
        return []
    folders = []
    if urdf is not None:
        folders += [ancestor for ancestor in urdf.parents if ancestor.name == name]
        beside = [ancestor / name for ancestor in urdf.parents]
        folders += [folder for folder in beside if (folder / "package.xml").is_file()]
    folders += package_shares(name)
    for path in map(Path, _paths("ROS_PACKAGE_PATH")):
        folders += [path] if path.name == name else [path / name]
    return [folder for folder in folders if folder.is_dir()]


def _paths(variable: str) -> list[str]:
    return [path for path in os.environ.get(variable, "").split(os.pathsep) if path]


def _file_inside(folder: Path, path: str) -> Path | None:
    """Return ``folder / path`` if it is a file and does not leave ``folder``.

    Compared as text: a folder that was installed by symbolic links has its files elsewhere.
    """
    absolute = Path(os.path.normpath(folder / path))
    try:
        inside = absolute.is_relative_to(folder) and absolute.is_file()
    except OSError:  # for example a name longer than the file system takes
        return None
    return absolute if inside else None
