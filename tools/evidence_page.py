"""Writes docs/evidence.md and docs/reliability.md from benchmarks/results/*.json; make evidence.

It measures nothing: results are those of the last `make bench`. A row whose result is missing says
so. Rows and the intervals that verdicts follow from are in evidence.yaml and reliability.yaml.

Figures in other documents carry their key, for example 3.7<!-- ccgd_walk.com_error_mean_m *1000
+-10% -->: result, keys, a factor, and by how much the figure may differ. make evidence-check
compares them. A result is stale where the code that its benchmark imports has changed since: other
docstrings, comments and layout do not count; of nodes that it starts as programs nothing is known.

    tools/in_env python tools/evidence_page.py
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
RESULTS = "benchmarks/results"
PAGES = {
    ROOT / f"docs/{name}.md": ROOT / f"tools/{name}.yaml"
    for name in ("evidence", "reliability")
}
NOT_YET = "not measured yet"
VERDICTS = (
    "agrees",
    "better",
    "contradicts",
    "not measurable",
    "good",
    "fails",
    NOT_YET,
)
FIGURE = re.compile(
    r"(?P<figure>-?\d[\d ]*(?:\.\d+)?(?:e-?\d+)?)<!-- (?P<key>[\w.,:/\[\]-]+(?: [\w.,:/\[\]-]+)*)"
    r"(?: \*(?P<factor>[\d.e-]+))? \+-(?P<percent>[\d.]+)% -->"
)
#: In which imports are looked up.
FOLDERS = (
    "benchmarks",
    "demos/com_demos",
    "tools",
    "tools/robustness",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "src").iterdir())),
)
Results = Mapping[str, Mapping[str, Any]]


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """All results by name of the benchmark."""
    return {
        path.stem: json.loads(path.read_text())
        for path in sorted(folder.glob("*.json"))
    }


def look_up(results: Results, key: str) -> Any:
    """The value of a key such as ccgd_walk.com_errors_m.refined.0; keys may contain dots.

    Raises:
        KeyError: There is a result of this benchmark, but no such value in it.
    """
    name, _, rest = key.partition(".")
    if name not in results:
        return None
    value: Any = results[name]["figures"]
    while rest:
        if isinstance(value, list):
            part, _, rest = rest.partition(".")
            if not part.isdigit() or int(part) >= len(value):
                raise KeyError(f"{key}: no {part!r} in a list of {len(value)}")
            value = value[int(part)]
            continue
        names = value if isinstance(value, dict) else {}
        part = max(
            (n for n in names if f"{rest}.".startswith(f"{n}.")), key=len, default=""
        )
        if not part:
            raise KeyError(f"{key}: no {rest!r} among {sorted(names)}")
        value, rest = value[part], rest[len(part) + 1 :]
    return value


@dataclass(frozen=True)
class Line:
    """A row of the page."""

    text: str
    verdict: str


def keys_of(row: Mapping[str, Any]) -> list[str]:
    """The keys of a row, none, one or several."""
    return [row["key"]] if isinstance(row.get("key"), str) else list(row.get("key", []))


def line_of(row: Mapping[str, Any], results: Results) -> Line:
    """A row of evidence.yaml with its measured figures."""
    keys = keys_of(row)
    values = [look_up(results, key) for key in keys]
    bench = f" `{keys[0].partition('.')[0]}`" if keys else ""
    if "why" in row:
        ours, verdict = row["why"], row.get("verdict", NOT_YET)
    elif not keys or any(value is None for value in values):
        ours, verdict = NOT_YET, NOT_YET
    else:
        factor = row.get("factor", 1)
        ours = row["ours"].format(*(_shown(value, factor) for value in values))
        judged = [_fraction(values)] if row.get("fraction") else values
        verdict = _judge(row["verdicts"], judged, factor)
    printed = [row["paper"]] if "paper" in row else []
    cells = (row["claim"], *printed, ours, f"**{verdict}**{bench}")
    return Line("| " + " | ".join(str(cell) for cell in cells) + " |", verdict)


def _fraction(values: Sequence[Any]) -> float:
    """Of two counts, or of a text such as 4/5."""
    done, tried = values[0].split("/") if isinstance(values[0], str) else values[:2]
    return float(done) / float(tried)


def _shown(value: Any, factor: float) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item, factor) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    value = factor * value + 0  # no -0
    return f"{value:.3g}" if value % 1 else f"{value:.0f}"


def _judge(verdicts: Mapping[str, Any], values: Sequence[Any], factor: float) -> str:
    """The verdict whose interval contains the first value; "else" has none, "least" compares."""
    worst = max(map(abs, values[0])) if isinstance(values[0], list) else values[0]
    for verdict, interval in verdicts.items():
        if interval == "least" and worst > min(values):
            continue
        if (
            interval in ("else", "least")
            or interval[0] <= factor * worst <= interval[1]
        ):
            return verdict
    raise ValueError(f"no verdict for {values[0]}: give one as 'else'")


def imported(
    script: str,
    read: Callable[[str], str | None],
    folders: Sequence[str] = FOLDERS,
) -> dict[str, str]:
    """Return the code that a script imports from this project, itself included.

    Args:
        script: path from the root.
        read: gives the text of a file by its path; None: there is none.
        folders: in which imports are looked up.

    Returns:
        Syntax trees without docstrings, as texts by path.
    """
    found: dict[str, str] = {}
    waiting = [script]
    while waiting:
        path = waiting.pop()
        text = None if path in found else read(path)
        if text is None:
            continue
        modules, found[path] = _parsed(text)
        for module in modules:
            stem = module.replace(".", "/")
            waiting += [
                f"{folder}/{stem}{end}"
                for folder in folders
                for end in (".py", "/__init__.py")
            ]
    return found


@cache  # benchmarks share most of their files, and these most of their versions
def _parsed(text: str) -> tuple[tuple[str, ...], str]:
    """Return the modules that a file imports, and its syntax tree without docstrings."""
    tree = ast.parse(text)
    return tuple(_modules(tree)), ast.dump(_without_docstrings(tree))


def _modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                part
                for part in body
                if not (
                    isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
                )
            ]
    return tree


def _now(path: str) -> str | None:
    file = ROOT / path
    return file.read_text() if file.is_file() else None


def _at(commit: str) -> Callable[[str], str | None]:
    """Return what reads a file as it was at a commit."""
    rows = (line.split("\t") for line in _git("ls-tree", "-r", commit).splitlines())
    blobs = {path: about.split()[2] for about, path in rows}

    def read(path: str) -> str | None:
        return _blob(blobs[path]) if path in blobs else None

    return read


@cache
def _blob(number: str) -> str:
    return _git("cat-file", "blob", number)


def _git(*words: str) -> str:
    run = ["git", *words]
    return subprocess.run(
        run, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def changes_since(name: str, commit: str) -> list[str]:
    """Return the files imported by a benchmark whose code has changed since a commit.

    Args:
        name: of the benchmark.
        commit: of its stored result.

    Raises:
        subprocess.CalledProcessError: this repository has no such commit.
    """
    script = f"benchmarks/{name}.py"
    then, now = imported(script, _at(commit)), imported(script, _now)
    return sorted(path for path in {*then, *now} if then.get(path) != now.get(path))


def page(rows: Path, results: Results, changed: Mapping[str, int]) -> str:
    """The text of the page with the rows of a file.

    Args:
        rows: file of the rows.
        results: by name of the benchmark.
        changed: number of files that have changed since a result, by name of the benchmark.
    """
    document = yaml.safe_load(rows.read_text())
    parts, used = [document["head"].strip()], set()
    for section in document["sections"]:
        lines = [line_of(row, results) for row in section["rows"]]
        used |= {
            key.partition(".")[0] for row in section["rows"] for key in keys_of(row)
        }
        count = {v: sum(line.verdict == v for line in lines) for v in VERDICTS}
        summary = ", ".join(f"{n} {verdict}" for verdict, n in count.items() if n)
        columns = ["what", "measured here", "verdict, benchmark"]
        if "paper" in section["rows"][0]:
            columns.insert(1, "printed")
        table = [f"| {' | '.join(columns)} |", len(columns) * "|---" + "|"]
        parts.append(f"## {section['title']}\n\n{summary}.")
        parts.append("\n".join([*table, *(line.text for line in lines)]))
    sources = [
        f"- `{' '.join([f'{name}.py', *r['options']])}`: "
        f"{r['commit']}{' (changed)' if r['uncommitted_changes'] else ''}, {r['date'][:10]}, "
        f"{changed.get(name, 0)}"
        for name, r in results.items()
        if name in used
    ]
    parts.append("## Where the figures come from")
    parts.append("Commit, date, and how many files have changed in the code since:")
    parts.append("\n".join(sources))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    stored = read_results(ROOT / RESULTS)
    since = {name: len(changes_since(name, r["commit"])) for name, r in stored.items()}
    for target, source in PAGES.items():
        target.write_text(page(source, stored, since))
