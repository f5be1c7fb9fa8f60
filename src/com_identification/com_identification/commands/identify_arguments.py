"""The arguments of identify, which com_health passes on."""

import argparse

from com_bags import add_log_options
from com_model.commands import add_robot, command_parser


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments of identify."""
    result = command_parser(
        "identify",
        "Identifies the centre of mass of every link of a robot from rosbag2 recordings "
        "(mcap or sqlite3; no ROS needed) and tables, and corrects the URDF.",
        __file__,
    )
    add = result.add_argument
    add(
        "files",
        metavar="FILE",
        nargs="+",
        help="directory of a recording, its .mcap or .db3 file, or a table",
    )
    add_robot(result, required=False)
    add(
        "--settings",
        metavar="YAML",
        help="noise, priors, errors of sensors, when the robot counts as stationary",
    )
    add_log_options(result)
    add(
        "--guess",
        action="store_true",
        help="print a mapping for the first table and exit",
    )
    add(
        "--slow-motion",
        action="store_true",
        help="also use slow motion between the postures; inertial forces are treated as noise",
    )
    add(
        "--use",
        choices=("rest", "walk", "rest,walk", "sway", "hang"),
        metavar="rest|walk|rest,walk|sway|hang",
        help="what the robot does: rest in postures on foot force sensors, walk without them, or "
        "both; sway slowly on both feet, or hang from a rope",
    )
    add(
        "--hung",
        metavar="FILE",
        nargs="+",
        default=[],
        help="with --use sway: recordings of the same robot as it hangs from a rope",
    )
    add(
        "--rope",
        metavar=("LINK", "X", "Y", "Z"),
        nargs=4,
        help="point that a hanging robot's rope pulls at: a link, and m in its axes",
    )
    add(
        "--method",
        choices=("links", "two-postures"),
        default="links",
        help="links: all (default); two-postures: the total CoM alone, printed, from a tilted "
        "shape",
    )
    add("--mass", type=_mass, metavar="KG", help="of the robot as it walked, weighed")
    add(
        "--mass-std",
        type=_mass,
        default=0.05,
        metavar="KG",
        help="of the scales (0.05)",
    )
    add(
        "--payload",
        type=_mass,
        metavar="KG",
        help="put on the trunk in the recordings of --loaded, known to --mass-std",
    )
    add(
        "--loaded",
        metavar="FILE",
        nargs="+",
        default=[],
        help="recordings of the robot as it walks with the payload; FILE are those without it",
    )
    add(
        "--output", metavar="DIR", help="where the results go; made where it is missing"
    )
    add(
        "--force",
        action="store_true",
        help="replace the results of an earlier run in DIR",
    )
    add_reading_options(result)
    add(
        "--wrench",
        metavar="FOOT=TOPIC",
        action="append",
        default=[],
        help="topic of a foot's force sensor; FOOT is its frame. Once for each foot",
    )
    add("--effort", action="store_true", help="use joint efforts; sets use_effort")
    add(
        "--marks",
        metavar="CSV",
        help="file with the times of the postures: start,end[,label]",
    )
    add(
        "--marker-topic",
        metavar="TOPIC",
        default="",
        help="topic that marks the postures",
    )
    add(
        "--known-com",
        metavar="TOPIC",
        default="",
        help="topic (geometry_msgs/PointStamped in a link's frame) of a CoM that is known "
        "otherwise",
    )
    add(
        "--tip-over",
        metavar="YAML",
        help="tip-over tests in the recording: times, edges of the sole and tilts; docs/tables.md",
    )
    add(
        "--use-diagnosis",
        action="store_true",
        help="use the newest message of diagnosis in the recordings, or else the CoM offset that "
        "the stabiliser found (gait/state)",
    )
    add(
        "--ignore-wrench-check",
        action="store_true",
        help="continue although sign, axes or unit of the wrenches seem wrong",
    )
    add(
        "--record",
        metavar="RECORD",
        default="",
        help="record of the robot, see com_health",
    )
    add("--serial", default="", help="serial number of the robot, for --record")
    add("--list-topics", action="store_true", help="print topics or columns and exit")
    add("--dry-run", action="store_true", help="print what would be used and exit")
    return result


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Adds which topics of a recording are read, with which times, and which part.

    Args:
        parser: of a command that reads recordings.
    """
    add = parser.add_argument
    add("--joint-states", metavar="TOPIC", default="", help="topic of the joint states")
    add("--imu", metavar="TOPIC", default="", help="topic of the IMU; sets use_imu")
    add(
        "--time",
        choices=("stamps", "received", "even"),
        default="stamps",
        help="times to use: those of the messages' headers, or of their recording; even (walking): "
        "the rate is constant, and times of receipt show what is lost",
    )
    text = "of motion: s from the first joint state, where the part that is used "
    add("--from", dest="since", type=float, metavar="S", help=text + "begins")
    add("--to", dest="until", type=float, metavar="S", help=text + "ends")


def _mass(text: str) -> float:
    if not 0.0 < (value := float(text)) < 1e5:
        raise argparse.ArgumentTypeError(f"{text}: expected kg, more than 0")
    return value
