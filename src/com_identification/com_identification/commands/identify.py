"""Command line: the centre of mass of every link from recordings and tables."""

import argparse
import os
import sys
from collections.abc import Sequence

from com_identification.commands.identify_arguments import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: arguments of the command line; None: those of the process.

    Returns:
        The exit status; see the help. 130 after Ctrl-C.
    """
    arguments_parser = parser()
    arguments = arguments_parser.parse_args(argv)
    _check(arguments_parser, arguments)
    # Sums over threads differ from run to run; set before numpy is there.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from com_identification.commands.bag_identification import run

    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("identify: stopped; nothing was written", file=sys.stderr)
        return 130


def _check(
    arguments_parser: argparse.ArgumentParser, arguments: argparse.Namespace
) -> None:
    if arguments.list_topics:
        return
    if arguments.robot is None:
        arguments_parser.error("--robot is missing: give the robot's name or URDF")
    prints = arguments.dry_run or arguments.guess or arguments.method == "two-postures"
    if arguments.output is None and not prints:
        arguments_parser.error(
            "--output is missing: give the directory for the results"
        )
    if arguments.marks and arguments.marker_topic:
        arguments_parser.error("give --marks or --marker-topic, not both")
    if bool(arguments.loaded) != bool(arguments.payload) or (
        arguments.loaded and arguments.mass
    ):
        arguments_parser.error(
            "give --payload KG and --loaded FILE together, and no --mass"
        )
    if arguments.tip_over and len(arguments.files) > 1:
        arguments_parser.error(
            "--tip-over: its times are of one recording, give one FILE"
        )
    if wrong := [wish for wish in arguments.wrench if not all(wish.partition("="))]:
        arguments_parser.error(f"--wrench: expected FOOT=TOPIC, got {wrong[0]!r}")


if __name__ == "__main__":
    sys.exit(main())
