"""The command line of ros2, without ROS."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from launcher import cli as launch
from launcher.nodes import Node

DESCRIPTION = """\
The part of ROS 2's command line that the documentation uses, for machines without ROS:
run, launch, topic, service, action, param, node, bag. Everything else comes with ROS 2.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(
            2,
            f"{self.prog}: {message}\nThe whole ros2 comes with ROS 2: docs.ros.org\n",
        )


def parser() -> argparse.ArgumentParser:
    """The words that are understood."""
    top = _Parser(
        "ros2", description=DESCRIPTION, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in ("run", "launch"):  # for --help; main() takes their words as they are
        commands.add_parser(
            name,
            help={"run": "PACKAGE EXECUTABLE ...", "launch": "PACKAGE FILE ..."}[name],
        )

    def group(name: str) -> Any:
        return commands.add_parser(name, help=f"ros2 {name} --help").add_subparsers(
            metavar="VERB", required=True
        )

    def verb(of: Any, name: str, function: str, *words: str) -> argparse.ArgumentParser:
        """A verb; its function is module.function; words that end with ? may be left out."""
        made = of.add_parser(name)
        made.set_defaults(function=function)
        for word in words:
            made.add_argument(
                word.rstrip("?"), nargs="?" if word.endswith("?") else None
            )
        return made

    def lists(of: Any, function: str) -> None:
        verb(of, "list", function).add_argument(
            "-t", "--show-types", action="store_true"
        )

    of = group("topic")
    lists(of, "topics.show_topics")
    verb(of, "info", "topics.show_topic", "topic")
    verb(of, "type", "topics.show_type", "topic")
    echo = verb(of, "echo", "topics.echo", "topic", "type?")
    echo.add_argument("--once", action="store_true", help="one message")
    echo.add_argument("--field", help="one field, such as position.x")
    echo.add_argument("-f", "--full-length", action="store_true", help="of arrays, too")
    hz = verb(of, "hz", "topics.show_rate", "topic")
    hz.add_argument(
        "-w", "--window", type=int, default=10000, help="messages in the average"
    )
    pub = verb(of, "pub", "topics.publish", "topic", "type")
    pub.add_argument("values", nargs="?", default="{}", help="fields in YAML")
    pub.add_argument("-1", "--once", action="store_true")
    pub.add_argument("-t", "--times", type=int, default=0)
    pub.add_argument("-r", "--rate", type=float, default=1.0, help="1/s")
    pub.add_argument("-w", "--wait-matching-subscriptions", dest="wait", type=int)
    of = group("service")
    lists(of, "calls.show_services")
    verb(of, "type", "calls.show_type", "service")
    call = verb(of, "call", "calls.call", "service", "type")
    call.add_argument("values", nargs="?", default="{}", help="fields in YAML")
    of = group("action")
    lists(of, "calls.show_actions")
    goal = verb(of, "send_goal", "calls.send_goal", "action", "type", "goal")
    goal.add_argument("-f", "--feedback", action="store_true")
    of = group("param")
    verb(of, "list", "parameters.show_names", "node?")
    verb(of, "get", "parameters.show_value", "node", "parameter")
    verb(of, "set", "parameters.change", "node", "parameter", "value")
    verb(of, "dump", "parameters.dump", "node")
    verb(of, "describe", "parameters.describe", "node").add_argument(
        "parameters", nargs="+"
    )
    verb(group("node"), "list", "parameters.show_nodes")
    of = group("bag")
    record = verb(of, "record", "bags.record")
    record.add_argument("words", nargs="*", metavar="TOPIC")
    record.add_argument("--topics", nargs="+")
    record.add_argument("-a", "--all", action="store_true", help="all topics")
    record.add_argument("-o", "--output", help="folder")
    record.add_argument("-s", "--storage", choices=("mcap", "sqlite3"), default="mcap")
    play = verb(of, "play", "bags.play", "bag")
    play.add_argument("-r", "--rate", type=float, default=1.0)
    play.add_argument("-l", "--loop", action="store_true")
    play.add_argument(
        "--clock", type=float, nargs="?", const=40.0, default=0.0, help="1/s"
    )
    play.add_argument("--topics", nargs="+")
    verb(of, "info", "bags.show", "bag")
    return top


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if words is None else words)
    if words[:1] == ["launch"] and words[1:]:
        return launch.main(words[1:])
    if words[:1] == ["run"] and words[1:] and words[1] not in ("-h", "--help"):
        return _run(words[1:])
    options = parser().parse_args(words)
    if not hasattr(options, "function"):
        print("usage: ros2 run PACKAGE EXECUTABLE ... | ros2 launch PACKAGE FILE ...")
        return 2
    module, _, function = options.function.partition(".")
    from importlib import import_module

    from ros2_command.session import CommandError

    try:
        getattr(import_module(f"ros2_command.{module}"), function)(options)
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # such as ros2 topic echo ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _run(words: list[str]) -> int:
    """Become the program; return the exit code where that is not possible."""
    try:
        if len(words) < 2:
            raise FileNotFoundError("expected PACKAGE EXECUTABLE ...")
        program = str(Node(words[0], words[1]).program())
        os.execv(program, [program, *words[2:]])  # noqa: S606
    except FileNotFoundError as error:
        print(f"ros2 run: {error}", file=sys.stderr)
    return 1
