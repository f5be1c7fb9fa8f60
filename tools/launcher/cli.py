"""Command line of tools/run_launch."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_share_directory,
)

from launcher.arguments import declared_arguments
from launcher.document import LaunchError
from launcher.interpreter import nodes_of
from launcher.nodes import Node
from launcher.supervisor import Supervisor

DESCRIPTION = """\
Starts a launch file in ROS 2's XML format on a machine without the ROS launch system.
Where ROS 2 is installed, `ros2 launch` starts the same files.
"""
EPILOG = """\
Ctrl-C stops all nodes (SIGINT, after 5 s SIGTERM, after 5 s more SIGKILL; Ctrl-C again: at
once the next one). A node that dies is reported and the others go on. Exit code: 0 when every
node ended well or was stopped, 1 when one died or the file cannot be used, 2 for a wrong command.
"""


def launch_path(words: list[str]) -> tuple[Path, list[str]]:
    """Split the words of the command line into the launch file and the arguments.

    Raises:
        LaunchError: there is no such package or file.
    """
    first, rest = words[0], words[1:]
    if first.endswith(".xml") or "/" in first:
        if not Path(first).is_file():
            raise LaunchError(f"launch file {first} does not exist")
        return Path(first), rest
    if not rest or ":=" in rest[0]:
        raise LaunchError(
            f"'{first}' is no launch file: give FILE.launch.xml or PACKAGE FILE"
        )
    try:
        share = Path(get_package_share_directory(first))
    except (PackageNotFoundError, ValueError) as error:
        raise LaunchError(f"package '{first}' is not installed") from error
    found = {path.name: path for path in sorted(share.rglob("*.launch.xml"))}
    if rest[0] not in found:
        known = ", ".join(found) or "none"
        raise LaunchError(
            f"package '{first}' has no launch file '{rest[0]}'; it has: {known}"
        )
    return found[rest[0]], rest[1:]


def given_arguments(words: Sequence[str]) -> dict[str, str]:
    """Values of the words name:=value; the last of equal names counts.

    Raises:
        LaunchError: a word is not of that form.
    """
    given = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not (name and separator and value):
            raise LaunchError(
                f"'{word}' is not of the form name:=value (an empty value: \"''\")"
            )
        given[name] = value
    return given


def start(nodes: list[Node]) -> int:
    """Start nodes and look after them until they end; return the exit code."""
    supervisor = Supervisor(sys.stdout.buffer)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, supervisor.request_stop)
    with tempfile.TemporaryDirectory(prefix="run_launch_") as folder:
        for node in nodes:
            if supervisor.stopping:
                break
            try:
                command = node.command(Path(folder))
            except FileNotFoundError as error:
                supervisor.say(f"{node.label} skipped: {error}")
                continue
            supervisor.start(node.label, command)
        if not supervisor.children and not supervisor.stopping:
            raise LaunchError("nothing was started")
        return supervisor.run()


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="run_launch",
        usage="run_launch [--show-args | --dry-run] FILE|PACKAGE FILE [name:=value ...]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument(
        "--show-args", action="store_true", help="list the arguments of the file"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be started"
    )
    options = parser.parse_intermixed_args(words)
    try:
        path, rest = launch_path(options.words)
        declared = declared_arguments(path)
        if options.show_args:
            print("Arguments (name:=value):")
            print(
                "\n".join(argument.text() for argument in declared.arguments.values())
            )
            if not declared.complete:
                print("and those of included files whose path depends on arguments")
            return 0
        given = given_arguments(rest)
        declared.check(given, path)
        nodes = nodes_of(path, given)
        if options.dry_run:
            print("\n".join(node.describe() for node in nodes))
            return 0
        return start(nodes)
    except LaunchError as error:
        print(f"run_launch: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
