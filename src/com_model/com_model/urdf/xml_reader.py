"""Reads XML from an untrusted source: bounded, no entities, only the elements that matter.

The parser is expat with handlers of our own, so that a document type declaration is refused
before anything in it could be expanded, and each element knows its line.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

from com_model.exceptions import UrdfError
from com_model.text import quote

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 100
MAX_NODES = 100_000

Schema = Mapping[str, Any]
"""Tags that are kept, each with the schema of its children."""


class Node:
    """An element that was kept.

    Attributes:
        tag: Its tag.
        attributes: Its attributes as text.
        line: Line of its start tag, from 1.
        children: Its child elements that the schema names, in document order.
        others: How often each tag that the schema does not name stands below it.
    """

    __slots__ = ("attributes", "children", "line", "others", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.children: list[Node] = []
        self.others: Counter[str] = Counter()

    def all(self, tag: str) -> list[Node]:
        """Lists the kept children with that tag."""
        return [child for child in self.children if child.tag == tag]

    def __str__(self) -> str:
        name = self.attributes.get("name")
        shown = f"<{self.tag}>" if name is None else f"{self.tag} {quote(name)}"
        return f"{shown} (line {self.line})"


def read_bounded(path: str | os.PathLike[str], what: str = "URDF") -> bytes:
    """Reads a regular file of at most MAX_BYTES.

    Raises:
        UrdfError: It is missing, unreadable, not a regular file, or too large.
    """
    file = Path(path)
    element = f"file {quote(str(file))}"
    try:
        if not file.is_file():
            problem = "is not a regular file" if file.exists() else "does not exist"
            raise UrdfError(problem, element, f"Give the path of a {what} file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fix = f"Give the path of a {what} file that this user may read"
        raise UrdfError(f"cannot be read: {reason}", element, fix) from error
    _check_size(len(data), element)
    return data


def read_xml(xml: str | bytes, schema: Schema) -> tuple[Node, str]:
    """Reads a document into nodes.

    Args:
        xml: The document. Text is taken as it is; bytes as their declaration says.
        schema: The tag that the document must have at its top, and those to keep below it.

    Returns:
        The top element, and the document as text.

    Raises:
        UrdfError: Not well-formed, too large or too deep, a document type with entities.
    """
    _check_size(len(xml), "document")
    try:
        data = xml.encode() if isinstance(xml, str) else bytes(xml)
    except UnicodeEncodeError as error:
        fix = "Read the file as UTF-8 and pass it on unchanged"
        raise UrdfError(f"is not valid text ({error.reason})", "document", fix) from error
    _check_size(len(data), "document")
    reader = _Reader(schema, "utf-8" if isinstance(xml, str) else None)
    root = reader.read(data)
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        reader.encoding = "utf-16"
    text = xml if isinstance(xml, str) else data.decode(reader.encoding, "replace")
    return root, text.removeprefix("\ufeff")


def _check_size(size: int, element: str) -> None:
    if size > MAX_BYTES:
        limit = f"{MAX_BYTES // 2**20} MiB"
        fix = "Meshes belong into files of their own: refer to them by name"
        raise UrdfError(f"is larger than {limit}", element, fix)


class _Reader:
    """One pass of expat over one document."""

    def __init__(self, schema: Schema, encoding: str | None) -> None:
        self.encoding = encoding or "utf-8"
        self._schemas: list[Schema | None] = [schema]  # of the open elements; None: not kept
        self._nodes: list[Node] = []
        self._root: Node | None = None
        self._kept = 0
        self._parser = expat.ParserCreate(encoding)
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EndDoctypeDeclHandler = self._doctype_end
        self._parser.EntityDeclHandler = self._entity
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._internal_subset = False

    def read(self, data: bytes) -> Node:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            where = f"line {error.lineno}, column {error.offset + 1}"
            problem = f"is not well-formed XML: {expat.ErrorString(error.code)}"
            raise UrdfError(problem, where, _mend_syntax(data)) from error
        except (LookupError, UnicodeError, ValueError) as error:
            problem = f"declares an encoding that cannot be read ({error})"
            raise UrdfError(
                problem, "XML declaration (line 1)", "Save the file as UTF-8"
            ) from error
        if self._root is None:
            tag = next(iter(self._schemas[0] or {}))
            raise UrdfError("has no elements", "document", f"Its top element must be <{tag}>")
        return self._root

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding:
            self.encoding = encoding

    def _where(self, what: str) -> str:
        return f"{what} (line {self._parser.CurrentLineNumber})"

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        self._internal_subset = bool(internal)
        if system is not None or public is not None:
            problem = f"refers to another document ({quote(system or public or '')})"
            raise UrdfError(problem, self._where("<!DOCTYPE>"), "Remove the <!DOCTYPE ...> line")

    def _doctype_end(self) -> None:
        if self._internal_subset:
            fix = "Remove the <!DOCTYPE ...> declaration"
            raise UrdfError("carries declarations", self._where("<!DOCTYPE>"), fix)

    def _entity(self, name: str, *_: object) -> None:
        fix = "Remove the <!DOCTYPE ...> declaration and write the text where it is used"
        problem = f"declares the entity {quote(name)}; entities are never expanded"
        raise UrdfError(problem, self._where("<!ENTITY>"), fix)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._schemas) > MAX_DEPTH:
            fix = "A URDF is at most about ten levels deep: is this one?"
            raise UrdfError(f"nests deeper than {MAX_DEPTH} levels", self._where(quote(tag)), fix)
        schema = self._schemas[-1]
        below = None if schema is None else schema.get(tag)
        if below is not None:
            self._keep(Node(tag, attributes, self._parser.CurrentLineNumber))
        elif not self._nodes and self._root is None:
            self._wrong_root(tag)
        elif schema is not None:
            self._nodes[-1].others[tag] += 1
        self._schemas.append(below)

    def _wrong_root(self, tag: str) -> None:
        expected = next(iter(self._schemas[0] or {}))
        problem = f"the top element must be <{expected}>"
        fix = "Convert other formats to URDF first (SDF, MJCF and the like are not read)"
        raise UrdfError(problem, self._where(f"<{quote(tag)[1:-1]}>"), fix)

    def _keep(self, node: Node) -> None:
        self._kept += 1
        if self._kept > MAX_NODES:
            fix = "No robot has that many: is this a URDF?"
            raise UrdfError(f"has more than {MAX_NODES} elements", "document", fix)
        if self._nodes:
            self._nodes[-1].children.append(node)
        else:
            self._root = node
        self._nodes.append(node)

    def _end(self, tag: str) -> None:
        if self._schemas.pop() is not None:
            self._nodes.pop()


def _mend_syntax(data: bytes) -> str:
    if not data.strip():
        return "The document is empty: give the text of a URDF"
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", BOM_UTF16_LE, BOM_UTF16_BE)):
        return "This does not start like XML: give the text of a URDF, or its path to from_file()"
    return "Fix the XML there, or write the file again with the tool that made it"
