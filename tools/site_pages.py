"""Builds the site of the documentation: `make docs`.

The pages are those of the checkout, which GitHub shows, too, in the order of docs/site/pages.yaml.
Here they are copied side by side, their links follow them, and a reference is added that comes
from the sources: public names of Python by their docstrings, messages, parameters of nodes,
arguments of launch files. MkDocs makes HTML of it, refuses links and anchors that lead nowhere,
and adds a search that needs no network.
"""

import argparse
import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "docs" / "site"
PACKAGES = (
    "com_model",
    "com_bags",
    "com_estimation",
    "com_identification",
    "com_control",
    "com_simulation",
)
LINK = re.compile(r"(?<!\\)(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
WORKER = (
    "iframe-worker.js"  # by this name the theme does not fetch its own from the network
)
MATH = re.compile(r"\$\$(?P<block>.+?)\$\$|`[^`\n]*`|\$(?P<inline>[^$]+)\$", re.DOTALL)
"""A formula, or code, in which a dollar begins none."""
IMAGES = (".png", ".gif", ".svg", ".jpg")


def main(words: list[str] | None = None) -> int:
    """Runs the command line.

    Args:
        words: The arguments; None: those of the process.

    Returns:
        Exit status of MkDocs: 0 without a single warning.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "out" / "site")
    options = parser.parse_args(words)
    work = ROOT / "build" / "site"
    shutil.rmtree(work, ignore_errors=True)
    nav, pages = read_pages(yaml.safe_load((SOURCES / "pages.yaml").read_text()))
    for source, page in pages.items():
        target = work / "pages" / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if source in GENERATED:
            target.write_text(GENERATED[source]())
        else:
            target.write_text(follow_links(source, pages, work / "pages"))
    shutil.copy(SOURCES / WORKER, work / "pages" / WORKER)
    (work / "mkdocs.yml").write_text(
        yaml.safe_dump(settings(nav, work), sort_keys=False)
    )
    # MkDocs warns of a future that Material for MkDocs does not share.
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--clean",
    ]
    command += ["-f", str(work / "mkdocs.yml"), "-d", str(options.output.resolve())]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print(f"{len(pages)} pages: open {options.output}/index.html")
    return code


def read_pages(
    contents: dict[str, Any],
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Lays out the site.

    Args:
        contents: Of docs/site/pages.yaml.

    Returns:
        The navigation as MkDocs wants it, and the path in the site by source: the path of a file
        from the root, or the name of a generated page.
    """
    nav: list[dict[str, Any]] = []
    pages: dict[str, str] = {}

    def place(section: str, source: Any) -> str:
        if isinstance(source, dict):
            name = source["generated"]
            pages[name] = f"{section}/{name}.md"
            return pages[name]
        path = Path(source)
        stem = path.parent.name if path.name == "README.md" else path.stem
        name = "index" if source == "README.md" else stem.lower()
        pages[source] = f"{section}/{name}.md" if section else f"{name}.md"
        return pages[source]

    for title, entry in contents.items():
        if isinstance(entry, str):
            nav.append({title: place("", entry)})
            continue
        nav.append({title: [{t: place(title.lower(), s)} for t, s in entry.items()]})
    return nav, pages


def follow_links(source: str, pages: dict[str, str], top: Path) -> str:
    """The text of a page with links that lead to where pages and pictures are in the site.

    Links to other files of the checkout become text: the site does not have them.

    Args:
        source: Path of the page from the root.
        pages: Path in the site by source.
        top: Folder of the site's pages, to which pictures are copied.
    """
    here, page = ROOT / source, Path(pages[source])
    up = "../" * (len(page.parts) - 1)

    def moved(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match[0]
        file = (here.parent / path).resolve()
        if file.suffix in IMAGES and file.is_file():
            copy = top / "images" / file.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
            return f"{mark}[{text}]({up}images/{file.name})"
        readme = file / "README.md"
        for candidate in (file, readme):
            if candidate.is_relative_to(ROOT):
                name = str(candidate.relative_to(ROOT))
                if name in pages:
                    tail = f"#{anchor}" if anchor else ""
                    return f"[{text}]({up}{pages[name]}{tail})"
        if not file.exists():
            raise SystemExit(f"{source}: there is no {path}")
        return text if text.startswith("`") else f"{text} (`{path.lstrip('./')}`)"

    text = here.read_text()
    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    if "$$" in text:
        parts = [p if p.startswith("```") else MATH.sub(formula, p) for p in parts]
    return "".join(p if p.startswith("```") else LINK.sub(moved, p) for p in parts)


def formula(match: re.Match[str]) -> str:
    """MathML of a formula, which browsers draw without a script.

    Args:
        match: Of MATH; code stays as it is.
    """
    from latex2mathml.converter import convert  # only `make docs` installs it

    latex = match["block"] or match["inline"]
    if latex is None:
        return match[0]
    numbered = re.sub(r"\\tag{(\d+)}", r"\\qquad (\1)", latex)
    if match["block"]:
        return str(convert(numbered, display="block"))
    # at the begin of a line Markdown takes the tag math for that of a block
    return f"<span>{convert(numbered)}</span>"


def settings(nav: list[dict[str, Any]], work: Path) -> dict[str, Any]:
    """What MkDocs reads: nothing that the page would fetch from the network.

    Args:
        nav: The navigation.
        work: Folder of the site's sources.
    """
    python = {
        "paths": [str(ROOT / "src" / name) for name in PACKAGES],
        "options": {
            "docstring_style": "google",
            "docstring_options": {"warnings": False},
            "heading_level": 3,
            "members_order": "source",
            "merge_init_into_class": True,
            "separate_signature": True,
            "show_root_heading": True,
            "show_root_full_path": False,
            "show_signature_annotations": True,
            "show_source": False,
            "signature_crossrefs": True,
        },
    }
    return {
        "site_name": "Center of Mass suite",
        "site_description": "Centre of mass of legged robots: published, estimated, identified",
        "docs_dir": str(work / "pages"),
        "theme": {
            "name": "material",
            "font": False,
            "features": [
                "navigation.tabs",
                "navigation.top",
                "navigation.footer",
                "content.code.copy",
                "search.highlight",
                "toc.follow",
            ],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
        "extra": {"polyfills": [WORKER]},
        "plugins": [
            "search",
            "offline",
            {"mkdocstrings": {"handlers": {"python": python}}},
        ],
        "markdown_extensions": [
            "admonition",
            "attr_list",
            "md_in_html",
            "sane_lists",
            "tables",
            {"toc": {"permalink": True}},
            "pymdownx.superfences",
            {"pymdownx.highlight": {"anchor_linenums": True}},
        ],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn"},
            "links": {
                "not_found": "warn",
                "anchors": "warn",
                "unrecognized_links": "warn",
            },
        },
        "nav": nav,
    }


# --- the reference -------------------------------------------------------------------------------
def python_page() -> str:
    """Public names of the packages without ROS, by their docstrings."""
    lines = ["# Python", "", "What the packages offer without ROS, by name."]
    for package in PACKAGES:
        module = importlib.import_module(package)
        summary = (module.__doc__ or "").partition("\n")[0]
        lines += ["", f"## {package}", "", summary, ""]
        for name in getattr(module, "__all__", ()):
            item = getattr(module, name)
            where = str(getattr(item, "__module__", ""))
            if callable(item) and where.startswith("com_"):  # no alias of a type
                lines += [f"::: {where}.{name}", ""]
    return "\n".join(lines)


def messages_page() -> str:
    """Messages, services and actions with their comments."""
    lines = ["# Messages, services, actions", "", "Those of the package com_msgs."]
    for kind in ("msg", "srv", "action"):
        lines += ["", f"## {kind}"]
        for path in sorted((ROOT / "src" / "com_msgs" / kind).glob(f"*.{kind}")):
            text = path.read_text().rstrip()
            lines += ["", f"### {path.stem}", "", "```python", text, "```"]
    return "\n".join(lines) + "\n"


def launch_page() -> str:
    """Arguments of each launch file, with defaults."""
    lines = ["# Launch arguments", "", "`ros2 launch com_bringup FILE argument:=value`"]
    for path in sorted((ROOT / "launch").rglob("*.launch.xml")):
        lines += ["", f"## {path.name}", ""]
        arguments = ElementTree.parse(path).getroot().iter("arg")  # noqa: S314 - our own
        rows = [
            (a.get("name", ""), a.get("default"), a.get("description", ""))
            for a in arguments
            if a.get("description")
        ]
        lines += table(("argument", "default", "what it is"), rows)
    return "\n".join(lines) + "\n"


def parameters_page() -> str:
    """Parameters of each node: default, bounds, whether they change while it runs."""
    lines = ["# Parameters of nodes", "", "Live ones may change while the node runs."]
    for path in sorted((ROOT / "src").glob("*/*/nodes/*.py")):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts[1:])
        if "def main(" not in path.read_text():
            continue
        kind = getattr(importlib.import_module(name), "Parameters", None)
        if kind is None:
            continue
        lines += ["", f"## {path.stem}", ""]
        head = ("parameter", "default", "bounds or choices", "live", "what it is")
        lines += table(head, [*parameters(kind())])
    return "\n".join(lines) + "\n"


def parameters(options: Any, prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Rows of a table of parameters.

    Args:
        options: An instance of a dataclass of parameters, with its defaults.
        prefix: Of the names.

    Yields:
        Name, default, bounds, whether it is live, and description.
    """
    for item in fields(options):
        value, about = getattr(options, item.name), item.metadata
        name = f"{prefix}{item.name}"
        if is_dataclass(value):
            yield from parameters(value, f"{name}.")
        elif "description" in about:
            bounds = about["bounds"] or ()
            limits = " to ".join(f"{b:g}" for b in bounds) or ", ".join(
                about["choices"]
            )
            shown = "" if value in ("", (), None) else str(value)
            yield name, shown, limits, "yes" * about["live"], about["description"]


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    """Lines of a Markdown table; the first column is code.

    Args:
        head: Titles of the columns.
        rows: Cells.
    """

    def line(cells: tuple[Any, ...]) -> str:
        texts = [
            str(cell or "").replace("|", "\\|").replace("<", "&lt;") for cell in cells
        ]
        return f"| {' | '.join(texts)} |"

    return [
        line(head),
        "|---" * len(head) + "|",
        *(line((f"`{n}`", *r)) for n, *r in rows),
    ]


GENERATED: dict[str, Callable[[], str]] = {
    "python": python_page,
    "messages": messages_page,
    "parameters": parameters_page,
    "launch_arguments": launch_page,
}

if __name__ == "__main__":
    sys.exit(main())
