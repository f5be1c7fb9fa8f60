"""The two computations that the node and the offline command share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from com_estimation.identification.postures import Posture
from com_estimation.identification.result import Identification
from com_estimation.identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, freeze

Progress = Callable[[float, str], None]
"""Told the share that is done, 0 to 1, and what is being done."""


@dataclass(frozen=True, eq=False)
class TotalCom:
    """The robot's mass and how far its model's CoM is off, by the feet alone.

    Attributes:
        mass: kg, by the feet; the mean of the postures.
        mass_deviation: kg, of the mean: scatter of the postures, or noise where that is larger.
        model_mass: kg, of the URDF.
        offset: (3,) m, root axes: the one shift of the model's CoM that explains the postures best.
            What no posture tells is 0: across level ground the feet tell two components only.
        offset_deviation: (3,) m; inf for a component that no posture tells.
        residual_before: (P,) m, distance across gravity between model and feet.
        residual_after: (P,) m, with the shift.
        postures: P, how many had all feet's wrenches.
        reasons: What is doubtful, sentences.
    """

    mass: float
    mass_deviation: float
    model_mass: float
    offset: Array
    offset_deviation: Array
    residual_before: Array
    residual_after: Array
    postures: int
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)


def identify_links(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Identification:
    """Identifies the centres of mass (and masses, if unknown) of all links.

    Args:
        model: The robot as its URDF has it.
        feet: Its feet.
        postures: The readings.
        settings: See IdentificationSettings.
        progress: Told how far it is.
        cancelled: Asked now and then whether to stop.

    Raises:
        Cancelled: It was asked to stop.
        RankError: The postures are too alike; names joints to move.
        PostureError: Readings that cannot be used; names the posture.
        IdentificationError: There are no postures, or nothing is unknown.
        ConfigError: The settings name a link that the model has not.
    """
    raise NotImplementedError


def identify_total(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings | None = None,
) -> TotalCom:
    """Finds mass and offset of the CoM by the feet alone: a quick answer, one posture will do.

    Raises:
        IdentificationError: No posture has the wrenches of all feet.
        PostureError: Readings that cannot be used.
    """
    raise NotImplementedError
