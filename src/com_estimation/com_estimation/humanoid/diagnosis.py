"""Infers from windows of residuals: pushes, lasting changes, named causes, the corrected CoM.

A window that no probable model explains (its chi2 is too high) is put on hold. If two quiet windows
follow, it was a push: the held windows are discarded, and the impulse is the sum of their
residuals. If eight windows pass without that, it is a lasting change: the held windows are used
after all, except those around the onset. If the change does not explain them, something is still
going on, and the hold continues for up to sixteen windows.

A cause is named when its probability exceeds 0.9. One that begins at an onset and stays named
becomes part of the model, so that another may follow, and is withdrawn when its parameters turn
out to be within tolerance. Estimates beyond what is physically possible explain nothing. Causes
that cannot be separated are reported together with the motion that would help.
"""

from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from com_estimation.humanoid.layout import Kind, Layout
from com_estimation.humanoid.models import (
    PRIOR,
    Change,
    Inference,
    Model,
    Onset,
    Sums,
    infer,
)
from com_estimation.humanoid.windows import (
    GRID,
    HOP,
    MEMORY,
    SUPPORT,
    Window,
    WindowSums,
)
from com_model.arrays import Array
from com_model.contact import SWING_LOAD


class Hint(IntEnum):
    """Motion that would separate causes; values of com_msgs/CentroidalDiagnosis.

    Attributes:
        NONE: no particular motion is needed.
        STEP: lift each foot, to show the biases of force sensors and ankle encoders.
        TURN_TORSO: turn the torso to both sides, for the CoM of the trunk.
        MOVE_ARMS: move the arms, to find the hand that carries a payload.
        LEAN: lean to the front and the sides.
        TURN_ROBOT: turn on the spot: a pull keeps its direction in the world, a tilt of the IMU
            does not.
    """

    NONE = 0
    STEP = 1
    TURN_TORSO = 2
    MOVE_ARMS = 3
    LEAN = 4
    TURN_ROBOT = 5


WORDS = {
    Hint.NONE: "go on moving",
    Hint.STEP: "take two steps",
    Hint.TURN_TORSO: "turn the torso to both sides",
    Hint.MOVE_ARMS: "move the arms",
    Hint.LEAN: "lean to the front and the sides",
    Hint.TURN_ROBOT: "turn the robot on the spot",
}


class EventKind(IntEnum):
    """Kind of an event that the windows show; values of com_msgs/CentroidalDiagnosis.

    Attributes:
        UNKNOWN: no event.
        PUSH: an external force that lasted for a short time.
        CHANGE: something began and stays, such as a payload.
    """

    UNKNOWN = 0
    PUSH = 1
    CHANGE = 2


@dataclass(frozen=True)
class DiagnosisOptions:
    """When windows are put on hold, and when a cause is named.

    Attributes:
        hold: chi2 of 6 degrees of freedom, above which a window is put on hold.
        quiet: windows after which a push is over.
        lasting: held windows after which a change is decided; the hold ends after twice as many: a
            push that begins before a change is decided is over by then.
        named: probability above which a cause is named.
        undecided: probability below which a cause is not reported.
        first_lift: s around the first time that a foot is lifted.
        recent: windows: 2 s.
    """

    hold: float = 50.0
    quiet: int = 2
    lasting: int = 8
    named: float = 0.9
    undecided: float = 0.05
    first_lift: float = 0.5
    recent: int = 25


@dataclass(frozen=True, eq=False)
class Event:
    """A push or the onset of a change.

    Attributes:
        kind: push or change.
        start: s, estimated beginning.
        duration: s; inf for a change.
        seen: s, when the first window was put on hold.
        decided: s, when it was classified as a push or a change.
        impulse: (3,) N s, of a push, axes of the world; NaN for a change.
    """

    kind: EventKind
    start: float
    duration: float
    seen: float
    decided: float
    impulse: Array = field(default_factory=lambda: np.full(3, np.nan))


@dataclass(frozen=True, eq=False)
class Finding:
    """A possible cause with its probability and its estimated parameters.

    Attributes:
        culprit: index of the cause in Layout.culprits.
        probability: 0 to 1, that it is beyond tolerance.
        named: it is probable enough, and the motion so far separates it from others.
        lasting: named, and there from the start or part of the model by now.
        onset: s; -inf: from the start.
        parameters: (k,) estimates in SI units, see Kind.
        covariance: (k, k) of the parameters.
    """

    culprit: int
    probability: float
    named: bool
    lasting: bool
    onset: float
    parameters: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class DiagnosisResult:
    """Result of the diagnosis at one time.

    Attributes:
        findings: causes with a probability that is not negligible, the most probable first.
        hint: motion that would separate the causes that are not named.
        text: the result in one sentence.
    """

    findings: tuple[Finding, ...]
    hint: Hint
    text: str


class Diagnosis:
    """Diagnoses one robot from its windows of residuals, one after the other.

    Args:
        layout: parameters and possible causes of the robot.

    Attributes:
        layout: as given.
        options: thresholds.
        verdict: result of the last inference.
        inference: probabilities and estimates of the last inference.
        unexplained: a cause would need parameters beyond what is physically possible.
        sums: sums of all windows in use.
        events: pushes and changes, the last 50.
        holding: windows on hold, not yet classified.
        chi2: of the last 60 windows, divided by its 6 degrees of freedom; 1 or less is expected.
        rejected: for the last 2 s of windows, whether the wrenches could not be this robot's.
        time: s, of the last window.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self.options = layout, DiagnosisOptions()
        self.restart()

    def restart(self) -> None:
        """Forgets everything."""
        self.sums = WindowSums(self.layout)
        self.events: deque[Event] = deque(maxlen=50)
        self.chi2: deque[float] = deque(maxlen=60)
        self.holding: list[Window] = []
        self.rejected: deque[bool] = deque(maxlen=self.options.recent)
        self._motion: deque[float] = deque(maxlen=self.options.recent)
        # number of quiet windows; chi2 and residual of the held window with the largest chi2
        self._quiet, self._loudest = 0, (0.0, np.zeros(6))
        self._marks: list[tuple[float, int, Sums]] = []  # held onsets
        self._changes: list[tuple[int, tuple[float, int, Sums]]] = []
        self._flown = np.zeros(len(self.layout.plant.foot_body), dtype=bool)
        # s, when each foot was lifted for the first time
        self._lifted = np.full(len(self._flown), np.nan)
        self._past: deque[Window] = deque(maxlen=1)
        self._named: dict[int, float] = {}
        self._likely: dict[int, int] = {}
        self._since_inference, self._seen, self.unexplained = 0, 0.0, False
        self.time = 0.0
        self.inference: Inference = infer(self.layout, self.sums.total, [], [])
        self.verdict = DiagnosisResult((), Hint.NONE, "no data yet")

    @property
    def excited(self) -> bool:
        """Whether the CoM has accelerated enough on average over the last 2 s."""
        # m/s^2, mean acceleration of the CoM of a robot that moves
        return sum(self._motion) > 0.05 * len(self._motion)

    @property
    def flexible(self) -> bool:
        """Whether the legs are so flexible that constant causes are confused with their flexion."""
        at = self.layout.plant.blocks.flexibility
        give, cov = self.inference.average(np.eye(self.layout.count)[at : at + 2])
        # of chi^2 of two: 3 standard deviations
        seen = give @ np.linalg.solve(cov, give) > 11.8
        # rad/(N m), of the joints of legs; rad of backlash: beyond, constant causes are confused
        # with the flexion of the legs
        return bool(seen and (give > (2e-05, 0.001)).any())

    @property
    def implausible(self) -> bool:
        """Whether more than half of the last windows have residuals that no cause can make."""
        return sum(self.rejected) > 0.5 * max(len(self.rejected), GRID)

    def add(self, window: Window) -> bool:
        """Adds a window, and infers when one is due.

        Args:
            window: residual, parameter columns and covariance; later than the one before.

        Returns:
            Whether there is a new verdict.
        """
        self.time = window.time
        first = (window.loads[:, 0] < SWING_LOAD) & np.isnan(self._lifted)
        self._lifted[first] = window.time
        self.rejected.append(not self._plausible(window))
        if self.implausible:
            self.holding, self._quiet = [], 0
            return False
        if not self.rejected[-1]:
            self._motion.append(window.moving)
        models = (
            # most probable models that may explain a window
            *self.inference.models[:4],
            self.inference.free,
        )
        chi2 = min(_chi2(*_residual(window, model)) for model in models)
        self.chi2.append(chi2 / 6.0)
        if self.holding or chi2 > self.options.hold or self.rejected[-1]:
            self._hold(window, np.inf if self.rejected[-1] else chi2)
        else:
            self._flown |= window.loads[:, 0] < SWING_LOAD
            self.sums.add(window)
            self._past.append(window)
        self._since_inference += 1
        fresh = self.events and self.time - self.events[-1].decided < 1.0
        if self.holding or (self._since_inference < GRID and not fresh):
            return False
        self._since_inference = 0
        self.inference = self._infer()
        self.verdict = self._judge()
        self._settle()
        return True

    def _plausible(self, window: Window) -> bool:
        size = np.linalg.norm(window.y.reshape(2, 3), axis=1)
        limits = (
            # of W and W h: residual force and moment that no cause can make
            np.array((0.25, 0.1)) * self.layout.weight * [1.0, self.layout.height]
        )
        return bool((size < limits).all())

    def _hold(self, window: Window, chi2: float) -> None:
        if not self.holding:
            self._seen, self._quiet, self._loudest = window.time, 0, (0.0, np.zeros(6))
        self.holding.append(window)
        self._quiet = self._quiet + 1 if self._is_quiet(window, chi2) else 0
        if self._quiet == self.options.quiet:
            self._end_push()
        elif len(self.holding) >= self.options.lasting:
            believed = sum(self._plausible(held) for held in self.holding)
            if believed > self.options.lasting // 2:
                self._end_change()
            else:
                self.holding = []

    def _is_quiet(self, window: Window, chi2: float) -> bool:
        """Whether the event that began is over.

        It is over when chi2 is low again and no event at all explains the window better than
        the residual of the window with the largest chi2. Not by chi2 alone: a touch-down, with
        its larger covariance, makes chi2 small while a payload stays.
        """
        r, S = _residual(window, self.inference.models[0])
        if chi2 > self.options.hold:
            self._loudest = max(self._loudest, (chi2, r), key=lambda felt: felt[0])
            return False
        return _chi2(r, S) < _chi2(r - self._loudest[1], S)

    def _end_push(self) -> None:
        held, self.holding = self.holding, []
        theta = self.inference.models[0].theta
        rests = np.array([w.y - w.A @ theta for w in (*self._past, *held)])
        impulse = -rests.sum(axis=0) * HOP
        start = self._seen - 0.5 * SUPPORT
        merged = any(
            e.kind is EventKind.CHANGE
            # s, after an onset, in which no push begins
            and abs(start - e.start) < 0.35 + 0.5 * SUPPORT
            for e in self.events
        )
        if not merged:
            duration = max((len(held) - self.options.quiet) * HOP - SUPPORT + HOP, HOP)
            event = Event(
                EventKind.PUSH, start, duration, self._seen, self.time, impulse[:3]
            )
            self.events.append(event)
        self._past.clear()

    def _end_change(self) -> None:
        """Records a change if it explains the last held windows; else the hold continues."""
        before = deepcopy((self.sums, self._marks))
        given = [
            w
            # held windows about an onset, SUPPORT / HOP, and the one before
            for w in self.holding[3 - self.options.lasting :]
            if self._plausible(w)
        ]
        if self._past and self._past[-1].time > self._seen - 1.5 * HOP:
            self.sums.drop_last()
        start = self._seen - 0.5 * SUPPORT
        self._marks = [*self._marks[-2:], self.sums.mark(start)]
        for window in given:
            self.sums.add(window)
        best = self._infer().models[
            0
        ]  # 6 for each window is what their covariance allows
        passes = sum(_chi2(*_residual(window, best)) for window in given) > 6.0 * len(
            given
        )
        if passes and len(self.holding) < 2 * self.options.lasting:
            self.sums, self._marks = before
            return
        self.holding = []
        self._flown[:] = False
        self.events.append(
            Event(EventKind.CHANGE, start, np.inf, self._seen, self.time)
        )

    # --- naming --------------------------------------------------------------------------------
    def _infer(self) -> Inference:
        changes = [Change(i, self.sums.since(mark)) for i, mark in self._changes]
        return infer(self.layout, self.sums.total, self._onsets(), changes)

    def _onsets(self) -> list[Onset]:
        after = max((mark[0] for _, mark in self._changes), default=-np.inf)
        best = self.inference.models[0].change
        onsets = self.sums.onsets(
            after + 1.0, best.onset.time if best is not None else np.nan
        )
        held = [self.sums.since(mark) for mark in self._marks if mark[0] > after]
        near = [o for o in onsets if all(abs(o.time - h.time) > SUPPORT for h in held)]
        return near + held

    def _settle(self) -> None:
        """Makes a change that has stayed named for long enough part of the model."""
        best = self.inference.models[0]
        if best.change is None or not np.isfinite(best.change.onset.time):
            return
        i, time = best.change.culprit, best.change.onset.time
        again = i in {j for j, _ in self._changes}
        if not again and i not in self._named:
            return
        # s, for which a change is named before it becomes part of the model
        if self.time - max(time, self._named.get(i, time)) < 2.5:
            return
        marks = [*self._marks, *self.sums.grid]
        mark = next((m for m in marks if m[0] == time), None)
        if mark is not None and self.inference.probability[i] > self.options.named:
            self._changes.append((i, mark))
            self._marks = [m for m in self._marks if m[0] > time]

    def _judge(self) -> DiagnosisResult:
        inference, culprits = self.inference, self.layout.culprits
        settled = {i: mark[0] for i, mark in self._changes}
        found = []
        for i in map(int, np.argsort(inference.probability)[::-1]):
            p = self._guilt(i) if i in settled else float(inference.probability[i])
            if p < self.options.undecided:
                self._withdraw(i)
                continue
            likely = p > self.options.named and (i in settled or self._may_name(i))
            self._likely[i] = self._likely.get(i, 0) + 1 if likely else 0
            onset = settled.get(i, float(inference.onset[i]))
            needed = 1 if i in settled or np.isfinite(onset) else 2
            rows = np.eye(self.layout.count)[culprits[i].columns]
            values, cov = inference.average(rows, None if i in settled else i)
            named = self._likely[i] >= needed
            lasting = named and (i in settled or not np.isfinite(onset))
            found.append(Finding(i, p, named, lasting, onset, values, cov))
        beyond = [
            culprits[f.culprit].name
            for f in found
            if f.probability > 0.5
            and (
                # prior standard deviations of a cause; estimates beyond are impossible
                np.abs(f.parameters) > 4.0 * culprits[f.culprit].slab
            ).any()
        ]
        self.unexplained = bool(beyond)
        if beyond:
            found = [replace(f, named=False, lasting=False) for f in found]
        now = {
            f.culprit: self._named.get(f.culprit, self.time) for f in found if f.named
        }
        self._named = now
        open_ = [f for f in found if not f.named]
        hint = self._hint([culprits[f.culprit].kind for f in open_])
        text = (
            f"unexplained: {beyond[0]} would be beyond what is possible"
            if beyond
            else ""
        )
        return DiagnosisResult(tuple(found), hint, text or self._sentence(found, hint))

    def _guilt(self, i: int) -> float:
        """Probability that a cause that is part of the model is still beyond its tolerance.

        From the estimate of the sum of its changes, N(m, P): ln odds = 1/2 m^T P^-1 m + 1/2 ln
        |P| / |D| + ln PRIOR, with D the prior covariance of the cause.
        """
        culprit = self.layout.culprits[i]
        m, P = self.inference.average(np.eye(self.layout.count)[culprit.columns])
        P = P + np.diag(culprit.spike**2)
        odds = 0.5 * m @ np.linalg.solve(P, m) + 0.5 * np.linalg.slogdet(P)[1]
        odds += np.log(PRIOR) - np.log(culprit.slab).sum()
        return float(1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0))))

    def _withdraw(self, i: int) -> None:
        """Forgets the changes of a culprit: a wrong one, or those that cancelled out long ago."""
        times = [mark[0] for j, mark in self._changes if j == i]
        new = self.inference.models[0].change
        over = len(times) == 1 or (times and self.time - times[-1] > 2.0 * MEMORY)
        if over and (new is None or new.culprit != i):
            self._changes = [change for change in self._changes if change[0] != i]

    def _may_name(self, i: int) -> bool:
        """Whether the motion so far separates this cause from the others."""
        culprit, onset = self.layout.culprits[i], self.inference.onset[i]
        # How much the legs give is known once each foot was lifted; that looks like a change.
        recent = self.time - self._lifted < 2.0 * self.options.first_lift
        if (recent | (np.abs(self._lifted - onset) < self.options.first_lift)).any():
            return i in self._named
        changes = [e.start for e in self.events if e.kind is EventKind.CHANGE]
        new = self.inference.models[0].change  # without an event where it is small
        begun = new.onset.time if new is not None else -np.inf
        mistakable = culprit.constant and culprit.kind is not Kind.WRENCH_ZERO
        latest = max(
            [onset, begun, *(e.start for e in self.events)]
        )  # a push may hide a change
        # s since its onset and the last event or change, before it is named
        fresh = self.time - latest < 2.5
        if (
            mistakable and fresh and i not in self._named
        ):  # a change that is not known yet looks like it
            return False
        if self.flexible and culprit.kind is not Kind.IMU_TILT:
            return any(abs(onset - begin) < SUPPORT for begin in changes)
        if not culprit.constant and np.isfinite(onset):
            return True
        # s of windows, before which no constant cause is named
        if self.sums.count * HOP < 2.0:
            return False
        values, cov = self.inference.average(
            np.eye(self.layout.count)[culprit.columns], i
        )
        weightless = culprit.kind is Kind.PAYLOAD and abs(
            values[0]
            # standard deviations: least mass of a payload present from the start
        ) < 3.0 * np.sqrt(cov[0, 0])
        # tolerances that a parameter of a constant cause must exceed to be named
        if weightless or (np.abs(values) < 2.0 * culprit.spike).all():
            return False
        if culprit.kind is Kind.IMU_TILT:
            return True
        if not self.excited:
            return False
        return culprit.kind is not Kind.WRENCH_ZERO or bool(self._flown.any())

    def _hint(self, kinds: list[Kind]) -> Hint:
        if not kinds:
            return Hint.NONE
        feet = {Kind.WRENCH_ZERO, Kind.ENCODER_ZERO} & set(kinds)
        if feet and not self._flown.all():
            return Hint.STEP
        if Kind.PAYLOAD in kinds and kinds.count(Kind.PAYLOAD) > 1:
            return Hint.MOVE_ARMS
        if Kind.PULL in kinds and Kind.IMU_TILT in kinds:
            return Hint.TURN_ROBOT
        return Hint.TURN_TORSO if Kind.TRUNK_COM in kinds else Hint.NONE

    def _sentence(self, found: list[Finding], hint: Hint) -> str:
        culprits = self.layout.culprits
        names = [culprits[f.culprit].name for f in found if f.named]
        rivals = [culprits[f.culprit].name for f in found if not f.named]
        parts = [f"wrong: {', '.join(names)}"] if names else []
        if rivals:
            also = (
                "" if self.inference.nothing < self.options.undecided else ", or none"
            )
            parts.append(f"not separable: {' or '.join(rivals)}{also}; {WORDS[hint]}")
        if self.flexible:
            parts.append(
                "the legs are flexible: only changes and the tilt of the IMU are named"
            )
        return "; ".join(parts) or "nothing is wrong beyond tolerances"

    # --- the CoM -------------------------------------------------------------------------------
    def correction(self, jacobian: Array) -> tuple[Array, Array, float]:
        """Averages the parameters over the models, with the uncertainty that remains of the CoM.

          dc = J theta M / (M + dm)

        with M the model's mass and dm the mass that the model lacks.

        Args:
            jacobian: J (3, n), m by unit parameter, in any axes.

        Returns:
            theta (n,), the parameters; the covariance (3, 3) m^2 of dc in the axes of J; the
            standard deviation of dm, kg. The last two are NaN, and theta 0, where no possible
            cause explains the windows, and larger where the windows fit badly.
        """
        rows = np.vstack((jacobian, self.layout.mass_columns))
        models = self.inference.models
        theta = np.average(
            [m.theta for m in models], axis=0, weights=[m.weight for m in models]
        )
        _, cov = self.inference.average(rows)
        scale = self.layout.mass / (self.layout.mass + float(rows[3] @ theta))
        if self.unexplained:
            return np.zeros_like(theta), np.full((3, 3), np.nan), np.nan
        cov *= max(1.0, float(np.median(self.chi2)) if self.chi2 else 1.0)
        return theta, scale**2 * cov[:3, :3], float(np.sqrt(cov[3, 3]))


def _residual(window: Window, model: Model) -> tuple[Array, Array]:
    """Residual of a window under a model.

    Returns:
        The residual (6,) N and N m, and its covariance (6, 6).
    """
    return window.y - window.A @ model.theta, window.R + window.A @ model.P @ window.A.T


def _chi2(r: Array, S: Array) -> float:
    return float(r @ np.linalg.solve(S, r))
