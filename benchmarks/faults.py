"""What the nodes do when their robot's drivers send nonsense.

    tools/in_env python benchmarks/faults.py [--full] [--nodes NODE ...] [--only stamp]

Each node runs as the installed program, on a robot in MuJoCo (trunk_estimator: on the log of a
trot). It stands at least fifty faults: all of the topics that only it listens to (fault_inputs.py),
and others of the drivers (fault_cases.py; with --full all of them). Where it can be idle, that is
asked to do nothing, every other one comes while it is; with --full each comes twice, active and
idle. After each fault the robot is healthy again and the node must recover.

The last line is one JSON object:
    nodes, faults       how many nodes, and how many faults all of them had, active and idle
    crashes             a node ended
    tracebacks          in a node's log
    bad_commands        faults with a command that is not finite, beyond limits, or jumps
    false_ok            faults under which the node claimed a good result that was wrong, or went on
                        moving a robot that does not follow
    unrecovered         the node did not work again within 5 s (where it must be asked to: asked;
                        ccgd_gait 15 s: it stops its walk, is set up, asked, plans and approaches;
                        posture_tour and tip_ramp 60 s: they end, and are started again)
    recovery_s          median and largest time until it did
    falls               faults under which, or after which, the robot fell, also when tried once
                        more: on a busy machine commands come late, whatever fails
    falls_control       of windows in which nothing failed (`control` of them, every tenth), the
                        same
    wrong_reasons       faults of one sensor for which the node blames another one, also when tried
                        once more
    too_fast            faults with a command that is faster than the joints' limits; they are among
                        bad_commands, too
    by_node             the same for each node, with what happened
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools/robustness"))

# the harness is no package
from fault_cases import Fault, unchanged
from fault_inputs import TOPICS, input_faults
from fault_lab import Lab, say
from fault_nodes import CASES, Case
from processes import in_processes

from com_demos.background import free_domain_id

START_LIMIT = 300.0  # s, until a node works; kernels may be compiled
FEW = 50  # faults of each node without --full, those of the drivers evenly chosen
AFTER = 0.5  # s that a false claim may still come after a fault
CONTROL = Fault("control", unchanged)


@dataclass
class Tally:
    """What happened to one node."""

    node: str
    faults: int = 0
    idle: int = 0
    crashes: list[str] = field(default_factory=list)
    tracebacks: int = 0
    bad_commands: list[str] = field(default_factory=list)
    false_ok: list[str] = field(default_factory=list)
    unrecovered: list[str] = field(default_factory=list)
    recovery: list[float] = field(default_factory=list)
    control: int = 0
    falls: list[str] = field(default_factory=list)
    falls_control: int = 0
    wrong_reasons: list[str] = field(default_factory=list)
    not_repeated: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def bad_faults(self, how: str = "") -> set[str]:
        """Faults under which, or after which, a command was bad in a way that has these words."""
        return {
            text.rpartition(": ")[0].removeprefix("after ")
            for text in self.bad_commands
            if how in text
        }


class NotWorkingError(Exception):
    """A node that cannot be brought to work."""


def try_node(job: tuple[str, bool, str]) -> Tally:
    """Run one node through its faults."""
    name, full, only = job
    os.environ["ROS_DOMAIN_ID"] = str(free_domain_id())
    case = next(kind for kind in CASES if kind.node == name)()
    tally, begin = Tally(name), time.monotonic()
    chosen, inputs = (
        [f for f in s if only in f.name] for s in (case.faults(), input_faults(name))
    )
    few = max(FEW - len(inputs), FEW // 2)
    if not full and len(chosen) > few:
        chosen = [chosen[i * len(chosen) // few] for i in range(few)]
    chosen += inputs
    with tempfile.TemporaryDirectory() as folder:
        command = (case.package, case.node, *case.words)
        lab = Lab(
            case.robot(),
            command,
            case.parameters(Path(folder)),
            case.outputs,
            Path(folder),
        )
        for topic, kind in TOPICS.get(name, {}).items():
            lab.add_publisher(topic, kind, topic)
        case.prepare(lab)
        try:
            wait_until_it_works(case, lab)
            turns = 2 if case.can_idle and not full else 1
            for active in (True, False) if case.can_idle else (True,):
                if not active:
                    case.deactivate(lab)
                for index in range(0 if active else turns - 1, len(chosen), turns):
                    if tally.faults % 10 == 0:
                        try_repeatedly(case, lab, CONTROL, index, active, tally)
                    try_repeatedly(case, lab, chosen[index], index, active, tally)
        except NotWorkingError as error:
            tally.unrecovered.append(f"{lab.fault}: {error}")
        finally:
            lab.close()
            text = lab.log_text()
            keep = os.environ.get("FAULTS_LOGS")
            if keep:
                (Path(keep) / f"{name}.log").write_text(text)
    tally.crashes = lab.crashes
    tally.tracebacks = text.count("Traceback (most recent call last)")
    tally.bad_commands = sorted(
        {b.rpartition(": ")[0]: b for b in lab.checks.bad}.values()
    )
    tally.seconds = round(time.monotonic() - begin, 1)
    return tally


def wait_until_it_works(case: Case, lab: Lab) -> None:
    """Wait for a node that may compile its kernels first."""
    end = lab.now_s + START_LIMIT
    while not case.works(lab):
        if lab.now_s > end or lab.process.poll() is not None:
            raise NotWorkingError(
                f"{case.node} does not work: {lab.log_text()[-1000:]}"
            )
        case.activate(lab)
        lab.run(1.0)


def try_repeatedly(
    case: Case, lab: Lab, fault: Fault, index: int, active: bool, tally: Tally
) -> None:
    """Try one fault; once more, where the robot fell or a wrong reason was given."""
    if fault is CONTROL:
        tally.control += 1
    else:
        tally.faults += 1
        tally.idle += not active
    fell, blamed = try_fault(case, lab, fault, index, active, tally)
    if not (fell or blamed):
        return
    again, blamed_again = try_fault(case, lab, fault, index, active, tally)
    if fell and again:
        tally.falls_control += fault is CONTROL
        tally.falls += [fault.name] * (fault is not CONTROL)
    if blamed and blamed_again:
        tally.wrong_reasons.append(f"{fault.name}: {blamed}")
    if fell and not again:
        tally.not_repeated.append(f"{fault.name}: the robot fell")
    if blamed and not blamed_again:
        tally.not_repeated.append(f"{fault.name}: {blamed}")


def try_fault(
    case: Case, lab: Lab, fault: Fault, index: int, active: bool, tally: Tally
) -> tuple[bool, str]:
    """Try one fault and wait until the node works again.

    Returns whether the robot fell, and the first wrong reason or "".
    """
    lab.falls.clear()
    false: list[str] = []
    blamed: list[str] = []

    def on_output(topic: str, msg: Any) -> None:
        claim = case.false_claim(lab, fault, topic, msg) if fault.visible else ""
        if claim:
            false.append(claim)
        reason = getattr(msg, "reason", "")
        if fault.is_wrong_reason(reason):
            blamed.append(reason)

    lab.on_output = on_output
    if active:
        case.begin(lab, fault)
    lab.inject(fault, index)
    claim = case.after(lab, fault) if active else ""
    lab.run(AFTER)
    lab.on_output = lambda _topic, _msg: None
    if claim or false:
        tally.false_ok.append(f"{fault.name}: {claim or false[0]}")
        say(f"{tally.node}: {tally.false_ok[-1]}")
    begin = time.monotonic()
    lab.fault = f"after {fault.name}"
    lab.outputs.clear()
    if not recovers(case, lab, active):
        tally.unrecovered.append(fault.name)
        say(f"{tally.node}: not recovered from {fault.name}")
    elif not fault.parameters:
        tally.recovery.append(time.monotonic() - begin + AFTER)
    if not active and not case.is_idle(lab):
        tally.false_ok.append(f"{fault.name}: works although nobody asked")
        say(f"{tally.node}: {tally.false_ok[-1]}")
        case.deactivate(lab)
    lab.fault = "no fault"
    return bool(lab.falls), next(iter(blamed), "")


def recovers(case: Case, lab: Lab, active: bool) -> bool:
    """Whether the node works within its limit; otherwise the program is restarted."""
    end = lab.now_s + case.recovery_limit
    crashed = not lab.look_after_node()
    if not active and not crashed:
        lab.diagnosed = 0
        return lab.run(case.recovery_limit, lambda: lab.diagnosed > 0)
    first = True
    while lab.now_s < end and not crashed:
        if lab.run(0.3 if first else 0.5, lambda: case.works(lab)):
            return True
        if lab.robot.fallen:
            lab.restart_robot()
        case.activate(lab)
        first, crashed = False, not lab.look_after_node()
    if not crashed:
        lab.restart_node()
    lab.restart_robot()
    wait_until_it_works(case, lab)
    return False


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    names = [case.node for case in CASES]
    parser.add_argument(
        "--full", action="store_true", help="all faults, active and idle"
    )
    parser.add_argument(
        "--nodes", nargs="+", default=names, choices=names, metavar="NODE"
    )
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--processes", type=int, default=2, help="nodes at a time")
    options = parser.parse_args()
    jobs = [(name, options.full, options.only) for name in options.nodes]
    tallies = in_processes(try_node, jobs, "nodes", options.processes)
    for tally in tallies:
        describe(tally)
    times = sorted(t for tally in tallies for t in tally.recovery)
    result = {
        "nodes": len(tallies),
        "faults": sum(tally.faults for tally in tallies),
        "crashes": sum(len(tally.crashes) for tally in tallies),
        "tracebacks": sum(tally.tracebacks for tally in tallies),
        "bad_commands": sum(len(t.bad_faults()) for t in tallies),
        "false_ok": sum(len(tally.false_ok) for tally in tallies),
        "unrecovered": sum(len(tally.unrecovered) for tally in tallies),
        "recovery_s": [round(float(np.median(times)), 2), round(times[-1], 2)]
        if times
        else None,
        "control": sum(tally.control for tally in tallies),
        "falls": sum(len(tally.falls) for tally in tallies),
        "falls_control": sum(tally.falls_control for tally in tallies),
        "wrong_reasons": sum(len(tally.wrong_reasons) for tally in tallies),
        "too_fast": sum(len(tally.bad_faults("jumps by")) for tally in tallies),
        "by_node": {
            tally.node: {
                key: value for key, value in vars(tally).items() if key != "recovery"
            }
            for tally in tallies
        },
    }
    print(json.dumps(result), flush=True)
    return 0


def describe(tally: Tally) -> None:
    """A few lines for people."""
    say(f"{tally.node}: {tally.faults} faults in {tally.seconds:.0f} s, "
        f"{len(tally.crashes)} crashes, {tally.tracebacks} tracebacks")  # fmt: skip
    titles = ("crashes", "bad_commands", "false_ok", "unrecovered")
    for title in (*titles, "falls", "wrong_reasons", "not_repeated"):
        for text in getattr(tally, title):
            say(f"  {title}: {text}")


if __name__ == "__main__":
    sys.exit(main())
