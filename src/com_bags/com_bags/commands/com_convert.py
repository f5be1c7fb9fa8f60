"""Writes any log as a rosbag2 recording of standard messages: joint states, IMU, wrenches."""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_bags.bag import Bag
from com_bags.channels import FIELDS, ROLES
from com_bags.exceptions import BagError
from com_bags.log_format import LogFormat, add_log_options
from com_model import ComModelError, load_robot
from com_model.commands import add_robot, command_parser, reports_errors
from com_model.text import columns


def convert_log(path: str | Path, log_format: LogFormat, output: Path) -> Counter[str]:
    """Writes the standard messages of a log, and those that are made of its others.

    Args:
        path: Of the log.
        log_format: What its messages or columns mean.
        output: Folder of the recording (mcap), made; it appears when it is complete.

    Returns:
        Number of messages by topic and type.

    Raises:
        BagError: The log cannot be read, or contains nothing of use.
        OSError: The recording cannot be written.
    """
    counts: Counter[str] = Counter()
    if output.exists():
        raise BagError("exists already: give the name of a new folder", str(output))
    store = get_typestore(Stores.ROS2_JAZZY)
    output.parent.mkdir(parents=True, exist_ok=True)
    with Bag(path, log_format) as bag:
        topics = [topic for topic in bag.topics() if topic.type_name in FIELDS]
        if not topics:
            there = ", ".join(f"{t.name} ({t.type_name})" for t in bag.topics()[:10])
            raise BagError(
                f"has neither {' nor '.join(ROLES.values())}. There are: {there}",
                str(path),
            )
        with tempfile.TemporaryDirectory(
            prefix=".convert.", dir=output.parent
        ) as hidden:
            part = Path(hidden) / output.name
            with Writer(
                part, version=9, storage_plugin=StoragePlugin.MCAP
            ) as recording:
                made = {
                    (topic.name, topic.type_name): recording.add_connection(
                        topic.name, topic.type_name, typestore=store
                    )
                    for topic in topics
                }
                names = [topic.name for topic in topics]
                for connection, time, payload in bag.messages(names, FIELDS.keys()):
                    key = connection.topic, connection.msgtype
                    recording.write(made[key], time, payload)
                    counts["  ".join(key)] += 1
            shutil.move(part, output)
        print(*(f"note: {note}\n" for note in bag.notes), sep="", end="")
    return counts


@reports_errors("com_convert: error", 2, ComModelError, OSError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: Arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 on success, 2 when the log cannot be read or the recording written.
    """
    parser = command_parser("com_convert", __doc__, __file__)
    add = parser.add_argument
    add(
        "log",
        metavar="LOG",
        help="a rosbag2 or ROS 1 recording, or a table (csv, dat, parquet, npz, mat, ...)",
    )
    add_robot(parser)
    add_log_options(parser)
    add("--output", type=Path, required=True, metavar="DIR", help="recording to write")
    options = parser.parse_args(argv)
    model, config = load_robot(options.robot, options.config)
    about = LogFormat.of(model, config.feet, options)
    counts = convert_log(options.log, about, options.output)
    rows = [(name, str(count)) for name, count in sorted(counts.items())]
    print(columns(("topic", "messages"), rows))
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
