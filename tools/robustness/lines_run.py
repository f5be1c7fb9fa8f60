"""Pytest plugin: which tests run which lines of src/, for mutants.py.

    PYTHONPATH=tools/robustness:$PYTHONPATH pytest -p lines_run ... --lines-run FILE

Needs coverage (uv pip install coverage), which nothing else does. The file holds, for each file of
src/ and line of it that a test ran, the numbers of these tests: of those that ran it themselves,
and of those for which something was prepared, which may serve others of their file; and for each
test its name and the seconds that it took. Lines that kernels run as machine code, and other
processes, are not seen.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

SRC = Path(__file__).resolve().parents[2] / "src"


class LinesRun:
    """What each test runs.

    Args:
        path: of the file that is written at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._coverage = coverage.Coverage(
            data_file=None, include=[f"{SRC}/*"], concurrency=["thread"]
        )
        self._seconds: dict[str, float] = {}
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The time of a test with what it prepares."""
        start = time.monotonic()
        yield
        self._seconds[item.nodeid] = time.monotonic() - start

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """What a test prepares may serve others."""
        self._coverage.switch_context(f"{item.nodeid}|setup")

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Its own."""
        self._coverage.switch_context(f"{item.nodeid}|call")

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self._coverage.stop()
        data = self._coverage.get_data()
        tests = {name: number for number, name in enumerate(self._seconds)}
        lines: dict[str, dict[int, dict[str, list[int]]]] = {}
        for file in data.measured_files():
            of_file = lines[str(Path(file).relative_to(SRC))] = {}
            for line, contexts in data.contexts_by_lineno(file).items():
                by_phase = defaultdict(list)
                for name, _, phase in (text.rpartition("|") for text in contexts):
                    if name in tests:
                        by_phase[phase].append(tests[name])
                of_file[line] = by_phase
        found = {"tests": list(self._seconds.items()), "lines": lines}
        self._path.write_text(json.dumps(found))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file."""
    parser.addoption("--lines-run", type=Path, help="JSON: which tests run which lines")


def pytest_configure(config: pytest.Config) -> None:
    """Watch, if asked to."""
    if path := config.getoption("--lines-run"):
        config.pluginmanager.register(LinesRun(path), "lines_run_watch")
