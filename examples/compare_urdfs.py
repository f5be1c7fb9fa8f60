"""Where two URDFs of one robot differ: masses and centres of mass of links, and of the whole.

python examples/compare_urdfs.py before.urdf after.urdf
"""

import sys

import numpy as np

from com_model import RobotModel, Sesc


def main(before: str, after: str) -> None:
    """Print the differences in kg and mm; links are matched by name."""
    old, new = (RobotModel.from_file(path) for path in (before, after))
    for i, link in enumerate(old.link_names):
        if link not in new.link_names:
            print(f"{link:24} is missing in {after}")
            continue
        j = new.link_index(link)
        kg = new.link_masses[j] - old.link_masses[i]
        mm = 1e3 * np.linalg.norm(new.link_coms[j] - old.link_coms[i])
        if abs(kg) > 1e-9 or mm > 1e-6:
            print(f"{link:24} {kg:+9.4f} kg  CoM by {mm:7.2f} mm")
    if old.joint_names == new.joint_names:
        com = Sesc(new).com(new.neutral) - Sesc(old).com(old.neutral)
        print(
            f"{'whole robot':24} {new.mass - old.mass:+9.4f} kg  CoM by {1e3 * com.round(6)} mm"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
