"""Compares the figures of the documents with the stored results, and these with the code.

A figure must be the stored one. A stale result (see evidence_page.py) is a warning; README's
figures must not be stale.

    make evidence-check
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from evidence_page import (
    FIGURE,
    PAGES,
    RESULTS,
    ROOT,
    Results,
    changes_since,
    look_up,
    page,
    read_results,
)

README = ROOT / "README.md"
README_FIGURES = ROOT / "tools/readme_figures.yaml"


def wrong_figures(text: str, results: Results) -> Iterator[str]:
    """Figures of a document that are not the stored ones.

    Args:
        text: of the document, with figures that carry their key.
        results: by name of the benchmark.

    Yields:
        A figure, and what was measured.
    """
    for match in FIGURE.finditer(text):
        value = look_up(results, match["key"])
        if value is None:
            continue  # of a benchmark without a stored result
        measured = float(match["factor"] or 1.0) * float(value)
        stated = float(match["figure"].replace(" ", ""))
        if abs(stated - measured) > float(match["percent"]) / 100.0 * abs(measured):
            yield f"{match['figure']} is {measured:.4g} by {match['key']}"


def wrong_readme_figures(
    text: str, known: Mapping[str, Any], results: Results
) -> Iterator[str]:
    """Figures of README that are not the stored ones, or no longer where they were.

    Args:
        text: of README.
        known: percent, and the figures in their order.
        results: by name of the benchmark.

    Yields:
        A figure, and what was measured.
    """
    for figure in known["figures"]:
        _, found, text = text.partition(figure["after"])
        number = re.match(r"[\d.]+", text)
        if not found or number is None:
            yield f"no figure stands after {figure['after']!r}: {figure['key']}"
            return
        value = look_up(results, figure["key"])
        if abs(float(number.group()) - value) > known["percent"] / 100.0 * abs(value):
            yield f"{number.group()} is {value:.4g} by {figure['key']}"


def _as_of_today(text: str) -> str:
    """Return a page without what is said of later changes to the code."""
    head, _, table = text.partition("code since")
    return head + re.sub(r", \d+$", "", table, flags=re.MULTILINE)


def main() -> int:
    """Print what is wrong or stale; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--figures", action="store_true", help="do not look for stale results"
    )
    options = parser.parse_args()
    results = read_results(ROOT / RESULTS)
    known = yaml.safe_load(README_FIGURES.read_text())
    wrong = wrong_readme_figures(README.read_text(), known, results)
    problems = [f"README.md: {text}" for text in wrong]
    for path in sorted((ROOT / "docs").glob("*.md")):
        wrong = wrong_figures(path.read_text(), results)
        problems += [f"docs/{path.name}: {text}" for text in wrong]
    for target, rows in PAGES.items():
        text = page(rows, results, {})
        if _as_of_today(text) != _as_of_today(target.read_text()):
            problems.append(
                f"docs/{target.name} is not that of the stored results: make evidence"
            )
    in_readme = {figure["key"].partition(".")[0] for figure in known["figures"]}
    for name, result in {} if options.figures else results.items():
        commit = result["commit"]
        if changed := changes_since(name, commit):
            text = f"{name}.json is stale: {len(changed)} files changed since {commit}"
            if name in in_readme:
                problems.append(f"README.md: {text}")
            else:
                print(f"warning: {text}")
    for text in problems:
        print(text)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
