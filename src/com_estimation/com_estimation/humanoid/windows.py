"""Windows of residuals: their covariance, and their sums with onsets.

R = diag((6e-4 W)^2 x 3, (3e-4 W h)^2 x 3) + J M^2 s_a^2 J^T + 12 (3e-4 W)^2 J diag(1, 1, 0.3) J^T,
all times 1 + (r / 0.004)^2, J = [1; (c - o) x] errors that act at the CoM, s_a^2 = 0.012^2 +
3 (0.01 |c''|)^2 m/s^2, r range of a loaded sole's tilt; and (0.006 dF)^2 of touch-downs, dF range
of a foot's load. It is three to four times what windows scatter: errors are slow, not white.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from com_estimation.humanoid.layout import Layout
from com_estimation.humanoid.models import Onset, Sums
from com_model.arrays import Array
from com_model.geometry.rotations import skew

SUPPORT = 0.24  # s
HOP = SUPPORT / 3.0
MEMORY = 60.0  # s, after which a window counts 1/e
GRID = 5  # windows between two onsets of the grid
HORIZON = 25  # onsets of the grid that are stored: 10 s
CHOSEN = 9  # of which are tried
SLOW = 12.0  # windows that slow errors of the orientation last


@dataclass(frozen=True, eq=False)
class Window:
    """A closed window, moments about the point o between the feet.

    Attributes:
        time: s, of its end.
        A: (6, n).
        y: (6,) N, N m.
        R: (6, 6).
        loads: (f, 2) fractions of the weight, smallest and largest.
        moving: m/s^2, acceleration of the CoM.
    """

    time: float
    A: Array
    y: Array
    R: Array
    loads: Array
    moving: float


def make_window(time: float, layout: Layout, closed: Array, stats: Array) -> Window:
    """Window of the sums that com_estimation.humanoid.step closes.

    Args:
        time: s, of its end.
        layout: parameters, mass and height of the robot.
        closed: (6, n + 1) sums about W's origin: columns of the parameters, then the residual.
        stats: (9 + 6 f,) point o, mean CoM, -mean P', and by foot the smallest and largest load
            and
            tilts.

    Returns:
        The window with moments about o, and the covariance of its residual.
    """
    o, c, pull = stats[:3], stats[3:6], stats[6:9]
    M, W, h = layout.mass, layout.weight, layout.height
    columns = closed.copy()
    columns[3:] -= skew(o) @ closed[:3]
    ranges = stats[9:].reshape(-1, 3, 2)
    a = float(np.linalg.norm(pull)) / M
    J = np.vstack((np.eye(3), skew(c - o)))
    R = np.diag(np.repeat([6e-4 * W, 3e-4 * W * h], 3) ** 2)
    R += (M**2 * (0.012**2 + 3.0 * (0.01 * a) ** 2)) * J @ J.T
    R += SLOW * (3e-4 * W) ** 2 * J @ np.diag([1.0, 1.0, 0.3]) @ J.T
    spread = ranges[:, 1:, 1] - ranges[:, 1:, 0]
    R *= 1.0 + (max(float(spread.max()), 0.0) / 0.004) ** 2
    touch = 0.006 * float((ranges[:, 0, 1] - ranges[:, 0, 0]).max())
    R += np.diag((touch * np.array([0.15, 0.15, 1.0, 0.03, 0.03, 0.03])) ** 2)
    return Window(time, columns[:, :-1], columns[:, -1], R, ranges[:, 0] / W, a)


class WindowSums:
    """Information of all windows, slowly forgotten, and of those since some onsets."""

    def __init__(self, layout: Layout) -> None:
        n = layout.count
        self.total = Sums(np.zeros((n, n)), np.zeros(n))
        self.count = 0
        self.grid: deque[tuple[float, int, Sums]] = deque(maxlen=HORIZON)
        self._last: Window | None = None
        self._factor = float(np.exp(-HOP / MEMORY))

    def add(self, window: Window) -> None:
        """Adds a window."""
        self._change(window, self._factor, 1.0)
        self.count, self._last = self.count + 1, window
        if self.count % GRID == 0:
            self.grid.append(self.mark(window.time - 0.5 * SUPPORT))

    def drop_last(self) -> None:
        """Takes the window that was added last out again."""
        if self._last is not None:
            self._change(self._last, 1.0, -1.0)
            self._last = None

    def _change(self, window: Window, factor: float, sign: float) -> None:
        weighted = sign * np.linalg.solve(
            window.R, np.column_stack((window.A, window.y))
        )
        self.total.L[:] = factor * self.total.L + window.A.T @ weighted[:, :-1]
        self.total.e[:] = factor * self.total.e + window.A.T @ weighted[:, -1]

    def mark(self, time: float) -> tuple[float, int, Sums]:
        """The sums as they are now, for `since`."""
        return time, self.count, Sums(self.total.L.copy(), self.total.e.copy())

    def since(self, mark: tuple[float, int, Sums]) -> Onset:
        """The sums of what was added after a mark.

        Args:
            mark: by `mark`.
        """
        time, count, sums = mark
        return Onset(time, self.total.minus(sums, self._factor ** (self.count - count)))

    def onsets(self, after: float, kept: float) -> list[Onset]:
        """The start, and onsets of the grid that are late enough, at most CHOSEN of them.

        Args:
            after: s, time that onsets must be later than.
            kept: s, an onset that is among them in any case.
        """
        grid = [
            mark
            for mark in self.grid
            if mark[0] > after and self.count - mark[1] >= GRID
        ]
        if len(grid) > CHOSEN:
            chosen = set(np.linspace(0, len(grid) - 1, CHOSEN).astype(int).tolist())
            grid = [m for i, m in enumerate(grid) if i in chosen or m[0] == kept]
        return [Onset(-np.inf, self.total), *(self.since(mark) for mark in grid)]
