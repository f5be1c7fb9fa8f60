"""XML launch files as elements that know where they stand.

Launch files may come from anywhere: document type declarations (and with them entities of
one's own, which can swell without bound or read other files) are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat


class LaunchError(Exception):
    """A launch file cannot be used; the message says what, where and what would be right."""


@dataclass
class Element:
    """One XML element.

    Attributes:
        tag: its name.
        attributes: attribute values by name, substitutions not expanded.
        children: the elements inside it.
        path: the file.
        line: where its tag opens, from 1.
    """

    tag: str
    attributes: dict[str, str]
    path: Path
    line: int
    children: list[Element] = field(default_factory=list)

    def error(self, message: str) -> LaunchError:
        """An exception that names this element, its file and its line."""
        return LaunchError(f"{self.path}:{self.line}: <{self.tag}>: {message}")


class _Reader:
    """Collects the elements while expat runs through a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root: Element | None = None
        self.open: list[Element] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self.path, self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, _tag: str) -> None:
        self.open.pop()

    def _text(self, text: str) -> None:
        if text.strip():
            raise self.open[-1].error(f"unexpected text {text.strip()[:40]!r}")

    def _doctype(self, *_: object) -> None:
        line = self.parser.CurrentLineNumber
        raise LaunchError(
            f"{self.path}:{line}: a document type declaration (<!DOCTYPE ...>) is refused"
        )


def read(path: Path) -> Element:
    """Read a launch file; return its root element.

    Raises:
        LaunchError: the file cannot be read, is not well-formed XML, declares a document type
            or holds text between its elements.
    """
    reader = _Reader(path)
    try:
        reader.parser.Parse(path.read_bytes(), True)
    except OSError as error:
        raise LaunchError(f"{path}: cannot be read: {error.strerror}") from error
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise LaunchError(
            f"{path}:{error.lineno}: not well-formed XML: {reason}"
        ) from error
    assert reader.root is not None  # noqa: S101  (expat refuses a file without a root)
    return reader.root
