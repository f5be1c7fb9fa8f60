"""Parts of the settings of an identification, and how sections of a file become such parts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_type_hints

from com_model.strict_yaml import Section

LOSSES = ("none", "huber", "tukey")
T = TypeVar("T")


@dataclass(frozen=True)
class LinkPrior:
    """What is known of one link that differs from the others; None: as for all.

    A body is a link with all that fixed joints tie to it. What is said of any of its links holds
    for the whole body.

    Attributes:
        com_std: m, of its centre of mass; 0: known.
        mass_share: Standard deviation of its mass over the mass; 0: known.
        mass: kg, of the body, where it was weighed; it takes the place of the URDF's.
    """

    com_std: float | None = None
    mass_share: float | None = None
    mass: float | None = None


@dataclass(frozen=True)
class PriorSettings:
    """How far the URDF may be off.

    Attributes:
        com_std: m, standard deviation of each component of a link's centre of mass.
        mass_share: Standard deviation of a link's mass over the mass; 0: masses are known.
        bounded: Whether a centre of mass must stay near its link's primitive shapes.
        shape_margin: m, how far outside of them it may be.
    """

    com_std: float = 0.02
    mass_share: float = 0.0
    bounded: bool = True
    shape_margin: float = 0.02


@dataclass(frozen=True)
class FitSettings:
    """How the regression works.

    Attributes:
        loss: none, huber or tukey: what postures that do not fit count.
        folds: Parts of the postures that are left out in turn for the held-out error; 0: none.
        gravity: m/s^2.
        use_effort: Whether joint efforts are used.
        use_imu: Whether gravity's direction is read from an IMU; else the ground is level.
    """

    loss: str = "tukey"
    folds: int = 5
    gravity: float = 9.81
    use_effort: bool = False
    use_imu: bool = False


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
        mass_share=section.number("mass_share", None, least=0.0),
        mass=section.number("mass", None, least=1e-9),
    )
    section.finish()
    return link
