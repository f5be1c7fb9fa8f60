"""Command line: write the configuration of a robot from its URDF."""

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from com_model.checks.audit import audit
from com_model.commands import command_parser
from com_model.exceptions import ComModelError, import_optional, listing, pip_install
from com_model.files import write_file
from com_model.model import RobotModel
from com_model.robots import load_robot
from com_model.setup import RobotSetup, describe, to_yaml
from com_model.setup.check import SUPPORT, check_written, with_steps
from com_model.setup.describe import LEAST_BEND
from com_model.setup.gains import overloaded_joints, with_drives
from com_model.setup.writing import lines_to_check, summary
from com_model.shapes.resources import no_package, package_folders
from com_model.strict_yaml import read_yaml
from com_model.urdf.mjcf import drives_of_mjcf, urdf_of_mjcf
from com_model.urdf.xml_reader import is_mjcf

_UNDEFINED = re.compile(r"Undefined substitution argument (\S+)")  # of xacro
_VIEWER = "bags estimation model simulation viewer"  # and the packages that it needs


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if any(word.split("=")[0] == "--from-log" for word in words):
        fix = pip_install("./src/com_bags ./src/com_identification")
        name = "com_identification.commands.log_setup"
        return int(import_optional(name, f"in the suite's folder: {fix}").main(words))
    arguments = _parser().parse_args(words)
    fault = 2
    try:
        if arguments.live:
            _write_new(
                arguments.robot, _live().read_description(), "the running robot sends"
            )
        again = arguments.force or arguments.update
        urdf = _expanded(arguments.robot, arguments.xacro_arg, again)
        if arguments.check:
            return _check(urdf, arguments.output)
        output = arguments.output or urdf.with_suffix(".yaml")
        if (
            arguments.picture
            and output.exists()
            and not (arguments.force or arguments.update)
        ):
            _picture(urdf, output, arguments.picture)
            return 0
        old = _old(arguments, output)
        fault = 1
        setup = describe(RobotModel.from_file(urdf), urdf)
        if is_mjcf(arguments.robot):
            drives = drives_of_mjcf(arguments.robot)
            setup = with_drives(setup, drives)
        fault = 2
        errors = [
            ("urdf", f"audit: {i.element}: {i.message}")
            for i in audit(setup.model).select("error")
        ]
        setup = replace(setup, issues=(*errors, *setup.issues))
        if arguments.interactive:
            old = _ask(setup, old or {})
        text = to_yaml(setup, old)
        write_file(output, text, overwrite=arguments.force or arguments.update)
        if arguments.picture:
            _picture(urdf, output, arguments.picture)
    except (ComModelError, OSError) as error:
        print(f"com_setup: {error}", file=sys.stderr)
        return fault
    note = problem = ""
    if not arguments.no_check:
        up = setup.limbs.R_root_robot[:, 2]
        note, problem = check_written(load_robot, urdf, output, up)
        if setup.gait.get("walking") and not (problem or "walking" in (old or {})):
            if not arguments.quiet:
                text = "lets it walk in simulation; the first time this compiles for a minute"
                print(f"com_setup: {text}", file=sys.stderr)
            setup, walks = with_steps(setup, load_robot, urdf, output)
            note = "; ".join(filter(None, (note, walks)))
            text = to_yaml(setup, old)
            write_file(output, text, overwrite=True)
    if not arguments.quiet:
        print(f"{setup.name} ({urdf})\n{summary(setup)}\nwrote {output}")
        if note:
            print(note)
        _report(setup, text, urdf, output)
    if problem:
        print(f"com_setup: {problem}", file=sys.stderr)
    return fault if problem else 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "com_setup", "Writes a robot's configuration from its URDF.", __file__
    )
    add = parser.add_argument
    add("robot", type=Path, help="path of the URDF, .xacro or MJCF file")
    add(
        "--output",
        type=Path,
        help="configuration to write; default: robot.yaml beside robot.urdf",
    )
    add(
        "--xacro-arg",
        action="append",
        default=[],
        metavar="NAME:=VALUE",
        help="argument of a .xacro file; may be repeated",
    )
    add(
        "--picture", type=Path, help="PNG or HTML to write; overwrites no configuration"
    )
    write = parser.add_mutually_exclusive_group()
    write.add_argument(
        "--force", action="store_true", help="overwrite an existing file"
    )
    write.add_argument(
        "--update", action="store_true", help="update a file, keeping your edits"
    )
    add(
        "--live",
        action="store_true",
        help="write the URDF from the running robot's description",
    )
    add(
        "--check",
        action="store_true",
        help="compare with the running robot's sensor readings",
    )
    text = "write a mapping of a log: what its numbers are (--from-log LOG --help)"
    add("--from-log", metavar="LOG", help=text)
    add(
        "--no-check",
        action="store_true",
        help="do not let the robot stand and walk in simulation",
    )
    add("--interactive", action="store_true", help="ask about values that are unsure")
    add("--quiet", action="store_true", help="print errors only")
    return parser


def _expanded(robot: Path, xacro_args: Sequence[str], again: bool) -> Path:
    """Finds the URDF of a robot; of a xacro file or a model of MuJoCo one is written beside it.

    Args:
        robot: URDF, .xacro or MJCF.
        xacro_args: Values of a xacro file's arguments, each "NAME:=VALUE".
        again: Whether a URDF that was made from it earlier is replaced.

    Raises:
        ComModelError: It cannot be expanded; an argument has another form.
    """
    if robot.suffix != ".xacro":
        if is_mjcf(robot):
            return _write_beside(robot, robot.stem, urdf_of_mjcf(robot), again)
        return robot
    pairs = [word.partition(":=") for word in xacro_args]
    wrong = [word for word, sign, _ in pairs if not (word and sign)]
    if wrong:
        raise ComModelError(f"--xacro-arg {wrong[0]!r}: give it as NAME:=VALUE")

    def share(package: str) -> str:
        """The folder of a package: the robot's own, one beside it, or an installed one."""
        folders = package_folders(package, robot.resolve())
        if not folders:
            raise ComModelError(no_package(package))
        return str(folders[0])

    try:
        import xacro.substitution_args

        xacro.substitution_args._eval_find = share  # it knows installed packages only
        values = {name: value for name, _, value in pairs}
        text = xacro.process_file(str(robot), mappings=values).toprettyxml(indent="  ")
    except ModuleNotFoundError as error:
        raise ComModelError(f"{robot.name}: {error}: {pip_install('xacro')}") from error
    except Exception as error:  # whatever its expressions raise
        inner = getattr(error, "exc", None)
        cause = inner if isinstance(inner, (ComModelError, OSError)) else error
        undefined = _UNDEFINED.search(str(cause))
        fix = f": give --xacro-arg {undefined[1]}:=VALUE" if undefined else ""
        raise ComModelError(
            f"xacro cannot expand {robot.name}: {cause}{fix}"
        ) from error
    return _write_beside(robot, robot.name.removesuffix(".xacro"), text, again)


def _write_beside(robot: Path, stem: str, text: str, again: bool) -> Path:
    """Writes the URDF that is made from a file, beside it.

    Args:
        robot: The file.
        stem: Name of the URDF, without its suffix; where another model has it, as in folders that
            hold robot.urdf and robot.xml, it becomes robot_from_xml.urdf.
        text: The URDF.
        again: Whether one that was made from the file earlier is replaced.

    Returns:
        The URDF.

    Raises:
        ComModelError: One that was made earlier is another, and not to be replaced.
    """
    made = f"<!-- made by com_setup from {robot.name} -->\n"
    text, stem = f"{text.rstrip()}\n{made}", stem.removesuffix(".urdf")
    names = (f"{stem}.urdf", f"{stem}_from_{robot.suffix[1:]}.urdf")
    own = [
        urdf
        for urdf in map(robot.with_name, names)
        if not urdf.exists() or made in urdf.read_text(errors="replace")
    ]
    urdf = own[0] if own else robot.with_name(names[-1])
    if again and own:
        return write_file(urdf, text)
    fix = "; --update or --force replaces it"
    return _write_new(urdf, text, f"{robot.name} gives", fix)


def _write_new(urdf: Path, text: str, source: str, fix: str = ": delete it") -> Path:
    if urdf.exists() and urdf.read_text(errors="replace") != text:
        raise ComModelError(f"{urdf.name} exists and differs from what {source}{fix}")
    return write_file(urdf, text)


def _picture(urdf: Path, config: Path, file: Path) -> None:
    """Writes a picture of a configuration; html: the page of the viewer, where it is installed."""
    if file.suffix != ".html":
        from com_model.setup.picture import draw_config  # needs matplotlib, only here

        draw_config(*load_robot(urdf, config), urdf, file)
        return
    fix = pip_install(" ".join(f"./src/com_{name}" for name in _VIEWER.split()))
    fix = f"write robot.png, or in the suite's folder: {fix}"
    view = import_optional("com_viewer.commands.view", fix).main
    if view([str(urdf), "--config", str(config), "--record", str(file)]):
        raise ComModelError(f"the viewer cannot write {file}")


def _live() -> Any:
    """What reads a running robot; ComModelError where there is no ROS."""
    fix = "for --live and --check, source ROS 2 and this workspace, or run it with tools/in_env"
    return import_optional("com_identification.nodes.live_robot", fix)


def _check(urdf: Path, config: Path | None) -> int:
    """Prints what of a running robot fits its configuration, and what does not."""
    model, found = load_robot(urdf, config)
    good, bad = _live().check_live(model, found)
    for mark, texts in (("fits", good), ("WRONG", bad)):
        for text in texts:
            print(f"{mark:5}  {text}")
    return 1 if bad else 0


def _old(arguments: argparse.Namespace, output: Path) -> dict[str, Any] | None:
    """The values of an existing file that stay; ComModelError without --force and --update."""
    if not output.exists() or arguments.force:
        return None
    if not arguments.update:
        fix = "--update keeps its edits, --force overwrites it, --output names another"
        raise ComModelError(f"{output} exists already: {fix}")
    return dict(read_yaml(output))


def _ask(setup: RobotSetup, old: dict[str, Any]) -> dict[str, Any]:
    """Asks for what no URDF says; an empty answer, or the end of the input, leaves it."""
    questions = {
        "name": f"Name of the robot [{setup.name}]: ",
        "imu": f"Link of the IMU [{setup.imu.link or 'none'}]: ",
    }
    questions |= {
        f"feet.{foot.name}": f"Topic of the force sensor of {foot.name} [{foot.name}/wrench]: "
        for foot in setup.feet
    }
    answers = dict(old)
    for key, question in questions.items():
        try:
            answer = input(question).strip()
        except EOFError:
            break
        if not answer:
            continue
        if key == "imu":
            setup.model.link_index(answer)
            answers["imu"] = {"link": answer}
        elif key == "name":
            answers["name"] = answer
        else:
            wrench = {"wrench": {"topic": answer}}
            answers.setdefault("feet", {})[key.removeprefix("feet.")] = wrench
    return answers


def _report(setup: RobotSetup, text: str, urdf: Path, config: Path) -> None:
    """Prints what is unsure, with its line in the text, and what to do next."""
    unsure = lines_to_check(setup, text)
    if unsure:
        print("\n  ".join(["Unsure, please check:", *unsure]))
    gaits = {"humanoid": ["demo-walk"], "quadruped": ["demo-trot"]}
    gait = gaits.get(setup.limbs.kind, [])
    targets, reasons = ["demo", *gait, "demo-identify"], []
    points = sum(len(foot.points) for foot in setup.feet)
    straight = gait == ["demo-walk"] and setup.standing.bend < LEAST_BEND
    flat = any(foot.sole.flat for foot in setup.feet)
    wrong = any(key == "urdf" for key, _ in setup.issues)
    weak = overloaded_joints(setup.model, setup.limbs, setup.standing)
    held = f"by the URDF's torque limits {listing(weak)} cannot hold the posture"
    point_feet = "it compares postures on flat soles, not on point feet"
    for cannot, names, why in (
        (points < SUPPORT, targets, "it cannot stand on these feet without feedback"),
        (
            straight,
            ["demo", *gait],
            "the limits of its joints keep the knees straight",
        ),
        (not flat, ["demo-identify"], point_feet),
        (wrong, gait, "first correct the errors that audit finds"),
        (not setup.gait, gait, "see the legs' joints"),
        (bool(weak), ["demo-identify"], held),
    ):
        left_out = [name for name in names if cannot and name in targets]
        if left_out:
            reasons.append(f"(not {', '.join(left_out)}: {why})")
        targets = [name for name in targets if name not in left_out]
    targets = targets or ["view"]
    words = f"ROBOT={shlex.quote(str(urdf.resolve()))}"
    if config.resolve() != urdf.resolve().with_suffix(".yaml"):
        words += f" CONFIG={shlex.quote(str(config.resolve()))}"
    print(
        "\n  ".join(
            ["Next:", *(f"make {target} {words}" for target in targets), *reasons]
        )
    )


if __name__ == "__main__":
    sys.exit(main())
