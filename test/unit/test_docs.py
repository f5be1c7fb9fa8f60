"""The documentation names only what exists: files, commands, arguments, topics, enum values.

An inline code span is checked word by word against the words of the sources; commands in code
blocks are checked against the executables, launch arguments, make targets and options.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from documents import ROOT, commands, documents, entry_points, spans, tracked

# Words of other programs, of the file system and of mathematics; placeholders of commands.
FOREIGN_WORDS = """
    apt get install sudo pip venv rosdep colcon build bash source ros2 launch run topic echo bag
    record play param set service call action send_goal list show info git clone cd mkdir opt ros
    jazzy setup http https localhost github io org com html png jpg csv md mcap sqlite3 db3 zip
    T_ab T_bc T_ac PKG CMD NAME hoap2_identification single_placed single_fixed
    secondary_imu mode_pr
"""
FOREIGN = frozenset(FOREIGN_WORDS.split())
SOURCES = (
    "py",
    "xml",
    "yaml",
    "msg",
    "srv",
    "action",
    "sh",
    "toml",
    "urdf",
    "cfg",
    "rviz",
    "txt",
)


@cache
def source_text() -> str:
    """All sources in one text."""
    files = tracked(*(f"*.{kind}" for kind in SOURCES), "Makefile", "tools/*", ".ci/*")
    return "\n".join(
        path.read_text(errors="ignore") for path in files if path.is_file()
    )


@cache
def words() -> frozenset[str]:
    """Identifiers of the sources, and the parts of the paths of all files."""
    paths = " ".join(str(path.relative_to(ROOT)) for path in tracked("*"))
    return frozenset(re.findall(r"[A-Za-z_]\w*", source_text() + " " + paths)) | FOREIGN


@cache
def enum_values() -> frozenset[str]:
    """Constants of our messages and members of our enums."""
    messages = "\n".join(p.read_text() for p in tracked("src/com_msgs/*"))
    members = re.findall(r"^    ([A-Z][A-Z_]+) = ", source_text(), re.MULTILINE)
    return frozenset(
        re.findall(r"^\w+ ([A-Z][A-Z_0-9]*)=", messages, re.MULTILINE)
    ) | set(members)


@pytest.mark.parametrize(
    "path", documents(), ids=lambda path: str(path.relative_to(ROOT))
)
class TestDocument:
    def test_links_lead_to_files(self, path: Path) -> None:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            if "://" not in target and not target.startswith("mailto:"):
                assert (path.parent / target).exists(), f"no file {target}"

    def test_inline_code_names_what_exists(self, path: Path) -> None:
        unknown = {}
        for span in spans(path.read_text()):
            parts = re.findall(r"(?<![\w.\\])[A-Za-z]\w{2,}(?!\.\.\.)", span)
            missing = [p for p in parts if p not in words() and not p.startswith("my_")]
            if missing:
                unknown[span] = missing
        assert not unknown, f"not in any source: {unknown}"

    def test_enum_values_exist(self, path: Path) -> None:
        prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        constants = set(re.findall(r"\b[A-Z]{2,}_[A-Z_]+\b", prose))
        constants |= {
            span for span in spans(prose) if re.fullmatch(r"[A-Z][A-Z_]{2,}", span)
        }
        unknown = {name for name in constants - enum_values() if name not in words()}
        assert not unknown, (
            f"no value of a message, an enum or an environment: {unknown}"
        )

    def test_commands_can_be_run(self, path: Path) -> None:
        targets = set(
            re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        )
        launch = {p.name: p.read_text() for p in tracked("launch/*.launch.xml")}
        arguments = {
            name
            for text in launch.values()
            for name in re.findall(r'<arg name="(\w+)"', text)
        }
        for line in commands(path.read_text()):
            for target in re.findall(r"^make ([a-z][\w-]*)", line):
                assert target in targets, f"no make target {target}: {line}"
            for package, name in re.findall(r"ros2 run (com_\w+) (\w+)", line):
                known = name in FOREIGN or (package, name) in entry_points()
                assert known, f"no executable {name}: {line}"
            for file in re.findall(r"(?:launch|run_launch) com_bringup (\S+)", line):
                assert file in launch, f"no launch file {file}: {line}"
                for name in re.findall(r"(\w+):=", line):
                    assert name in arguments, f"no launch argument {name}: {line}"
            for script in re.findall(
                r"python3? ((?:benchmarks|examples|tools)/\S+\.py)", line
            ):
                known = (ROOT / script).exists() or "NAME" in script
                assert known, f"no file {script}: {line}"
            for module in re.findall(r"python3? -m (com_[\w.]+)", line):
                file = f"{module.split('.')[0]}/{module.replace('.', '/')}.py"
                known = any((ROOT / top / file).exists() for top in ("src", "demos"))
                assert known, f"no module {module}: {line}"
            if re.search(r"ros2 run com_|tools/|benchmarks/|python3? -m com_", line):
                for option in re.findall(r"(?<=\s)--([a-z][\w-]+)", line):
                    assert f"--{option}" in source_text(), (
                        f"no option --{option}: {line}"
                    )


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("README.md", "correction"),
        ("docs/tutorial_identification.md", "identification"),
        ("docs/tutorial_trunk.md", "trunk"),
        ("docs/tutorial_diagnosis.md", "diagnosis"),
        ("docs/tutorial_walking.md", "walk"),
        ("docs/stabiliser.md", "walk_pushed"),
    ],
)
def test_the_first_picture_of_a_page_moves(page: str, name: str) -> None:
    """An animated PNG has a chunk acTL before its first image data."""
    first = re.search(r"!\[[^]]+\]\(([\w/]+\.png)\)", (ROOT / page).read_text())
    path = (ROOT / page).parent / first[1]
    data = path.read_bytes()
    assert path.stem == name
    assert b"acTL" in data[: data.index(b"IDAT")]


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(path.read_text() for path in documents())
    for path in tracked("docs/images/*"):
        assert f"images/{path.name})" in pages, path


def test_no_picture_is_large():
    for path in tracked("docs/images/*", "*/docs/images/*", "*.png", "*.svg"):
        assert path.stat().st_size < 400 * 1024, path


def test_the_architecture_names_functions_of_these_files():
    """A span such as `walking/log.py: condition, WalkLog.update` names definitions of that file."""
    text = (ROOT / "docs/architecture.md").read_text()
    paths = [path.relative_to(ROOT).as_posix() for path in tracked("*.py")]
    checked = 0
    for file, names in re.findall(r"`([\w/]+\.py)(?:: ([\w., ]+))?`", text):
        if file.split("/")[-1] == "file.py":  # the placeholder of the text
            continue
        places = [ROOT / path for path in paths if f"/{path}".endswith(f"/{file}")]
        assert places, f"no file {file}"
        for name in re.findall(r"\w+(?:\.\w+)?", names):
            found = [
                place
                for place in places
                if all(
                    re.search(
                        rf"^\s*(?:def|class) {part}\b", place.read_text(), re.MULTILINE
                    )
                    for part in name.split(".")
                )
            ]
            assert found, f"no {name} in {file}"
            checked += 1
    assert checked > 20
