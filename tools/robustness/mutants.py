"""Whether tests notice slips: small changes of src/, each judged by the unit tests of its module.

    tools/in_env python tools/robustness/mutants.py [--count 200] [--seed 0] [--minutes 40]

A mutant is one changed operator, number, condition or sign of the functions of one module, drawn by
a fixed seed from all of src/. It is made in a copy of the package, which comes before it on
PYTHONPATH. Its judges are the files of test/unit that import the module by its name; where none of
them fails, those that import a module that does; two each, those named as the module and its
package first. A mutant that no judge fails on survives, unless one needed more than --limit
seconds: that is counted apart.

The last line is one JSON object:
    mutants, killed, survived, slow     how many; slow: no judge had failed when the time was over
    unjudged                            modules that no unit test imports, which were passed over
    survivors                           file, line, what was changed, and the judges
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JUDGES = 2  # files of tests at most that import a module, and as many of its users
OPERATORS = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.And: "or",
    ast.Or: "and",
}
TWINS = {"min": "max", "sin": "cos", "any": "all", "minimum": "maximum"}
TWINS |= {other: name for name, other in TWINS.items()}


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        file: relative to src/.
        line: of the change.
        start, end: of the text that is replaced, in bytes of the file.
        old, new: text.
    """

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def apply(self, data: bytes) -> bytes:
        """The changed file.

        Args:
            data: the file.
        """
        return data[: self.start] + self.new.encode() + data[self.end :]


def mutants(path: Path) -> Iterator[Mutant]:
    """All changes of the functions of a file.

    Args:
        path: of the module.
    """
    data = path.read_bytes()
    lines = [0]
    for line in data.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def at(node: ast.expr, end: bool = False) -> int:
        if end:
            return lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return lines[node.lineno - 1] + node.col_offset

    def make(node: ast.expr, start: int, end: int, new: str) -> Mutant:
        old = data[start:end].decode()
        file = str(path.relative_to(ROOT / "src"))
        return Mutant(file, node.lineno, start, end, old, new)

    def between(left: ast.expr, right: ast.expr, new: str) -> Iterator[Mutant]:
        """The operator of two operands; one beside a bracket or comment is left alone."""
        start, end = at(left, end=True), at(right)
        if re.fullmatch(rb"\s+[-+*/%&|<>=!a-z ]+\s+", data[start:end]):
            yield make(left, start, end, f" {new} ")

    functions = (
        node
        for node in ast.walk(ast.parse(data))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    for function in functions:
        body = (node for part in function.body for node in ast.walk(part))
        for node in body:
            match node:
                case ast.BinOp(left, op, right) if type(op) in OPERATORS:
                    yield from between(left, right, OPERATORS[type(op)])
                case ast.BoolOp(op, [left, right, *_]):
                    yield from between(left, right, OPERATORS[type(op)])
                case ast.Compare(left, [op, *_], [right, *_]) if type(op) in OPERATORS:
                    yield from between(left, right, OPERATORS[type(op)])
                case ast.UnaryOp(ast.USub()):
                    yield make(node, at(node), at(node) + len("-"), "")
                case ast.UnaryOp(ast.Not()):
                    yield make(node, at(node), at(node) + len("not"), "")
                case ast.IfExp(test, _, _) | ast.If(test, _, _):
                    yield make(
                        test,
                        at(test),
                        at(test, end=True),
                        f"not ({ast.unparse(test)})",
                    )
                case ast.Constant(bool(value)):
                    yield make(node, at(node), at(node, end=True), str(not value))
                case ast.Constant(int(value) | float(value)):
                    new = value + 1 if isinstance(value, int) else 2.0 * value or 1.0
                    yield make(node, at(node), at(node, end=True), repr(new))
                case ast.Call(ast.Name(name) | ast.Attribute(_, name)) if name in TWINS:
                    end = at(node.func, end=True)
                    yield make(node.func, end - len(name), end, TWINS[name])


def imports(path: Path) -> set[str]:
    """Names of the suite's modules that a file imports.

    Args:
        path: of the file.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return {name for name in found if name.startswith("com_")}


class Judges:
    """Which tests judge a module."""

    def __init__(self) -> None:
        self._tests = {path: imports(path) for path in ROOT.glob("test/unit/**/*.py")}
        self._source = {
            module_name(path): imports(path)
            for path in ROOT.glob("src/com_*/com_*/**/*.py")
        }

    def find(self, module: str) -> Iterator[list[Path]]:
        """Files of tests that import a module, and those that import its users.

        Args:
            module: its name.
        """
        users = {name for name, used in self._source.items() if module in used}
        words = {*module.split("."), *re.split(r"[._]", module)} - {"com"}
        before: set[Path] = set()
        for wanted in ({module}, users):
            found = {
                path
                for path, used in self._tests.items()
                if path.name.startswith("test_") and used & wanted
            } - before
            before |= found
            yield sorted(
                found, key=lambda path: (-len(words & name_parts(path)), path)
            )[:JUDGES]


def name_parts(path: Path) -> set[str]:
    """Words of a file of tests and its folders, of which modules have the names."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    stem = parts[-1].removeprefix("test_")
    return {*parts, stem, *stem.split("_")}


def module_name(path: Path) -> str:
    """Name of a module of src/."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts[1:]
    return ".".join(part for part in parts if part != "__init__")


def judge(
    mutant: Mutant, judges: list[list[Path]], folder: Path, limit: float
) -> tuple[str, str]:
    """Run the tests on a mutant.

    Args:
        mutant: to be tried.
        judges: files of tests, the next ones where those before see nothing.
        folder: in which the package is copied.
        limit: s, of each of them.

    Returns:
        killed, survived or slow; and the first test that failed.
    """
    source = ROOT / "src" / mutant.file
    package = source.parents[len(Path(mutant.file).parts) - 3]
    copy = folder / package.name
    if not copy.exists():
        shutil.copytree(package, copy)  # with the times, by which kernels are cached
    target = folder / Path(*Path(mutant.file).parts[1:])
    target.write_bytes(mutant.apply(source.read_bytes()))
    path = f"{folder}{os.pathsep}{os.environ['PYTHONPATH']}"
    words = ["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    verdict = "survived"
    for test in (test for tests in judges for test in tests):
        try:
            run = subprocess.run(
                [sys.executable, "-m", "pytest", *words, str(test)],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": path},
                capture_output=True,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            verdict = "slow"
            continue
        if run.returncode:
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
            verdict = "killed"
            break
    shutil.copy2(source, target)
    by = (failed[1] if failed else run.stdout[-200:]) if verdict == "killed" else ""
    return verdict, by


def main() -> int:
    """Run the pass; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="at most, in all")
    parser.add_argument("--limit", type=float, default=60.0, help="s, of one mutant")
    parser.add_argument("--only", default="", help="files whose name has this")
    options = parser.parse_args()
    judges, unjudged = Judges(), set()
    results: list[tuple[str, Mutant, list[list[Path]]]] = []
    files = sorted(ROOT.glob("src/com_*/com_*/**/*.py"))
    every = [m for path in files for m in mutants(path) if options.only in m.file]
    random.Random(options.seed).shuffle(every)  # noqa: S311 - not for secrets
    end = time.monotonic() + 60.0 * options.minutes
    with tempfile.TemporaryDirectory() as name:
        for mutant in every:
            if len(results) == options.count or time.monotonic() > end:
                break
            tests = list(judges.find(module_name(ROOT / "src" / mutant.file)))
            if not any(tests):
                unjudged.add(mutant.file)
                continue
            verdict, by = judge(mutant, tests, Path(name), options.limit)
            results.append((verdict, mutant, tests))
            what = f"{mutant.file}:{mutant.line} {mutant.old!r} -> {mutant.new!r}"
            print(f"{len(results)} {verdict} {what} {by}", file=sys.stderr, flush=True)
    counts = {
        verdict: sum(result[0] == verdict for result in results)
        for verdict in ("killed", "survived", "slow")
    }
    survivors = [
        asdict(mutant)
        | {"judges": [path.stem for some in tests for path in some], "verdict": verdict}
        for verdict, mutant, tests in results
        if verdict != "killed"
    ]
    print(
        json.dumps(
            {
                "mutants": len(results),
                **counts,
                "unjudged": sorted(unjudged),
                "survivors": survivors,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
