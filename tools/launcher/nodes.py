"""One node of a launch file: where its program is, its command line, its parameter files."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_prefix

from launcher.values import Value

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ParameterBlock = dict[str, Value] | Path


@dataclass
class Node:
    """A node to start.

    Attributes:
        package, executable: what to run.
        name: name of the node, None to leave the program's own.
        namespace: absolute namespace, None to leave it away.
        arguments: words behind the program's name.
        ros_arguments: words behind --ros-args.
        parameters: names and values, or YAML files, in the order in which they apply.
        remaps: (from, to) names.
    """

    package: str
    executable: str
    name: str | None = None
    namespace: str | None = None
    arguments: list[str] = field(default_factory=list)
    ros_arguments: list[str] = field(default_factory=list)
    parameters: list[ParameterBlock] = field(default_factory=list)
    remaps: list[tuple[str, str]] = field(default_factory=list)

    @property
    def label(self) -> str:
        """How the node is called in the output: its full name without the leading slash."""
        return f"{self.namespace or ''}/{self.name or self.executable}".lstrip("/")

    def add_parameters(self, block: ParameterBlock) -> None:
        """Add parameters that take precedence over those so far."""
        last = self.parameters[-1] if self.parameters else None
        if isinstance(block, dict) and isinstance(last, dict):
            last.update(block)
        else:
            self.parameters.append(block)

    def program(self) -> Path:
        """The program's file.

        Raises:
            FileNotFoundError: the package or the executable is not installed.
        """
        try:
            prefix = Path(get_package_prefix(self.package))
        except (PackageNotFoundError, ValueError) as error:
            raise FileNotFoundError(
                f"package '{self.package}' is not installed"
            ) from error
        path = prefix / "lib" / self.package / self.executable
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise FileNotFoundError(
                f"package '{self.package}' has no executable '{self.executable}'"
            )
        return path

    def command(self, folder: Path) -> list[str]:
        """The command line; parameters that are given by value are written to files in folder.

        The words and their order are those of launch_ros.

        Raises:
            FileNotFoundError: the package or the executable is not installed.
        """
        words = [str(self.program()), *self.arguments]
        words += ["--ros-args", *self.ros_arguments] if self.ros_arguments else []
        words.append("--ros-args")
        if self.name is not None:
            words += ["-r", f"__node:={self.name}"]
        if self.namespace is not None:
            words += ["-r", f"__ns:={self.namespace}"]
        for block in self.parameters:
            path = block if isinstance(block, Path) else self._write(block, folder)
            words += ["--params-file", str(path)]
        for source, target in self.remaps:
            words += ["-r", f"{source}:={target}"]
        return words

    def _write(self, block: dict[str, Value], folder: Path) -> Path:
        """Write parameters for this node, or for any node where its full name is not known."""
        full_name = "/**"
        if self.name is not None and self.namespace is not None:
            full_name = f"{self.namespace.rstrip('/')}/{self.name}"
        handle, path = tempfile.mkstemp(
            prefix="parameters_", suffix=".yaml", dir=folder
        )
        with open(handle, "w") as file:
            yaml.safe_dump({full_name: {"ros__parameters": block}}, file)
        return Path(path)

    def describe(self) -> str:
        """The node as text for people: the command and the parameters in it."""
        try:
            lines = [
                f"[{self.label}] {shlex.join([str(self.program()), *self.arguments])}"
            ]
        except FileNotFoundError as error:
            return f"[{self.label}] skipped: {error}"
        if self.namespace is not None:
            lines.append(f"    namespace {self.namespace}")
        for block in self.parameters:
            if isinstance(block, Path):
                lines.append(f"    parameters from {block}")
            else:
                lines += [
                    f"    {name} = {_short(value)}" for name, value in block.items()
                ]
        lines += [f"    {source} -> {target}" for source, target in self.remaps]
        return "\n".join(lines)


def join_namespace(base: str | None, namespace: str | None) -> str | None:
    """Absolute namespace of `namespace` below `base`; None if neither is given.

    An absolute `namespace` stands for itself.

    Raises:
        ValueError: the result is not a valid namespace.
    """
    if base is None and namespace is None:
        return None
    if namespace is not None and (namespace.startswith("/") or not base):
        joined = namespace
    else:
        joined = f"{(base or '').rstrip('/')}/{namespace or ''}"
    parts = joined.strip("/").split("/") if joined.strip("/") else []
    for part in parts:
        check_name(part, "namespace")
    return "/" + "/".join(parts)


def check_name(name: str, kind: str) -> str:
    """Return the name of a node or namespace.

    Raises:
        ValueError: the name is not made of letters, digits and underscores.
    """
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{kind} '{name}' is not valid: letters, digits and _ only, no digit at the start"
        )
    return name


def _short(value: Value, length: int = 60) -> str:
    text = repr(value)
    return (
        text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"
    )
