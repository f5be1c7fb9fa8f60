"""Reads XML from an untrusted source: bounded, no entities, only the elements that matter.

The parser is expat with handlers of our own: a document type that declares anything is refused
before it could be expanded, memory grows only with the elements that are kept, and each element
has its line, for messages, and its place in the text, for editing.
"""

import os
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from com_model.exceptions import UrdfError
from com_model.text import quote, quote_path

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 100
MAX_NODES = 100_000

Schema = Mapping[str, Any]  # tags that are kept, each with the schema of its children


@dataclass(slots=True, eq=False)
class Node:
    """An element that was kept."""

    tag: str
    attributes: dict[str, str]
    line: int  # of its start tag, from 1
    begin: int  # offset of its start tag in the document, bytes
    end: int = 0  # likewise of its end tag; that of the start tag where it has none
    # its child elements that the schema names, in document order
    children: "list[Node]" = field(default_factory=list)
    # number of elements below it of each tag that the schema does not name
    others: Counter[str] = field(default_factory=Counter)

    def all(self, tag: str) -> "list[Node]":
        """Lists the kept children with that tag."""
        return [child for child in self.children if child.tag == tag]

    def __str__(self) -> str:
        name = self.attributes.get("name")
        shown = f"<{self.tag}>" if name is None else f"{self.tag} {quote(name)}"
        return f"{shown} (line {self.line})"


def read_bounded(path: str | os.PathLike[str]) -> bytes:
    """Reads a regular file of at most MAX_BYTES; else a UrdfError says what is wrong."""
    file = Path(path)
    element = f"file {quote_path(str(file))}"
    try:
        if not file.is_file():
            problem = "is not a regular file" if file.exists() else "does not exist"
            raise UrdfError(problem, element, "Give the path of a URDF file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fix = "Give the path of a URDF file that this user may read"
        raise UrdfError(f"cannot be read: {reason}", element, fix) from error
    _check_size(len(data), element)
    return data


def read_xml(xml: str | bytes, schema: Schema) -> tuple[Node, str]:
    """Reads a document into nodes: its top element, and its text; what the schema names is kept.

    Text is taken as it is; bytes as their declaration says. Raises UrdfError where it is not
    well-formed, too large or too deep, or has a document type with declarations.
    """
    _check_size(len(xml), "document")
    try:
        data = xml.encode() if isinstance(xml, str) else bytes(xml)
    except UnicodeEncodeError as error:
        fix = "Read the file as UTF-8 and pass it on unchanged"
        raise UrdfError(
            f"is not valid text ({error.reason})", "document", fix
        ) from error
    _check_size(len(data), "document")
    reader = _Reader(schema, "utf-8" if isinstance(xml, str) else None)
    root = reader.read(data)
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        reader.encoding = "utf-16"
    text = xml if isinstance(xml, str) else data.decode(reader.encoding, "replace")
    return root, text.removeprefix("\ufeff")


def _check_size(size: int, element: str) -> None:
    if size > MAX_BYTES:
        fix = "Meshes belong into files of their own: refer to them by name"
        raise UrdfError(f"is larger than {MAX_BYTES // 2**20} MiB", element, fix)


class _Reader:
    """One pass of expat over one document."""

    def __init__(self, schema: Schema, encoding: str | None) -> None:
        self.encoding = encoding or "utf-8"
        (self._root_tag,) = schema
        self._schemas: list[Schema | None] = [
            schema
        ]  # of the open elements; None: not kept
        self._nodes = [Node("", {}, 0, 0)]  # the open ones, below one for the document
        self._kept = 0
        self._parser = expat.ParserCreate(encoding)
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def read(self, data: bytes) -> Node:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            where = f"line {error.lineno}, column {error.offset + 1}"
            problem = f"is not well-formed XML: {expat.ErrorString(error.code)}"
            raise UrdfError(problem, where, _syntax_fix(data)) from error
        except (LookupError, UnicodeError, ValueError) as error:
            problem = f"declares an encoding that cannot be read ({error})"
            where = "XML declaration (line 1)"
            raise UrdfError(problem, where, "Save the file as UTF-8") from error
        return self._nodes[0].children[0]

    def _error(self, problem: str, what: str, fix: str) -> UrdfError:
        return UrdfError(
            problem, f"{what} (line {self._parser.CurrentLineNumber})", fix
        )

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = encoding or self.encoding

    def _doctype(
        self, name: str, system: str | None, public: str | None, internal: int
    ) -> None:
        fix = "Remove the <!DOCTYPE ...> declaration and write the text of entities out"
        if system is not None or public is not None:
            problem = f"refers to another document ({quote(system or public or '')})"
            raise self._error(problem, "<!DOCTYPE>", fix)
        if internal:
            problem = "carries declarations; entities are never expanded"
            raise self._error(problem, "<!DOCTYPE>", fix)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._schemas) > MAX_DEPTH:
            fix = "A URDF is at most about ten levels deep: is this one?"
            raise self._error(f"nests deeper than {MAX_DEPTH} levels", quote(tag), fix)
        schema, node = self._schemas[-1], self._nodes[-1]
        below = None if schema is None else schema.get(tag)
        self._schemas.append(below)
        if below is not None:
            line, begin = self._parser.CurrentLineNumber, self._parser.CurrentByteIndex
            node.children.append(Node(tag, attributes, line, begin))
            self._nodes.append(node.children[-1])
            self._kept += 1
        elif len(self._nodes) == 1:
            fix = "Convert other formats to URDF first (SDF, MJCF and the like are not read)"
            problem = f"the top element must be <{self._root_tag}>"
            raise self._error(problem, f"<{quote(tag)[1:-1]}>", fix)
        elif schema is not None:
            node.others[tag] += 1
        if self._kept > MAX_NODES:
            fix = "No robot has that many: is this a URDF?"
            raise UrdfError(f"has more than {MAX_NODES} elements", "document", fix)

    def _end(self, tag: str) -> None:
        if self._schemas.pop() is not None:
            self._nodes.pop().end = self._parser.CurrentByteIndex


def _syntax_fix(data: bytes) -> str:
    if not data.strip():
        return "The document is empty: give the text of a URDF"
    start = data.removeprefix(BOM_UTF8).lstrip()
    if not start.startswith((b"<", BOM_UTF16_LE, BOM_UTF16_BE)):
        return "This does not start like XML: give the text of a URDF, or its path to from_file()"
    return "Fix the XML there, or write the file again with the tool that made it"
