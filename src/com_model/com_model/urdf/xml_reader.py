"""Reads XML from an untrusted source: bounded, no entities, only the elements that matter.

The parser is that of defusedxml (expat): a document type that declares anything is rejected before
it could be expanded. Memory grows only with the elements that are kept, and each element has its
line, for messages, and its place in the text, for editing.
"""

import os
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax import SAXParseException

from defusedxml.expatreader import DefusedExpatParser

from com_model.exceptions import UrdfError, quote, quote_path

MAX_BYTES = 64 * 2**20
MAX_NODES = 100_000  # elements

Schema = Mapping[str, Any]
"""Tags that are kept, each with the schema of its children."""


@dataclass(slots=True, eq=False)
class Node:
    """An element that was kept.

    Attributes:
        tag: Its name, with a namespace prefix as it is written.
        attributes: Values by name.
        line: Line of its start tag, from 1.
        begin: Offset of its start tag in the document, bytes.
        end: Offset of its end tag, bytes; that of the start tag where it has none.
        children: Its child elements that the schema names, in document order.
        others: Number of child elements of each tag that the schema does not name.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    begin: int
    end: int = 0
    children: "list[Node]" = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)

    def all(self, tag: str) -> "list[Node]":
        """Lists the kept children with that tag."""
        return [child for child in self.children if child.tag == tag]

    def descendants(self) -> "Iterator[Node]":
        """Yields all kept elements below this one, in document order."""
        for child in self.children:
            yield child
            yield from child.descendants()

    def __str__(self) -> str:
        name = self.attributes.get("name")
        shown = f"<{self.tag}>" if name is None else f"{self.tag} {quote(name)}"
        return f"{shown} (line {self.line})"


def read_bounded(path: str | os.PathLike[str]) -> bytes:
    """Reads a regular file of at most MAX_BYTES bytes.

    Args:
        path: The file.

    Returns:
        Its content.

    Raises:
        UrdfError: It does not exist, is no regular file, is too large or cannot be read.
    """
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


def is_mjcf(path: str | os.PathLike[str]) -> bool:
    """Whether a file describes a model of MuJoCo: its first element is <mujoco>.

    Args:
        path: Of the file.

    Raises:
        UrdfError: It cannot be read.
    """
    head = read_bounded(path)[:4096]
    while head.lstrip().startswith((b"<?", b"<!--", b"\xef\xbb\xbf")):
        end = b"-->" if head.lstrip().startswith(b"<!--") else b">"
        head = head.partition(end)[2]
    return head.lstrip().startswith(b"<mujoco")


def read_xml(xml: str | bytes, schema: Schema) -> tuple[Node, str]:
    """Reads the elements of a document that a schema names.

    Args:
        xml: The document; text is read as it is, bytes as their declaration says.
        schema: The top element's tag, with the schema of its children.

    Returns:
        The top element, and the document as text.

    Raises:
        UrdfError: It is not well-formed, too large or too deep, or has a document type with
            declarations.
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
    reader = _Reader(schema)
    try:
        reader.feed(xml, isFinal=True)
    except SAXParseException as error:
        where = (
            f"line {error.getLineNumber()}, column {(error.getColumnNumber() or 0) + 1}"
        )
        problem = f"is not well-formed XML: {error.getMessage()}"
        raise UrdfError(problem, where, _syntax_fix(data)) from error
    except (LookupError, UnicodeError, ValueError) as error:
        problem = f"declares an encoding that cannot be read ({error})"
        where = "XML declaration (line 1)"
        raise UrdfError(problem, where, "Save the file as UTF-8") from error
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        reader.encoding = "utf-16"
    text = xml if isinstance(xml, str) else data.decode(reader.encoding, "replace")
    return reader.document.children[0], text.removeprefix("\ufeff")


def _check_size(size: int, element: str) -> None:
    if size > MAX_BYTES:
        fix = "Meshes belong into files of their own: refer to them by name"
        raise UrdfError(f"is larger than {MAX_BYTES // 2**20} MiB", element, fix)


class _Reader(DefusedExpatParser):
    """Reads one document.

    Attributes:
        document: Stands above the top element, which is its only child.
        encoding: That of the XML declaration.
    """

    def __init__(self, schema: Schema) -> None:
        """Prepares to read a document whose elements the schema names."""
        super().__init__(forbid_dtd=True)
        self.document = Node("", {}, 0, 0)
        self.encoding = "utf-8"
        (self._root_tag,) = schema
        self._open: list[tuple[Schema | None, Node]] = [(schema, self.document)]
        self._kept = 0

    def reset(self) -> None:
        """Sets the parser up so that it also reports the encoding."""
        super().reset()
        self._parser.XmlDeclHandler = self._declaration

    def _error(self, problem: str, what: str, fix: str) -> UrdfError:
        return UrdfError(problem, f"{what} (line {self.getLineNumber()})", fix)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = encoding or self.encoding

    def defused_start_doctype_decl(
        self, name: str, sysid: str | None, pubid: str | None, has_internal_subset: int
    ) -> None:
        """Rejects a document type that could hold an entity; <!DOCTYPE robot> alone is harmless.

        Args:
            name: Tag of the top element.
            sysid: Address of a file with declarations, or None.
            pubid: Public name of such a file, or None.
            has_internal_subset: Whether declarations follow.

        Raises:
            UrdfError: It has declarations, or refers to a file with them.
        """
        fix = "Remove the <!DOCTYPE ...> declaration and write the text of entities out"
        if sysid is not None or pubid is not None:
            problem = f"refers to another document ({quote(sysid or pubid or '')})"
            raise self._error(problem, "<!DOCTYPE>", fix)
        if has_internal_subset:
            problem = "carries declarations; entities are never expanded"
            raise self._error(problem, "<!DOCTYPE>", fix)

    def start_element(self, name: str, attrs: dict[str, str]) -> None:
        """Keeps an element that the schema names.

        Args:
            name: Its tag.
            attrs: Its attributes.

        Raises:
            UrdfError: The document is too deep or too large, or another format.
        """
        deepest = 100
        if len(self._open) > deepest:
            fix = "A URDF is at most about ten levels deep: is this one?"
            raise self._error(f"nests deeper than {deepest} levels", quote(name), fix)
        schema, node = self._open[-1]
        below = None if schema is None else schema.get(name)
        if below is not None:
            place = self._parser.CurrentLineNumber, self._parser.CurrentByteIndex
            node.children.append(Node(name, attrs, *place))
            node = node.children[-1]
            self._kept += 1
        elif node is self.document:
            fix = "Convert other formats to URDF first (SDF, MJCF and the like are not read)"
            problem = f"the top element must be <{self._root_tag}>"
            raise self._error(problem, f"<{quote(name)[1:-1]}>", fix)
        elif schema is not None:
            node.others[name] += 1
        self._open.append((below, node))
        if self._kept > MAX_NODES:
            fix = "No robot has that many: is this a URDF?"
            raise UrdfError(f"has more than {MAX_NODES} elements", "document", fix)

    def end_element(self, name: str) -> None:
        """Closes an element.

        Args:
            name: Its tag.
        """
        schema, node = self._open.pop()
        if schema is not None:
            node.end = self._parser.CurrentByteIndex


def _syntax_fix(data: bytes) -> str:
    if not data.strip():
        return "The document is empty: give the text of a URDF"
    start = data.removeprefix(BOM_UTF8).lstrip()
    if not start.startswith((b"<", BOM_UTF16_LE, BOM_UTF16_BE)):
        return "This does not start like XML: give the text of a URDF, or its path to from_file()"
    return "Fix the XML there, or write the file again with the tool that made it"
