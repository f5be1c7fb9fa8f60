"""Public names of a package that are imported when they are first used."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def import_when_used(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """Makes __getattr__ and __all__ of a package: what its file imports under TYPE_CHECKING."""
    blocks = [
        b for b in ast.parse(Path(file).read_bytes()).body if isinstance(b, ast.If)
    ]
    imports = [
        each for b in blocks for each in b.body if isinstance(each, ast.ImportFrom)
    ]
    modules = {alias.name: str(each.module) for each in imports for alias in each.names}

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)  # asked for once
        return found

    return getattr_, sorted(modules)
