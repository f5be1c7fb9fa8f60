"""The documentation's text: its files, its inline code, its command lines."""

import re
import subprocess
from configparser import ConfigParser
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@cache
def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that git knows."""
    done = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--", *patterns], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip("the documentation is checked in a git checkout only")
    return [ROOT / name for name in done.stdout.splitlines()]


def documents() -> list[Path]:
    """All pages but the CHANGELOG."""
    pages = [p for p in tracked("*.md") if "data" not in p.relative_to(ROOT).parts]
    return [p for p in pages if p.name != "CHANGELOG.md"]


def spans(text: str) -> list[str]:
    """Inline code outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def commands(text: str) -> list[str]:
    """Lines of code blocks in shell, continued lines joined, comments taken off; inline code."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    shell = [
        block for language, block in blocks if language in ("", "bash", "sh", "console")
    ]
    lines = "\n".join(shell).replace("\\\n", " ").splitlines()
    return [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines] + spans(text)


@cache
def entry_points() -> dict[tuple[str, str], str]:
    """module:function by (package, executable) of all commands that the setup.cfg files list."""
    found = {}
    for path in tracked("src/*/setup.cfg", "demos/*/setup.cfg"):
        config = ConfigParser()
        config.read(path)
        listed = config.get("options.entry_points", "console_scripts", fallback="")
        for name, function in re.findall(r"^(\w+) = (\S+)", listed, re.M):
            found[path.parent.name, name] = function
    return found
