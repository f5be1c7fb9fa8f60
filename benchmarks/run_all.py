"""Runs benchmarks one after the other and stores the last line of each in results/.

  tools/in_env python benchmarks/run_all.py                      all of them (make bench)
  tools/in_env python benchmarks/run_all.py sesc_speed workspace only these
  tools/in_env python benchmarks/run_all.py trot_accuracy -- --full

results/NAME.json holds the benchmark's JSON object under "figures", with the commit, whether the
tree had changes that are not committed, the date, the options and the seconds that it took. A
benchmark that fails leaves its old result, and the others still run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
ALL = (
    "sesc_accuracy",
    "sesc_speed",
    "node_latency",
    "trot_figures",
    "trot_accuracy",
    "trot_honesty",
    "trot_alarms",
    "trot_robots",
    "trot_feedback",
    "foot_forces",
    "identification_accuracy",
    "identification_honesty",
    "undetermined_bodies",
    "real_formats",
    "log_formats",
    "human",
    "bag_identification",
    "walking_identification",
    "walking_identification_baselines",
    "slow_identification",
    "checkup",
    "randomisation",
    "health",
    "versus",
    "fleet",
    "fleet_simulation",
    "com_ik_speed",
    "ccgd_walk",
    "humanoid_walk",
    "closed_loop",
    "walk_robustness",
    "walk_faults",
    "walk_velocity",
    "diagnosis",
    "diagnosis_baselines",
    "diagnose_demo",
    "com_balance",
    "balance_faults",
    "trot_faults",
    "posture_protocol",
    "motion_lab",
    "workspace",
    "paper_claims",
    "any_robot",
    "audit_models",
    "cold_starts",
    "ctrl_c",
    "viewer",
    "faults",
    "fuzz",
    "fuzz_services",
    "live_parameters",
    "kill",
    "soak",
)
ON_REQUEST = ("real_go2",)  # what they read is not in the project


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if a benchmark failed."""
    arguments = list(sys.argv[1:] if words is None else words)
    options: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, options = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"default: {' '.join(ALL)}"
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="folder of the results"
    )
    chosen = parser.parse_args(arguments)
    valid = (*ALL, *ON_REQUEST)
    if unknown := sorted(set(chosen.names) - set(valid)):
        parser.error(f"unknown: {', '.join(unknown)}; valid names: {', '.join(valid)}")
    failed = [
        name
        for name in chosen.names or ALL
        if not run_one(name, options, chosen.results)
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run_one(name: str, options: Sequence[str], results: Path) -> bool:
    """Run a benchmark and store its figures; return whether it succeeded."""
    print(f"\n=== {name} {' '.join(options)}", flush=True)
    begin = time.monotonic()
    sources = {  # as they are loaded, whatever is committed meanwhile
        "commit": _git("rev-parse", "--short", "HEAD"),
        "uncommitted_changes": bool(
            _git("status", "--porcelain", "--", "src", "benchmarks/*.py")
        ),
    }
    command = [sys.executable, str(FOLDER / f"{name}.py"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        last = ""
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line if line.strip() else last
    if process.returncode:
        print(f"{name}: exit code {process.returncode}", file=sys.stderr)
        return False
    try:
        figures = json.loads(last)
    except json.JSONDecodeError:
        print(
            f"{name}: its last line is no JSON object: {last[:200]!r}", file=sys.stderr
        )
        return False
    record = {
        **sources,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "options": list(options),
        "seconds": round(time.monotonic() - begin, 1),
        "figures": figures,
    }
    _store(results / f"{name}.json", record)
    return True


def _store(path: Path, record: dict[str, object]) -> None:
    """Write a result whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def _git(*words: str) -> str:
    """Return what git says of this checkout; "" where there is no git."""
    done = subprocess.run(
        ["git", "-C", str(FOLDER), *words], capture_output=True, text=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
