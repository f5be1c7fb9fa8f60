"""Files that are written whole or not at all, and only where they may be."""

from __future__ import annotations

import os
from pathlib import Path

from com_identification.exceptions import OutputError
from com_model.files import write_file
from com_model.text import quote

_LONGEST = 200  # bytes of a name


def path_inside(directory: str | os.PathLike[str], name: str, suffix: str = "") -> Path:
    """Finds the path of a file in a directory, and refuses names that leave it.

    Args:
        directory: It must exist.
        name: Without directories; the suffix is added where it is missing.
        suffix: For instance ".urdf".

    Raises:
        OutputError: The name has separators, "..", or is a link to elsewhere; or there is no such
            directory.
    """
    try:
        folder = Path(directory).resolve()
        missing = not folder.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise OutputError(f"the directory cannot be used: {error}") from error
    if missing:
        raise OutputError(f"the directory {quote(str(directory))} does not exist: make it first")
    full = name if name.endswith(suffix) else name + suffix
    problem = _problem(full, suffix)
    if problem:
        raise OutputError(
            f"the name {quote(name)} {problem}: give a plain file name, which is put into {folder}"
        )
    path = folder / full
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OutputError(f"{path} is a link or no regular file: remove it or give another name")
    return path


def write_whole(path: Path, data: bytes, overwrite: bool = False) -> Path:
    """Writes a file whole or not at all, and brings it to the disk.

    Raises:
        OutputError: A file is there that may not be replaced, or the disk is full or read-only.
    """
    if not overwrite and path.exists():
        raise OutputError(f"{path} exists already: give another name, or allow to overwrite it")
    try:
        return write_file(path, data, overwrite)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror}. Free space on the disk, or give a "
            "directory that can be written to"
        ) from error


def _problem(name: str, suffix: str) -> str:
    if not name or name == suffix:
        return "is empty"
    if name in (".", "..") or "/" in name or "\\" in name:
        return "has directories in it"
    if name.startswith(".") or not name.isprintable():
        return "starts with a point or holds control characters"
    if len(name.encode(errors="replace")) > _LONGEST:
        return f"is longer than {_LONGEST} bytes"
    return ""
