"""Whether a live parameter, at the ends of what it may be, lets a robot fall that moves.

    tools/in_env python benchmarks/live_parameters.py [--nodes NODE ...] [--only REGULAR EXPRESSION]

Each node that commands a robot runs as the installed program, on a robot in MuJoCo that it moves.
The node itself says which of its parameters may change meanwhile and between which bounds. Each is
set to both, to the smallest number above a bound of 0, or to each of its choices; first while the
robot moves, and then the robot is stopped and moved once more under it. Every tenth time nothing is
set: the control. A node may refuse a value, and it may stop the robot on its feet.

The last line is one JSON object:
    parameters, tried   how many, and values of them
    refused             values that a node did not accept, though within its bounds
    stopped             values under which the robot did not move at the end
    falls               of the robot under a value
    falls_control       of the robot without one, of `control` times
    bad_commands        values with a command that is not finite, beyond limits, or faster than them
    crashes, tracebacks of nodes
    by_node             the same for each node, with what happened
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import (
    Parameter,
    ParameterDescriptor,
    ParameterType,
    ParameterValue,
)
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParameters,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools/robustness"))

# the harness is no package
from fault_lab import Lab, say
from fault_nodes import MOVING, TIMEOUTS, Case
from faults import recovers, wait_until_it_works
from processes import in_processes

from com_demos.background import free_domain_id

WINDOW_S = 1.5  # for which a value is watched, twice
STOP_S = 1.0  # between them, for the robot to stop
CONTROL_EVERY = 10  # values
PATIENCE_S = 2.0  # for which a healthy robot waits for a node on a busy machine
TIMEOUT_S = 5.0  # of the node's inputs, as the robot waits for it
FIELDS = {
    ParameterType.PARAMETER_BOOL: "bool_value",
    ParameterType.PARAMETER_INTEGER: "integer_value",
    ParameterType.PARAMETER_DOUBLE: "double_value",
    ParameterType.PARAMETER_STRING: "string_value",
    ParameterType.PARAMETER_DOUBLE_ARRAY: "double_array_value",
}


@dataclass
class Tally:
    """What happened to one node."""

    case: str
    parameters: int = 0
    tried: int = 0
    control: int = 0
    falls_control: int = 0
    refused: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    falls: list[str] = field(default_factory=list)
    bad_commands: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    tracebacks: int = 0


def try_node(job: tuple[str, str]) -> Tally:
    """Tries all live parameters of a node.

    Args:
        job: Name of its case, and what the parameters' names have, a regular expression.
    """
    name, only = job
    os.environ["ROS_DOMAIN_ID"] = str(free_domain_id())
    case, tally = MOVING[name](), Tally(name)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(
            case.robot(),
            (case.package, case.node, *case.words),
            case.parameters(Path(folder)) | dict.fromkeys(TIMEOUTS, TIMEOUT_S),
            case.outputs,
            Path(folder),
            PATIENCE_S,
        )
        case.prepare(lab)
        try:
            wait_until_it_works(case, lab)
            for descriptor, default in live_parameters(lab, case.node):
                if re.search(only, descriptor.name):
                    tally.parameters += 1
                    for value in extremes(descriptor, default):
                        try_value(case, lab, descriptor.name, value, default, tally)
        finally:
            lab.close()
            text = lab.log_text()
            if keep := os.environ.get("FAULTS_LOGS"):
                (Path(keep) / f"{name}_live.log").write_text(text)
    tally.crashes = lab.crashes
    tally.tracebacks = text.count("Traceback (most recent call last)")
    tally.bad_commands = sorted(
        {b.rpartition(": ")[0]: b for b in lab.checks.bad}.values()
    )
    return tally


def live_parameters(
    lab: Lab, node: str
) -> list[tuple[ParameterDescriptor, ParameterValue]]:
    """What a node says of its parameters that may change while it runs, and their values.

    Args:
        lab: With the node.
        node: Its name.
    """

    def ask(kind: Any, **request: Any) -> Any:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
        answer = lab.call(kind, f"/{node}/{name}", kind.Request(**request), 20.0)
        if answer is None:
            raise SystemExit(f"{node} did not answer {name}")
        return answer

    names = ask(ListParameters).result.names
    described = ask(DescribeParameters, names=names).descriptors
    values = ask(GetParameters, names=names).values
    return [
        (descriptor, value)
        for descriptor, value in zip(described, values, strict=True)
        if not descriptor.read_only and any(extremes(descriptor, value))
    ]


def extremes(
    descriptor: ParameterDescriptor, default: ParameterValue
) -> Iterator[ParameterValue]:
    """The values of a parameter that are tried; none of one without bounds.

    Args:
        descriptor: Of it.
        default: Its value.
    """

    def value(number: Any, kind: int = default.type) -> ParameterValue:
        return ParameterValue(type=kind, **{FIELDS[kind]: number})

    ranges = [*descriptor.floating_point_range, *descriptor.integer_range]
    choices = re.search(r"\((\S+(?: \| \S+)+)\)$", descriptor.description)
    if default.type == ParameterType.PARAMETER_BOOL:
        yield from map(value, (False, True))
    elif default.type == ParameterType.PARAMETER_STRING and choices:
        yield from map(value, choices[1].split(" | "))
    for bounds in ranges:
        numbers = [bounds.from_value, bounds.to_value]
        if descriptor.floating_point_range and numbers[0] == 0.0:
            numbers.append(math.ulp(0.0))
        for number in numbers:
            if default.type in (
                ParameterType.PARAMETER_DOUBLE,
                ParameterType.PARAMETER_INTEGER,
            ):
                yield value(number)
            else:  # a list of two, such as of a joint's axes
                yield value([number, number], ParameterType.PARAMETER_DOUBLE_ARRAY)


def try_value(
    case: Case,
    lab: Lab,
    name: str,
    value: ParameterValue,
    default: ParameterValue,
    tally: Tally,
) -> None:
    """Sets a value while the robot moves, and lets it stop and move under it.

    Args:
        case: The node.
        lab: With the node at work.
        name: Of the parameter.
        value: Of it.
        default: The one before, which it gets back.
        tally: Changed.
    """
    what = f"{name} {getattr(value, FIELDS[value.type])}"
    tally.tried += 1
    _change(case, lab, name, value, what, tally)
    fell = _watch(case, lab)
    if fell:
        tally.falls.append(what)
    elif not case.works(lab):
        tally.stopped.append(what)
    say(f"{tally.case}: {what}{': fell' if fell else ''}")
    _change(case, lab, name, default, f"after {what}", tally)
    _move_again(case, lab)
    if tally.tried % CONTROL_EVERY == 1:
        tally.control += 1
        lab.fault = "control"
        tally.falls_control += _watch(case, lab)
        _move_again(case, lab)


def _change(
    case: Case, lab: Lab, name: str, value: ParameterValue, what: str, tally: Tally
) -> None:
    lab.fault = what
    request = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
    answer = lab.call(SetParameters, f"/{case.node}/set_parameters", request)
    if answer is None or not answer.results[0].successful:
        why = "no answer" if answer is None else answer.results[0].reason
        tally.refused.append(f"{what}: {why}")


def _watch(case: Case, lab: Lab) -> bool:
    """Whether the robot falls while it moves, or when it has been stopped and moves again."""
    for again in (False, True):
        if again and case.can_idle and not case.is_script:
            case.deactivate(lab)
            lab.run(STOP_S, lambda: lab.robot.fallen)
            if not lab.robot.fallen:
                case.activate(lab)
        if lab.run(WINDOW_S, lambda: lab.robot.fallen):
            return True
    return False


def _move_again(case: Case, lab: Lab) -> None:
    """Brings a node to work whose parameters are the defaults again."""
    lab.look_after_node()
    if lab.robot.fallen:
        lab.restart_robot()
    lab.outputs.clear()
    recovers(case, lab, active=True)


def main() -> int:
    """Run all nodes; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", nargs="+", choices=MOVING, default=list(MOVING))
    parser.add_argument("--only", default="", help="parameters whose name has this")
    parser.add_argument("--processes", type=int, default=2, help="nodes at a time")
    options = parser.parse_args()
    jobs = [(name, options.only) for name in options.nodes]
    tallies = in_processes(try_node, jobs, "nodes", options.processes)
    counts = {
        key: sum(
            value if isinstance(value, int) else len(value)
            for value in (getattr(tally, key) for tally in tallies)
        )
        for key in vars(Tally(""))
        if key != "case"
    }
    by_node = {tally.case: vars(tally) for tally in tallies}
    print(json.dumps({"nodes": len(tallies), **counts, "by_node": by_node}))
    bad = ("falls", "bad_commands", "crashes", "tracebacks")
    return int(any(counts[key] for key in bad))


if __name__ == "__main__":
    sys.exit(main())
