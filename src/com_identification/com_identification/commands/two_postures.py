"""What `identify --method two-postures` prints."""

from collections.abc import Sequence

import numpy as np

from com_identification.commands.bag_results import columns
from com_identification.feet.tilted_shape import find_tilted_shape
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel


def two_postures_text(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings,
) -> str:
    """The total CoM by one shape at several tilts, lines of text; raises as find_tilted_shape."""
    found = find_tilted_shape(model, feet, postures, settings)
    total = found.total
    pairs = zip(found.postures, 1e3 * found.com, strict=True)
    rows = [(postures[i].label, *(f"{value:.2f}" for value in com)) for i, com in pairs]
    parts = zip("xyz", 1e3 * total.offset, 1e3 * total.offset_std, strict=True)
    offset = ", ".join(f"{axis} {value:.2f} +- {std:.2f}" for axis, value, std in parts)
    return "\n".join(
        (
            columns(("posture: total CoM in the root's frame (mm)", "x", "y", "z"), rows),
            f"less that of the URDF (mm): {offset}; the tilt is {np.degrees(found.tilt):.1f} deg",
            f"mass by the feet {total.mass:.3f} +- {total.mass_std:.3f} kg, by the URDF "
            f"{total.model_mass:.3f} kg",
            *(f"warning: {reason}" for reason in total.reasons),
        )
    )
