"""Tip angles of a robot that moves so slowly that it is always at rest.

It tips where the ground projection of its CoM leaves the support polygon, soles flat on the ground
([Cominoli] section 8, [Cotton] IV.A). Joints may be off by a zero offset, give way under their
load, and lie on one side of their backlash; so the joint is not where its encoder says, and the
angle that is written down is the encoder's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from com_identification.tip_over import kernels
from com_identification.tip_over.cases import Case, make_case
from com_identification.tip_over.exceptions import ProtocolError
from com_identification.tip_over.joint_errors import JointErrors
from com_identification.tip_over.protocol import Protocol, TipTest
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, as_array, freeze

_SCAN = 64  # angles at which to look before searching


@dataclass(frozen=True, eq=False)
class Standing:
    """The robot at rest.

    Attributes:
        com: (3,) m, on the ground: x, y, z of the frame of the first foot.
        margin: m to the nearest edge of the side that it is to fall to.
        joints: (n,) rad, where they are.
        load: (n,) N m, dV/dq: what turns them the other way.
    """

    com: Array
    margin: float
    joints: Array
    load: Array

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True)
class TipAngle:
    """How a test ends.

    Attributes:
        test: Its name.
        angle: rad, by the encoders of the joints; NaN where the robot does not stand at the start,
            or sinks down before it tips.
        falls: False where the joints reach their limit, `angle`, without a fall.
    """

    test: str
    angle: float
    falls: bool


@dataclass(frozen=True)
class QuasiStatic:
    """The tests of a protocol with a robot.

    Attributes:
        model: The robot; its masses are the default.
        cases: One a test.
        tree: The robot for the kernels.
    """

    model: RobotModel
    cases: tuple[Case, ...]
    tree: kernels.Tree = field(repr=False)

    @classmethod
    def of(cls, model: RobotModel, config: RobotConfig, protocol: Protocol) -> QuasiStatic:
        """Prepares a protocol.

        Raises:
            UnknownNameError: A joint is not the model's.
            ProtocolError: A foot is not the robot's, the soles do not lie on one ground, or joints
                start beyond their limits.
        """
        protocol.check(model, config)
        tree = kernels.Tree(*(np.array(getattr(model.bodies, f)) for f in kernels.Tree._fields))
        return cls(model, tuple(make_case(model, config.feet, t) for t in protocol.tests), tree)

    @property
    def tests(self) -> tuple[TipTest, ...]:
        """The tests."""
        return tuple(case.test for case in self.cases)

    def stand(
        self, test: int, angle: float, errors: JointErrors, moment: ArrayLike | None = None
    ) -> Standing:
        """Lets the robot stand in a test.

        Args:
            test: Its number.
            angle: rad, of its joints by their encoders.
            errors: Of the joints.
            moment: (B, 3) kg m, first moments of the bodies; those of the URDF by default.

        Raises:
            ProtocolError: It does not come to rest: the joints are too soft.
        """
        case = self.cases[test]
        told = case.start + angle * case.rate
        q, com, load = told + errors.offset, np.empty(3), np.empty(self.model.n_joints)
        share, moment = case.stance.share, self._moment(moment)
        soft = self._joints(errors)
        if not kernels.sag(told, self.tree, moment, case.soles, share, soft, q, com, load):
            raise ProtocolError(f"{case.test.name}: the robot sinks down: its joints are too soft")
        return Standing(com, float(kernels.inside(com, case.stance.edges)), q, load)

    def tips(
        self, errors: JointErrors | None = None, moment: ArrayLike | None = None
    ) -> tuple[TipAngle, ...]:
        """Turns the joints of each test from the start to the first fall, or to their limit.

        Args:
            errors: Of the joints; none by default.
            moment: (B, 3) kg m, first moments of the bodies; those of the URDF by default.
        """
        soft, moment = self._joints(errors), self._moment(moment)
        return tuple(self._first_fall(case, moment, soft) for case in self.cases)

    def tip_angles(
        self, errors: JointErrors | None = None, moment: ArrayLike | None = None
    ) -> Array:
        """Gives the angles (T,) of `tips`, rad."""
        return np.array([tip.angle for tip in self.tips(errors, moment)])

    def tip_angles_near(
        self,
        guess: ArrayLike,
        errors: JointErrors | None = None,
        moment: ArrayLike | None = None,
        only: Sequence[int] | None = None,
    ) -> Array:
        """Searches for the angles near a guess, whatever the limits of the joints.

        Args:
            guess: (T,) rad, of the tests.
            errors: Of the joints; none by default.
            moment: (B, 3) kg m, first moments of the bodies; those of the URDF by default.
            only: Numbers of the tests; all by default.

        Returns:
            (T,) rad; NaN where there is none.
        """
        soft, moment = self._joints(errors), self._moment(moment)
        cases = self.cases if only is None else [self.cases[i] for i in only]
        near = np.asarray(guess, dtype=float)
        return np.array([self._tip(c, g, moment, soft) for c, g in zip(cases, near, strict=True)])

    def _tip(self, case: Case, guess: float, moment: Array, soft: kernels.Joints) -> float:
        arguments = (self.tree, moment, case.soles, case.stance, soft)
        return float(kernels.tip(case.start, case.rate, guess, *arguments))

    def _first_fall(self, case: Case, moment: Array, soft: kernels.Joints) -> TipAngle:
        """Looks for the first change of sign from 0 on, then searches near it."""
        name, limit = case.test.name, case.limits[case.test.turn > 0]
        angles = np.linspace(0.0, limit, _SCAN)
        margins = kernels.margins(
            angles, case.start, case.rate, self.tree, moment, case.soles, case.stance, soft
        )
        out = np.flatnonzero(~(margins > 0.0))
        if not len(out):
            return TipAngle(name, limit, False)
        if out[0] == 0:
            return TipAngle(name, float("nan"), True)
        return TipAngle(name, self._tip(case, float(angles[out[0] - 1]), moment, soft), True)

    def _joints(self, errors: JointErrors | None) -> kernels.Joints:
        errors = errors or JointErrors.none(self.model)
        return kernels.Joints(errors.offset, errors.compliance, errors.backlash)

    def _moment(self, moment: ArrayLike | None) -> Array:
        if moment is None:
            return np.array(self.model.bodies.first_moment)
        return np.array(as_array("moment", moment, (self.model.bodies.count, 3)))
