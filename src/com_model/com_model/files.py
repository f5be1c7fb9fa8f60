"""Files and folders that appear whole or not at all: written beside their place, then renamed.

What is there before stays until the rename. Errors of the system come through as OSError.
"""

import contextlib
import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str], overwrite: bool = True) -> Iterator[Path]:
    """Yields a path to write to; at the end brings it to the disk and gives it its name.

    Args:
        path: The file that appears, whole or not at all.
        overwrite: Whether a file of that name is replaced.

    Yields:
        The path to write to.

    Raises:
        FileExistsError: The name is taken, also meanwhile.
        OSError: It cannot be written; nothing is left behind.
    """
    target = Path(path)
    part = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.part")
    try:
        yield part
        sync(part)
        _rename(part, target, overwrite)
        sync(target.parent)
    except FileExistsError as error:
        text = f"{path} exists already: give another name"
        raise _in_words(FileExistsError(text), error) from error
    except FileNotFoundError as error:
        if target.parent.is_dir():
            raise
        text = f"the folder {target.parent} does not exist: make it first"
        raise _in_words(FileNotFoundError(text), error) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_file(
    path: str | os.PathLike[str], content: str | bytes, overwrite: bool = True
) -> Path:
    """Writes a file whole or not at all; see whole_file.

    Args:
        path: The file.
        content: Bytes, or text, which becomes UTF-8 with its line ends kept.
        overwrite: Whether a file of that name is replaced.

    Returns:
        Its path.
    """
    with whole_file(path, overwrite) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields the path of a folder to make and fill, in a hidden one; moves it to its place.

    Raises FileExistsError where it is there already; OSError leaves nothing behind.
    """
    target = Path(path)
    if target.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with tempfile.TemporaryDirectory(
        prefix=f".{target.name}.", dir=target.parent
    ) as hidden:
        part = Path(hidden) / target.name
        yield part
        part.rename(target)


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _in_words(error: OSError, cause: OSError) -> OSError:
    """An error with a text of its own and the system's words for its cause."""
    error.strerror = cause.strerror
    return error


def _rename(part: Path, target: Path, overwrite: bool) -> None:
    if overwrite:
        part.replace(target)
        return
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        part.rename(target)
