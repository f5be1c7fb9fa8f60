"""The statically equivalent serial chain of a robot: its end is the CoM [Cotton].

python examples/equivalent_chain.py hoap2
"""

import sys

import numpy as np

from com_model import Sesc, link_poses, load_robot


def main(robot: str) -> None:
    """Print the chain's points, and the CoM as the mean of the links' CoMs beside its end."""
    model, config = load_robot(robot)
    q = config.nominal_posture(model)
    points = Sesc(model).chain(q)
    print(f"{model.name}: a chain of {len(points) - 1} links")
    for point in points:
        print(f"  {np.round(1e3 * point, 2)} mm")
    R, p = link_poses(model, q)
    coms = p + np.einsum("lij,lj->li", R, model.link_coms)
    mean = model.link_masses @ coms / model.mass
    print(f"mean of the links' CoMs: {np.round(1e3 * mean, 2)} mm")


if __name__ == "__main__":
    main(*sys.argv[1:])
