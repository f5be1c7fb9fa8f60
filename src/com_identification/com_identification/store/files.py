"""Files that survive a kill at any moment: written whole, used by one process at a time."""

import contextlib
import fcntl
import os
from pathlib import Path

from com_identification.exceptions import OutputError
from com_model.files import write_file
from com_model.text import quote

_LONGEST = 200  # bytes of a name


def path_inside(directory: str | os.PathLike[str], name: str, suffix: str = "") -> Path:
    """Finds the path of a file in a directory; the suffix is added where it is missing.

    Raises OutputError where the name leaves the directory or is a link, or there is no directory.
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
    """Writes a file whole or not at all, to the disk; an OutputError says what is in the way."""
    if not overwrite and path.exists():
        raise OutputError(f"{path} exists already: give another name, or allow overwriting")
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
        return "starts with a dot or has control characters"
    if len(name.encode(errors="replace")) > _LONGEST:
        return f"is longer than {_LONGEST} bytes"
    return ""


class FileLock:
    """A lock file beside the file that one process uses; it is removed by release().

    Raises BlockingIOError where another process holds it, OSError where it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        while self._handle < 0:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                raise
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    self._handle = handle
                    return
            os.close(handle)  # its owner removed it between opening and locking

    def release(self) -> None:
        """Releases the lock."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1
