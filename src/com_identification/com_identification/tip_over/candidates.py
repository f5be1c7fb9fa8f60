"""Candidate explanations of the difference between a model's tip angles and a robot's.

Each candidate is linear in its parameters x: zero offsets, compliances, backlashes of joints and
first moments of bodies are those of the model plus a matrix times x. The sum of two candidates has
the parameters of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.exceptions import ProtocolError
from com_identification.regression.priors import urdf_priors
from com_identification.tip_over.protocol import Protocol
from com_identification.tip_over.quasi_static import JointErrors
from com_model import RobotModel
from com_model.arrays import Array, freeze

OFFSET_STD = np.radians(1.5)  # rad: play and jig of a robot like HOAP-2
COM_LIMIT = 0.005  # m, largest plausible error of a link's CoM
SOFTEST = 0.2  # rad/(N m)


@dataclass(frozen=True, eq=False)
class Candidate:
    """P parameters, their prior and bounds, and what they change.

    Attributes:
        labels: P names, with unit.
        start: (P,) where a search starts.
        mean: (P,) of the prior.
        std: (P,) standard deviations of the prior; inf: no prior.
        low: (P,) bounds.
        high: (P,)
        offset: (n, P) rad per unit of x.
        compliance: (n, P) rad/(N m) per unit of x.
        backlash: (n, P) rad per unit of x.
        moment: (B, 3, P) kg m per unit of x.
    """

    labels: tuple[str, ...]
    start: Array
    mean: Array
    std: Array
    low: Array
    high: Array
    offset: Array
    compliance: Array
    backlash: Array
    moment: Array

    def __post_init__(self) -> None:
        freeze(self)

    def __add__(self, other: Candidate) -> Candidate:
        """Returns the candidate with the parameters of both."""
        arrays = (
            np.concatenate((getattr(self, name), getattr(other, name)), axis=-1)
            for name in list(self.__dataclass_fields__)[1:]
        )
        return Candidate(self.labels + other.labels, *arrays)

    @property
    def count(self) -> int:
        """Number of parameters, P."""
        return len(self.labels)

    def errors(self, x: Array) -> JointErrors:
        """Returns the errors of the joints at x (P,)."""
        return JointErrors(
            self.offset @ x,
            np.maximum(self.compliance @ x, 0.0),
            np.maximum(self.backlash @ x, 0.0),
        )

    def moments(self, model: RobotModel, x: Array) -> Array:
        """Returns the first moments (B, 3) kg m of the bodies at x (P,)."""
        return np.asarray(model.bodies.first_moment + self.moment @ x)

    def com_shifts(self, model: RobotModel, x: Array) -> Array:
        """Returns the shift of each body's CoM (B, 3) m at x (P,)."""
        mass = model.bodies.mass[:, None]
        return np.divide(self.moment @ x, mass, out=np.zeros((len(mass), 3)), where=mass > 0.0)


def known_candidates(model: RobotModel, protocol: Protocol) -> dict[str, Candidate]:
    """Makes the candidates that a protocol's parameters allow, by name.

    "offsets + compliance" is what HOAP-2's tip angles speak for (docs/hoap2_lab.md).

    Raises:
        UnknownNameError: A joint or link is not the model's.
        ProtocolError: The trunk has no shapes, so that its bounds are not known.
    """
    parameters = protocol.parameters
    offsets = zero_offsets(model, list(parameters.zero_offsets.values()))
    soft = compliance(model, parameters.compliant)
    play = backlash(model, parameters.compliant)
    candidates = {
        "specification": unchanged(model),
        "compliance": soft,
        "backlash": play,
        "offsets": offsets,
        "offsets + backlash": offsets + play,
        "offsets + compliance": offsets + soft,
        "offsets + compliance + links": offsets + soft + link_shifts(model),
    }
    if parameters.trunk is not None:
        trunk = torso_shift(model, parameters.trunk)
        candidates |= {"trunk": trunk, "trunk + compliance": trunk + soft}
    return candidates


def unchanged(model: RobotModel) -> Candidate:
    """The model as it is: no parameters."""
    return _candidate(model, (), 0.0, np.inf, 0.0, 0.0)


def zero_offsets(
    model: RobotModel, groups: Sequence[Sequence[str]], std: float = OFFSET_STD
) -> Candidate:
    """Zero offsets, one a group of joints (a left and a right one), rad.

    Raises:
        UnknownNameError: No such joint.
    """
    labels = tuple(f"offset {', '.join(group)} (rad)" for group in groups)
    offset = _columns(model, groups)
    return _candidate(model, labels, 0.0, std, -0.2, 0.2, offset=offset)


def compliance(model: RobotModel, joints: Sequence[str]) -> Candidate:
    """One compliance for some joints, rad/(N m).

    Raises:
        UnknownNameError: No such joint.
    """
    label = ("compliance (rad/(N m))",)
    columns = _columns(model, [joints])
    return _candidate(model, label, 0.01, np.inf, 0.0, SOFTEST, compliance=columns)


def backlash(model: RobotModel, joints: Sequence[str]) -> Candidate:
    """One backlash for some joints, rad: its whole width.

    Raises:
        UnknownNameError: No such joint.
    """
    columns = _columns(model, [joints])
    return _candidate(model, ("backlash (rad)",), 0.01, np.inf, 0.0, 0.2, backlash=columns)


def torso_shift(model: RobotModel, link: str, axes: str = "x", std: float = np.inf) -> Candidate:
    """Shifts of one link's CoM within the box around its body's shapes, m.

    Raises:
        UnknownNameError: No such link.
        ProtocolError: The link has no shapes, so that its bounds are not known.
    """
    body = int(model.bodies.body_of_link[model.link_index(link)])
    priors = urdf_priors(model, 0.0, shape_margin=0.0)
    index = ["xyz".index(axis) for axis in axes]
    low, high = (
        b[body, index] - priors.com[body, index] for b in (priors.com_low, priors.com_high)
    )
    if not np.isfinite([low, high]).all():
        raise ProtocolError(f"link {link!r} has no shapes, so its bounds are not known: give them")
    moment = np.zeros((model.bodies.count, 3, len(index)))
    mass = model.link_masses[model.link_index(link)]
    moment[body, index, range(len(index))] = mass
    fraction = mass / model.bodies.mass[body]
    labels = tuple(f"CoM of {link}, {axis} (m)" for axis in axes)
    return _candidate(model, labels, 0.0, std, low / fraction, high / fraction, moment=moment)


def link_shifts(
    model: RobotModel, std: float = COM_LIMIT / 2, limit: float = COM_LIMIT
) -> Candidate:
    """Shifts of all bodies' CoMs, each within the box around its shapes and a limit, m.

    Args:
        model: The robot.
        std: m, of the prior.
        limit: m, the largest shift along an axis; all three axes keep it together by 1/sqrt(3).
    """
    bodies = model.bodies
    priors = urdf_priors(model, 0.0, shape_margin=0.0)
    heavy = np.flatnonzero(bodies.mass > 0.0)
    body, axis = np.repeat(heavy, 3), np.tile(np.arange(3), len(heavy))
    most = limit / np.sqrt(3.0)
    low = np.maximum((priors.com_low - priors.com)[body, axis], -most)
    high = np.minimum((priors.com_high - priors.com)[body, axis], most)
    moment = np.zeros((bodies.count, 3, len(body)))
    moment[body, axis, np.arange(len(body))] = bodies.mass[body]
    labels = tuple(
        f"CoM of {bodies.names[b]}, {'xyz'[a]} (m)" for b, a in zip(body, axis, strict=True)
    )
    slack = 1e-9  # the search wants its start inside
    return _candidate(model, labels, 0.0, std, low - slack, high + slack, moment=moment)


def _columns(model: RobotModel, groups: Sequence[Sequence[str]]) -> Array:
    columns = np.zeros((model.n_joints, len(groups)))
    for i, group in enumerate(groups):
        columns[[model.joint_index(joint) for joint in group], i] = 1.0
    return columns


def _candidate(
    model: RobotModel,
    labels: tuple[str, ...],
    start: float,
    std: float,
    low: float | Array,
    high: float | Array,
    **changes: Array,
) -> Candidate:
    count, n = len(labels), model.n_joints
    empty = {name: np.zeros((n, count)) for name in ("offset", "compliance", "backlash")}
    empty["moment"] = np.zeros((model.bodies.count, 3, count))
    vector = [np.broadcast_to(v, (count,)) for v in (start, 0.0, std, low, high)]
    return Candidate(labels, *vector, **(empty | changes))
