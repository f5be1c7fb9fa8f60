"""Command lines of com_model, and what the parsers of all commands share.

Options that mean the same have the same names: --robot, --config, --output, --force, --seed,
--quiet.
"""

import io
import sys
import warnings
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import com_model.interrupt  # noqa: F401 (a name would be exported)

P = ParamSpec("P")


class _Pipe(io.FileIO):
    """What nobody reads any more, as after `| head`, is dropped; the command does its work."""

    def write(self, data: Any) -> int:
        """Writes; returns how many bytes."""
        with suppress(BrokenPipeError):
            return super().write(data)
        return len(data)


def command_parser(
    name: str | None, description: str | None, file: str
) -> ArgumentParser:
    """Makes a parser whose help ends with the text beside the command's file, file.txt, as it is.

    Args:
        name: Name of the command; None where it is that of the program's file.
        description: First lines of its help, or None.
        file: Path of the command's module.

    Returns:
        The parser.
    """
    if (
        sys.stdout is sys.__stdout__
        and sys.stdout is not None
        and not sys.stdout.isatty()
    ):
        sys.stdout.flush()
        pipe = io.BufferedWriter(_Pipe(sys.stdout.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(pipe, sys.stdout.encoding, sys.stdout.errors)
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    return ArgumentParser(
        prog=name,
        description=description,
        epilog=Path(file).with_suffix(".txt").read_text(encoding="utf-8"),
        formatter_class=RawDescriptionHelpFormatter,
    )


def reports_errors(
    prefix: str, status: int, *errors: type[Exception]
) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Decorates a command's main(): an error becomes a line on standard error and a status.

    Args:
        prefix: Before the error's text, with the name of the command.
        status: Exit status of a command that an error ended.
        errors: Kinds of errors; others are not caught.
    """

    def decorate(main: Callable[P, int]) -> Callable[P, int]:
        @wraps(main)
        def run(*args: P.args, **kwargs: P.kwargs) -> int:
            try:
                return main(*args, **kwargs)
            except errors as error:
                print(f"{prefix}: {error}", file=sys.stderr)
                return status

        return run

    return decorate


def add_robot(parser: ArgumentParser, required: bool = True) -> None:
    """Adds --robot and --config; com_model.load_robot takes both.

    Args:
        parser: The parser of the command.
        required: Whether the command needs a robot.
    """
    text = "a name (hoap2, talos, ...), or the path of a URDF"
    parser.add_argument("--robot", required=required, metavar="ROBOT", help=text)
    text = "its configuration; default: the one beside the URDF, or the suite's of its name"
    parser.add_argument("--config", metavar="YAML", help=text)
