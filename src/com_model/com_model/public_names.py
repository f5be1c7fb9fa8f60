"""Public names of a package that are imported when they are first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def import_when_used(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], list[str]]:
    """Makes __getattr__ and __all__ of a package.

    Args:
        names: Public names, with spaces between them, by the module that has them.
    """
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return getattr_, sorted(modules)
