"""The audit on public models: what it finds of them as they are, and of errors that are planted.

  tools/in_env python benchmarks/audit_models.py              the URDFs of example-robot-data
  tools/in_env python benchmarks/audit_models.py DIR          all URDFs and MJCFs below a folder

Into the first model of each folder that loads and whose heaviest link has a shape, one error of
each kind is planted: a mass 40 times as large, one inertia and all inertias in kg mm^2, all masses
in g, a root without mass.

The last line is one JSON object: models (that load), flagged (with a finding on sizes, copies,
placeholders, mirrored inertias or limits), silent (models with a planted error that stay without
a further finding, by kind), planted (how many there were, by kind), false_flags (fraction of sound
links with such a finding as they are; those that audit_judged.yaml calls right, with the reason,
are no sound links; of other models than these it is an upper bound) and seconds (the longest
audit).
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml
from example_robots import example_urdfs
from rich.console import Console
from rich.table import Table

from com_model import AuditReport, RobotModel, audit
from com_model.exceptions import ComModelError
from com_model.urdf.editing import Inertial, edit_inertials

NEW = re.compile(
    "kg/m\\^3|inertia is that of|ball of steel|inertias are [0-9]*% from mirroring"
    "|count twice|placeholder|no shape and|shape but no mass|turn more than twice|are in k?g"
)
"""What messages of these checks contain."""
JUDGED = Path(__file__).with_name("audit_judged.yaml")


def main() -> None:
    """Prints what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, help="default: example-robot-data"
    )
    folder = parser.parse_args().folder
    paths = list(example_urdfs().values()) if folder is None else sorted(_files(folder))
    table = Table("model", "links", "flagged", "findings", "s")
    models = flagged = sound = false = 0
    folders = set[Path]()
    silent, planted, longest = Counter[str](), Counter[str](), 0.0
    for path in paths:
        try:
            model = RobotModel.from_file(path)
        except ComModelError:
            continue
        begin = time.perf_counter()
        report = audit(path)
        lasts = time.perf_counter() - begin
        found = findings(report)
        own = flagged_links(model, found)
        right = judged_right(path, own)
        models, flagged = models + 1, flagged + bool(found)
        sound, false = sound + model.n_links - len(right), false + len(own - right)
        longest = max(longest, lasts)
        table.add_row(
            path.stem,
            str(model.n_links),
            str(len(own)),
            "\n".join(found[:3]),
            f"{lasts:.1f}",
        )
        first = path.parent not in folders
        folders.add(path.parent)
        for kind, other in plant(model) if first else ():
            planted[kind] += 1
            silent[kind] += set(findings(audit(other))) <= set(found)
    Console(width=150).print(table)
    print(
        json.dumps(
            {
                "models": models,
                "flagged": flagged,
                "silent": dict(silent),
                "planted": dict(planted),
                "false_flags": round(false / max(1, sound), 4),
                "seconds": round(longest, 1),
            }
        )
    )


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix == ".urdf" or (
            path.suffix == ".xml" and b"<mujoco" in path.read_bytes()[:4000]
        ):
            yield path


def findings(report: AuditReport) -> list[str]:
    """Lists the findings of these checks, as text."""
    texts = (f"{i.element}: {i.message} {i.fix}" for i in report.issues)
    return [text for text in texts if NEW.search(text)]


def flagged_links(model: RobotModel, found: list[str]) -> set[str]:
    """Names of the links that findings name.

    Args:
        model: the robot.
        found: the findings.
    """
    said = {repr(name): name for name in model.link_names}
    return {name for quoted, name in said.items() if any(quoted in t for t in found)}


def judged_right(path: Path, links: set[str]) -> set[str]:
    """Those of some flagged links whose finding was judged to be right, by hand.

    Args:
        path: of the model.
        links: names.
    """
    patterns = [
        row["links"]
        for row in yaml.safe_load(JUDGED.read_text())
        if re.search(row["model"], str(path))
    ]
    return {name for name in links if any(re.fullmatch(p, name) for p in patterns)}


def plant(model: RobotModel) -> Iterator[tuple[str, RobotModel]]:
    """Plants errors into the heaviest links, one kind after the other.

    Args:
        model: as it is.
    """
    inertials = {
        name: Inertial(mass, com, inertia)
        for name, mass, com, inertia in zip(
            model.link_names,
            model.link_masses,
            model.link_coms,
            model.link_inertias,
            strict=True,
        )
        if mass > 0.0 and np.abs(inertia).max() > 0.0
    }
    heaviest = sorted(inertials, key=lambda name: -inertials[name].mass)[:1]
    if not heaviest or _size(model, heaviest[0]) is None:
        return
    one = {name: inertials[name] for name in heaviest}
    for kind, chosen, mass, inertia in (
        ("mass", one, 40.0, 40.0),
        ("inertia", one, 1.0, 1e6),
        ("masses in g", inertials, 1e3, 1.0),
        ("inertias in kg mm^2", inertials, 1.0, 1e6),
    ):
        changed = {
            name: Inertial(mass * own.mass, own.com, inertia * own.inertia)
            for name, own in chosen.items()
        }
        yield kind, _edited(model, changed)
    zero = Inertial(0.0, np.zeros(3), np.zeros((3, 3)))
    if model.root_link == heaviest[0] and len(inertials) > 1:
        yield "root without mass", _edited(model, {heaviest[0]: zero})


def _size(model: RobotModel, link: str) -> object:
    from com_model.shapes.urdf_shapes import ShapeReader

    return ShapeReader(model.xml, model.path).bounds(link, meshes=True)


def _edited(model: RobotModel, inertials: dict[str, Inertial]) -> RobotModel:
    """The model with other inertials, and the same meshes."""
    other = RobotModel.from_urdf(edit_inertials(model.xml, inertials), model.frames)
    return replace(other, path=model.path)


if __name__ == "__main__":
    main()
