"""Command line: the history of a robot, from the record of its identifications."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from com_identification.exceptions import HealthError
from com_identification.health.changes import FALSE_ALARMS, history
from com_identification.health.records import HealthDatabase, Record
from com_model.commands import command_parser, reports_errors
from com_model.exceptions import ComModelError
from com_model.text import printable


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command's arguments."""
    result = command_parser("com_health", __doc__.partition(": ")[2], __file__)
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="what changed, and when")
    export = commands.add_parser("export", help="write a table or a corrected model")
    ingest = commands.add_parser("ingest", help="identify many bags")
    for each in (show, export, ingest):
        each.add_argument(
            "record", metavar="RECORD", help="SQLite file, or URL of a database"
        )
    export.add_argument(
        "output", type=Path, metavar="FILE", help=".csv, .parquet, .urdf or .xml"
    )
    for each in (show, export):
        each.add_argument(
            "--name", default="", help="only robots of this name (of the URDF)"
        )
        each.add_argument(
            "--serial", default="", help="only the robot with this serial number"
        )
    show.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the history (.png, .svg), or write it as a page (.html)",
    )
    show.add_argument(
        "--check", action="store_true", help="exit with 1 if the robot changed last"
    )
    show.add_argument(
        "--false-alarms",
        type=float,
        default=FALSE_ALARMS,
        help=f"fraction of comparisons, default {FALSE_ALARMS}",
    )
    add = ingest.add_argument
    add("places", nargs="+", metavar="DIR_OR_URL", help="where to search for bags")
    add(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask scheduler; default: a cluster on this machine",
    )
    add(
        "--workers",
        type=int,
        metavar="N",
        help="workers of that cluster; default: one per core",
    )
    add("--memory", default="2GB", help="memory limit of each worker, default 2GB")
    add("--retry", action="store_true", help="retry bags that failed before")
    return result


@reports_errors("com_health: error", 2, ComModelError, OSError, ValueError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: arguments of the command line; None: those of the process.

    Returns:
        The exit status; see the help.
    """
    arguments_parser = parser()
    given = list(sys.argv[1:] if argv is None else argv)
    cut = given.index("--") if "--" in given else len(given)
    arguments = arguments_parser.parse_args(given[:cut])
    if not 0.0 < getattr(arguments, "false_alarms", FALSE_ALARMS) < 1.0:
        arguments_parser.error(f"--false-alarms {arguments.false_alarms}: give 0 to 1")
    if arguments.command == "ingest":
        return _ingest(arguments, given[cut + 1 :])
    return _show(arguments) if arguments.command == "show" else _export(arguments)


def _records(
    arguments: argparse.Namespace, one: bool
) -> dict[tuple[str, str], list[Record]]:
    database = HealthDatabase(arguments.record)
    robots: dict[tuple[str, str], list[Record]] = {}
    for record in database.records(arguments.name, arguments.serial):
        robots.setdefault((record.robot, record.serial), []).append(record)
    for text in database.damaged:
        print(f"com_health: left out: {printable(text)}", file=sys.stderr)
    if not robots:
        raise HealthError(f"{database.name} has no identification of such a robot")
    if one and len(robots) > 1:
        names = ", ".join(f"{name} {serial}".strip() for name, serial in robots)
        raise HealthError(
            f"only one robot at a time: choose by --name and --serial from {names}"
        )
    return robots


def _show(arguments: argparse.Namespace) -> int:
    from com_identification.health.history import (
        history_figure,
        history_page,
        history_text,
    )

    robots, changed = _records(arguments, bool(arguments.plot)), False
    for own in robots.values():
        steps = history(own, arguments.false_alarms)
        changed |= bool(steps and steps[-1].changes)
        print(history_text(own, steps, arguments.false_alarms))
        if arguments.plot:
            if arguments.plot.suffix == ".html":
                name = HealthDatabase(arguments.record).name  # without its password
                arguments.plot.write_text(
                    history_page(own, steps, arguments.false_alarms, name)
                )
            else:
                history_figure(own, steps).savefig(arguments.plot)
            print(f"wrote {arguments.plot}")
    return int(changed and arguments.check)


def _export(arguments: argparse.Namespace) -> int:
    from com_identification.health.history import export

    robots = _records(arguments, arguments.output.suffix in (".urdf", ".xml"))
    export(
        [record for records in robots.values() for record in records], arguments.output
    )
    print(f"wrote {arguments.output}")
    return 0


def _ingest(arguments: argparse.Namespace, words: list[str]) -> int:
    from com_identification.commands.identify_arguments import parser as identify_parser
    from com_identification.commands.ingest import connect, find_bags, ingest
    from com_identification.commands.output import progress_bar

    identify_parser().parse_args(
        ["BAG", *words]
    )  # a wrong option would end every worker
    database, bags = (
        HealthDatabase(arguments.record, create=True),
        find_bags(arguments.places),
    )
    local = {
        "n_workers": arguments.workers or os.cpu_count(),
        "threads_per_worker": 1,
        "memory_limit": arguments.memory,
        "dashboard_address": None,
    }
    where = {"address": arguments.scheduler} if arguments.scheduler else local
    count, failed = 0, 0
    with connect(**where) as client, progress_bar("identifying") as progress:
        task = progress.add_task("identifying", total=len(bags))
        for done in ingest(database, bags, words, client, arguments.retry):
            count, failed = count + bool(done.record), failed + bool(done.reason)
            progress.advance(task)
            if done.reason:
                print(f"{done.bag.path}: {done.reason}", file=sys.stderr)
    print(
        f"{len(bags)} bags: {len(bags) - count - failed} known before, {count} identified, "
        f"{failed} failed"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
