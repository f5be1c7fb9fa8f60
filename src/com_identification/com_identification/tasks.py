"""The long computations of a live identification, in a form that another process can run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from com_identification.exceptions import IdentificationError, RankError
from com_identification.job import identify_links
from com_identification.planning.planner import PlannedPosture, PosturePlanner
from com_identification.regression.identify import Identification
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array

Progress = Callable[[float, str], None]

_FEW = 60  # candidates for one posture as a hint


@dataclass(frozen=True, eq=False)
class IdentificationTask:
    """The input of all computations.

    Attributes:
        xml: The URDF's text.
        feet: The robot's feet.
        postures: The readings.
        settings: See IdentificationSettings.
        rest: (n,) a posture in which the robot stands without self-collision.
    """

    xml: str
    feet: tuple[Foot, ...]
    postures: tuple[Posture, ...]
    settings: IdentificationSettings
    rest: Array

    def planner(self, candidates: int | None = None) -> PosturePlanner:
        """A planner with these settings."""
        model, plan = RobotModel.from_urdf(self.xml), self.settings.plan
        if candidates is not None:
            plan = replace(plan, candidates=min(candidates, plan.candidates))
        priors, options = self.settings.priors(model), self.settings.options()
        return PosturePlanner(model, self.feet, self.rest, priors, options, plan)


@dataclass(frozen=True, eq=False)
class LinksAnswer:
    """The outcome of an identification.

    Attributes:
        found: The result; None where there is none.
        problem: Why not and how to fix it.
        helpful: Postures that would help, where those given are redundant.
    """

    found: Identification | None
    problem: str = ""
    helpful: tuple[PlannedPosture, ...] = ()


@dataclass(frozen=True, eq=False)
class IdentifyTask(IdentificationTask):
    """Identifies all links."""

    def __call__(self, progress: Progress) -> LinksAnswer:
        """Computes; redundant postures are answered with one that would help."""
        model = RobotModel.from_urdf(self.xml)
        try:
            found = identify_links(model, self.feet, self.postures, self.settings, progress)
        except RankError as error:
            progress(0.5, "finding a posture that would help")
            return LinksAnswer(None, str(error), self._helpful())
        return LinksAnswer(found)

    def _helpful(self) -> tuple[PlannedPosture, ...]:
        try:
            samples = self.settings.capture.samples
            return self.planner(_FEW).propose(1, self.postures, samples)
        except IdentificationError:
            return ()  # the problem is reported without a hint


@dataclass(frozen=True, eq=False)
class ProposeTask(IdentificationTask):
    """Proposes postures.

    Attributes:
        count: How many.
    """

    count: int = 1

    def __call__(self, progress: Progress) -> tuple[PlannedPosture, ...]:
        """Computes."""
        progress(0.0, "finding postures in which the robot can stand")
        samples = self.settings.capture.samples
        return self.planner().propose(self.count, self.postures, samples)
