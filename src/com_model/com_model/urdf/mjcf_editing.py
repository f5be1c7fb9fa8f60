"""Changes the inertials of bodies in the text of a model of MuJoCo, and leaves everything else."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from com_model.exceptions import UnknownNameError, UrdfError, quote
from com_model.urdf.editing import Inertial, XmlText, numbers_text
from com_model.urdf.xml_reader import Node, read_bounded, read_xml

_BODY: dict[str, Any] = {"inertial": {}, "include": {}, "compiler": {}}
_BODY |= {"body": _BODY, "frame": _BODY, "worldbody": _BODY}
_TOPS = ("mujoco", "mujocoinclude")


def edit_mjcf(
    path: str | os.PathLike[str], inertials: Mapping[str, Inertial]
) -> dict[Path, str]:
    """Writes new inertials of bodies into a model of MuJoCo, where it has them.

    Args:
        path: Of the MJCF file.
        inertials: New inertials by the name of the body, in the body's frame.

    Returns:
        The new text of each file that changes: of the model, or of those that it includes.

    Raises:
        UrdfError: A file cannot be read, or inertials in the file do not count.
        UnknownNameError: No body has that name.
    """
    left, changed = dict(inertials), {}
    names: list[str] = []
    for file, top, document in _files(Path(path)):
        text, edited = XmlText(document), False
        for body in top.descendants():
            if (
                body.tag == "compiler"
                and body.attributes.get("inertiafromgeom") == "true"
            ):
                fix = 'Set it to "auto": what has an inertial then keeps it'
                problem = 'inertiafromgeom="true" ignores all inertials'
                raise UrdfError(problem, f"{file.name}: {body}", fix)
            if body.tag != "body":
                continue
            name = body.attributes.get("name", "")
            names.append(name)
            if name in left:
                _write(text, body, left.pop(name))
                edited = True
        if edited:
            changed[file] = text.edited().decode()
    if left:
        raise UnknownNameError(
            "body", next(iter(left)), [name for name in names if name]
        )
    return changed


def _files(path: Path) -> Iterator[tuple[Path, Node, bytes]]:
    """The file and those that it includes, with top element and content."""
    waiting, seen = [path], set[Path]()
    most = 100
    while waiting:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        if len(seen) > most:
            problem = f"includes more than {most} files"
            raise UrdfError(problem, f"file {quote(str(path))}", "Is it this file?")
        document = read_bounded(file)
        tag = _TOPS[1] if b"<mujocoinclude" in document[:4096] else _TOPS[0]
        top, text = read_xml(document, {tag: _BODY})
        # an included file is beside the model's
        waiting += [
            path.parent / node.attributes["file"]
            for node in top.descendants()
            if node.tag == "include" and "file" in node.attributes
        ]
        yield file, top, text.encode()


def _write(text: XmlText, body: Node, new: Inertial) -> None:
    I = new.inertia  # noqa: E741
    full = numbers_text((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
    values = f'pos="{numbers_text(new.com)}" mass="{new.mass!r}" fullinertia="{full}"'
    old = body.all("inertial")
    if old:
        text.replace(old[0], f"<inertial {values}/>")
    else:
        text.insert_child(body, [f"<inertial {values}/>"])
