"""The arguments that a launch file and its includes declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from launcher.document import Element, LaunchError
from launcher.expansion import Scope, expand
from launcher.interpreter import load
from launcher.substitutions import SubstitutionError, parse


@dataclass(frozen=True)
class Argument:
    """A declared argument; default is as written, None where a value must be given."""

    name: str
    default: str | None
    description: str

    def text(self) -> str:
        """The argument as text for people."""
        default = "required" if self.default is None else f"default: '{self.default}'"
        return f"    {self.name}\n        {self.description}\n        ({default})"


@dataclass
class Declared:
    """What a file and its includes declare.

    Attributes:
        arguments: by name, in the order of the files; of equal names the first counts.
        complete: whether all includes could be read without running anything.
    """

    arguments: dict[str, Argument]
    complete: bool = True

    def check(self, given: Iterable[str], path: Path) -> None:
        """Refuse names that no file declares, so that a misspelt argument is not lost.

        Raises:
            LaunchError: names the argument and lists the declared ones.
        """
        unknown = [name for name in given if name not in self.arguments]
        if self.complete and unknown:
            known = ", ".join(self.arguments) or "none"
            raise LaunchError(
                f"{path.name} has no argument '{unknown[0]}'; it has: {known}"
            )


def declared_arguments(path: Path) -> Declared:
    """The arguments that can be given to a launch file, in whatever branch they stand.

    An argument of an included file that its include sets is not among them.

    Raises:
        LaunchError: a file cannot be read or something in it is not understood.
    """
    declared = Declared({})
    _collect(load(path), declared, set(), [path.resolve()])
    return declared


def _collect(
    element: Element, declared: Declared, taken: set[str], files: list[Path]
) -> None:
    for child in element.children:
        if child.tag == "arg":
            _declare(child, declared, taken)
        elif child.tag == "group":
            _collect(child, declared, taken, files)
        elif child.tag == "include":
            _enter(child, declared, taken, files)


def _declare(element: Element, declared: Declared, taken: set[str]) -> None:
    name = element.attributes["name"]
    if name not in taken:
        default = element.attributes.get("default")
        description = element.attributes.get("description", "no description")
        declared.arguments.setdefault(name, Argument(name, default, description))


def _enter(
    element: Element, declared: Declared, taken: set[str], files: list[Path]
) -> None:
    try:
        scope = Scope({}, element.path.parent, run_commands=False)
        path = Path(expand(parse(element.attributes["file"]), scope))
    except SubstitutionError:
        declared.complete = False
        return
    if path.resolve() not in files:
        given = {child.attributes["name"] for child in element.children}
        _collect(load(path), declared, taken | given, [*files, path.resolve()])
