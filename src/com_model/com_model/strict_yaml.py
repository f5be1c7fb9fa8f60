"""YAML as plain data: bounded, no tags, no aliases (which can blow up), no key twice.

Section checks values and names key, expected and given value in its errors. cattrs would map a
file to classes in fewer lines, but each of these checks and messages would be a hook of its own.
"""

import math
import os
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from com_model.exceptions import ConfigError, closest, listing, quote

MAX_BYTES = 2**18
T = TypeVar("T")


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader without aliases, tags and silent duplicates, of a bounded depth."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Composes a node, unless it is one that plain data has not.

        Args:
            parent: The node that it is in.
            index: Its place there.
        """
        event = self.peek_event()
        self._depth += 1
        if problem := self._problem(event):
            mark = event.start_mark
            raise yaml.composer.ComposerError(None, None, problem, mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _problem(self, event: Any) -> str:
        """Why what begins with an event is not read; empty: it is."""
        if isinstance(event, yaml.AliasEvent):
            return "aliases are not read"
        if getattr(event, "tag", None) is not None:
            return f"tags are not read: leave {quote(event.tag)} out"
        if self._depth > 40:
            return "it nests too deep"
        text = event.value if isinstance(event, yaml.ScalarEvent) else ""
        if any("\ud800" <= character <= "\udfff" for character in text):
            return "a half of a surrogate pair is no character"
        kind = self.resolve(yaml.ScalarNode, text, (True, False)) if text else ""
        most = 40  # of a whole number
        if kind == "tag:yaml.org,2002:int" and len(text) > most:
            return f"a whole number has more than {most} digits"
        return ""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """Constructs a mapping, unless a key is there twice.

        Args:
            node: The node of the mapping.
            deep: Whether what is in it is constructed at once.
        """
        keys: set[Any] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    problem = f"the key {quote(key.value)} is there twice"
                    raise yaml.constructor.ConstructorError(
                        None, None, problem, key.start_mark
                    )
                keys.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Reads a YAML file of at most 256 KiB; ConfigError where it is not plain YAML."""
    file = Path(path)
    source = str(file)
    try:
        if not file.is_file():
            problem = "is not a regular file" if file.exists() else "does not exist"
            raise ConfigError(f"{problem}. Give the path of a YAML file", source)
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", source) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"is larger than {MAX_BYTES // 1024} KiB. Is this the file?", source
        )
    try:
        return yaml.load(data, Loader=_StrictLoader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ConfigError(
            f"is not plain YAML: {error.problem}{where}", source
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"is not plain YAML: {error}", source) from error


class Section:
    """A mapping of a configuration, read key by key; finish() refuses keys that nobody read.

    Every getter takes a key and returns its value in the right type, or the default where the key
    is missing; errors name the file, the path of the key, what was expected and what is there.
    """

    def __init__(self, data: Any, source: str, path: str = "") -> None:
        self.source, self.path = source, path
        if not isinstance(data, Mapping):
            raise self.error(f"expected keys with values, got {_words(data)}")
        for key in data:
            if not isinstance(key, str):
                raise self.error(
                    f"the key {key!r} is {_words(key)}: write it in quotes"
                )
        self._data = data
        self._read: set[str] = set()

    def error(self, message: str, key: str = "") -> ConfigError:
        """Makes an error about a key of this section, or about the section.

        Args:
            message: What was expected, and what is there.
            key: The key; "" for the section.
        """
        return ConfigError(
            message, self.source, ".".join(part for part in (self.path, key) if part)
        )

    def entries(self) -> list[str]:
        """Lists the keys, for sections with names of the user's choice."""
        self._read.update(self._data)
        return list(self._data)

    def raw(self, key: str, default: Any = None) -> Any:
        """Reads a value of any kind.

        Args:
            key: The key.
            default: The value where the key is missing.
        """
        return self._get(key, default)

    def section(self, key: str) -> "Section":
        """Reads a section; an empty one where the key is missing."""
        path = f"{self.path}.{key}" if self.path else key
        return Section(self._get(key, {}), self.source, path)

    def text(self, key: str, default: T, valid: tuple[str, ...] = ()) -> str | T:
        """Reads a text that is not empty, optionally one of some.

        Args:
            key: The key.
            default: The value where the key is missing.
            valid: The texts that it may be; any where there are none.
        """
        value = self._get(key, default)
        if value is default:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self.error(
                f"expected text, got {_words(value)}: write it in quotes", key
            )
        if not value.isprintable():
            raise self.error(f"expected one line of text, got {quote(value)}", key)
        if valid and value not in valid:
            raise self.error(
                f"expected one of {listing(valid)}, got {quote(value)}", key
            )
        return value

    def number(self, key: str, default: T, least: float = -math.inf) -> float | T:
        """Reads a finite number.

        Args:
            key: The key.
            default: The value where the key is missing.
            least: Smallest valid value.
        """
        value = self._get(key, default)
        return default if value is default else self._number(value, key, least)

    def whole(self, key: str, default: int) -> int:
        """Reads a whole number, 0 or more.

        Args:
            key: The key.
            default: The value where the key is missing.
        """
        return self._whole(self._get(key, default), key)

    def flag(self, key: str, default: bool) -> bool:
        """Reads true or false.

        Args:
            key: The key.
            default: The value where the key is missing.
        """
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"expected true or false, got {_words(value)}", key)
        return value

    def sign(self, key: str, default: T) -> int | T:
        """Reads 1 or -1.

        Args:
            key: The key.
            default: The value where the key is missing.
        """
        value = self._get(key, None)
        if value is None:
            return default
        if isinstance(value, bool) or value not in (1, -1):
            raise self.error(f"expected 1 or -1, got {_words(value)}", key)
        return int(value)

    def rows(self, key: str, width: int) -> list[list[float]]:
        """Reads a list of rows of finite numbers; empty where the key is missing.

        Args:
            key: The key.
            width: How many numbers a row has.
        """
        rows, expected = self._list(self._get(key, []), key), f"rows of {width} numbers"
        return [
            [self._number(v, key) for v in self._list(r, key, expected, width)]
            for r in rows
        ]

    def indices(self, key: str) -> list[list[int]]:
        """Reads a list of lists of whole numbers, 0 or more; empty where the key is missing."""
        rows, expected = self._list(self._get(key, []), key), "lists of whole numbers"
        return [
            [self._whole(v, key) for v in self._list(row, key, expected)]
            for row in rows
        ]

    def vector(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Reads a list of as many finite numbers as the default has.

        Args:
            key: The key.
            default: The value where the key is missing.
        """
        count = len(default)
        values = self._list(self._get(key, default), key, f"{count} numbers", count)
        return tuple(self._number(value, key) for value in values)

    def names(self, key: str) -> tuple[str, ...]:
        """Reads a list of different texts."""
        seen: dict[str, None] = {}  # in order
        for name in self._list(self._get(key, []), key):
            if not isinstance(name, str) or not name:
                raise self.error(
                    f"expected names, got {_words(name)}: write it in quotes", key
                )
            if name in seen:
                raise self.error(f"{quote(name)} is there twice", key)
            seen[name] = None
        return tuple(seen)

    def options(self, default: T) -> T:
        """Reads the whole section into a dataclass, each field as its default value is.

        Args:
            default: The values where keys are missing; dataclasses among them are sections of this
                one. Where a field has metadata, as by
                com_model.parameters, texts must be of its choices, numbers not below its bounds;
                numbers of the others are 0 or more.
        """
        values: dict[str, Any] = {}
        for item in fields(default):  # type: ignore[arg-type]
            key, old, bounds = item.name, getattr(default, item.name), item.metadata
            choices, least = bounds.get("choices"), (bounds.get("bounds") or (0.0,))[0]
            if is_dataclass(old):
                values[key] = self.section(key).options(old)
            elif isinstance(old, bool):
                values[key] = self.flag(key, old)
            elif choices or isinstance(old, str):
                values[key] = self.text(key, old, choices or ())
            elif isinstance(old, int):
                values[key] = self.whole(key, old)
            elif isinstance(old, tuple):
                values[key] = tuple(map(tuple, self.indices(key)))
            else:
                values[key] = self.number(key, old, least)
        self.finish()
        return type(default)(**values)

    def finish(self) -> None:
        """Refuses keys that were not read, with those that are valid."""
        for key in self._data:
            if key not in self._read:
                meant = closest(key, sorted(self._read))
                guess = f"did you mean {quote(meant)}? " if meant else ""
                valid = listing(sorted(self._read), limit=50)
                raise self.error(
                    f"unknown key {quote(key)}; {guess}valid keys: {valid}"
                )

    def _get(self, key: str, default: Any) -> Any:
        self._read.add(key)
        value = self._data.get(key)
        return default if value is None else value

    def _list(
        self, value: Any, key: str, expected: str = "a list", count: int | None = None
    ) -> list[Any] | tuple[Any, ...]:
        if not isinstance(value, list | tuple) or count not in (None, len(value)):
            raise self.error(f"expected {expected}, got {_words(value)}", key)
        return value

    def _whole(self, value: Any, key: str) -> int:
        number = self._number(value, key, 0)
        if not number.is_integer() or abs(number) > 2**53:
            raise self.error(f"expected a whole number, got {_words(value)}", key)
        return int(number)

    def _number(self, value: Any, key: str, least: float = -math.inf) -> float:
        if isinstance(value, str):
            fix = "write it with a point, like 1.0e-3, without quotes or unit"
            raise self.error(
                f"expected a number, got the text {quote(value)}: {fix}", key
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"expected a number, got {_words(value)}", key)
        if not abs(value) < 1e300:
            raise self.error("expected a finite number", key)
        if value < least:
            raise self.error(f"expected at least {least:g}, got {value:g}", key)
        return float(value)


def _words(value: Any) -> str:
    """Names a value in the words of YAML."""
    kinds = {
        bool: "true or false",
        Mapping: "keys with values",
        list: "a list",
        str: "the text",
    }
    kind = next(
        (f"{name} " for type_, name in kinds.items() if isinstance(value, type_)), ""
    )
    shown = repr(value)
    return "nothing" if value is None else kind + shown[:60] + "..." * (len(shown) > 60)
