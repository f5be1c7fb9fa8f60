"""The total CoM from one shape that is tilted, as [Muscolo] eqs 14 to 20, in space."""

from collections.abc import Sequence

import numpy as np

from com_identification.commands.bag_results import columns
from com_identification.exceptions import PostureError
from com_identification.feet.feet_reading import identify_total
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel, Sesc

_SAME = 0.02  # rad or m, of the joints above the ankles
_TILT = 0.087  # rad, least between two postures
_ANKLE = 0.05  # m, between the two joints of one ankle, at most


def two_postures_text(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings,
) -> str:
    """What the largest group of postures of one shape says, lines of text.

    All above the ankles keeps its shape; the direction of gravity in it differs by 5 degrees or
    more. Then the vertical lines through the centres of pressure meet in its CoM, whose height no
    single posture shows. PostureError: there is no such group.
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
    best = alike[tilted[alike[tilted].sum(axis=1).argmax()]]
    own = [postures[i] for i in best.nonzero()[0].tolist()]
    total, sesc = identify_total(model, feet, own, settings), Sesc(model)
    places = [1e3 * (sesc.com(each.q) + total.offset) for each in own]
    labels = [(each.label, *(f"{v:.2f}" for v in at)) for each, at in zip(own, places, strict=True)]
    found = zip("xyz", 1e3 * total.offset, 1e3 * total.offset_std, strict=True)
    offset = ", ".join(f"{axis} {value:.2f} +- {std:.2f}" for axis, value, std in found)
    return "\n".join(
        (
            columns(("posture: total CoM in the root's frame (mm)", "x", "y", "z"), labels),
            f"less that of the URDF (mm): {offset}; the tilt is {np.degrees(spans.max()):.1f} deg",
            f"mass by the feet {total.mass:.3f} +- {total.mass_std:.3f} kg, by the URDF "
            f"{total.model_mass:.3f} kg",
            *(f"warning: {reason}" for reason in total.reasons),
        )
    )
