"""Files that a URDF names: package://, file:// and relative names of meshes."""

import os
import sysconfig
from pathlib import Path
from urllib.parse import unquote

PACKAGE_SCHEME = "package://"
FILE_SCHEME = "file://"


def package_shares(package: str) -> list[Path]:
    """Return the share folders of an ament package, the first overlay first, then pip's."""
    prefixes = [*_paths("AMENT_PREFIX_PATH"), sysconfig.get_path("data")]
    shares = [Path(prefix) / "share" / package for prefix in prefixes]
    return [share for share in shares if share.is_dir()]


def resolve_uri(uri: str, urdf_path: str | Path | None) -> Path | None:
    """Finds the file that a URDF's ``filename`` attribute means.

    A URDF comes from anywhere, so a name leads nowhere but into a robot's own files:
    ``package://NAME/REST`` into the package NAME (an ancestor folder of the URDF with that name, a
    folder with a package.xml beside one of them, else an installed package or one below
    ROS_PACKAGE_PATH, else a folder NAME beside one of the URDF's within its own package), and a
    relative or ``file://`` name into the package of the URDF itself (:func:`package_root`).

    Args:
        uri: The attribute.
        urdf_path: Path of the URDF; None where it came as text: then only installed packages are
            looked into.

    Returns:
        The path, or None.
    """
    if "\0" in uri:
        return None
    urdf = None if urdf_path is None else Path(os.path.abspath(urdf_path))
    if uri.startswith(PACKAGE_SCHEME):
        # Some robots write package:///NAME/...
        name, _, rest = unquote(uri[len(PACKAGE_SCHEME) :]).lstrip("/").partition("/")
        candidates = [(folder, rest) for folder in package_folders(name, urdf)]
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


def package_folders(name: str, urdf: Path | None) -> list[Path]:
    """Return the folders that may be the package ``name``, see resolve_uri: the URDF's own first.

    `urdf` is an absolute path.
    """
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
    if urdf is not None:
        root = package_root(urdf)
        folders += [
            folder / name for folder in urdf.parents if folder.is_relative_to(root)
        ]
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
