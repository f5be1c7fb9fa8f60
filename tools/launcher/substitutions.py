"""Substitutions $(...) in the attribute values of a launch file.

The grammar is that of ROS 2's launch front-end:

    template     = { text | substitution }
    substitution = "$(" name { " " argument } ")"
    argument     = { word | substitution } | quote { text | substitution } quote

with ' or " as quote and a backslash that takes the meaning from the character behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
ARGUMENT_COUNTS = {
    "var": (1, 1),
    "dirname": (0, 0),
    "find-pkg-share": (1, 1),
    "env": (1, 2),
    "command": (1, 1),
}


class SubstitutionError(ValueError):
    """A text does not parse or a substitution has no value."""


@dataclass(frozen=True)
class Substitution:
    """$(name argument ...), its arguments parsed but not expanded."""

    name: str
    arguments: tuple[Template, ...]


Template = tuple[str | Substitution, ...]


class _Parser:
    """Recursive descent over one attribute value.

    Inside a quoted argument (`quote` is ' or ") nested substitutions take bare arguments only.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def ahead(self, word: str) -> bool:
        return self.text.startswith(word, self.position)

    def template(self, stop: str, quote: str = "", forbidden: str = "") -> Template:
        """Text and substitutions up to a character of stop, or to the end; the stop stays."""
        parts: list[str | Substitution] = []
        while self.position < len(self.text) and self.text[self.position] not in stop:
            if self.ahead("$("):
                parts.append(self.substitution(quote))
                continue
            character = self.character(forbidden)
            if parts and isinstance(parts[-1], str):
                parts[-1] += character
            else:
                parts.append(character)
        return tuple(parts)

    def character(self, forbidden: str) -> str:
        """One character of text; a backslash takes the meaning from the next one."""
        character = self.text[self.position]
        if character in forbidden:
            raise self.error(f"unexpected {character}, write \\{character}")
        if character == "\\" and self.position + 1 < len(self.text):
            self.position += 1
            character = self.text[self.position]
            following = self.text[self.position + 1 : self.position + 2]
            if character == "\\" and following and following in "$()'\"":
                raise self.error(
                    f"a backslash just before {following} has no clear meaning"
                )
        self.position += 1
        return character

    def substitution(self, quote: str) -> Substitution:
        """$(name argument ...)."""
        self.position += 2
        match = NAME.match(self.text, self.position)
        if match is None:
            raise self.error("a name must follow $(")
        self.position = match.end()
        arguments = []
        while self.ahead(" "):
            self.position += 1
            arguments.append(self.argument(quote))
        if not self.ahead(")"):
            raise self.error(f"$({match[0]} is not closed by )")
        self.position += 1
        return _checked(Substitution(match[0], tuple(arguments)))

    def argument(self, quote: str) -> Template:
        """One argument: quoted, or bare up to the next space or closing bracket."""
        if not quote and (self.ahead("'") or self.ahead('"')):
            return self.quoted_argument()
        bare = self.template(" )", quote, forbidden="(" + (quote or "'\""))
        if not bare:
            raise self.error("one space, then an argument, is expected")
        return bare

    def quoted_argument(self) -> Template:
        """What stands between two quotes."""
        quote = self.text[self.position]
        self.position += 1
        inside = self.template(quote, quote)
        if not self.ahead(quote):
            raise self.error(f"{quote} is not closed")
        self.position += 1
        return inside

    def error(self, message: str) -> SubstitutionError:
        return SubstitutionError(f"{message} (in {self.text!r})")


def _checked(substitution: Substitution) -> Substitution:
    """Refuse a substitution that is not known or has the wrong number of arguments."""
    if substitution.name not in ARGUMENT_COUNTS:
        known = ", ".join(f"$({name})" for name in ARGUMENT_COUNTS)
        raise SubstitutionError(
            f"$({substitution.name}) is not understood; known: {known}"
        )
    least, most = ARGUMENT_COUNTS[substitution.name]
    count = len(substitution.arguments)
    if not least <= count <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        raise SubstitutionError(
            f"$({substitution.name}) takes {wanted} argument(s), got {count}"
        )
    return substitution


def parse(text: str) -> Template:
    """Parse an attribute value into text and substitutions.

    Raises:
        SubstitutionError: the text does not follow the grammar, or a substitution is not known
            or has the wrong number of arguments.
    """
    return _Parser(text).template("")
