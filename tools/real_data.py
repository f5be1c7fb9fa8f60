"""Runs the identification on public recordings of real robots, which are not part of the project.

    tools/in_env python tools/real_data.py go2 --source FOLDER

FOLDER has NAME_state.csv, NAME_state.csv.gz or NAME/state_history.csv for each run, and a file with
imu in place of state beside those with an IMU; docs/real_data.md says where they come from, and
what the figures mean. The last line is
one JSON object: runs (by name: verdict, mass_kg, mass_std, com_mm, com_std_mm of the trunk,
payload_alarms, reasons), spread_mass_kg of the runs, halves_sigma and heldout of the runs with an
IMU: the largest difference of first and second half over its standard deviation, and residual
forces in N with the URDF's masses and friction fitted, and as the verdict says.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from com_bags import (
    Bag,
    LogFormat,
    SensorReader,
    TopicRequest,
    WalkLog,
    find_topics,
    read_walk,
)
from com_bags.channels import IMU
from com_estimation.commands.trunk_bag import estimates
from com_identification.walking.combination import judge_walk
from com_model import ComModelError, RobotConfig, RobotModel, load_robot

MAPPINGS = Path(__file__).resolve().parent / "real_data"
GO2 = (
    "git clone -b feature/sim-to-real-diff https://github.com/Optimal-Robotics-Lab/unitree-go2, "
    "then --source its data/{}, as docs/real_data.md says"
)
ROBOTS = {"go2": "go2", "go2-resampled": "go2"}
"""Data sets with a mapping, and their robots."""
ELSEWHERE = {
    "go2": GO2.format("bags"),
    "go2-resampled": GO2.format("processed"),
    "go2py": "https://github.com/Rooholla-KhorramBakht/Go2Py has programs and no recordings",
    "spot": "git clone https://github.com/ShahramKhorshidi/system_identification",
    "go1": "https://github.com/mrsp/serow has one without torques, whose feet are not in N",
} | dict.fromkeys(
    ("icub", "g1", "hyq"),
    "no public source is known to this tool; give a recording to identify --use walk --mapping",
)


def runs(folder: Path) -> dict[str, Path]:
    """Files of joint states by the name of the run."""
    patterns = "*_state.csv", "*_state.csv.gz", "*/*state_history.csv"
    found = sorted(path for pattern in patterns for path in folder.glob(pattern))
    names = [str(path.relative_to(folder)) for path in found]
    return {
        re.split("[/_]?state", name)[0]: path
        for name, path in zip(names, found, strict=True)
    }


def mapping_of(name: str, state: Path) -> dict[str, Any]:
    """The mapping of a data set for one run: without IMU where there is no file of it."""
    mapping: dict[str, Any] = yaml.safe_load((MAPPINGS / f"{name}.yaml").read_text())
    table = state.with_name(state.name.replace("state", "imu"))
    if table.exists():
        mapping["imu"]["table"] = table.name
    else:
        del mapping["imu"]
    return mapping


def format_of(
    mapping: dict[str, Any], path: Path, model: RobotModel, config: RobotConfig
) -> LogFormat:
    """What the columns of a run mean; the mapping is written to a path."""
    path.write_text(yaml.safe_dump(mapping))
    options = argparse.Namespace(mapping=str(path), format=None, definitions=None)
    return LogFormat.of(model, config.feet, options)


def read(
    state: Path, about: LogFormat, model: RobotModel, config: RobotConfig
) -> WalkLog:
    """A run."""
    with Bag(state, about) as bag:
        imu = any(topic.type_name == IMU for topic in bag.topics())
        topics = find_topics(bag.topics(), (), TopicRequest(), imu, str(state))
        link = config.imu_link if imu else None
        return read_walk(SensorReader(bag, model, (), topics, link))


def alarms(
    state: Path, about: LogFormat, model: RobotModel, config: RobotConfig
) -> int:
    """How often the trunk estimator reports a change of the payload, which is constant.

    Without an IMU it does not run: 0.
    """
    changes = {
        e.payload_changed_at for e in estimates(str(state), model, config, about)
    }
    return sum(bool(np.isfinite(time)) for time in changes)


def judge(
    name: str, state: Path, model: RobotModel, config: RobotConfig
) -> tuple[dict[str, Any], float | None, tuple[float, float] | None]:
    """Figures of a run, halves over their standard deviation, and held-out residuals."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            mapping = mapping_of(name, state)
            about = format_of(mapping, Path(folder) / "mapping.yaml", model, config)
            log = read(state, about, model, config)
            evidence = judge_walk([log], model, config).evidence
            count = alarms(state, about, model, config) if log.has_imu else 0
    except ComModelError as error:
        return {"verdict": "not good enough", "reasons": [str(error)]}, None, None
    if evidence is None:
        return (
            {"verdict": "not good enough", "reasons": ["legs with few joints"]},
            None,
            None,
        )
    com, std = (
        None if v is None else np.round(1e3 * v, 1).tolist()
        for v in (evidence.com, evidence.com_std)
    )
    figures = {
        "verdict": evidence.verdict.value,
        "mass_kg": round(evidence.mass, 2),
        "mass_std": round(evidence.mass_std, 2),
        "com_mm": com,
        "com_std_mm": std,
        "payload_alarms": count,
        "reasons": [*evidence.reasons, *evidence.notes],
    }
    return figures, evidence.halves, evidence.held_out


def main(words: list[str] | None = None) -> int:
    """Runs the command line; 2 where the data are not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", choices=ELSEWHERE, help="of the data set")
    parser.add_argument("--source", type=Path, help="folder of the recordings")
    options = parser.parse_args(words)
    known = options.source and options.name in ROBOTS
    if not (found := runs(options.source) if known else {}):
        get = ELSEWHERE[options.name]
        print(
            f"real_data: no recordings of {options.name} here: {get}", file=sys.stderr
        )
        return 2
    model, config = load_robot(ROBOTS[options.name])
    results: dict[str, Any] = {}
    halves: list[float] = []
    residuals: list[tuple[float, float]] = []
    for run, state in found.items():
        results[run], half, held_out = judge(options.name, state, model, config)
        halves += [half] if half is not None else []
        residuals += [held_out] if held_out is not None else []
        own = results[run]
        print(f"{run}: {own['verdict']}", *own["reasons"], sep="\n  ", flush=True)
    masses = [own["mass_kg"] for own in results.values() if "mass_kg" in own]
    mean = np.mean(residuals, axis=0).round(2).tolist() if residuals else [None, None]
    print(
        json.dumps(
            {
                "runs": results,
                "spread_mass_kg": round(max(masses) - min(masses), 2)
                if masses
                else None,
                "halves_sigma": round(max(halves), 2) if halves else None,
                "heldout": dict(
                    zip(("urdf_friction", "identified"), mean, strict=True)
                ),
            }
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
