"""Tags of a URDF that are misspelt: parsers skip them without a word."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from com_model.exceptions import closest
from com_model.urdf.elements import SCHEMA
from com_model.urdf.xml_reader import Node

_ROBOT = SCHEMA["robot"]
_LINK, _JOINT = _ROBOT["link"], _ROBOT["joint"]
MATTERING = frozenset({*_ROBOT, *_LINK, *_LINK["inertial"], *_JOINT})
"""Tags without which masses or kinematics come out wrong."""
_OF_OTHERS = (
    "transmission",
    "gazebo",
    "ros2_control",
    "sensor",
    "group",
    "mujoco",
    "drake",
)
KNOWN = {
    "robot": (*_ROBOT, "material", *_OF_OTHERS),
    "link": (*_LINK, "visual", "collision", "contact", "material", "sensor", "gazebo"),
    "inertial": tuple(_LINK["inertial"]),
    "joint": (*_JOINT, "dynamics", "calibration", "safety_controller"),
}
"""Tags that belong below each tag, those of widespread extensions among them."""


@dataclass(frozen=True)
class Misspelling:
    """A tag that is not known where it stands and looks like one that is.

    Attributes:
        tag: As it is written.
        meant: The tag that it looks like.
        inside: The tag that it stands in.
        first: The first of them, with its line.
    """

    tag: str
    meant: str
    inside: str
    count: int
    first: str

    @property
    def matters(self) -> bool:
        """Whether masses or kinematics depend on it."""
        return self.meant in MATTERING

    def __str__(self) -> str:
        holders = f"{self.count} {self.inside}{'s' if self.count > 1 else ''}"
        return f"<{self.tag}> on {holders} should be <{self.meant}>"


def find_misspellings(robot: Node) -> list[Misspelling]:
    """Finds the unknown tags of a document that look like known ones, at each level."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for node, holder in _walk(robot):
        for tag in node.others:
            if tag not in KNOWN.get(node.tag, (tag,)):
                counts[node.tag, tag] += 1
                first.setdefault((node.tag, tag), holder)
    found = []
    for (inside, tag), count in counts.items():
        meant = closest(tag.lower(), KNOWN[inside], cutoff=0.7)
        if meant is not None:
            found.append(Misspelling(tag, meant, inside, count, first[inside, tag]))
    return sorted(found, key=lambda m: (not m.matters, -m.count, m.tag))


def correct_misspellings(text: str, found: Sequence[Misspelling]) -> str:
    """Renames the misspelt tags on which masses or kinematics depend.

    Args:
        text: The URDF.
        found: What find_misspellings found in it.

    Returns:
        The corrected URDF.
    """
    for each in found:
        if each.matters:
            tag = rf"(?<=<){re.escape(each.tag)}(?=[\s/>])|(?<=</){re.escape(each.tag)}(?=[\s>])"
            text = re.sub(tag, each.meant, text)
    return text


def _walk(robot: Node) -> Iterator[tuple[Node, str]]:
    """Lists the elements down to the inertials, each with its words for a message."""
    yield robot, str(robot)
    for child in robot.children:
        yield child, str(child)
        for inertial in child.all("inertial"):
            yield inertial, f"<inertial> of {child}"
