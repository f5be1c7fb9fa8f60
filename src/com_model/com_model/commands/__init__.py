"""Command lines of com_model, and what the parsers of all commands share."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

import com_model.interrupt  # noqa: F401 (a name would be exported)


def command_parser(name: str | None, description: str | None, epilog: str) -> ArgumentParser:
    """Returns a parser whose help shows the epilog (examples, exit status) as it is written.

    Args:
        name: Of the command, in its help and messages; None: that of the file that runs.
        description: First paragraph of the help.
        epilog: Last paragraphs of the help.
    """
    return ArgumentParser(
        prog=name,
        description=description,
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )
