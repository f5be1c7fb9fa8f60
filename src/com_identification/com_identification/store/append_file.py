"""A file that only grows, line by line, each on the disk before the call returns; and its lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path


class FileLock:
    """A lock that one process holds, beside the file that it is about.

    Args:
        path: Of the lock; it is made, and removed when it is let go.

    Raises:
        BlockingIOError: Another process holds it.
        OSError: It cannot be made.
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
            if self._is_there(handle):
                self._handle = handle
            else:  # its owner removed it between opening and locking
                os.close(handle)

    def release(self) -> None:
        """Lets go of it."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1

    def _is_there(self, handle: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), os.stat(self._path))
        return False


class AppendFile:
    """A file open for appending.

    Args:
        path: Of the file; it is made where it is missing.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    @property
    def size(self) -> int:
        """Bytes."""
        return os.fstat(self._handle).st_size

    def append(self, line: bytes) -> None:
        """Writes bytes at the end and brings them to the disk, or leaves the file as it was.

        Raises:
            OSError: The disk is full or gone, or the file is closed.
        """
        size = self.size
        try:
            if os.write(self._handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._handle)
        except OSError:
            with contextlib.suppress(OSError):  # a cut line is left out when the file is read
                self.cut(size)
            raise

    def cut(self, size: int) -> None:
        """Takes off what is beyond a size.

        Raises:
            OSError: It cannot be done.
        """
        os.ftruncate(self._handle, size)
        os.fsync(self._handle)

    def close(self) -> None:
        """Closes it."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
