"""Whether any request to a service or action ends a node, or stops it from answering.

    tools/in_env python benchmarks/fuzz_services.py [--full] [--nodes NODE ...] [--requests N]

Each node runs as the installed program, with its robot's drivers. Every service and action that it
offers, those of its parameters among them, gets requests that are valid messages with extreme
contents: numbers at the ends of their types and that are not finite, unknown types of parameters,
long and odd strings, arrays of any length. Beside each of these come several that are no messages,
also to the topics that it subscribes: bytes of one that are cut, changed or continued, which
raw_writer.py sends. After each hundred the node must still answer. Requests that would end it on
purpose do not exist.

The last line is one JSON object:
    nodes, services, requests   how many
    raw                         requests, and messages on topics, that are none
    exits                       a node ended
    deaf                        it did not answer a request for its parameters within 10 s
    tracebacks                  in a node's log: a bug, which became a refusal
    by_node                     the same for each node
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from rcl_interfaces.srv import ListParameters
from rclpy.serialization import serialize_message

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools/robustness"))

# the harness is no package
from fault_lab import Lab, say
from fault_nodes import CASES, Case
from faults import wait_until_it_works
from processes import in_processes
from raw_writer import RawWriter

from com_demos.background import free_domain_id
from com_ros import qos

REQUESTS, MANY = 100, 2000  # of each node, shared by its services
RAW = 5  # for each of them, requests and messages that are none
BATCH = 25  # requests that are under way at a time
PATIENCE_S = 10.0
LONGEST = 300  # items of an array, characters of a string
INTEGER = re.compile(r"(u?)int(\d+)$|octet$|byte$|char$")
ODD_STRINGS = (
    "",
    " ",
    "/",
    "~",
    "../../etc/passwd",
    "a" * LONGEST,
    "\x1b[31mred\x1b[0m\n",
    "ä\u202e€\U0001f600",
    "%s%n{}{0}",
    "nan",
    "-1e400",
)
ODD_NUMBERS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-300,
    5e-324,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
)


def main() -> int:
    """Run all nodes; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.node for case in CASES]
    parser.add_argument("--nodes", nargs="+", choices=names, default=names)
    parser.add_argument("--full", action="store_true", help=f"{MANY} requests a node")
    parser.add_argument("--requests", type=int, help="of each node")
    options = parser.parse_args()
    count = options.requests or (MANY if options.full else REQUESTS)
    work = [(name, count) for name in options.nodes]
    results = in_processes(fuzz_node, work, "services", processes=2)
    by_node = dict(zip(options.nodes, results, strict=True))
    totals = {
        key: sum(result[key] for result in results)
        for key in ("services", "requests", "raw", "exits", "deaf", "tracebacks")
    }
    print(json.dumps({"nodes": len(results), **totals, "by_node": by_node}))
    return int(totals["exits"] + totals["deaf"] + totals["tracebacks"] > 0)


def fuzz_node(work: tuple[str, int]) -> dict[str, int]:
    """Send one node its requests; returns its figures.

    Args:
        work: Name of the node, and number of requests.
    """
    name, count = work
    os.environ["ROS_DOMAIN_ID"] = str(free_domain_id())
    case: Case = next(case for case in CASES if case.node == name)()
    rng = random.Random(name)  # noqa: S311 - not for secrets
    with tempfile.TemporaryDirectory() as folder:
        command = case.package, case.node, *case.words
        parameters = case.parameters(Path(folder))
        lab = Lab(case.robot(), command, parameters, case.outputs, Path(folder))
        case.prepare(lab)
        try:
            wait_until_it_works(case, lab)
            figures = _fuzz(lab, name, count, rng)
        finally:
            lab.close()
            text = lab.log_text()
            if keep := os.environ.get("FAULTS_LOGS"):
                (Path(keep) / f"{name}_services.log").write_text(text)
    figures["tracebacks"] = text.count("Traceback (most recent call last)")
    say(f"{name}: {figures}")
    return figures


def _fuzz(lab: Lab, name: str, count: int, rng: random.Random) -> dict[str, int]:
    name = name.removesuffix("_server")  # of the program
    lab.run(PATIENCE_S, lambda: name in lab.node.get_node_names())
    offered = lab.node.get_service_names_and_types_by_node(name, "/")
    kinds = {
        topic: _interface(kind)
        for topic, (kind,) in offered
        if "/_action/" not in topic
    }
    goals = {
        topic.removesuffix("/_action/send_goal"): _interface(
            kind.removesuffix("_SendGoal")
        )
        for topic, (kind,) in offered
        if topic.endswith("/_action/send_goal")
    }
    for topic, action in goals.items():
        internal = action.Impl
        kinds[f"{topic}/_action/send_goal"] = internal.SendGoalService
        kinds[f"{topic}/_action/cancel_goal"] = internal.CancelGoalService
    clients = {
        topic: lab.node.create_client(kind, topic) for topic, kind in kinds.items()
    }
    writers = {
        topic: RawWriter(lab.node, topic, kind.Request) for topic, kind in kinds.items()
    }
    lab.run(PATIENCE_S, lambda: all(writer.matched for writer in writers.values()))
    raw: dict[str, tuple[Any, Callable[[bytes], None]]] = {
        topic: (kinds[topic].Request, writer.send) for topic, writer in writers.items()
    }
    for topic, (kind,) in lab.node.get_subscriber_names_and_types_by_node(name, "/"):
        publisher = lab.node.create_publisher(_interface(kind), topic, qos.LATCHED)
        raw[topic] = _interface(kind), publisher.publish
    declared = lab.call(
        ListParameters, f"/{name}/list_parameters", ListParameters.Request()
    )
    words = (*ODD_STRINGS, *(declared.result.names if declared else ()))
    figures = dict.fromkeys(("requests", "raw", "exits", "deaf"), 0)
    figures["services"] = len(clients)
    pending: list[Any] = []
    for number in range(count):
        topic, client = rng.choice(sorted(clients.items()))
        lab.fault = f"request of {topic}"
        pending.append(
            client.call_async(random_message(kinds[topic].Request, rng, words))
        )
        figures["requests"] += 1
        for _ in range(RAW):
            topic = rng.choice(sorted(raw))
            kind, send = raw[topic]
            message = random_message(kind, rng, words)
            with suppress(RuntimeError):  # too long for a message of bounded size
                send(broken_bytes(serialize_message(message), rng))
                figures["raw"] += 1
        if len(pending) == BATCH or number == count - 1:
            lab.run(PATIENCE_S / 4, lambda: all(future.done() for future in pending))
            pending.clear()  # some answer only when they have what they wait for
            figures["exits"] += not lab.look_after_node()
        if number % 100 == 99 or number == count - 1:
            answer = lab.call(
                ListParameters,
                f"/{name}/list_parameters",
                ListParameters.Request(),
                PATIENCE_S,
            )
            figures["deaf"] += answer is None
    for writer in writers.values():
        writer.close()
    return figures


def broken_bytes(data: bytes, rng: random.Random) -> bytes:
    """What is left of a message when some of its bytes are lost, changed or added.

    Args:
        data: The message, as the middleware writes it.
        rng: Source of randomness.
    """
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(changed) + 1)
        change = rng.randrange(5)
        if change == 0:
            del changed[at:]
        elif change == 1:
            changed[at : at + 1] = rng.randbytes(1)
        elif change == 2:
            changed[at:at] = rng.randbytes(rng.choice((1, 4, 64)))
        else:  # a word, such as the length of an array
            word = rng.choice((0, 1, 2**16, 2**24, 2**28, 2**31 - 1, 2**32 - 1))
            at -= at % 4
            changed[at : at + 4] = word.to_bytes(4, "little")
    return bytes(changed)


def _interface(name: str) -> Any:
    """The class of an interface, such as std_srvs/srv/Trigger."""
    package, kind, name = name.split("/")
    name, _, part = name.partition("_")  # of an action: Walk_Goal
    if part:
        action = getattr(import_module(f"{package}.action"), name)
        return getattr(action, part, None) or getattr(action.Impl, part)
    return getattr(import_module(f"{package}.{kind}"), name)


def random_message(kind: Any, rng: random.Random, words: tuple[str, ...]) -> Any:
    """A message with extreme contents.

    Args:
        kind: Its type.
        rng: Source of randomness.
        words: Strings to choose from.
    """
    message = kind()
    for name, text in kind.get_fields_and_field_types().items():
        setattr(message, name, _random_field(text, rng, words))
    return message


def _random_field(text: str, rng: random.Random, words: tuple[str, ...]) -> Any:
    """A value of a field's type, as rosidl writes it."""
    if array := re.fullmatch(r"sequence<(.+?)(?:, (\d+))?>|(.+)\[(\d+)\]", text):
        item, most, fixed, size = array.groups()
        length = (
            int(size)
            if fixed
            else rng.choice((0, 1, 2, 7, min(int(most or LONGEST), LONGEST)))
        )
        return [_random_field(fixed or item, rng, words) for _ in range(length)]
    if text == "boolean":
        return rng.random() < 0.5
    if text in ("float", "double"):
        number = rng.choice(ODD_NUMBERS)
        single = text == "float" and math.isfinite(number)
        return max(min(number, 3.4e38), -3.4e38) if single else number
    if text.startswith(("string", "wstring")):
        return rng.choice(words)
    if match := INTEGER.match(text):
        bits = int(match[2] or 8)
        low = 0 if match[1] or match[2] is None else -(2 ** (bits - 1))
        high = low + 2**bits - 1
        value = rng.choice((low, high, 0, 1, rng.randint(low, high), rng.randint(0, 9)))
        return bytes([value]) if text in ("octet", "byte") else value
    return random_message(_interface(text.replace("/", "/msg/")), rng, words)


if __name__ == "__main__":
    sys.exit(main())
