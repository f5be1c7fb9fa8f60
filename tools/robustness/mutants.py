"""Whether tests notice slips: small changes of src/, each judged by the unit tests that run it.

    tools/in_env python tools/robustness/mutants.py --lines FILE [...] [--count 200] [--seed 0]

A mutant is one changed operator, number, condition or sign of the functions of one module, drawn by
a fixed seed from all of src/. It is made in a copy of the package, which comes before it on
PYTHONPATH. Its judges are the tests that run the line that it changes, which FILE says (made once
by lines_run.py): those of the files named as the module and its package first, then the quickest,
as many as take --limit seconds. Lines that become machine code are not seen there; those count that
run a line of a module that imports theirs. Where none of these fails, two files of tests are next
that import the module by its name, or else one that does. A mutant that no judge fails on survives,
unless one needed more than --slow seconds.

The last line is one JSON object:
    mutants, killed, survived, slow     how many; slow: no judge had failed when the time was over
    not_run                             survived as well: no test that FILE knows runs the line
    score                               killed of all but the slow ones
    survivors                           file, line, what was changed, and which of these it is
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JUDGES = 2  # files of tests at most that import a module
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
        self._tests = {path: imports(path) for path in ROOT.glob("test/*/**/*.py")}
        self._source = {
            module_name(path): imports(path)
            for path in ROOT.glob("src/com_*/com_*/**/*.py")
        }

    def users(self, module: str) -> set[str]:
        """Modules that import one, or one that does.

        Args:
            module: its name.
        """
        found, waiting = {module}, [module]
        while waiting:
            used = waiting.pop()
            new = {name for name, uses in self._source.items() if used in uses} - found
            found |= new
            waiting += new
        return found - {module}

    def find(self, module: str) -> list[str]:
        """Files of tests that import a module; where there is none, those that import its users.

        Args:
            module: its name.
        """
        users = {name for name, used in self._source.items() if module in used}
        words = {*module.split("."), *re.split(r"[._]", module)} - {"com"}
        for wanted in ({module}, users):
            found = [
                path
                for path, used in self._tests.items()
                if path.name.startswith("test_") and used & wanted
            ]
            if found:
                found.sort(key=lambda path: (-len(words & name_parts(path)), path))
                return [str(path) for path in found[:JUDGES]]
        return []


def name_parts(path: Path) -> set[str]:
    """Words of a file of tests and its folders, of which modules have the names."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    stem = parts[-1].removeprefix("test_")
    return {*parts, stem, *stem.split("_")}


def module_name(path: Path) -> str:
    """Name of a module of src/."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts[1:]
    return ".".join(part for part in parts if part != "__init__")


class LinesRun:
    """Which tests run a line.

    Args:
        paths: files of lines_run.py.
    """

    def __init__(self, paths: list[Path]) -> None:
        self._parts = [json.loads(path.read_text()) for path in paths]

    def find(self, mutant: Mutant, users: set[str], seconds: float) -> list[str]:
        """Tests that run a mutant's line, the likeliest to fail first.

        Args:
            mutant: the change.
            users: modules whose lines count instead, as the mutant's own are not seen.
            seconds: that they may take.
        """
        words = {*re.split(r"[._/]", mutant.file)} - {"com", "py"}
        found = []
        for part in self._parts:
            lines = [part["lines"].get(mutant.file, {}).get(str(mutant.line), {})]
            if users:
                lines = [
                    phases
                    for file, known in part["lines"].items()
                    if module_name(ROOT / "src" / file) in users
                    for phases in known.values()
                ]
            call = {at for phases in lines for at in phases.get("call", ())}
            setup = {at for phases in lines for at in phases.get("setup", ())}
            names = [name.partition("::")[0] for name, _ in part["tests"]]
            # what one test prepares may serve all of its file
            shared = {names[at] for at in setup} - {names[at] for at in call}
            for at, (name, duration) in enumerate(part["tests"]):
                if at in call or names[at] in shared:
                    alike = len(words & name_parts(ROOT / names[at]))
                    found.append((-alike, duration, name))
        chosen: list[str] = []
        for _, duration, name in sorted(found):
            if duration < seconds or not chosen:
                chosen.append(name)
                seconds -= duration
        return chosen


def warm_up() -> None:
    """Imports what tests import of others: judges are forks of this process."""
    for name in (
        "numpy",
        "scipy.optimize",
        "scipy.spatial.transform",
        "numba",
        "rclpy",
        "hypothesis",
        "xdist",
        "mujoco",
        "pinocchio",
        "yaml",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def run_tests(tests: list[str], path: Path, log: Path, limit: float) -> int | None:
    """Run tests in a fork of this process; returns pytest's exit code, None where time was over.

    Args:
        tests: files or names of tests.
        path: folder whose packages come before those of the suite.
        log: file of what pytest says.
        limit: s.
    """
    child = os.fork()
    if not child:
        os.setsid()
        os.environ["PYTHONPATH"] = f"{path}{os.pathsep}{os.environ['PYTHONPATH']}"
        sys.path.insert(0, str(path))
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            os.chdir(ROOT)
            words = ["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
            code = int(pytest.main([*words, *tests]))
            sys.stdout.flush()
            os._exit(code)
    end = time.monotonic() + limit
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it left
    return os.waitstatus_to_exitcode(status)


def judge(
    mutant: Mutant, tests: list[list[str]], folder: Path, limit: float
) -> tuple[str, str]:
    """Run the tests on a mutant.

    Args:
        mutant: to be tried.
        tests: names of tests or their files, the next ones where those before see nothing.
        folder: an empty one, for the package.
        limit: s, of each of them.

    Returns:
        killed, survived or slow; and the first test that failed.
    """
    source = ROOT / "src" / mutant.file
    package = source.parents[len(Path(mutant.file).parts) - 3]
    shutil.copytree(
        package, folder / package.name
    )  # with the times: kernels are cached
    target = folder / Path(*Path(mutant.file).parts[1:])
    data = mutant.apply(source.read_bytes())
    if not is_compiled(
        mutant
    ):  # kernels that import the module need not be compiled again
        size = source.stat().st_size
        at = data.index(b'"""') + 3
        data = data[:at] + data[at + max(0, len(data) - size) :]
        data += b"\n" * (size - len(data))
    target.write_bytes(data)
    if not is_compiled(mutant):
        shutil.copystat(source, target)
    verdict, by = "survived", ""
    log = folder / "log"
    for some in tests:
        code = run_tests(some, folder, log, limit)
        if code is None:
            verdict = "slow"
        elif code:
            text = log.read_text(errors="replace")
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
            verdict, by = "killed", failed[1] if failed else text[-200:]
            break
    return verdict, by


def is_compiled(mutant: Mutant) -> bool:
    """Whether a mutant's function becomes machine code."""
    functions = (
        node
        for node in ast.walk(ast.parse((ROOT / "src" / mutant.file).read_bytes()))
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= mutant.line <= (node.end_lineno or 0)
    )
    decorators = (
        ast.unparse(some) for node in functions for some in node.decorator_list
    )
    return any(text.startswith(("njit", "compiled", "inner")) for text in decorators)


def main() -> int:
    """Run the pass; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=200, help="mutants")
    parser.add_argument(
        "--skip", type=int, default=0, help="mutants, of the first ones"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="at most, in all")
    parser.add_argument("--limit", type=float, default=20.0, help="s, of its judges")
    parser.add_argument("--slow", type=float, default=90.0, help="s, of each judge")
    parser.add_argument("--only", default="", help="files whose name has this")
    options = parser.parse_args()
    judges, lines_run = Judges(), LinesRun(options.lines)
    results: list[tuple[str, Mutant]] = []
    files = sorted(ROOT.glob("src/com_*/com_*/**/*.py"))
    every = [m for path in files for m in mutants(path) if options.only in m.file]
    random.Random(options.seed).shuffle(every)  # noqa: S311 - not for secrets
    end = time.monotonic() + 60.0 * options.minutes
    warm_up()
    for mutant in every[options.skip : options.skip + options.count]:
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as name:
            module = module_name(ROOT / "src" / mutant.file)
            hidden = judges.users(module) if is_compiled(mutant) else set()
            chosen = lines_run.find(mutant, hidden, options.limit)
            tests = [[path] for path in judges.find(module)]
            verdict, by = judge(
                mutant, [chosen, *tests] if chosen else tests, Path(name), options.slow
            )
            if verdict == "survived" and not chosen:
                verdict = "not_run"
        results.append((verdict, mutant))
        what = f"{mutant.file}:{mutant.line} {mutant.old!r} -> {mutant.new!r}"
        print(f"{len(results)} {verdict} {what} {by}", file=sys.stderr, flush=True)
    counts = {
        verdict: sum(result[0] == verdict for result in results)
        for verdict in ("killed", "survived", "slow", "not_run")
    }
    survivors = [
        asdict(mutant) | {"verdict": verdict}
        for verdict, mutant in results
        if verdict != "killed"
    ]
    score = counts["killed"] / max(1, len(results) - counts["slow"])
    print(
        json.dumps(
            {
                "mutants": len(results),
                **counts,
                "score": round(score, 3),
                "survivors": survivors,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
