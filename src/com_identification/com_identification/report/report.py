"""The report of an identification from a recording, as one HTML page."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from com_identification.capture.detector import StationaryInterval
from com_identification.capture.streams import NS_PER_S, DroppedReadings
from com_identification.feet.feet_reading import TotalCom
from com_identification.regression.priors import ERRORS, error_unit
from com_identification.regression.result import Identification, issues_of
from com_identification.report import comparison
from com_identification.report.comparison import PostureFit
from com_model import Foot, RobotModel
from com_model.html import (
    UNKNOWN,
    Raw,
    bar,
    bullets,
    element,
    folded,
    number,
    plus_minus,
    report,
    svg,
    table,
)
from com_model.plotting import (
    BLUE,
    INK,
    RED,
    RULE,
    new_figure,
    robot_figure,
    style_axes,
)

BEFORE, AFTER = RED, BLUE
_MM = 1000.0

Span = tuple[float, float, bool]  # s, s, whether it gave a posture


@dataclass(frozen=True)
class TopicLine:
    """A topic that was read.

    Attributes:
        role: what it was read for.
        name: of the topic.
        type_name: of its messages.
        messages: how many could be read.
    """

    role: str
    name: str
    type_name: str
    messages: int


@dataclass(frozen=True, eq=False)
class Recording:
    """What was read of a recording, of one file or several.

    Attributes:
        topics: topics or columns that were read.
        seconds: s, between the first and the newest reading.
        first_ns: ns, stamp of the first one; times count from it.
        notes: what may be wrong, sentences.
        dropped: readings that were left out.
        tally: seconds that the robot was stationary, and seconds not usable by cause.
        intervals: stationary intervals, marks or rows, in order.
    """

    topics: Sequence[TopicLine]
    seconds: float
    first_ns: int
    notes: Sequence[str]
    dropped: DroppedReadings
    tally: Mapping[str, float]
    intervals: Sequence[StationaryInterval]


@dataclass(frozen=True, eq=False)
class Contents(Recording):
    """Contents of a report.

    Attributes:
        robot: name of the robot.
        inputs: paths by name: files, URDF, configuration, settings, as the user wrote them.
        issues: issues of the wrenches, sentences.
        model: the robot as its URDF has it.
        feet: its feet.
        found: the result.
        total: by the feet alone, of the postures that fit; None where none has their
            wrenches.
        fits: posture by posture.
        changed: links that have new values in the corrected URDF.
        kept: why others have none, sentences.
    """

    robot: str
    inputs: Mapping[str, str]
    issues: Sequence[str]
    model: RobotModel
    feet: Sequence[Foot]
    found: Identification
    total: TotalCom | None
    fits: Sequence[PostureFit]
    changed: Sequence[str] = ()
    kept: Sequence[str] = ()

    @property
    def used_seconds(self) -> float:
        """Time that the postures were made of, s."""
        times = ((i.t0_ns, i.t1_ns) for i in self.intervals if i.posture is not None)
        return sum((t1 - t0) / NS_PER_S for t0, t1 in times)

    def since_start(self, time_ns: int) -> float:
        """Returns the time from the first joint state, s.

        Args:
            time_ns: ns, a stamp.
        """
        return (time_ns - self.first_ns) / NS_PER_S


def report_page(contents: Contents) -> str:
    """Returns the report as an HTML page; the same contents result in the same bytes.

    Args:
        contents: of the report.
    """
    given = ((f"--{name}", contents.inputs.get(name)) for name in ("robot", "config"))
    robot = shlex.join(
        word for option, value in given if value for word in (option, value)
    )
    return report(
        f"Centres of mass of {contents.robot}, identified from a recording",
        comparison.gain(contents.found),
        _summary(contents),
        sole_plot(contents.fits, contents.feet),
        _fit(contents),
        _parameters(contents),
        _sensor_errors(contents),
        _identifiability(contents),
        _postures(contents),
        _recording(contents),
        then=[
            "Use corrected.urdf if the CoM in postures left out of the fit is as good as in the "
            "rest. In the folder of this page: `ros2 run com_model audit corrected.urdf`",
            "Is it not good enough? More postures, half of them on one foot, are proposed by "
            f"`ros2 run com_identification propose_postures {robot} --count 40 --output more.yaml`",
            "How to check the result on the robot: "
            "docs/tutorial_identification.md#5-check-the-result",
        ],
    )


def _summary(contents: Contents) -> Raw:
    found, total, count = contents.found, contents.total, len(contents.fits)
    good = found.without_outliers
    figures = [
        ("postures in the fit", f"{count - len(found.outliers)} of {count}"),
        ("RMS, CoM by the URDF against the feet", _mm(good.prior_residual.rms)),
        ("RMS, CoM as identified against the feet", _mm(good.residual.rms)),
        ("RMS of postures left out of the fit: judge by this", _mm(good.held_out.rms)),
    ]
    if total is not None:
        name = f"mass by the feet; {number(total.model_mass, 3)} kg in the URDF"
        figures.append((name, f"{plus_minus(total.mass, total.mass_std, 3)} kg"))
    cells = [element("div", element("b", value), name) for name, value in figures]
    issues = (
        *issues_of(found),
        *(total.reasons if total is not None else ()),
        *contents.issues,
        *contents.notes,
    )
    return Raw(element("div", *cells, css="figures") + bullets(issues, "warning"))


def _fit(contents: Contents) -> Raw:
    found = contents.found
    rows = [
        (
            name,
            number(m.mean, 2, _MM),
            number(m.rms, 2, _MM),
            number(m.maximum, 2, _MM),
            m.count,
        )
        for name, m in comparison.residual_rows(found)
    ]
    head = (
        "CoM against the feet's measurement",
        "mean (mm)",
        "RMS (mm)",
        "largest (mm)",
        "postures",
    )
    outliers = [contents.fits[i].label or f"posture {i}" for i in found.outliers]
    words = (
        f"Counted as outliers: {', '.join(outliers)}." if outliers else "No outliers."
    )
    return Raw(
        element("h2", "Total CoM before and after")
        + table(head, rows)
        + element(
            "p",
            f"{words} Mean square residual of the readings from the URDF, relative to the priors: "
            f"{number(found.variance_factor, 2)}; above {number(found.variance_limit, 2)}, errors "
            "are larger than the priors.",
        )
    )


def _parameters(contents: Contents) -> Raw:
    found = contents.found
    rows = []
    for b, label in enumerate(comparison.body_labels(contents.model, found.bodies)):
        if not found.mass[b] > 0.0:
            continue
        # one taken as known has no standard deviation
        mass = plus_minus(float(found.mass[b]), float(found.mass_std[b]), 3)
        first: tuple[str, str] = (label, mass)
        for i, axis in enumerate("xyz"):
            prior, com, std = (
                float(a[b, i]) for a in (found.prior_com, found.com, found.com_std)
            )
            lengths = number(prior, 2, _MM), plus_minus(com, std, 2, _MM)
            change = bar(com - prior, std, float(found.prior_com_std[b, i]))
            rows.append((*first, axis, *lengths, change))
            first = "", ""
    head = ("link", "mass (kg)", "axis", "URDF (mm)", "identified (mm)", "change")
    words = (
        "Centres of mass in the links' own frames, ± one standard deviation. Bars show the change "
        "against the URDF with one standard deviation; the grey box is the prior's standard "
        "deviation. A bar as long as its box means that the recording has no information on this "
        "number."
    )
    if not found.prior_mass_std.any():
        words += " Masses are taken as known (settings: prior.mass_std_fraction)."
    bounds = [f"{name}: at the bounds of its shapes" for name in found.at_bound]
    links = ", ".join(contents.changed) or "none"
    return folded(
        "Centres of mass of the links",
        element("p", words),
        table(head, rows, words=1),
        svg(
            robot_figure(
                contents.model, contents.model.neutral, "The URDF, all joints at 0"
            )
        ),
        bullets(bounds),
        element("p", f"Links with new values in the corrected URDF: {links}."),
        bullets(contents.kept),
    )


def _sensor_errors(contents: Contents) -> Raw:
    found = contents.found
    rows = [
        (
            ERRORS.get(kind, (kind,))[0],
            name,
            plus_minus(value, std, max(1 - int(np.floor(np.log10(max(std, 1e-9)))), 0)),
            error_unit(contents.model, kind, name),
        )
        for kind, name, value, std in sorted(comparison.informed_errors(found))
    ]
    if not rows:
        return Raw("")
    head = ("constant error", "of", "value", "unit")
    words = (
        "Those that the readings determine better than their priors. True values from readings: "
        "wrench (1 + gain) (reading − bias); effort (1 + gain) reading − offset; joint reading + "
        "offset − elasticity times effort. Multiply a torque constant K of M = K I by 1 + "
        "the gain of the joint's effort."
    )
    return folded(
        "Constant errors of the sensors",
        element("p", words),
        table(head, rows, words=1),
    )


def _identifiability(contents: Contents) -> Raw:
    what = contents.found.identifiability
    parts = [
        element(
            "p",
            f"Of {what.unknowns} parameters the postures determine {what.rank} combinations, "
            f"{what.informed} of them better than the URDF does; condition number "
            f"{what.condition:.3g}. Along an unobservable combination links keep the values of "
            "the URDF: a change along it changes no sensor reading in such postures.",
        ),
    ]
    most = 40  # lines of unobservable combinations
    for head, lines in (
        ("Unobservable in these postures, some in any posture:", what.lost),
        ("Weakly observable in these postures:", what.weak),
    ):
        if lines:
            more = len(lines) - most
            shown = [
                *lines[:most],
                *([f"and {more} more"] if more > 0 else []),
            ]
            parts += [element("p", head), bullets(shown)]
    return folded("Identifiability", *parts)


def _postures(contents: Contents) -> Raw:
    fits = iter(contents.fits)
    rows: list[tuple[object, ...]] = []
    refused: list[tuple[object, ...]] = []
    for interval in contents.intervals:
        ends = map(contents.since_start, (interval.t0_ns, interval.t1_ns))
        times = " – ".join(f"{end:.2f}" for end in ends)
        if interval.posture is None:
            refused.append((times, interval.label, " ".join(interval.reasons)))
            continue
        fit = next(fits)
        gaps = number(fit.error_before, 2, _MM), number(fit.error_after, 2, _MM)
        words = ", ".join(fit.standing) or "no foot"
        rows.append(
            (
                *(len(rows) + 1, times, fit.label, fit.samples, number(fit.mass, 3)),
                *(*gaps, words + "; outlier" * bool(fit.weight < 0.5)),
            )
        )
    spans = [
        (
            contents.since_start(i.t0_ns),
            contents.since_start(i.t1_ns),
            i.posture is not None,
        )
        for i in contents.intervals
    ]
    head = (
        "",
        "time (s)",
        "label",
        "readings",
        "mass by the feet (kg)",
        "error of the URDF (mm)",
        "error as identified (mm)",
        "stands on",
    )
    why = ("time (s)", "label", "why it is not a posture")
    tally = [
        f"{cause}: {number(seconds, 1)} s"
        for cause, seconds in sorted(contents.tally.items())
    ]
    return folded(
        "Postures",
        residual_plot(contents.fits),
        element("p", "Blue: captured as a posture. Grey: stationary, but refused."),
        timeline_plot(spans, contents.seconds),
        _long_table(head, rows, 1),
        element("p", "Time of the recording by cause:"),
        bullets(tally),
        Raw(
            element("p", "Stationary, but not postures:") + _long_table(why, refused, 2)
        )
        if refused
        else "",
    )


def _long_table(
    head: Sequence[object], rows: Sequence[Sequence[object]], words: int
) -> Raw:
    shown = 200  # rows of a table
    more = len(rows) - shown
    left = element("p", f"and {more} more") if more > 0 else ""
    return Raw(table(head, rows[:shown], words=words) + left)


def _recording(contents: Contents) -> Raw:
    rows = [(t.role, t.messages, t.name, t.type_name) for t in contents.topics]
    drop = contents.dropped
    good = "" if contents.issues else " Sign, axes, units and weight are plausible."
    return folded(
        "The recording",
        table(("input", ""), contents.inputs.items(), words=1),
        element("p", f"{number(contents.seconds, 1)} s of joint states.{good}"),
        table(("read as", "messages", "topic", "type"), rows, words=2),
        element(
            "p",
            f"Readings left out: {drop.late} older than the one before, {drop.repeated} repeated, "
            f"{drop.unusable} not finite or unusable; time jumped back {drop.restarts} times.",
        ),
    )


def _mm(value: float) -> str:
    return f"{number(value, 2, _MM)} mm" if np.isfinite(value) else UNKNOWN


def sole_plot(fits: Sequence[PostureFit], feet: Sequence[Foot]) -> Raw:
    """Plots the CoM of each posture on the sole: by the feet, by the URDF, by the result.

    Args:
        fits: of the postures.
        feet: of the robot.
    """
    figure, (left, right) = _new_plot(4.2, 2, "CoM on the sole")
    shown = [fit for fit in fits if fit.sole >= 0][:500]
    measured = _MM * np.array([fit.measured for fit in shown]).reshape(-1, 2)
    for name, color in (("before", BEFORE), ("after", AFTER)):
        places = _MM * np.array([getattr(fit, name) for fit in shown]).reshape(-1, 2)
        lines = np.stack((measured, places), axis=1)
        left.add_collection(LineCollection(list(lines), colors=color, linewidths=0.8))
        left.plot(*places.T, ".", color=color, ms=4)
        right.plot(*(places - measured).T, ".", color=color, ms=5)
    left.plot(*measured.T, "x", color=INK, ms=4)
    for i in sorted({fit.sole for fit in fits if fit.sole >= 0}):
        corners = _MM * feet[i].corners
        left.plot(*np.vstack((corners, corners[:1])).T, color=RULE, lw=1.2, zorder=0)
    left.set_title("in the sole's frame (cross: measured by the feet)", fontsize=9)
    right.set_title("error against the feet", fontsize=9)
    for axes in (left, right):
        axes.set_aspect("equal", adjustable="datalim")
        axes.set(xlabel="x of the sole (mm)", ylabel="y of the sole (mm)")
    _legend(figure)
    return svg(figure)


def residual_plot(fits: Sequence[PostureFit]) -> Raw:
    """Plots the distance from the readings to the model's CoM, posture by posture.

    Args:
        fits: of the postures.
    """
    figure, (axes,) = _new_plot(2.8, 1, "Error of the CoM in each posture")
    shown = fits[:150]
    places = 1.0 + np.arange(len(shown))
    for shift, name, color in (
        (-0.2, "error_before", BEFORE),
        (0.2, "error_after", AFTER),
    ):
        heights = _MM * np.nan_to_num([getattr(fit, name) for fit in shown])
        axes.bar(places + shift, heights, width=0.4, color=color)
    for place, fit in zip(places, shown, strict=True):
        if fit.weight < 0.5:
            axes.annotate("outlier", (place, 0.0), rotation=90, fontsize=7, ha="center")
    ticks = places[:: max(1, len(shown) // 25)]
    axes.set(xlabel="posture", ylabel="error (mm)", xticks=ticks)
    _legend(figure)
    return svg(figure)


def timeline_plot(spans: Sequence[Span], seconds: float) -> Raw:
    """Plots stationary intervals of the recording: those with a posture, and the others.

    Args:
        spans: stationary intervals.
        seconds: s, length of the recording.
    """
    figure, (axes,) = _new_plot(1.4, 1, "Stationary intervals")
    for used, color in ((True, AFTER), (False, RULE)):
        bars = [
            (a, max(b - a, seconds / 500.0)) for a, b, ok in spans[:1000] if ok is used
        ]
        axes.broken_barh(bars, (0.0, 1.0), facecolors=color)
    axes.set(xlabel="time (s)", xlim=(0.0, max(seconds, 1e-3)), yticks=[])
    return svg(figure)


def _new_plot(height: float, columns: int, title: str) -> tuple[Figure, list[Axes]]:
    figure = new_figure((9.2, height), title)
    panels = list(figure.subplots(1, columns, squeeze=False)[0])
    for axes in panels:
        style_axes(axes)
    return figure, panels


def _legend(figure: Figure) -> None:
    pairs = ((BEFORE, "URDF"), (AFTER, "identified"))
    handles = [Patch(color=color, label=label) for color, label in pairs]
    figure.legend(
        handles=handles, loc="outside upper right", ncols=2, frameon=False, fontsize=9
    )
