"""Errors of reading bags: what was got, what was expected, how to fix it."""

from com_model.exceptions import ComModelError, quote


class BagError(ComModelError):
    """Root of all errors of reading bags; `source` is the file or the topic at fault."""

    def __init__(self, problem: str, source: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem


class TopicError(BagError):
    """A topic is missing, ambiguous, or not of a type that its role ("joint states") needs."""

    def __init__(self, problem: str, source: str, role: str) -> None:
        super().__init__(problem, source)
        self.role = role


class MarksError(BagError):
    """Marked intervals cannot be read."""


class TableError(BagError):
    """A table cannot be read, or lacks what its mapping names."""


class UnitError(ComModelError):
    """Readings are in another unit than they are taken for; `unit` is the one that they have."""

    def __init__(self, problem: str, unit: str) -> None:
        super().__init__(problem)
        self.unit = unit


class StorageError(ValueError):
    """A storage file is damaged; what was read before can be used."""


class DefinitionError(BagError):
    """A message type's definition cannot be used, or messages do not have the fields of theirs."""

    def __init__(self, problem: str, type_name: str) -> None:
        super().__init__(problem, f"type {quote(type_name)}")
