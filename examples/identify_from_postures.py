"""Masses and CoMs of all links from the postures that com_identification has stored.

python examples/identify_from_postures.py hoap2 ~/postures/postures.db corrected.urdf
"""

import sys
from pathlib import Path

import numpy as np

from com_identification import identify
from com_identification.report.comparison import summary
from com_identification.store.results import corrected_urdf
from com_identification.store.store import PostureStore
from com_model import load_robot


def main(robot: str, postures: str, output: str = "") -> None:
    """Print what was found; write the corrected URDF."""
    model, config = load_robot(robot)
    with PostureStore(postures, model, config.feet) as store:
        found = identify(model, config.feet, list(store.postures.values()))
    print(summary(found))
    moved = 1e3 * np.linalg.norm(found.com - found.prior_com, axis=1)
    std = 1e3 * np.linalg.norm(found.com_std, axis=1)
    for body, kg, kg_std, mm, mm_std in zip(
        found.bodies, found.mass, found.mass_std, moved, std, strict=True
    ):
        print(
            f"{body:24} {kg:8.4f} +- {kg_std:6.4f} kg  CoM by {mm:6.2f} +- {mm_std:5.2f} mm"
        )
    if output:
        Path(output).write_text(corrected_urdf(model, found))


if __name__ == "__main__":
    main(*sys.argv[1:])
