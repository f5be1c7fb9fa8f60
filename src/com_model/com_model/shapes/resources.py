"""Files that a URDF names: package://, file:// and relative names of meshes."""

import os
import re
import sysconfig
from pathlib import Path
from urllib.parse import unquote

PACKAGE_SCHEME = "package://"
FILE_SCHEME = "file://"
_PACKAGE_NAME = re.compile(rb"<name>\s*([\w.-]+)\s*</name>")


def package_shares(package: str) -> list[Path]:
    """Return the share folders of an ament package, the first overlay first, then pip's."""
    prefixes = [*_paths("AMENT_PREFIX_PATH"), sysconfig.get_path("data")]
    shares = [Path(prefix) / "share" / package for prefix in prefixes]
    return [share for share in shares if share.is_dir()]


def resolve_uri(uri: str, urdf_path: str | Path | None) -> Path | None:
    """Finds the file that a URDF's ``filename`` attribute means.

    A URDF comes from anywhere, so a name leads nowhere but into a robot's own files:
    ``package://NAME/REST`` into the package NAME (:func:`package_folders`), a relative name, or
    ``package://FILE``, into the package of the URDF itself (:func:`package_root`), ``file://PATH``
    and an absolute path into that package or another one that ``package://`` would find.

    Args:
        uri: The attribute.
        urdf_path: Path of the URDF; None where it came as text: then only installed packages are
            looked into.

    Returns:
        The path, or None.
    """
    for folder, path in _candidates(uri, urdf_path):
        found = _file_inside(folder, path)
        if found is not None:
            return found
    return None


def where_searched(uri: str, urdf_path: str | Path | None) -> str:
    """Words for a file that was not found: the folders into which its name may lead.

    Args:
        uri: The attribute, see resolve_uri.
        urdf_path: Path of the URDF or None.
    """
    folders = dict.fromkeys(str(folder) for folder, _ in _candidates(uri, urdf_path))
    if folders:
        return f"file not found in {', '.join(folders)}"
    if not uri.startswith(PACKAGE_SCHEME):
        return "file not found: the URDF is text without a path"
    return f"file not found: {no_package(_package_and_rest(uri)[0])}"


def no_package(name: str) -> str:
    """Words for a package that was not found: where it was searched and what to do.

    Args:
        name: Name of the package.
    """
    return (
        f"no package {name} above the robot's file, beside it, in AMENT_PREFIX_PATH or "
        "ROS_PACKAGE_PATH: put its folder, with package.xml, beside the robot's"
    )


def _package_and_rest(uri: str) -> tuple[str, str]:
    """Package and path of a ``package://`` name; some robots write package:///NAME/..."""
    name, _, rest = unquote(uri[len(PACKAGE_SCHEME) :]).lstrip("/").partition("/")
    return name, rest


def _candidates(uri: str, urdf_path: str | Path | None) -> list[tuple[Path, str]]:
    """Folders that a name may lead into, each with the path from there."""
    if "\0" in uri:
        return []
    urdf = None if urdf_path is None else Path(os.path.abspath(urdf_path))
    if uri.startswith(PACKAGE_SCHEME):
        name, rest = _package_and_rest(uri)
        if rest:
            return [(folder, rest) for folder in package_folders(name, urdf)]
        uri = name  # package://x.stl names no package: exporters mean a file beside the URDF
    if urdf is None:
        return []
    path = unquote(uri[len(FILE_SCHEME) :]) if uri.startswith(FILE_SCHEME) else uri
    path = os.path.normpath(os.path.join(urdf.parent, path))
    folders = [package_root(urdf)]
    other = package_root(path)
    absolute = os.path.isabs(uri) or uri.startswith(FILE_SCHEME)
    if absolute and (other / "package.xml").is_file():
        names = {other.name, _package_name(other)}
        found = (package_folders(name, urdf) for name in names)
        folders += [folder for group in found for folder in group if folder == other]
    return [(folder, path) for folder in folders]


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


def package_folders(name: str, urdf: Path | None) -> list[Path]:
    """Finds the folders that may be a package, the URDF's own first.

    An ancestor folder of the URDF with that name or whose package.xml has it, a folder with a
    package.xml beside one of them, else an installed package, one below ROS_PACKAGE_PATH, a folder
    NAME beside one of the URDF's within its own package, or a folder beside that package whose
    package.xml has the name (a download is often called NAME-main).

    Args:
        name: Name of the package.
        urdf: Absolute path of the URDF; None where it came as text.

    Returns:
        Folders that exist.
    """
    if not name or name in (".", ".."):
        return []
    folders = []
    if urdf is not None:
        folders += [a for a in urdf.parents if name in (a.name, _package_name(a))]
        beside = [ancestor / name for ancestor in urdf.parents]
        folders += [folder for folder in beside if (folder / "package.xml").is_file()]
    folders += package_shares(name)
    for path in map(Path, _paths("ROS_PACKAGE_PATH")):
        folders += [path] if path.name == name else [path / name]
    if urdf is not None:
        root = package_root(urdf)
        folders += [
            folder / name for folder in urdf.parents if folder.is_relative_to(root)
        ]
        beside = [xml.parent for xml in root.parent.glob("*/package.xml")]
        folders += [folder for folder in beside if _package_name(folder) == name]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _package_name(folder: Path) -> str:
    """Name of the package in its package.xml; "" where there is none."""
    try:
        with (folder / "package.xml").open("rb") as file:
            found = _PACKAGE_NAME.search(file.read(65536))
    except OSError:
        return ""
    return found[1].decode(errors="replace") if found else ""


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
