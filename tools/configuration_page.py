"""Writes the list of keys of docs/configuration.md, and docs/robot.schema.json, from the code.

The reader runs on a section that notes which keys it asks for, with their types, defaults and
bounds; what the keys mean is said here. A test fails when the files are not those of the code, or
a key has no meaning.

    tools/in_env python tools/configuration_page.py
"""

# ruff: noqa: D102 (the getters are those of Section)
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from com_model.robot_config import config_of
from com_model.strict_yaml import Section

DOCS = Path(__file__).resolve().parents[1] / "docs"
NAMED = "<name>"
"""Stands for the keys of sections whose keys are names of the user's choice."""
LIST = "## All keys\n"

MEANING = {
    "name": "of the robot; must be given",
    "urdf": "path of the URDF, relative to this file",
    "kind": "of the robot",
    "root_link": "root of the URDF; refused where it is another one",
    "trunk": "link that carries legs, arms and head",
    "feet": "by the name of the sole frame: origin on the sole, x forwards, z out of the ground; "
    "of a point foot a frame fixed to its ball",
    "feet.<name>": "a foot; without `link` the name is that of a link of the URDF",
    "feet.<name>.link": "link that the sole frame is fixed to, where the URDF has none for it",
    "feet.<name>.xyz": "m, origin of the sole frame in `link`",
    "feet.<name>.rpy": "rad, roll, pitch and yaw of the sole frame against `link`",
    "feet.<name>.side": "side of the robot",
    "feet.<name>.end": "of a robot on four legs",
    "feet.<name>.corners": "m, x and y of the sole's corners in its frame",
    "feet.<name>.size": "m, length and width of a sole that is a rectangle around its frame; in "
    "place of `corners`",
    "feet.<name>.radius": "m, of the ball of a point foot; in place of `corners`",
    "feet.<name>.center": "m, center of that ball in the frame",
    "feet.<name>.wrench": "force and torque sensor of the foot",
    "feet.<name>.wrench.topic": "of its geometry_msgs/WrenchStamped; default: NAME/wrench",
    "feet.<name>.wrench.frame": "frame that it measures in: a link, or a sole frame; default: "
    "`link` of the foot, else its name",
    "feet.<name>.wrench.sign": "1: force of the ground on the robot; -1: the reverse",
    "imu": "inertial measurement unit",
    "imu.link": "that carries it; default: the root link",
    "joint_groups": "joints by a name of your choice, e.g. left_leg",
    "joint_groups.<name>": "joints of the group",
    "posture": "in which the robot stands; joints that are not named are at 0",
    "posture.<name>": "rad or m, of the joint",
    "servo": "position servos of the simulated robot",
    "servo.default": "of joints that are not named",
    "servo.joints": "that differ",
    "servo.joints.<name>": "of the joint: keys of `default`, which has what is left out",
    "actuators": "what the drives lose between motor and joint, for identification from torques; "
    "default: as is usual for their class and size",
    "actuators.default": "of joints that are not named",
    "actuators.joints": "that differ",
    "actuators.joints.<name>": "of the joint, or of all that a pattern fits (`*_calf_joint`): "
    "keys of `default`, which has what is left out",
    "drive": "class; linkage: driven through a linkage or belt; default: by the joint's place",
    "rotor_inertia": "kg m^2, of rotor and gear, reflected to the joint",
    "rotor_inertia_std": "kg m^2, its standard deviation",
    "coulomb": "N m, friction that depends on the direction alone",
    "coulomb_std": "N m, its standard deviation",
    "viscous": "N m s/rad, friction that grows with the velocity",
    "viscous_std": "N m s/rad, its standard deviation",
    "load_friction": "friction over the torque that the drive reports (on the motor's side)",
    "load_friction_std": "its standard deviation",
    "torque_bias_std": "N m, standard deviation of the torque's bias",
    "stiffness": "N m/rad or N/m",
    "damping": "N m s/rad or N s/m",
    "armature": "kg m^2 or kg, inertia of rotor and gear, reflected to the joint",
    "effort": "N m or N, the most that it gives; default: the URDF's limit",
    "encoder": "of files that have joint positions in counts",
    "encoder.counts_per_degree": "counts of the encoders",
    "encoder.signs": "by joint",
    "encoder.signs.<name>": "of the joint",
    "walking": "steps of a walk on two legs, where neither goal nor parameter says otherwise",
    "walking.step_width": "m, distance of the feet's frames across the walk",
    "walking.step_length": "m, by which each foot passes the other",
    "walking.step_height": "m, of the swing foot",
    "walking.step_time": "s, of a step with one foot in the air",
    "walking.com_height": "m, of the CoM over the soles",
    "trot": "a trot, where no parameter says otherwise",
    "trot.frequency": "1/s, periods of the gait",
    "trot.step_height": "m, of the swing feet",
    "trot.body_height": "m, of the hips over the ground",
}


class Recorder(Section):
    """A section without keys that notes what is asked of it, as a JSON schema."""

    def __init__(self, path: str = "") -> None:
        super().__init__({}, "schema", path)
        self.schema: dict[str, Any] = {"type": "object", "additionalProperties": False}
        self.properties: dict[str, Any] = {}
        self.schema["properties"] = self.properties

    def entries(self) -> list[str]:
        return [NAMED]

    def section(self, key: str) -> Recorder:
        child = Recorder(f"{self.path}.{key}" if self.path else key)
        self._note(key, child.schema)
        return child

    def text(self, key: str, default: Any, valid: tuple[str, ...] = ()) -> Any:
        self._note(key, {"type": "string"} | ({"enum": list(valid)} if valid else {}))
        return default or ("robot" if key == "name" else default)

    def number(self, key: str, default: Any, least: float = -math.inf) -> Any:
        bound = {"minimum": least} if least > -math.inf else {}
        self._note(key, {"type": "number"} | bound, default)
        return default

    def sign(self, key: str, default: Any) -> Any:
        self._note(key, {"enum": [1, -1]}, default)
        return default

    def rows(self, key: str, width: int) -> list[list[float]]:
        self._note(key, {"type": "array", "items": _vector(width)})
        return []

    def vector(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        self._note(key, _vector(len(default)), list(default) if key != "size" else None)
        return default

    def names(self, key: str) -> tuple[str, ...]:
        self._note(
            key, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        )
        return ()

    def _note(self, key: str, schema: dict[str, Any], default: Any = None) -> None:
        path = f"{self.path}.{key}" if self.path else key
        schema["description"] = MEANING[_meaning(path)]
        if default is not None and not (key == "radius" or path.startswith("posture")):
            schema["default"] = default
        if key == NAMED:
            self.schema["additionalProperties"] = schema
        else:
            self.properties[key] = schema


def _meaning(path: str) -> str:
    """The key of MEANING for a path; gains mean the same wherever they are."""
    return path if path in MEANING else path.rpartition(".")[2]


def _vector(count: int) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"type": "number"},
        "minItems": count,
        "maxItems": count,
    }


def make_schema() -> dict[str, Any]:
    """The JSON schema of robot.yaml."""
    top = Recorder()
    config_of(top, Path())
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "robot.yaml",
    }
    return head | top.schema | {"required": ["name"]}


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if schema["type"] == "array":
        items = schema["items"]
        many = f"{schema['minItems']} " if "minItems" in schema else ""
        if items["type"] == "array":
            return f"rows of {items['minItems']} numbers"
        return f"{many}numbers" if items["type"] == "number" else "names"
    return {"string": "text", "number": "number"}[schema["type"]]


def _lines(schema: dict[str, Any], path: str = "") -> list[str]:
    """Key, type (default) and meaning of all keys below a path, indented as in YAML."""
    lines = []
    children = dict(schema.get("properties", {}))
    if schema.get("additionalProperties"):
        children[NAMED] = schema["additionalProperties"]
    order = list(MEANING)
    names = {f"{path}.{key}" if path else key: child for key, child in children.items()}
    for name, child in sorted(
        names.items(), key=lambda item: order.index(_meaning(item[0]))
    ):
        default = f" ({child['default']})" if "default" in child else ""
        of_joint = name.endswith(".joints.<name>")  # its keys are those of "default"
        type_ = "" if child.get("type") == "object" else f" {_type(child)}{default}"
        indent, key = name.count(".") * "  ", name.rpartition(".")[2]
        lines.append(f"{indent}{key}:{type_}".ljust(40) + f"  # {child['description']}")
        if child.get("type") == "object" and not of_joint:
            lines += _lines(child, name)
    return lines


def make_page() -> str:
    """The page as it is, with the list of all keys made again."""
    head = (DOCS / "configuration.md").read_text().partition(LIST)[0]
    said = "Made by `tools/in_env python tools/configuration_page.py`: type (default), meaning."
    block = "\n".join(_lines(make_schema()))
    return f"{head}{LIST}\n{said}\n\n```text\n{block}\n```\n"


def files() -> dict[Path, str]:
    """What is to be in the files."""
    schema = json.dumps(make_schema(), indent=2) + "\n"
    return {DOCS / "configuration.md": make_page(), DOCS / "robot.schema.json": schema}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
