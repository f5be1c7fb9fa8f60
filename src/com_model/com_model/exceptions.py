"""Errors of com_model: each says what was got, what was expected and what to do about it.

The words of their messages, too: names quoted, shortened and listed, the nearest valid one.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from copyreg import __newobj__  # type: ignore[attr-defined]
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MAX_MESSAGE = 500  # characters of an error
# characters of a name that a message shows, and that are searched for likeness
_LONGEST = 80


def shorten(text: str) -> str:
    """Shortens an error to MAX_MESSAGE characters; its beginning and its end stay."""
    if len(text) <= MAX_MESSAGE:
        return text
    end_length = 150  # characters that are its end: how to fix it
    return f"{text[: MAX_MESSAGE - end_length - 5]} ... {text[-end_length:]}"


def quote(name: str) -> str:
    """Quotes a name from a file for a message; control characters escaped, long names cut."""
    shown = repr(name if len(name) <= _LONGEST else name[:_LONGEST] + "...")
    longest = 120  # with what escapes add
    return shown if len(shown) <= longest else f"{shown[:longest]}...{shown[0]}"


def quote_path(path: str) -> str:
    """Quotes a path for a message; of a long one the end, which has the file's name."""
    return quote(path if len(path) <= _LONGEST else "..." + path[3 - _LONGEST :])


def listing(names: Iterable[str], limit: int = 8) -> str:
    """Joins names with commas and says how many were left out beyond the limit."""
    names = list(names)
    shown = ", ".join(repr(name)[1:-1][:_LONGEST] for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def closest(name: str, valid: Sequence[str], cutoff: float = 0.75) -> str | None:
    """Finds the valid name most like a wrong one, or None; cutoff is difflib's ratio, 0 to 1."""
    if len(name) > _LONGEST:
        return None
    candidates = [v for v in valid[:5000] if len(v) <= _LONGEST]
    found = get_close_matches(name, candidates, n=1, cutoff=cutoff)
    return found[0] if found else None


class ComModelError(Exception):
    """Root of all errors that the suite raises on purpose; shortened when long; can be pickled."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shorten(message))

    def __reduce__(self) -> tuple[Any, ...]:
        return __newobj__, (type(self), *self.args), self.__dict__


def import_optional(
    name: str, fix: str, kind: type[ComModelError] = ComModelError
) -> Any:
    """Imports a module that may be missing.

    Args:
        name: Name of the module.
        fix: How to install it, for the message.
        kind: Type of the error.

    Returns:
        The module.

    Raises:
        ComModelError: It is missing (an error of that kind).
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise kind(f"{error}: {fix}") from error


def pip_install(packages: str) -> str:
    """The shell command that installs packages for the Python that runs.

    Args:
        packages: names or folders as pip takes them, with blanks between.

    An environment without pip (tools/setup.sh makes one) has uv, or pip has to come first; a
    system's Python wants an option.
    """
    uv = shutil.which(
        "uv", path=os.pathsep.join([f"{sys.prefix}/bin", os.environ.get("PATH", "")])
    )
    if not find_spec("pip"):
        if uv:
            return f"{uv} pip install --python {sys.executable} {packages}"
        return f"{sys.executable} -m ensurepip && {sys.executable} -m pip install {packages}"
    mark = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    option = (
        "--break-system-packages "
        if sys.prefix == sys.base_prefix and mark.exists()
        else ""
    )
    return f"{sys.executable} -m pip install {option}{packages}"


class UrdfError(ComModelError):
    """A URDF cannot become a model; `element` is the one at fault with name and line."""

    def __init__(self, message: str, element: str, fix: str) -> None:
        super().__init__(f"{element}: {message}. {fix}.")
        self.message = message
        self.element = element
        self.fix = fix


class UnknownNameError(ComModelError):
    """A name is not one of the model's; `kind` is what it was to be, a joint for example."""

    def __init__(self, kind: str, name: str, valid: Sequence[str]) -> None:
        meant = closest(name, valid)
        guess = f", did you mean {quote(meant)}?" if meant else ";"
        known = f" valid: {listing(valid, limit=200)}" if valid else " there are none"
        super().__init__(f"no {kind} {quote(name)}{guess}{known}")
        self.kind = kind
        self.name = name
        self.valid = tuple(valid)


class ShapeError(ComModelError):
    """An array is not as `expected`, for example "(25,)", or cannot be read as numbers."""

    def __init__(self, name: str, expected: str, got: str, hint: str = "") -> None:
        super().__init__(
            f"{name}: expected {expected}, got {got}{'. ' + hint if hint else ''}"
        )
        self.name = name
        self.expected = expected
        self.got = got


class GeometryError(ComModelError):
    """Points or directions that do not define what is asked of them."""


class ConfigError(ComModelError):
    """A robot configuration is unreadable, incomplete or does not fit the robot.

    The source is its file, or "robot configuration" of a dictionary; the key is the path of the one
    at fault, e.g. "feet.l_sole.side"; empty for the whole file.
    """

    def __init__(
        self, message: str, source: str = "robot configuration", key: str = ""
    ) -> None:
        super().__init__(f"{source}: {key + ': ' if key else ''}{message}")
        self.source = source
        self.key = key


class MeshError(ComModelError):
    """A mesh file that cannot be read."""

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"{self.path.name}: {reason}")


class UnknownRobotError(ComModelError):
    """A robot that is not there; `valid` are names that would do, those most like it first."""

    def __init__(self, robot: str, valid: tuple[str, ...], reason: str) -> None:
        self.robot = robot
        self.valid = valid
        names = f"; valid names: {', '.join(valid)}" if valid else ""
        super().__init__(f"robot '{robot}': {reason}{names}")


class ConfigWarning(UserWarning):
    """A configuration does not seem to describe its robot, or a URDF is not as it should be."""
