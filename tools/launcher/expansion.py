"""Values of substitutions: variables, packages, the environment, what a command prints."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_share_directory,
)

from launcher.substitutions import SubstitutionError, Template


@dataclass(frozen=True)
class Scope:
    """What substitutions can see: the variables, and the folder of the launch file."""

    variables: Mapping[str, str]
    directory: Path
    run_commands: bool = True


def expand(template: Template, scope: Scope) -> str:
    """Replace every substitution by its value.

    Raises:
        SubstitutionError: a variable, package or environment variable does not exist, or a
            command failed.
    """
    return "".join(
        part
        if isinstance(part, str)
        else VALUES[part.name]([expand(a, scope) for a in part.arguments], scope)
        for part in template
    )


def _var(arguments: list[str], scope: Scope) -> str:
    name = arguments[0]
    if name not in scope.variables:
        known = ", ".join(sorted(scope.variables)) or "none"
        raise SubstitutionError(f"variable '{name}' is not set; set here: {known}")
    return scope.variables[name]


def _dirname(_: list[str], scope: Scope) -> str:
    return str(scope.directory)


def _find_package_share(arguments: list[str], _: Scope) -> str:
    try:
        return get_package_share_directory(arguments[0])
    except (PackageNotFoundError, ValueError) as error:
        raise SubstitutionError(f"package '{arguments[0]}' is not installed") from error


def _env(arguments: list[str], _: Scope) -> str:
    value = os.environ.get(arguments[0], *arguments[1:])
    if value is None:
        raise SubstitutionError(f"environment variable '{arguments[0]}' is not set")
    return value


def _command(arguments: list[str], scope: Scope) -> str:
    """What a program prints; as with ROS, anything on its standard error is a failure."""
    if not scope.run_commands:
        raise SubstitutionError("commands are not run here")
    try:
        words = shlex.split(arguments[0])
        if not words:
            raise SubstitutionError("command without a program")
        result = subprocess.run(words, capture_output=True, text=True, check=False)
    except (OSError, ValueError) as error:
        raise SubstitutionError(
            f"command {arguments[0]!r} cannot be run: {error}"
        ) from error
    complaint = result.stderr.strip()
    if result.returncode or complaint:
        reason = complaint or f"exit code {result.returncode}"
        raise SubstitutionError(f"command {arguments[0]!r} failed: {reason}")
    return result.stdout


VALUES = {
    "var": _var,
    "dirname": _dirname,
    "find-pkg-share": _find_package_share,
    "env": _env,
    "command": _command,
}
