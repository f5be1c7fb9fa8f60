"""The total CoM from one shape that is tilted, as [Muscolo] eqs 14 to 20, in space."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.exceptions import PostureError
from com_identification.feet.feet_reading import TotalCom, identify_total
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel, Sesc
from com_model.arrays import Array, FrozenArrays

_SAME = 0.02  # rad or m, of the joints above the ankles
_TILT = 0.087  # rad, least between two postures
_ANKLE = 0.05  # m, between the two joints of one ankle, at most


@dataclass(frozen=True, eq=False)
class TiltedShape(FrozenArrays):
    """The CoM of one shape that stood at several tilts."""

    total: TotalCom  # of its postures; the offset has its height, too
    postures: tuple[int, ...]  # indices of those, P
    com: Array  # (P, 3) m, total CoM in each, root axes
    tilt: float  # rad, largest between two of them


def find_tilted_shape(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings,
) -> TiltedShape:
    """Finds the total CoM by the largest group of postures of one shape.

    All above the ankles keeps its shape; the direction of gravity in it differs by 5 degrees or
    more. Then the vertical lines through the centres of pressure meet in its CoM, whose height no
    single posture shows.

    Raises:
        PostureError: There is no such group.
    """
    ankles = set()
    for foot in feet:
        path = model.bodies.path_to(model.bodies.body_of_link[model.link_index(foot.frame)])
        two = path and np.linalg.norm(model.bodies.d[path[-1]]) < _ANKLE
        ankles |= {int(model.bodies.q_index[body]) for body in path[-1 - bool(two) :]}
    shape = [i for i in range(model.n_joints) if i not in ankles]
    Q = np.array([posture.q[shape] for posture in postures]).reshape(len(postures), len(shape))
    alike = np.abs(Q[:, None] - Q[None]).max(axis=2, initial=0.0) < _SAME
    observations = ObservationModel(model, feet, settings.noise, settings.fit.gravity)
    ups = np.array([observations.up_direction(posture) for posture in postures])
    tilts = np.arccos(np.clip(ups @ ups.T, -1.0, 1.0))
    spans = np.array([np.nanmax(tilts[i][same], initial=0.0) for i, same in enumerate(alike)])
    tilted = np.flatnonzero(spans >= _TILT)
    if not tilted.size:
        raise PostureError(
            f"none of {len(postures)} postures is another one tilted: stand still, then with both "
            f"ankles turned by {np.degrees(_TILT):.0f} degrees or more and all other joints as "
            f"they are; the largest tilt of one shape is {np.degrees(spans.max()):.1f} degrees"
        )
    best = int(tilted[alike[tilted].sum(axis=1).argmax()])
    own = np.flatnonzero(alike[best]).tolist()
    total, sesc = identify_total(model, feet, [postures[i] for i in own], settings), Sesc(model)
    com = sesc.com_batch(np.array([postures[i].q for i in own])) + total.offset
    return TiltedShape(total, tuple(own), com, float(spans[best]))
