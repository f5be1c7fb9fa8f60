"""Writes the inertials of a URDF, as identify and others correct it, into a model of MuJoCo."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from com_model.commands import command_parser, reports_errors
from com_model.exceptions import ComModelError
from com_model.files import write_file
from com_model.model import RobotModel
from com_model.urdf.editing import Inertial
from com_model.urdf.mjcf_editing import edit_mjcf


@reports_errors("inertials_to_mjcf: error", 2, ComModelError, OSError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 on success, 2 when a file cannot be read or written.
    """
    parser = command_parser("inertials_to_mjcf", __doc__, __file__)
    parser.add_argument("urdf", type=Path, help="the corrected URDF")
    parser.add_argument("mjcf", type=Path, help="the model of MuJoCo of the same robot")
    text = (
        "ending of the new files: g1.xml becomes g1_corrected.xml; default: _corrected"
    )
    parser.add_argument("--suffix", default="_corrected", help=text)
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    options = parser.parse_args(argv)
    new, old = (
        RobotModel.from_file(options.urdf),
        RobotModel.from_mjcf(options.mjcf),
    )
    changes = changed_inertials(old, new)
    if not changes:
        print("nothing to do: all inertials are the same")
        return 0
    files = edit_mjcf(options.mjcf, changes)
    renamed = {path.name: path.with_stem(path.stem + options.suffix) for path in files}
    main_file = options.mjcf.with_stem(options.mjcf.stem + options.suffix)
    # the model's file includes the new ones
    texts = files | (
        {} if options.mjcf in files else {options.mjcf: options.mjcf.read_text()}
    )
    for path, content in texts.items():
        for name, other in renamed.items():
            content = content.replace(f'file="{name}"', f'file="{other.name}"')
        target = main_file if path == options.mjcf else renamed[path.name]
        print(f"wrote {write_file(target, content, options.force)}")
    left = changed_inertials(RobotModel.from_mjcf(main_file), new)
    if left:
        raise ComModelError(
            f"{main_file}: MuJoCo has other inertials of {', '.join(left)} than the URDF: "
            "look at <compiler> (settotalmass, balanceinertia, boundmass) and <default>"
        )
    print(f"{len(changes)} inertials: {', '.join(changes)}")
    return 0


def changed_inertials(old: RobotModel, new: RobotModel) -> dict[str, Inertial]:
    """Inertials of links of the same name that differ.

    Args:
        old: The robot as it was.
        new: The robot as it is to be.

    Returns:
        The new inertials by link.

    Raises:
        ComModelError: A link with mass is not there.
    """
    found = {}
    same_to = 1e-9  # relative
    for k, name in enumerate(new.link_names):
        mass, com, inertia = new.link_masses[k], new.link_coms[k], new.link_inertias[k]
        if name not in old.link_names:
            if mass > 0.0:
                raise ComModelError(
                    f"the link {name} of the URDF is no body of the model"
                )
            continue
        own = old.link_index(name)
        same = np.isclose(mass, old.link_masses[own], rtol=same_to, atol=0.0)
        same &= np.allclose(com, old.link_coms[own], rtol=0.0, atol=same_to)
        scale = np.abs(inertia).max()
        same &= np.allclose(
            inertia, old.link_inertias[own], rtol=0.0, atol=same_to * scale
        )
        if not same:
            found[name] = Inertial(float(mass), com, inertia)
    return found


if __name__ == "__main__":
    sys.exit(main())
