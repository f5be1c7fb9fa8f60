"""What a report tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from com_identification.capture.capture_options import Dropped, StillInterval
from com_identification.job import TotalCom
from com_identification.regression.result import Identification, Misfit, Misfits
from com_identification.report.fit import PostureFit
from com_model import Foot, RobotModel
from com_model.arrays import Array

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class TopicLine:
    """A topic that was read.

    Attributes:
        role: What it was read for.
        name: Of the topic.
        type_name: Of its messages.
        messages: How many could be read.
    """

    role: str
    name: str
    type_name: str
    messages: int


@dataclass(frozen=True, eq=False)
class Contents:
    """All that stands in a report.

    Attributes:
        robot: Name of the robot.
        inputs: What was given, by name: bag, URDF, configuration, settings, as the user wrote it.
        topics: That were read.
        seconds: Between first and newest joint state.
        first_ns: Stamp of the first joint state, ns; times are told from it.
        notes: What is odd about the recording, sentences.
        dropped: Readings that were left out.
        tally: Seconds that the robot was still, and seconds lost by cause.
        intervals: Still intervals, in order.
        findings: What the check of the wrenches found, sentences.
        model: The robot as its URDF has it.
        feet: Its feet.
        found: The result.
        prior_std: (B, 3) m, of the centres of mass before the data.
        total: By the feet alone, of the postures that fit; None where none has their wrenches.
        fits: Posture by posture.
        changed: Links that have new values in the corrected URDF.
        kept: Why others have not, sentences.
    """

    robot: str
    inputs: Mapping[str, str]
    topics: Sequence[TopicLine]
    seconds: float
    first_ns: int
    notes: Sequence[str]
    dropped: Dropped
    tally: Mapping[str, float]
    intervals: Sequence[StillInterval]
    findings: Sequence[str]
    model: RobotModel
    feet: Sequence[Foot]
    found: Identification
    prior_std: Array
    total: TotalCom | None
    fits: Sequence[PostureFit]
    changed: Sequence[str]
    kept: Sequence[str]

    def since_start(self, time_ns: int) -> float:
        """Seconds from the first joint state."""
        return (time_ns - self.first_ns) / NS_PER_S

    @property
    def labels(self) -> list[str]:
        """What to call the bodies: the links that have their mass."""
        return body_labels(self.model, self.found.bodies)


def misfits(found: Identification) -> list[tuple[str, Misfit]]:
    """The misfits to show, with their names; without the outliers too where there are any."""
    groups: list[tuple[str, Identification | Misfits]] = [("", found)]
    if found.outliers:
        groups.append((", without outliers", found.without_outliers))
    return [
        (f"{name}{suffix}", misfit)
        for suffix, group in groups
        for name, misfit in (
            ("URDF", group.prior_residual),
            ("identified", group.residual),
            ("identified, postures left out of the fit in turn", group.held_out),
        )
    ]


def body_labels(model: RobotModel, bodies: Sequence[str]) -> list[str]:
    """Names bodies by their first link, and by the heaviest where that is another."""
    masses, owner = model.link_masses, model.bodies.body_of_link
    labels = []
    for b, name in enumerate(bodies):
        links = [i for i in range(len(owner)) if owner[i] == b]
        heaviest = model.link_names[max(links, key=lambda i: float(masses[i]))]
        labels.append(name if heaviest == name else f"{name} ({heaviest})")
    return labels
