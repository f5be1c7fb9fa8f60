"""docs/configuration.md and its schema are those of the code; configurations that ship obey it."""

import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = ROOT / "src" / "robot_descriptions" / "config"


@pytest.fixture(scope="module")
def page():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import configuration_page
    finally:
        sys.path.pop(0)
    return configuration_page


def test_the_files_are_those_of_the_code(page):
    for path, text in page.files().items():
        assert path.read_text() == text, (
            "run tools/in_env python tools/configuration_page.py"
        )


def test_every_meaning_is_of_a_key(page):
    lines = page.make_page().splitlines()
    for path, meaning in page.MEANING.items():
        key = path.rpartition(".")[2]
        assert [
            line
            for line in lines
            if line.strip().startswith(f"{key}:") and line.endswith(f"  # {meaning}")
        ], path


def problems(schema, value, path=""):
    """What a JSON schema forbids, for the words that ours has."""
    if "enum" in schema:
        return [] if value in schema["enum"] else [path]
    kinds = {"string": str, "number": (int, float), "array": list, "object": dict}
    if not isinstance(value, kinds[schema["type"]]) or isinstance(value, bool):
        return [path]
    if isinstance(value, list):
        found = [path] * (not schema.get("minItems", 0) <= len(value))
        return found + [p for v in value for p in problems(schema["items"], v, path)]
    if not isinstance(value, dict):
        return [path] * (
            schema["type"] == "number" and value < schema.get("minimum", value)
        )
    found = [key for key in schema.get("required", ()) if key not in value]
    for key, item in value.items():
        child = schema["properties"].get(key, schema["additionalProperties"])
        found += problems(child, item, f"{path}.{key}") if child else [f"{path}.{key}"]
    return found


@pytest.mark.parametrize(
    "file", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem
)
def test_configurations_that_ship_obey_the_schema(page, file):
    assert problems(page.make_schema(), yaml.safe_load(file.read_text())) == []


def test_the_example_obeys_the_schema_and_mistakes_do_not(page):
    schema = page.make_schema()
    text = (ROOT / "docs" / "configuration.md").read_text()
    example = yaml.safe_load(
        text.split("## An example")[1].split("```yaml")[1].split("```")[0]
    )
    assert problems(schema, example) == []
    example["feet"]["left_sole"] |= {
        "side": "port",
        "xyz": [1],
        "frame": "x",
        "radius": -1,
    }
    assert problems(schema, example | {"trott": {}}) == [
        *(f".feet.left_sole.{key}" for key in ("xyz", "side", "frame", "radius")),
        ".trott",
    ]
