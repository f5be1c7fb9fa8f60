"""A small language to move joints by hand ([Cominoli] 7.2, hoap2moves): words in, effects out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import MotionError
from com_control.motion.layout import MotionLayout
from com_model.arrays import Array, FrozenArrays
from com_model.text import closest, quote

HELP = """\
Move joints smoothly by hand. A joint is its name or its number in the list.

  show [JOINT ...]             where the joints are, and their ranges
  set JOINT NUMBER [UNIT] ...  go there; "set" may be left out:  4 0.3
  by JOINT NUMBER [UNIT] ...   go on by so much:                 by 4 -5deg
  reset JOINT ... | all        back to zero (or the nearest position that is allowed)
  stop                         come to rest now
  speed [PERCENT]              of what the joints can, 1 to 100
  unit [rad|deg|pulse]         of numbers without one
  save FILE                    write the posture as a motion file (csv)
  help [COMMAND]               more on a command
  quit                         end; the robot stays where it is

Several joints of one line begin and arrive together:  set LLEG_JOINT4 30deg RLEG_JOINT4 30deg
"""

TOPICS = {
    "show": """\
show [JOINT ...]
  Number, name, position in rad, deg and pulses, range. Pulses are there where the robot's
  configuration has the counts of its encoders.""",
    "set": """\
set JOINT NUMBER [UNIT] [JOINT NUMBER [UNIT] ...]
  Go smoothly to positions: rad, deg, or pulse with the robot's own signs (m for joints that move
  along a line). A position beyond a joint's range is refused, and then nothing moves at all.
    set BODY_JOINT1 0.2
    set 22 20deg 12 20 deg
    LLEG_JOINT4 -6270 pulse""",
    "by": """\
by JOINT NUMBER [UNIT] ...
  As set, but counted from where the joints are.""",
    "reset": """\
reset JOINT ... | reset all
  Back to zero; a joint whose range has no zero goes to the end that is nearest.
  All joints at once can make a robot fall: hang it up, or reset few at a time.""",
    "stop": """\
stop
  Comes to rest smoothly within half a second, wherever the joints are then. So does quit, Ctrl-C,
  a joint that does not follow, and joint_states that time out.""",
    "speed": """\
speed [PERCENT]
  Fraction of the velocity and acceleration limits that moves use; 10 at the start.""",
    "unit": """\
unit [rad|deg|pulse]
  Of numbers without one; rad at the start.""",
    "save": """\
save FILE
  Writes where the joints are as a motion file of one row; motion_player goes to it as to any
  other. Asks before it overwrites: the next line is the answer, yes or no.""",
    "quit": """\
quit
  Ends; so do exit, Ctrl-D and the end of a script.""",
}


UNITS = {"rad": "rad", "deg": "deg", "pulse": "pulse", "pulses": "pulse", "m": "m"}
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([a-z]*)")
_ROUNDING = 1e-4  # rad or m, by which a rounded position may be over a limit
_LONGEST = 4000  # characters of a line


@dataclass(frozen=True)
class Reply:
    """Text for the user; refused: the command could not be done."""

    text: str
    refused: bool = False


@dataclass(frozen=True, eq=False)
class Move(FrozenArrays):
    """Go smoothly to targets (k,), rad or m; NaN for joints that stay.

    Attributes:
        targets: The same.
        fraction: Of the limits of velocity and acceleration.
    """

    targets: Array
    fraction: float


@dataclass(frozen=True)
class Save:
    """Write the posture to a file."""

    path: Path


@dataclass(frozen=True)
class Stop:
    """Come to rest smoothly."""


@dataclass(frozen=True)
class Quit:
    """End."""


Effect = Reply | Move | Save | Stop | Quit


class Console:
    """Understands one line after another.

    Args:
        layout: The joints, their limits and, where known, their counts.
        straight: Names of joints that move along a line (m instead of rad).
        exists: Whether a file is there.
    """

    def __init__(
        self,
        layout: MotionLayout,
        straight: tuple[str, ...] = (),
        exists: Callable[[Path], bool] = Path.exists,
    ) -> None:
        self._layout, self._straight, self._exists = layout, frozenset(straight), exists
        self._unit, self._fraction = "rad", 0.1
        self._doubtful: Path | None = None
        self._commands: Mapping[str, Callable[[list[str], Array], list[Effect]]] = {
            "show": self._show,
            "set": self._set,
            "by": self._by,
            "reset": self._reset,
            "save": self._save,
            "speed": self._speed,
            "unit": self._set_unit,
            "stop": lambda words, _: [Stop()],
            "help": self._help,
            "quit": lambda words, _: [Quit()],
        }

    @property
    def asking(self) -> bool:
        """Whether the next line is the answer to a question."""
        return self._doubtful is not None

    def feed(self, line: str, measured: ArrayLike) -> list[Effect]:
        """Says what a line means; nothing it contains raises.

        Args:
            line: What the user wrote; "#" begins a comment.
            measured: (k,) rad or m, where the joints are; NaN where not known.
        """
        if self._doubtful is not None:
            return self._answer(line)
        try:
            words = shlex.split(line[:_LONGEST], comments=True)
            return self._run(words, np.asarray(measured, dtype=float)) if words else []
        except (MotionError, ValueError) as error:
            return [Reply(str(error), refused=True)]

    def _run(self, words: list[str], measured: Array) -> list[Effect]:
        name = {"exit": "quit", "where": "show", "?": "help"}.get(words[0].lower(), words[0])
        command = self._commands.get(name.lower())
        if command is not None:
            return command(words[1:], measured)
        if len(words) > 1:
            try:
                self._joint(words[0])
            except MotionError:
                pass
            else:
                return self._set(words, measured)
        near = closest(name.lower(), tuple(self._commands))
        hint = f"; did you mean {near}?" if near else ""
        raise MotionError(f"unknown command {quote(words[0])}{hint} Write help for those there are")

    # --- commands ------------------------------------------------------------------------------
    def _show(self, words: list[str], measured: Array) -> list[Effect]:
        chosen = [self._joint(word) for word in words] or range(len(self._layout.joints))
        head = f"{'':>3} {'joint':<20} {'rad':>9} {'deg':>8} {'pulse':>7}  range (rad)"
        return [Reply("\n".join([head, *(self._row(i, measured[i]) for i in chosen)]))]

    def _row(self, i: int, value: float) -> str:
        layout, name = self._layout, self._layout.joints[i]
        straight, counts = name in self._straight, layout.counts_per_rad[i]
        degrees = "" if straight else f"{np.degrees(value):.2f}"
        pulses = "" if not np.isfinite(counts * value) else f"{round(value * counts)}"
        extent = f"{layout.lower[i]:.3f} to {layout.upper[i]:.3f}{' m' if straight else ''}"
        return f"{i + 1:>3} {name:<20} {value:>9.4f} {degrees:>8} {pulses:>7}  {extent}"

    def _set(self, words: list[str], measured: Array) -> list[Effect]:
        return self._move(self._pairs(words, "set"))

    def _by(self, words: list[str], measured: Array) -> list[Effect]:
        pairs = self._pairs(words, "by")
        unknown = [self._layout.joints[i] for i in pairs if not np.isfinite(measured[i])]
        if unknown:
            raise MotionError(f"where {unknown[0]} stands is not known: wait for joint_states")
        return self._move({i: float(measured[i]) + value for i, value in pairs.items()})

    def _reset(self, words: list[str], measured: Array) -> list[Effect]:
        if not words:
            raise MotionError("reset: name joints, or write reset all")
        layout = self._layout
        every = [word.lower() for word in words] == ["all"]
        chosen = range(len(layout.joints)) if every else [self._joint(word) for word in words]
        zero = np.clip(0.0, layout.lower, layout.upper)
        return self._move({i: float(zero[i]) for i in chosen})

    def _move(self, wanted: Mapping[int, float]) -> list[Effect]:
        targets = np.full(len(self._layout.joints), np.nan)
        for i, value in wanted.items():
            targets[i] = self._within(i, value)
        return [Move(targets, self._fraction)]

    def _save(self, words: list[str], measured: Array) -> list[Effect]:
        if len(words) != 1:
            raise MotionError("save: give one file, as in save squat.csv")
        if not np.isfinite(measured).all():
            raise MotionError("where the joints are is not known: wait for joint_states")
        path = Path(words[0]).expanduser()
        if not self._exists(path):
            return [Save(path)]
        self._doubtful = path
        return [Reply(f"{path} is there already. Overwrite it? yes or no")]

    def _answer(self, line: str) -> list[Effect]:
        path, self._doubtful = self._doubtful, None
        assert path is not None  # noqa: S101 - the caller has looked
        if line.strip().lower() in ("y", "yes"):
            return [Save(path)]
        return [Reply(f"{path} is left as it is", refused=True)]

    def _speed(self, words: list[str], _: Array) -> list[Effect]:
        if words:
            match = _NUMBER.fullmatch(words[0].rstrip("%"))
            percent = float(match[1]) if match and not match[2] else np.nan
            if len(words) > 1 or not 1.0 <= percent <= 100.0:
                raise MotionError(f"speed: give 1 to 100 (percent), got {quote(' '.join(words))}")
            self._fraction = percent / 100.0
        return [Reply(f"speed {100.0 * self._fraction:g} % of what the joints can")]

    def _set_unit(self, words: list[str], _: Array) -> list[Effect]:
        if words:
            if len(words) > 1 or words[0] not in ("rad", "deg", "pulse", "pulses"):
                raise MotionError(f"unit: give rad, deg or pulse, got {quote(' '.join(words))}")
            self._unit = UNITS[words[0]]
        return [Reply(f"numbers without a unit are in {self._unit}")]

    def _help(self, words: list[str], _: Array) -> list[Effect]:
        if not words:
            return [Reply(HELP)]
        if words[0].lower() not in TOPICS:
            raise MotionError(f"no help on {quote(words[0])}; there is on {', '.join(TOPICS)}")
        return [Reply(TOPICS[words[0].lower()])]

    # --- words ---------------------------------------------------------------------------------
    def _pairs(self, words: list[str], command: str) -> dict[int, float]:
        """JOINT VALUE [UNIT] ... -> joint and value in rad or m."""
        found: dict[int, float] = {}
        rest = list(words)
        while rest:
            joint = self._joint(rest.pop(0))
            if not rest:
                raise MotionError(f"{self._layout.joints[joint]}: a number must follow")
            if joint in found:
                raise MotionError(f"{self._layout.joints[joint]} is there twice")
            word = rest.pop(0)
            match = _NUMBER.fullmatch(word)
            if match is None:
                fix = f"write {command} JOINT NUMBER [UNIT]"
                raise MotionError(f"{quote(word)} is no number: {fix}")
            unit = match[2] or (rest.pop(0) if rest and rest[0] in UNITS else "")
            found[joint] = self._value(joint, float(match[1]), unit)
        if not found:
            raise MotionError(f"{command}: write {command} JOINT NUMBER [UNIT] ...")
        return found

    def _joint(self, word: str) -> int:
        """A joint by its number from 1, or by its name."""
        names = self._layout.joints
        if word.isdecimal():
            if 1 <= int(word[:9]) <= len(names):
                return int(word) - 1
            raise MotionError(f"joint {word[:9]}: the joints are 1 to {len(names)}; write show")
        lower = [name.lower() for name in names]
        if word.lower() in lower:
            return lower.index(word.lower())
        near = closest(word.lower(), lower, 0.6)
        hint = f"; did you mean {names[lower.index(near)]}?" if near else ""
        raise MotionError(f"unknown joint {quote(word)}{hint} Write show for those there are")

    def _value(self, joint: int, number: float, unit: str) -> float:
        name, counts = self._layout.joints[joint], self._layout.counts_per_rad[joint]
        if unit not in (*UNITS, ""):
            raise MotionError(f"unknown unit {quote(unit)}: give rad, deg or pulse")
        if name in self._straight:
            if unit not in ("m", ""):
                raise MotionError(f"{name} moves along a line: give m, not {unit}")
            return number
        unit = UNITS[unit] if unit else self._unit
        if unit == "m":
            raise MotionError(f"{name} rotates: give rad, deg or pulse, not m")
        if unit == "pulse":
            if not np.isfinite(counts):
                raise MotionError(f"the pulses of {name} are not known: give rad or deg")
            return float(number / counts)
        return float(np.radians(number)) if unit == "deg" else number

    def _within(self, joint: int, value: float) -> float:
        layout = self._layout
        low, high, name = layout.lower[joint], layout.upper[joint], layout.joints[joint]
        if low - _ROUNDING <= value <= high + _ROUNDING:
            return float(np.clip(value, low, high))
        if name in self._straight:
            text = f"{name}: {value:.4g} m is beyond its range, {low:.4g} to {high:.4g} m"
        else:
            text = (
                f"{name}: {value:.4g} rad ({np.degrees(value):.2f} deg) is beyond its range, "
                f"{low:.4g} to {high:.4g} rad ({np.degrees(low):.2f} to {np.degrees(high):.2f} deg)"
            )
        raise MotionError(f"{text}. Nothing moves")
