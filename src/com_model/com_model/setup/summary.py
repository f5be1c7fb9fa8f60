"""What was found, as a table for the terminal, with the lines to look at."""

import numpy as np

from com_model.setup.describe import RobotSetup
from com_model.text import listing


def summary(setup: RobotSetup) -> str:
    """A table of what was found, one line each."""
    model, limbs, standing = setup.model, setup.limbs, setup.standing
    rows = [
        ("kind", f"{limbs.kind}, {len(limbs.legs)} legs"),
        ("root, trunk", f"{model.root_link}, {setup.trunk_link}"),
        ("mass", f"{model.mass:.2f} kg, {model.n_joints} joints"),
    ]
    rows += [(name, f"{len(j)} joints: {listing(j, 3)}") for name, j in limbs.groups.items()]
    for foot in setup.feet:
        sole = foot.sole
        if sole.flat:
            length, width = 1e3 * np.ptp(sole.corners, axis=0)
            shape = f"sole {length:.0f} x {width:.0f} mm, {len(sole.corners)} corners"
        else:
            shape = f"ball of {1e3 * sole.radius:.1f} mm"
        side = " ".join(word for word in (foot.leg.side, foot.leg.end) if word)
        rows.append((foot.name, f"{side}: {shape}, on {sole.own_link or sole.link}"))
    height = standing.com[2] - standing.ground
    knees = np.degrees(standing.bend)
    rows += [
        ("IMU", setup.imu.link or "not found"),
        (
            "posture",
            f"CoM {height:.3f} m high, {1e3 * setup.margin:.0f} mm inside the support, "
            f"knees at {knees:.0f} deg",
        ),
    ]
    for name, sizes in (("walking", setup.walking), ("trot", setup.trot)):
        if sizes:
            rows.append((name, ", ".join(f"{key} {value:g}" for key, value in sizes.items())))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)


def doubtful_lines(setup: RobotSetup, text: str) -> list[str]:
    """What is unsure, each with the line of the file to edit: "line 12: what"."""
    lines = text.splitlines()
    found = []
    for key, doubt in setup.doubts:
        *_, last = key.removesuffix(".wrench").split(".")
        starts = (f"{last}:", f"  {last}:", f"# {last}:")
        line = next((i for i, row in enumerate(lines, 1) if row.startswith(starts)), 1)
        if key.endswith(".wrench"):
            own = (i for i, row in enumerate(lines[line:], line + 1) if "wrench:" in row)
            line = next(own, line)
        found.append(f"line {line}, {key}: {doubt}")
    return found
