"""How this suite compiles: `@compiled()` is numba's njit with a cache on disk that can be trusted.

numba's own cache watches nothing but the file of the cached function: an edit in a file from which
it takes helpers or constants would go unnoticed, and old code would run. A function decorated here
counts as stale as well when one of the files changes that its module imports from this suite, or
that those import where they are compiled themselves. Helpers that only kernels call take a plain
`@njit`: they are compiled into their callers.

Call a kernel with arguments of the same types each time: a second set of types compiles again.
"""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from numba import njit, typeof

LOG = logging.getLogger(__name__)

_IMPORT = re.compile(
    r"^(?:from (com_[\w.]+) import (?:\(([^)]*)\)|(.*))|import (com_[\w.]+))",
    re.MULTILINE,
)


def compiled(nogil: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compiles a function; cached on disk where there is a place that can be written.

    nogil: release the interpreter's lock meanwhile.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            kernel: Any = njit(cache=True, nogil=nogil)(function)
            if hasattr(kernel, "py_func"):  # it has none with NUMBA_DISABLE_JIT
                _refine(kernel._cache, imported_files(function.__code__.co_filename))
        except (RuntimeError, AttributeError):
            # Nothing can be written, or another numba: rather compile each time than run old code.
            return njit(nogil=nogil)(function)
        return kernel

    return decorate


def entry_point(kernel: Any, *arguments: Any) -> Callable[..., Any]:
    """Compiles a kernel for arguments like these, or loads it from the cache.

    What comes back is the machine code's own function, called without numba's look-up by the types
    of the arguments, which takes a third of a microsecond, with NamedTuples several. It does not
    check types or shapes either: it must be given arrays and tuples of the same types. With
    NUMBA_DISABLE_JIT=1 it is the plain Python function.
    """
    if not hasattr(kernel, "compile"):
        return cast(Callable[..., Any], kernel)
    return cast(
        Callable[..., Any], kernel.compile(tuple(typeof(value) for value in arguments))
    )


def _refine(store: Any, files: Sequence[str]) -> None:
    """Lets a kernel's cache be stale when a file changes or a type is gone, and log its misses."""
    index, load, load_index = (
        store._cache_file,
        store.load_overload,
        store._cache_file._load_index,
    )
    stats = [os.stat(file) for file in files]
    index._source_stamp = (
        index._source_stamp,
        *((s.st_mtime, s.st_size) for s in stats),
    )

    def load_or_report(*key: Any) -> Any:
        found = load(*key)
        if found is None:
            _log_compiling()
        return found

    def load_index_or_nothing() -> Any:
        try:
            return load_index()
        except (AttributeError, ImportError):
            # A NamedTuple was renamed or removed since: numba loads the index, which has the types
            # of the arguments, before it looks at the stamp.
            return {}

    store.load_overload, index._load_index = load_or_report, load_index_or_nothing


@cache
def _log_compiling() -> None:
    """Once a process."""
    LOG.info(
        "compiling kernels, once, about 20 s (beforehand: python3 tools/compile_kernels.py)"
    )


@cache
def imported_files(file: str) -> tuple[str, ...]:
    """Lists the suite's files that the code of a module's file with kernels depends on, sorted.

    What the file imports must have been imported.
    """
    found: set[str] = set()
    waiting = [file]
    while waiting:
        for imported, has_kernels in _imports(waiting.pop()):
            if imported not in found and imported != file:
                found.add(imported)
                waiting += [imported] * has_kernels
    return tuple(sorted(found))


def _imports(file: str) -> Iterator[tuple[str, bool]]:
    """The suite's files that a file imports, and whether those hold kernels."""
    for package, several, single, plain in _IMPORT.findall(_text(file)):
        names = [
            name.split()[0] for name in (several or single).split(",") if name.strip()
        ]
        for name in (plain or package, *(f"{package}.{name}" for name in names)):
            path = getattr(sys.modules.get(name), "__file__", None)
            if path is not None:
                yield path, "njit" in (text := _text(path)) or "@compiled" in text


@cache
def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError:
        return ""
