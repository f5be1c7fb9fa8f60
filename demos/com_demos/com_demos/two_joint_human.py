"""A human of two links, legs and body, and the workspace of its centre of mass ([Cotton] eq. 12).

  CoM = r_1 (sin a, cos a) + r_2 (sin(a + b), cos(a + b)),  a the ankle, b the hip, x and z
  r_1 = (m_1 c_1 + m_2) l_1 / M,  r_2 = m_2 c_2 l_2 / M,    l_1 + l_2 = L,  m_1 + m_2 = M

with the centre of mass of link i at the fraction c_i of its length. Only postures count whose CoM
is above the foot. [Cotton] minimises the area of that workspace and finds Winter's lengths, without
printing angles or foot. As r_1 r_2 goes to 0 where one link vanishes, so does the area: its least
value is always at an end. What lies near Winter's lengths is the greatest (docs/evidence.md).
The command `workspace --human` runs it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from com_model.arrays import Array
from com_model.files import write_file
from com_model.plotting import BLUE, INK, RED, new_figure, style_axes

# fraction of the height below the hips [Winter, Biomechanics, 2005]
WINTER_LEGS = 0.530
RATIOS = np.arange(
    0.05, 0.96, 0.01
)  # lengths of the legs over the height that are compared
CELL = 0.004  # m, side of the squares that are counted
_STEPS = 600  # of each angle
# more than there are rows of squares; they become positive
_WIDE, _OFFSET = 1 << 32, 1 << 20


@dataclass(frozen=True)
class TwoJointHuman:
    """Measures of the body; the defaults are Winter's."""

    height: float = 1.80  # m, L
    legs_mass: float = 0.322  # fraction of the mass in both legs
    # fraction of the legs' length at which their CoM is, from the ankle
    legs_com: float = 0.553
    body_com: float = 0.5  # fraction of the body's length, from the hip
    # rad, least and largest; positive leans forward
    ankle: tuple[float, float] = -0.35, 0.52
    # rad, least and largest; positive bends forward
    hip: tuple[float, float] = -0.35, 2.09
    foot: tuple[float, float] = (-0.06, 0.21)  # m, heel and toe from the ankle

    def radii(self, fraction: float) -> tuple[float, float]:
        """Computes r_1 and r_2, m, for legs of a fraction of the height."""
        legs, body = self.legs_mass, 1.0 - self.legs_mass
        return (
            (legs * self.legs_com + body) * fraction * self.height,
            body * self.body_com * (1.0 - fraction) * self.height,
        )

    def workspace(self, fraction: float, cell: float = CELL) -> Array:
        """Finds where the CoM can be above the foot: corners (N, 2) m, x and z, of squares."""
        r1, r2 = self.radii(fraction)
        a = np.linspace(*self.ankle, _STEPS)[:, None]
        both = a + np.linspace(*self.hip, _STEPS)
        x, z = r1 * np.sin(a) + r2 * np.sin(both), r1 * np.cos(a) + r2 * np.cos(both)
        above = (x > self.foot[0]) & (x < self.foot[1])
        column, row = (np.floor(v[above] / cell).astype(np.int64) for v in (x, z))
        squares = np.unique((column + _OFFSET) * _WIDE + row + _OFFSET)
        return cell * (np.column_stack(np.divmod(squares, _WIDE)) - _OFFSET)

    def areas(self, fractions: Sequence[float] | Array) -> Array:
        """Measures the workspace for several lengths of the legs over the height, (k,) m^2."""
        return CELL**2 * np.array(
            [float(len(self.workspace(float(f)))) for f in fractions]
        )


def study(folder: Path | None, overwrite: bool = False) -> dict[str, float]:
    """Prints which legs give the largest and the least workspace, and draws both into a folder.

    Returns their lengths over the height, and Winter's; the last line that is printed has them as
    one JSON object. Raises OSError where the picture cannot be written.
    """
    human = TwoJointHuman()
    areas = human.areas(RATIOS)
    found = {"largest": areas.argmax(), "least": areas.argmin()}
    lengths = {name: round(float(RATIOS[i]), 2) for name, i in found.items()}
    for name, i in found.items():
        print(
            f"{name} workspace: {1e4 * areas[i]:.0f} cm^2, legs {RATIOS[i]:.2f} of the height"
        )
    print(
        f"Winter: legs {WINTER_LEGS} of the height, which [Cotton] VI.A finds for the least one"
    )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "human_com_workspace.png"
        print(f"wrote {write_file(path, human_png(human, areas), overwrite)}")
    lengths["winter"] = WINTER_LEGS
    print(json.dumps({"human_legs": lengths}))
    return lengths


def human_png(human: TwoJointHuman, areas: Array) -> bytes:
    """Draws areas (k,) m^2 over RATIOS, and the workspaces of Winter's and the extreme lengths."""
    figure = new_figure((12.0, 4.4), "Workspace of the CoM of a human of two links")
    curve, *places = figure.subplots(1, 4, width_ratios=(1.6, 1, 1, 1))
    style_axes(curve)
    curve.plot(RATIOS, 1e4 * areas, color=BLUE)
    curve.axvline(
        WINTER_LEGS, color=RED, ls="--", label="Winter; [Cotton]: least workspace"
    )
    curve.legend(frameon=False, fontsize=9)
    curve.set(xlabel="length of the legs over the height", ylabel="area (cm^2)")
    found = WINTER_LEGS, RATIOS[areas.argmax()], RATIOS[areas.argmin()]
    for axes, ratio, name in zip(
        places, found, ("Winter", "largest", "least"), strict=True
    ):
        axes.plot(*human.workspace(ratio).T, ",", color=BLUE)
        axes.plot(human.foot, (0.0, 0.0), color=INK, lw=4.0)
        style_axes(axes)
        axes.set(
            xlabel="x (m)",
            ylabel="z (m)",
            aspect="equal",
            xlim=(-0.3, 0.4),
            ylim=(-0.05, 0.8 * human.height),
        )
        axes.set_title(f"{name}: {ratio:.2f}", fontsize=10)
    png = BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()
