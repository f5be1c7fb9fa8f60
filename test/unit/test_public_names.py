"""Public names of packages that import them when they are first used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("com_model", "com_identification")


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_can_be_imported(name):
    package = importlib.import_module(name)
    for public in package.__all__:
        assert getattr(package, public).__module__.startswith(f"{name}.")
    with pytest.raises(AttributeError, match="has no attribute 'identity'"):
        _ = package.identity


@pytest.mark.parametrize("name", PACKAGES)
def test_type_checkers_see_the_same_names(name):
    package = importlib.import_module(name)
    nodes = ast.walk(ast.parse(Path(package.__file__).read_text()))
    (block,) = [
        n for n in nodes if isinstance(n, ast.If) and n.test.id == "TYPE_CHECKING"
    ]
    found = {a.name: n.module for n in block.body for a in n.names}
    assert sorted(found) == package.__all__
    for public, module in found.items():
        assert getattr(importlib.import_module(module), public) is getattr(
            package, public
        )


@pytest.mark.parametrize("name", PACKAGES)
def test_the_package_alone_does_not_load_numpy(name):
    code = f"import sys, {name}; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
