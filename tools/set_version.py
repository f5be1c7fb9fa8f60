"""Writes the version of a release into every file that has one; without a version checks them.

    python3 tools/set_version.py            # prints the version, or which files differ (exit 1)
    python3 tools/set_version.py 0.2.0      # writes it

ROS reads it in package.xml, pip in pyproject.toml, colcon in setup.cfg: none of them can ask
another file.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {
    "pyproject.toml": r'^(version = ")([^"]+)',
    "pixi.toml": r'^(version = ")([^"]+)',
    "CITATION.cff": r"^(version: )(\S+)",
    "src/*/package.xml": r"^(\s*<version>)([^<]+)",
    "demos/*/package.xml": r"^(\s*<version>)([^<]+)",
    "launch/package.xml": r"^(\s*<version>)([^<]+)",
    "src/*/setup.cfg": r"^(version\s*=\s*)(\S+)",
    "demos/*/setup.cfg": r"^(version\s*=\s*)(\S+)",
}
"""Files, and what is before the version and the version itself in one of their lines."""


def main(words: list[str] | None = None, root: Path = ROOT) -> int:
    """Runs the command line.

    Args:
        words: The arguments; None: those of the process.
        root: Of the checkout.

    Returns:
        Exit status: 0, or 1 where files have different versions.
    """
    words = sys.argv[1:] if words is None else words
    if words and not re.fullmatch(r"\d+\.\d+\.\d+", words[0]):
        print(
            f"set_version: {words[0]!r} is no version: give three numbers, like 0.2.0"
        )
        return 1
    found: dict[str, list[str]] = {}
    for pattern, line in PLACES.items():
        for path in sorted(root.glob(pattern)):
            text = path.read_text()
            match = re.search(line, text, re.MULTILINE)
            version = match[2] if match else "none"
            if words and match:
                version = words[0]
                path.write_text(text[: match.start(2)] + version + text[match.end(2) :])
            found.setdefault(version, []).append(str(path.relative_to(root)))
    if len(found) == 1:
        print(*found)
        return 0
    for version, names in found.items():
        print(f"{version}: {', '.join(names)}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
