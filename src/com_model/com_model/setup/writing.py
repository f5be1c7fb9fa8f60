"""The configuration file of a robot: YAML with comments, and its update that keeps edits."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.exceptions import listing
from com_model.setup.gains import BANDWIDTH, DAMPING_RATIO, SAG_RATIO
from com_model.setup.parts import QUADRUPED, FootSetup, RobotSetup
from com_model.strict_yaml import read_yaml

_AMOUNT = re.compile(r"(?<=: )([\d.]+)(.*)\[(\w+)\]")  # 0.1  # of ... ([unit] mm)
_COMMENTS = read_yaml(Path(__file__).with_name("comments.yaml"))


def to_data(setup: RobotSetup) -> dict[str, Any]:
    """The configuration as plain numbers, texts, lists and dictionaries."""
    model, gains = setup.model, setup.gains
    servo = {
        name: {key: float(values[i]) for key, values in gains._asdict().items()}
        for i, name in enumerate(model.joint_names)
    }
    data: dict[str, Any] = {
        "name": setup.name,
        "urdf": setup.urdf,
        "kind": setup.limbs.kind,
        "root_link": model.root_link,
        "trunk": setup.trunk_link,
        "feet": {foot.name: _foot(foot) for foot in setup.feet},
        "imu": {"link": setup.imu.link} if setup.imu.link else {},
        "joint_groups": {
            name: list(joints) for name, joints in setup.limbs.groups.items()
        },
        "posture": {
            name: round(float(setup.standing.q[i]), 4)
            for i, name in enumerate(model.joint_names)
            if abs(setup.standing.q[i]) >= 5e-5
        },
        "servo": {"joints": servo},
        **setup.gait,
    }
    return {key: value for key, value in data.items() if value not in ({}, "")}


def to_yaml(setup: RobotSetup, kept: Mapping[str, Any] | None = None) -> str:
    """Writes the configuration with comments.

    Args:
        setup: What was found of the robot.
        kept: Content of an older file: its values stay where they differ, its unknown keys come at
            the end.

    Returns:
        YAML.
    """
    data = _merged(to_data(setup), kept or {})
    issues: dict[str, list[str]] = {}
    for key, issue in setup.issues:
        issues.setdefault(key.split(".")[0], []).append(f"{key}: {issue}")
    lines = [_heading(setup)]
    for key, value in data.items():
        comment = _COMMENTS.get(key, "").format(
            bend=f"{np.degrees(setup.standing.bend):.0f}",
            margin=f"{1e3 * setup.margin:.0f}",
            com=f"{setup.standing.com[2] - setup.standing.ground:.3f}",
            bandwidth=f"{BANDWIDTH:g}",
            ratio=f"{DAMPING_RATIO:g}",
            sag=f"{1.0 / SAG_RATIO:.2f}",
        )
        lines += [""] * bool(comment)
        lines += [f"# {line}" for line in comment.splitlines()]
        lines += [f"# CHECK {line}" for line in issues.get(key, [])]
        lines += _dump(key, value)
    if "imu" not in data:
        lines += [
            "",
            "# CHECK imu: the URDF names no IMU on the trunk. The link whose frame is",
        ]
        lines += ["# that of the IMU's data:", "# imu: {link: imu_link}"]
    return "\n".join([*lines, "", *_priors(setup)]) + "\n"


def _priors(setup: RobotSetup) -> list[str]:
    """What the estimators do not know of any robot, with the values of this one, as a comment."""
    model, standing = setup.model, setup.standing
    hips = np.array([standing.p[foot.leg.bodies[0]] for foot in setup.feet])
    parts = ["priors", "trunk_priors"][: 1 + (setup.limbs.kind == QUADRUPED)]
    W, heaviest = GRAVITY * model.mass, model.bodies.mass.max()
    leg = hips[:, 2].mean() - standing.ground
    soles = [
        np.ptp(foot.sole.corners, axis=0).max() / 2
        for foot in setup.feet
        if foot.sole.flat
    ]
    # as com_identification assumes of points
    half = float(np.mean(soles)) if soles else 0.05
    units = {
        "W": W,
        "T": W * leg,
        "I": model.mass * leg**2,
        "L": half,
        "K": 1.0 / (W * half),
    }
    units |= {"deg": np.degrees(1.0), "kg": heaviest, "trunk": model.bodies.mass[0]}
    size = np.clip(
        1e3 * np.cbrt(heaviest / 1e3), 50.0, 200.0
    )  # mm, of water; as are the limits
    units |= {"D": np.linalg.norm(hips[0] - hips[-1]), "size": size}
    text = "\n".join(_COMMENTS[part] for part in parts)
    text = _AMOUNT.sub(lambda m: f"{m[1]}{m[2]}{float(m[1]) * units[m[3]]:.2g}", text)
    return [f"# {line}".rstrip() for line in text.splitlines()]


def _heading(setup: RobotSetup) -> str:
    model, legs = setup.model, len(setup.limbs.legs)
    return (
        f"# {model.name}: {model.n_joints} joints, {legs} legs, {model.mass:.1f} kg. SI units.\n"
        f"# Written from {setup.urdf or 'its description'} by com_setup; lines marked CHECK are\n"
        "# guesses. com_setup --update keeps what is edited here."
    )


def _foot(foot: FootSetup) -> dict[str, Any]:
    sole = foot.sole
    data: dict[str, Any] = {}
    if foot.name not in (sole.own_link, sole.link):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # gimbal lock: one of many solutions is taken
            rpy = Rotation.from_matrix(sole.R).as_euler("xyz")
        data |= {"link": sole.link, "xyz": _numbers(sole.p), "rpy": _numbers(rpy)}
    if foot.leg.side != "center":
        data["side"] = foot.leg.side
    if foot.leg.end:
        data["end"] = foot.leg.end
    if sole.flat:
        data["corners"] = [_numbers(corner) for corner in sole.corners]
    elif sole.radius:
        data["radius"] = round(sole.radius, 4)
        if not sole.own_link:
            data["center"] = _numbers(sole.p)
    data["wrench"] = {
        "topic": f"{foot.name}/wrench",
        "frame": foot.wrench.link,
        "sign": 1,
    }
    return data


def _numbers(values: Array) -> list[float]:
    return [float(v) + 0.0 for v in np.round(values, 4)]


def _merged(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """New values with those of an older file in their place; of dictionaries, key by key.

    Feet that have other names in the older file stay as they are there.
    """
    result = dict(new)
    shaped = _SHAPE & set(old)
    for key in _SHAPE if shaped else ():
        result.pop(key, None)
    for key, value in old.items():
        found = new.get(key)
        if isinstance(value, Mapping) and isinstance(found, Mapping):
            renamed = key == "feet" and not set(value) <= set(found)
            result[key] = dict(value) if renamed else _merged(found, value)
        elif value is not None:
            result[key] = value
    return result


_SHAPE = {"corners", "size", "radius", "center"}  # of a foot, taken together


def _dump(key: str, value: Any) -> list[str]:
    """A top-level key; what holds no lists or dictionaries is on one line."""
    style = None if isinstance(value, Mapping) and key != "posture" else False
    options: dict[str, Any] = {
        "default_flow_style": style,
        "sort_keys": False,
        "width": 98,
    }
    return yaml.safe_dump({key: value}, allow_unicode=True, **options).splitlines()


def summary(setup: RobotSetup) -> str:
    """A table of what was found, one line each."""
    model, limbs, standing = setup.model, setup.limbs, setup.standing
    rows = [
        ("kind", f"{limbs.kind}, {len(limbs.legs)} legs"),
        ("root, trunk", f"{model.root_link}, {setup.trunk_link}"),
        ("mass", f"{model.mass:.2f} kg, {model.n_joints} joints"),
    ]
    rows += [
        (name, f"{len(j)} joints: {listing(j, 3)}") for name, j in limbs.groups.items()
    ]
    for foot in setup.feet:
        sole = foot.sole
        if sole.flat:
            length, width = 1e3 * np.ptp(sole.corners, axis=0)
            shape = f"sole {length:.0f} x {width:.0f} mm, {len(sole.corners)} corners"
        else:
            shape = f"ball of {1e3 * sole.radius:.1f} mm"
        side = " ".join(word for word in (foot.leg.side, foot.leg.end) if word)
        rows.append((foot.name, f"{side}: {shape}, on {sole.own_link or sole.link}"))
    posture = f"CoM {standing.com[2] - standing.ground:.3f} m high, {1e3 * setup.margin:.0f} mm "
    posture += f"inside the support, knees at {np.degrees(standing.bend):.0f} deg"
    rows += [("IMU", setup.imu.link or "not found"), ("posture", posture)]
    for name, sizes in setup.gait.items():
        rows.append(
            (name, ", ".join(f"{key} {value:g}" for key, value in sizes.items()))
        )
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)


def lines_to_check(setup: RobotSetup, text: str) -> list[str]:
    """Lists what is unsure, each with the line of the file to edit: "line 12: what".

    Args:
        setup: What was found of the robot.
        text: The file.
    """
    lines = text.splitlines()
    found = []
    for key, issue in setup.issues:
        *_, last = key.removesuffix(".wrench").split(".")
        starts = (f"{last}:", f"  {last}:", f"# {last}:")
        line = next((i for i, row in enumerate(lines, 1) if row.startswith(starts)), 1)
        if key.endswith(".wrench"):
            own = (
                i for i, row in enumerate(lines[line:], line + 1) if "wrench:" in row
            )
            line = next(own, line)
        found.append(f"line {line}, {key}: {issue}")
    return found
