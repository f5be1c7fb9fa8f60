"""Settings of an identification, from a YAML file or a mapping; a node has them as parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar, get_type_hints

import numpy as np

from com_identification.capture.options import CaptureOptions
from com_identification.exceptions import IdentificationError
from com_identification.planning.feasible import PlanOptions
from com_identification.regression.identify import Options
from com_identification.regression.postures import SensorNoise, SensorPriors
from com_identification.regression.priors import BodyPriors, urdf_priors
from com_model import ConfigError, RobotModel, UnknownNameError
from com_model.dynamics import GRAVITY
from com_model.parameters import NOT_NEGATIVE, parameter
from com_model.strict_yaml import Section, read_yaml

LOSSES = ("none", "huber", "tukey")
T = TypeVar("T")
_PARTS = ("noise", "sensors", "prior", "fit", "capture", "plan")


@dataclass(frozen=True)
class LinkPrior:
    """What is known of one link that differs from the others; None: as for all.

    A body is a link with all links that fixed joints connect to it; a prior of one of its links is
    that of the whole body.

    Attributes:
        com_std: m, of its centre of mass; 0: known.
        mass_std_fraction: Standard deviation of its mass over the mass; 0: known.
        mass: kg, of the body, where it was weighed; replaces the URDF's.
    """

    com_std: float | None = None
    mass_std_fraction: float | None = None
    mass: float | None = None


@dataclass(frozen=True)
class PriorSettings:
    """Standard deviations and bounds of the URDF's values."""

    com_std: float = parameter(
        0.02, "m, standard deviation of each component of a link's centre of mass", NOT_NEGATIVE
    )
    mass_std_fraction: float = parameter(
        0.0, "Standard deviation of a link's mass over the mass; 0: masses are known", NOT_NEGATIVE
    )
    bounded: bool = parameter(
        True, "Whether a centre of mass must stay near its link's primitive shapes"
    )
    shape_margin: float = parameter(0.02, "m, how far outside of them it may be", NOT_NEGATIVE)


@dataclass(frozen=True)
class FitSettings:
    """How the regression works."""

    loss: str = parameter("tukey", "how outliers are weighted", choices=LOSSES)
    folds: int = parameter(
        5,
        "Parts of the postures that are left out in turn for the held-out error; 0: none",
        (0, 10**9),
    )
    gravity: float = parameter(GRAVITY, "m/s^2", NOT_NEGATIVE)
    use_effort: bool = parameter(False, "Whether joint efforts are used")
    use_imu: bool = parameter(
        False, "Whether gravity's direction is measured by an IMU; else the ground is horizontal"
    )


def read_part(top: Section, name: str, kind: type[T]) -> T:
    """Reads a section by the fields of a dataclass, their types and defaults.

    Raises:
        ConfigError: A key is wrong; names it and what it expects.
    """
    section, hints, default = top.section(name), get_type_hints(kind), kind()
    values = {
        item.name: _value(section, item.name, hints[item.name], getattr(default, item.name))
        for item in fields(kind)  # type: ignore[arg-type]
    }
    section.finish()
    return kind(**values)


def _value(section: Section, key: str, kind: Any, default: Any) -> Any:
    if kind is bool:
        return section.flag(key, default)
    if kind is str:
        return section.text(key, default)
    if kind is int:
        return section.whole(key, default, least=0)
    if kind is float:
        return section.number(key, default, least=0.0)
    return tuple(tuple(row) for row in section.indices(key))


def read_link(section: Section) -> LinkPrior:
    """Reads what is known of a link.

    Raises:
        ConfigError: A key is wrong; names it and what it expects.
    """
    link = LinkPrior(
        com_std=section.number("com_std", None, least=0.0),
        mass_std_fraction=section.number("mass_std_fraction", None, least=0.0),
        mass=section.number("mass", None, least=1e-9),
    )
    section.finish()
    return link


@dataclass(frozen=True)
class IdentificationSettings:
    """Settings of an identification; sections of a file, groups of parameters.

    Attributes:
        noise: Of one reading of each sensor.
        sensors: Which constant errors of the sensors are estimated.
        prior: Standard deviations of the URDF's values.
        links: What differs for some links, by the link's name.
        fit: How the regression works.
        capture: When a robot is stationary.
        plan: Which postures may be proposed.
    """

    noise: SensorNoise = field(default_factory=SensorNoise)
    sensors: SensorPriors = field(default_factory=SensorPriors)
    prior: PriorSettings = field(default_factory=PriorSettings)
    links: Mapping[str, LinkPrior] = field(default_factory=dict)
    fit: FitSettings = field(default_factory=FitSettings)
    capture: CaptureOptions = field(default_factory=CaptureOptions)
    plan: PlanOptions = field(default_factory=PlanOptions)

    def __post_init__(self) -> None:
        for name in _PARTS:
            for item in fields(getattr(self, name)):
                _check_number(f"{name}.{item.name}", getattr(getattr(self, name), item.name))
        if self.fit.loss not in LOSSES:
            raise _error(f"expected one of {', '.join(LOSSES)}, got {self.fit.loss!r}", "fit.loss")
        if not self.fit.gravity > 0.0:
            raise _error(f"expected more than 0, got {self.fit.gravity:g}", "fit.gravity")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> IdentificationSettings:
        """Reads a YAML file; missing keys have their defaults.

        Raises:
            ConfigError: The file or a key in it is wrong; names the key and what it expects.
        """
        data = read_yaml(path)
        return _settings(Section({} if data is None else data, str(path)))

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], source: str = "identification settings"
    ) -> IdentificationSettings:
        """Reads a mapping with sections noise, sensors, prior, links, fit, capture, plan.

        Raises:
            ConfigError: As from_file.
        """
        return _settings(Section(data, source))

    @property
    def use_imu(self) -> bool:
        """Whether gravity's direction is read from an IMU."""
        return self.fit.use_imu

    @property
    def use_effort(self) -> bool:
        """Whether joint efforts are used."""
        return self.fit.use_effort

    @property
    def gravity(self) -> float:
        """m/s^2."""
        return self.fit.gravity

    def using(
        self, *, imu: bool | None = None, effort: bool | None = None
    ) -> IdentificationSettings:
        """The same with other readings; None leaves one as it is."""
        fit = replace(
            self.fit,
            use_imu=self.use_imu if imu is None else imu,
            use_effort=self.use_effort if effort is None else effort,
        )
        return replace(self, fit=fit)

    def to_dict(self) -> dict[str, Any]:
        """Returns what from_dict reads."""
        found: dict[str, Any] = {name: asdict(getattr(self, name)) for name in _PARTS}
        found["plan"]["stands"] = [list(stand) for stand in self.plan.stands]
        found["links"] = {
            name: {key: value for key, value in asdict(link).items() if value is not None}
            for name, link in sorted(self.links.items())
        }
        return found

    def check(self, model: RobotModel) -> None:
        """Checks that the links that it names are the model's, and their bodies have mass.

        Raises:
            ConfigError: One is not; lists those that there are.
        """
        for name in self.links:
            key = f"links.{name}"
            if name not in model.link_names:
                raise _error(str(UnknownNameError("link", name, model.link_names)), key)
            if not model.bodies.mass[model.bodies.body_of_link[model.link_index(name)]] > 0.0:
                raise _error("it has no mass in the URDF: give it an inertial there first", key)

    def priors(self, model: RobotModel) -> BodyPriors:
        """Returns the priors of the bodies.

        Raises:
            ConfigError: As check().
        """
        self.check(model)
        count = model.bodies.count
        mass = np.array(model.bodies.mass)
        com_std = np.full(count, self.prior.com_std)
        mass_std_fraction = np.full(count, self.prior.mass_std_fraction)
        for name, link in self.links.items():
            body = model.bodies.body_of_link[model.link_index(name)]
            mass[body] = mass[body] if link.mass is None else link.mass
            if link.com_std is not None:
                com_std[body] = link.com_std
            if link.mass_std_fraction is not None:
                mass_std_fraction[body] = link.mass_std_fraction
        margin = self.prior.shape_margin if self.prior.bounded else None
        priors = urdf_priors(model, com_std, mass_std_fraction, margin)
        return replace(priors, mass=mass, mass_std=mass * mass_std_fraction)

    def options(self, refuse_redundant: bool = True) -> Options:
        """Returns the options of identify()."""
        return Options(
            noise=self.noise,
            sensors=self.sensors,
            gravity=self.fit.gravity,
            loss=self.fit.loss,
            folds=self.fit.folds,
            refuse_redundant=refuse_redundant,
        )


def _settings(top: Section) -> IdentificationSettings:
    links = top.section("links")
    try:
        found = IdentificationSettings(
            noise=read_part(top, "noise", SensorNoise),
            sensors=read_part(top, "sensors", SensorPriors),
            prior=read_part(top, "prior", PriorSettings),
            links={name: read_link(links.section(name)) for name in links.entries()},
            fit=read_part(top, "fit", FitSettings),
            capture=read_part(top, "capture", CaptureOptions),
            plan=read_part(top, "plan", PlanOptions),
        )
    except IdentificationError as error:
        raise top.error(str(error)) from error
    top.finish()
    return found


def _check_number(key: str, value: Any) -> None:
    if isinstance(value, float) and not (np.isfinite(value) and value >= 0.0):
        raise _error(f"expected a finite number, 0 or more, got {value}", key)


def _error(message: str, key: str) -> ConfigError:
    return ConfigError(message, "identification settings", key)
