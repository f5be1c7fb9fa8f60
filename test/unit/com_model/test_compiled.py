import importlib
import os
import sys

import pytest

from com_model import compiled as module
from com_model.compiled import compiled, imported_files
from com_model.sesc import kernels


@pytest.fixture
def three_files(tmp_path, monkeypatch):
    """com_k1 has a kernel that calls one of com_k2, which takes a constant from com_k3."""
    (tmp_path / "com_k3.py").write_text("A = 1.0\n")
    (tmp_path / "com_k2.py").write_text(
        "from numba import njit\nfrom com_k3 import A\n\n@njit\ndef f(x):\n    return x + A\n"
    )
    (tmp_path / "com_k1.py").write_text(
        "from com_model.compiled import compiled\nfrom com_k2 import (\n    f,\n)\n\n"
        "@compiled()\ndef g(x):\n    return f(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("com_k1", "com_k2", "com_k3"):
        sys.modules.pop(name, None)


def test_finds_the_files_that_a_kernel_depends_on(three_files):
    assert importlib.import_module("com_k1").g(1.0) == 2.0
    found = {
        os.path.basename(file)
        for file in imported_files(str(three_files / "com_k1.py"))
    }
    assert found == {"com_k2.py", "com_k3.py", "compiled.py"}


@pytest.mark.skipif(
    not hasattr(kernels.com_of_one, "py_func"), reason="nothing is compiled"
)
def test_the_cache_is_stale_when_an_imported_file_changes(three_files):
    g = importlib.import_module("com_k1").g

    def stamp():
        return compiled()(g.py_func)._cache._cache_file._source_stamp

    before = stamp()
    assert stamp() == before
    os.utime(three_files / "com_k3.py", (1.0, 1.0))
    assert stamp() != before


@pytest.mark.skipif(
    not hasattr(kernels.com_of_one, "py_func"), reason="nothing is compiled"
)
def test_says_once_that_it_compiles(three_files, caplog):
    module._log_compiling.cache_clear()
    caplog.set_level("INFO")
    g = importlib.import_module("com_k1").g
    assert caplog.records == []
    g(1.0)
    g(1)
    assert [record.message for record in caplog.records] == [
        "compiling kernels, once, about 20 s (beforehand: python3 tools/compile_kernels.py)"
    ]
    module._log_compiling.cache_clear()
    assert compiled()(g.py_func)(1.0) == 2.0  # from the cache
    assert len(caplog.records) == 1


def test_works_where_nothing_can_be_cached(monkeypatch):
    compiler = module.njit

    def njit(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compiler(*arguments, **options)

    monkeypatch.setattr(module, "njit", njit)
    assert compiled()(lambda x: x + 1.0)(1.0) == 2.0


@pytest.mark.skipif(
    not hasattr(kernels.com_of_one, "py_func"), reason="nothing is compiled"
)
def test_the_cache_is_stale_when_a_type_was_renamed(tmp_path, monkeypatch):
    text = (
        "from typing import NamedTuple\nfrom com_model.compiled import compiled\n\n"
        "class Old(NamedTuple):\n    x: float\n\n"
        "@compiled()\ndef f(a):\n    return a.x + 1.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("Old", "Renamed"):
        (tmp_path / "com_k4.py").write_text(text.replace("Old", name))
        importlib.invalidate_caches()
        sys.modules.pop("com_k4", None)
        here = importlib.import_module("com_k4")
        assert here.f(getattr(here, name)(1.0)) == 2.0
    sys.modules.pop("com_k4")
