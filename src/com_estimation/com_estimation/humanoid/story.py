"""The report on a whole recording: which causes were named when, and a page about it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from com_estimation.humanoid.diagnosis import DiagnosisOptions, EventKind, Finding
from com_estimation.humanoid.estimator import HumanoidEstimator, Mode
from com_estimation.humanoid.layout import Kind, Layout
from com_model import html, plotting
from com_model.arrays import Array

Sample = tuple[
    float, Array, Array, Array
]  # time s, q (n,), R_world_root (3, 3), wrenches (f, 6)


@dataclass
class Story:
    """Report on a recording; times in s from its first sample.

    Attributes:
        layout: parameters and possible causes of the robot.
        first: s, time of the first sample; NaN before it.
        lines: time and text of events, in the order of time.
        times: of the verdicts, m in all.
        probability: m arrays (culprits,), the probability of each cause.
        correction: m arrays (3,) m, corrected minus the model's CoM, root axes.
        std: m arrays (3,) m, standard deviations of the CoM.
        com: (3,) m, corrected CoM at the end, root axes; NaN where unknown.
        verdict: text of the last verdict.
        named: the causes named at the end.
    """

    layout: Layout
    first: float = np.nan
    lines: list[tuple[float, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    probability: list[Array] = field(default_factory=list)
    correction: list[Array] = field(default_factory=list)
    std: list[Array] = field(default_factory=list)
    com: Array = field(default_factory=lambda: np.full(3, np.nan))
    verdict: str = "no data"
    named: tuple[Finding, ...] = ()

    @property
    def sentence(self) -> str:
        """The last verdict, the number of pushes and the size of the CoM's correction, in words."""
        pushes = sum(text.startswith("push") for _, text in self.lines)
        also = f", after {pushes} push{'es' * (pushes > 1)}" if pushes else ""
        text = self.verdict[:1].upper() + self.verdict[1:] + also
        if not self.times or not np.isfinite(self.std[-1]).all():
            return f"{text}. The centre of mass is not known."
        off = 1e3 * float(np.linalg.norm(self.correction[-1]))
        return f"{text}. The centre of mass is {off:.1f} mm from where the URDF has it."


def follow(estimator: HumanoidEstimator, samples: Iterable[Sample]) -> Story:
    """Runs an estimator over a recording.

    Args:
        estimator: fresh, for this robot and rate.
        samples: time s, q (n,), R_world_root (3, 3), wrenches (f, 6) N and N m, in the order of
            time.

    Returns:
        What was named when, and the estimates over time.
    """
    story, diagnosis = Story(estimator.layout), estimator.diagnosis
    names = [culprit.name for culprit in story.layout.culprits]
    mode, reason, warned, named, seen = Mode.UNKNOWN, "", False, set[int](), -np.inf
    for sample in samples:
        out = estimator.update(*sample)
        story.first = sample[0] if np.isnan(story.first) else story.first
        if out is None:
            continue
        now = out.time - story.first
        story.com = out.com
        if out.fall_warning and not warned:
            story.lines.append((now, f"fall warning, margin {1e3 * out.margin:.0f} mm"))
        if out.reason != reason and Mode.FROZEN in (mode, out.mode):
            text = (
                f"estimates frozen: {out.reason}" if out.reason else "estimates go on"
            )
            story.lines.append((now, text))
        mode, reason, warned = out.mode, out.reason, out.fall_warning
        if not estimator.process():
            continue
        verdict = diagnosis.verdict
        for event in [e for e in diagnosis.events if e.decided > seen]:
            seen = event.decided
            text = f"something has changed, seen after {event.seen - event.start:.2f} s"
            if event.kind is EventKind.PUSH:
                x, y, z = event.impulse
                impulse = f"x {x:.1f}, y {y:.1f}, z {z:.1f} N s"
                text = f"push for {event.duration:.2f} s, impulse {impulse}"
            story.lines.append((event.start - story.first, text))
        story.named = tuple(f for f in verdict.findings if f.named)
        found = {f.culprit for f in story.named}
        for i in sorted(found ^ named):
            story.lines.append(
                (now, f"{'named' if i in found else 'withdrawn'}: {names[i]}")
            )
        named, story.verdict = found, verdict.text
        story.times.append(now)
        story.probability.append(np.zeros(len(names)))
        for finding in verdict.findings:
            story.probability[-1][finding.culprit] = finding.probability
        fresh = estimator.estimate(out.time)
        story.correction.append(fresh.correction)
        story.std.append(np.sqrt(np.diag(fresh.covariance)))
    story.lines.sort(key=lambda line: line[0])
    return story


def story_page(story: Story, title: str, notes: Iterable[str] = ()) -> str:
    """Builds the report's page: verdict, events, probabilities and CoM over time.

    Args:
        story: report on the recording.
        title: of the page, in words.
        notes: warnings about the recording.

    Returns:
        HTML that needs no other file.
    """
    culprits = []
    for finding in story.named:
        culprit, begin = (
            story.layout.culprits[finding.culprit],
            finding.onset - story.first,
        )
        since = f"{begin:.1f} s" if np.isfinite(begin) else "the start"
        culprits.append((culprit.name, since, how_much(story.layout, finding)))
    lines = [(f"{time:.2f}", text) for time, text in story.lines]
    parts = [
        html.svg(_figure(story)),
        html.bullets(notes, css="warning"),
        html.table(
            ("wrong at the end", "since", "how much"),
            culprits or [("none is named", "", "")],
            words=2,
        ),
        html.folded(
            "What happened",
            html.element("p", "These are the dotted lines of the figure."),
            html.table(("time (s)", "what"), lines, words=1),
        ),
    ]
    then = (
        "Take off a payload that should not be there. Take off zeros of force sensors, with the "
        "node com_identification running: `ros2 service call /com_identification/tare_wrench "
        'com_msgs/srv/TareWrench "{diagnosed: true}"`',
        "Identify the CoM of the trunk and encoder zeros: docs/tutorial_identification.md",
        "What can be known: docs/tutorial_diagnosis.md#what-it-cannot-know",
    )
    return html.report(title, story.sentence, *parts, then=then)


def how_much(layout: Layout, finding: Finding) -> str:
    """The parameters of a finding in words, with units, axes and standard deviations.

    Args:
        layout: possible causes of the robot.
        finding: one of them, with its parameters.

    Returns:
        For example "about the axis forwards 0.52 ± 0.03 deg, about the axis to the left ...".
    """
    culprit, stds = (
        layout.culprits[finding.culprit],
        np.sqrt(np.diag(finding.covariance)),
    )
    if culprit.kind is Kind.PAYLOAD:
        return _payload(layout, finding, stds[0])
    degrees, ways = ("deg",) * 2, ("forwards", "to the left", "up")
    axes, units, scale = {
        Kind.TRUNK_COM: (
            [f"the robot's CoM {way}" for way in ways],
            ("mm",) * 3,
            1e3 / layout.mass,
        ),
        Kind.IMU_TILT: (
            [f"about the axis {way}" for way in ways[:2]],
            degrees,
            180.0 / np.pi,
        ),
        Kind.ENCODER_ZERO: (culprit.parts, degrees, 180.0 / np.pi),
    }.get(
        culprit.kind,
        (("force x", "y", "z", "moment x", "y", "z"), ("N",) * 3 + ("N m",) * 3, 1.0),
    )
    each = zip(axes, finding.parameters, stds, units, strict=False)
    return ", ".join(
        f"{a} {html.plus_minus(v, std, 2, scale)} {unit}" for a, v, std, unit in each
    )


def _payload(layout: Layout, finding: Finding, mass_std: float) -> str:
    """Mass and place of a payload in words: c + R h / m, h its first moment about the CoM c."""
    plant, culprit, mass = (
        layout.plant,
        layout.culprits[finding.culprit],
        finding.parameters[0],
    )
    if mass < 3.0 * mass_std:
        return f"{html.plus_minus(mass, mass_std)} kg, too little to know its place"
    body = int(plant.point[plant.point[:, 1] == culprit.columns[0], 0][0])
    R, offset = plant.triad[body], finding.parameters[1:] / mass
    J = R @ np.column_stack((-offset, np.eye(3))) / mass
    stds = np.sqrt(np.diag(J @ finding.covariance @ J.T))
    place = html.coordinates(plant.com[body] + R @ offset, "m", stds)
    return f"{html.plus_minus(mass, mass_std)} kg at {place} in the frame of {culprit.parts[0]}"


def _figure(story: Story) -> plotting.Figure:
    figure = plotting.new_figure(
        (9.6, 7.2), "Which culprit is probable, and where the CoM is"
    )
    upper, lower = figure.subplots(2, 1, sharex=True)
    times, rows = np.array(story.times), np.array(story.probability)
    for i, culprit in enumerate(story.layout.culprits):
        if len(rows) and rows[:, i].max() > DiagnosisOptions.undecided:
            upper.step(times, rows[:, i], where="post", lw=1.4, label=culprit.name)
    upper.set_ylabel("probability", color=plotting.INK)
    upper.set_ylim(-0.03, 1.03)
    if len(times):
        correction, std = 1e3 * np.array(story.correction), 1e3 * np.array(story.std)
        for k, (axis, color) in enumerate(
            zip("xyz", plotting.AXIS_COLORS, strict=True)
        ):
            mean, off = correction[:, k], 2.0 * std[:, k]
            lower.fill_between(
                times, mean - off, mean + off, color=color, alpha=0.15, lw=0
            )
            lower.plot(times, mean, color=color, lw=1.4, label=axis)
    lower.set_ylabel("CoM minus the URDF's, ± 2 σ (mm)", color=plotting.INK)
    lower.set_xlabel("time (s)", color=plotting.INK)
    for axes in (upper, lower):
        plotting.style_axes(axes)
        if axes.get_legend_handles_labels()[0]:
            plotting.add_legend(axes, 3, above=True)
        for time, _ in story.lines:
            axes.axvline(time, color=plotting.FAINT, lw=0.8, ls=":", zorder=1)
    return figure
