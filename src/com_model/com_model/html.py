"""Pieces of HTML; every text that comes from outside is escaped here.

Without a template engine: pages are tables and figures whose number depends on the results, so
templates would call most of these functions too.
"""

import base64
import hashlib
import html
import math
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNKNOWN = "–"

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8").strip()
SCRIPT = """for (const button of document.querySelectorAll("button")) button.onclick = () => {
  navigator.clipboard.writeText(button.previousSibling.textContent);
  button.textContent = "copied"; };"""
"""Copies a command; the page's policy allows this script and no other."""

_SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
_PARTS = re.compile(r"`([^`]+)`|\b(docs/\w+\.md)(#[\w-]+)?")


class Raw(str):
    """Text that is HTML already."""


def escape(text: object) -> Raw:
    """Makes a text safe; pieces of HTML made here stay as they are."""
    if isinstance(text, Raw):
        return text
    # Control characters are unknown to HTML.
    shown = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in str(text))
    return Raw(html.escape(shown, quote=True).replace("+-", "±"))


def element(tag: str, *parts: object, css: str = "") -> Raw:
    """Wraps parts, each escaped, into an element.

    Args:
        tag: Its tag.
        parts: Its content.
        css: Its class, or "".
    """
    attribute = f' class="{css}"' if css else ""
    return Raw(f"<{tag}{attribute}>{''.join(escape(part) for part in parts)}</{tag}>")


def folded(title: object, *parts: object) -> Raw:
    """Makes a section of which only the title shows until the reader opens it.

    Args:
        title: Its title.
        parts: Its content; nothing that must be seen, such as a warning.
    """
    return element("details", element("summary", title), *parts)


def bullets(lines: Iterable[object], css: str = "") -> Raw:
    """Makes a list; empty where there are no lines.

    Args:
        lines: Its items.
        css: Class of the items, or "".
    """
    items = [element("li", line, css=css) for line in lines]
    return element("ul", *items) if items else Raw("")


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], words: int = 0
) -> Raw:
    """Makes a table.

    Args:
        head: Titles of the columns.
        rows: Cells of each row.
        words: How many of the last columns hold words: these are aligned left, numbers right.
    """
    first = len(head) - words
    lines = [("th", head), *(("td", row) for row in rows)]
    cells = [
        [element(tag, c, css="words" if i >= first else "") for i, c in enumerate(row)]
        for tag, row in lines
    ]
    return element("table", *(element("tr", *line) for line in cells))


def number(value: float, digits: int = 2, scale: float = 1.0) -> str:
    """Formats a number; a dash where it is not known.

    Args:
        value: The number; NaN or infinite where it is not known.
        digits: Number of decimals.
        scale: Factor that turns it into the unit of the text.
    """
    if not math.isfinite(value):
        return UNKNOWN
    # 0.0 is added as small negative values would be −0.0
    return f"{round(scale * value, digits) + 0.0:.{digits}f}".replace("-", "−")


def plus_minus(value: float, std: float, digits: int = 2, scale: float = 1.0) -> str:
    """Formats a number ± its standard deviation; alone where that is 0 or not known.

    Args:
        value: The number.
        std: Its standard deviation, in the same unit.
        digits: Number of decimals.
        scale: Factor that turns both into the unit of the text.
    """
    spread = f" ± {number(std, digits, scale)}" if std > 0.0 else ""
    return number(value, digits, scale) + spread


def coordinates(
    values: Iterable[float],
    unit: str,
    stds: Iterable[float] = (0.0,) * 3,
    scale: float = 1.0,
) -> str:
    """Formats three numbers with their axes: x 1.0, y 2.0, z 3.0 mm.

    Args:
        values: (3,).
        unit: Unit of the text; m has three decimals, others one.
        stds: (3,) standard deviations; 0 where not known.
        scale: Factor that turns values and stds into the unit.
    """
    triples, digits = zip("xyz", values, stds, strict=True), 3 if unit == "m" else 1
    return f"{', '.join(f'{a} {plus_minus(v, s, digits, scale)}' for a, v, s in triples)} {unit}"


def bar(value: float, std: float, prior_std: float) -> Raw:
    """Draws a change and its standard deviation against three standard deviations of its prior.

    Args:
        value: The change, in any unit.
        std: Its standard deviation, in that unit.
        prior_std: That of the prior, in that unit.
    """
    if not (math.isfinite(value) and prior_std > 0.0):
        return Raw("")
    width, unit = 120.0, 20.0 / prior_std

    def x(place: float) -> str:
        return f"{min(max(width / 2.0 + unit * place, 0.0), width):.1f}"

    low, high = value - std, value + std
    prior = f'<rect x="{x(-prior_std)}" y="3" width="40.0" height="8" fill="#f1f3f5"/>'
    zero = '<line x1="60" x2="60" y1="0" y2="14" stroke="#adb5bd"/>'
    spread = f'<line x1="{x(low)}" x2="{x(high)}" y1="7" y2="7" stroke="#0072b2" stroke-width="4"/>'
    dot = f'<circle cx="{x(value)}" cy="7" r="3" fill="#212529"/>'
    return Raw(f'<svg width="120" height="14">{prior}{zero}{spread}{dot}</svg>')


def svg(figure: "Figure") -> Raw:
    """A figure in SVG with text as text, without date or version of the tool; can scroll."""
    import matplotlib  # takes half a second, and many pages have no figure

    out = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "report", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return element("div", Raw(text[text.index("<svg") :]), css="figure")


def image(png: bytes, name: str) -> Raw:
    """Puts a picture into the page.

    Args:
        png: Content of a PNG file.
        name: Text for those who cannot see it.
    """
    data = base64.b64encode(png).decode()
    return Raw(
        f'<div class="figure"><img alt="{escape(name)}" src="data:image/png;base64,{data}"></div>'
    )


def prose(text: str) -> Raw:
    """Text with `commands` in backticks, each with a button to copy it, and links to docs/*.md."""

    def part(match: re.Match[str]) -> str:
        command, file, place = match.groups()
        if command:
            inner = f"<code>{escape(command)}</code><button>copy</button>"
            return f'<span class="command">{inner}</span>'
        folder = _documentation()
        if folder is None:
            return str(escape(match.group()))
        address = (folder / file).as_uri() + (place or "")
        return f'<a href="{escape(address)}">{escape(file)}</a>'

    pieces, end = [], 0
    for match in _PARTS.finditer(text):
        pieces += [escape(text[end : match.start()]), part(match)]
        end = match.end()
    return Raw("".join([*pieces, escape(text[end:])]))


def _documentation() -> Path | None:
    """The checkout that this file is in, whose docs/ pages can link to; None: installed alone."""
    folders = Path(__file__).resolve().parents
    return next((f for f in folders if (f / "docs/conventions.md").is_file()), None)


def report(
    title: str,
    verdict: str,
    *parts: object,
    then: Sequence[object],
    failed: bool = False,
) -> str:
    """Writes the page of a run that has ended.

    Args:
        title: Title of the page.
        verdict: The result in one sentence, at the top.
        parts: What follows it.
        then: What to do next, at the end; see prose.
        failed: Whether the verdict is a warning.

    Returns:
        HTML.
    """
    top = element("h1", title), element("p", verdict, css="warning" if failed else "")
    last = (
        element("h2", "What next"),
        *(element("p", prose(str(text))) for text in then),
    )
    return page(title, *top, *map(escape, parts), *last)


def page(title: str, *parts: Raw) -> str:
    """A whole page that needs no other file."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{_SCRIPT_HASH}'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + f"\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
