"""Finds tags in the bytes of an XML document and changes them in place.

For documents that com_model.urdf.xml_reader accepts: well-formed and without entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from com_model.exceptions import UrdfError
from com_model.urdf.xml_reader import Schema

_INDENT = b"  "
_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass(frozen=True)
class Edit:
    """Replaces the bytes from `begin` to before `end`."""

    begin: int
    end: int
    text: bytes


@dataclass
class Element:
    """An element and where its start tag stands.

    Attributes:
        tag: Its tag.
        attributes: Its attributes as text.
        document: The document's bytes.
        begin: Place of the "<" of its start tag.
        closing: Place of the "<" of its end tag; its begin where it has none.
        children: Its child elements that the schema names.
    """

    tag: str
    attributes: dict[str, str]
    document: bytes = field(repr=False)
    begin: int
    closing: int = -1
    children: list[Element] = field(default_factory=list)

    def set(self, key: str, value: str) -> Edit:
        """Gives an attribute a value; one that it has not is put in front of the others."""
        places = self._scan()[0]
        begin, end = places.get(key.encode(), (-1, -1))
        if begin >= 0:
            return Edit(begin, end, value.encode())
        after = self._name_end()
        return Edit(after, after, f' {key}="{value}"'.encode())

    def insert_child(self, lines: Sequence[str]) -> Edit:
        """Puts lines of XML in front of its children."""
        end = self._scan()[1]
        margin = self._margin()
        inner = b"".join(margin + _INDENT + line.encode() for line in lines)
        if self.document[end - 2 : end] == b"/>":
            closing = b"</" + self.document[self.begin + 1 : self._name_end()] + b">"
            return Edit(end - 2, end, b">" + inner + margin + closing)
        return Edit(end, end, inner)

    def insert_after(self, line: str) -> Edit:
        """Puts a line of XML behind it."""
        end = self._scan()[1]
        if self.document[end - 2 : end] != b"/>":
            end = self.document.index(b">", self.closing) + 1
        return Edit(end, end, self._margin() + line.encode())

    def _name_end(self) -> int:
        return self.begin + 1 + len(self.tag.encode())

    def _scan(self) -> tuple[dict[bytes, tuple[int, int]], int]:
        """Places of the attributes' values, and of the end of the start tag."""
        places, at = {}, self._name_end()
        while match := _ATTRIBUTE.match(self.document, at):
            places[match[1]] = match.span(2 if match[2] is not None else 3)
            at = match.end()
        return places, self.document.index(b">", at) + 1

    def _margin(self) -> bytes:
        """The line break and the spaces in front of it; a bare break where other text is."""
        line = self.document.rfind(b"\n", 0, self.begin) + 1
        newline = b"\r\n" if b"\r\n" in self.document else b"\n"
        before = self.document[line : self.begin]
        return newline + (before if not before.strip() else b"")


def find_elements(document: bytes, schema: Schema) -> list[Element]:
    """Finds the elements that a schema names.

    Args:
        document: UTF-8, whatever it declares.
        schema: The tag at the top, and those to find below it.

    Raises:
        UrdfError: It declares entities.
    """
    top = Element("", {}, document, 0)
    schemas: list[Schema | None] = [schema]
    elements = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        outer = schemas[-1]
        below = None if outer is None else outer.get(tag)
        schemas.append(below)
        if below is not None:
            element = Element(tag, attributes, document, parser.CurrentByteIndex)
            elements[-1].children.append(element)
            elements.append(element)

    def end(tag: str) -> None:
        if schemas.pop() is not None:
            elements.pop().closing = parser.CurrentByteIndex

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = _refuse_entity
    parser.Parse(document, True)
    return top.children


def apply_edits(document: bytes, edits: Iterable[Edit]) -> bytes:
    """Makes edits that do not overlap; of those at one place the first comes first."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: edit.begin):
        parts += [document[at : edit.begin], edit.text]
        at = edit.end
    return b"".join([*parts, document[at:]])


def _refuse_entity(name: str, *_: Any) -> None:
    fix = "Remove the <!DOCTYPE ...> declaration and write the text where it is used"
    raise UrdfError("declares an entity", "<!ENTITY>", fix)
