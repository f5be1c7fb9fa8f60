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


@dataclass(frozen=True, eq=False)
class Window:
    """A closed window: residual y = A theta + noise, moments about the point o between the feet.

    Attributes:
        time: s, of its end.
        A: (6, n) columns of the parameters, force rows first.
        y: (6,) residual, N and N m.
        R: (6, 6) covariance of the noise.
        loads: (f, 2) smallest and largest load of each foot, fractions of the weight.
        moving: m/s^2, acceleration of the CoM.
    """

    time: float
    A: Array
    y: Array
    R: Array
    loads: Array
    moving: float


def make_window(time: float, layout: Layout, closed: Array, stats: Array) -> Window:
    """Makes a window of the sums that com_estimation.humanoid.step closes.

    Args:
        time: s, of its end.
        layout: parameters, mass and height of the robot.
        closed: (6, n + 1) sums about W's origin: columns of the parameters, then the residual.
        stats: (9 + 6 f,) point o, mean CoM, -mean P', and for each foot the smallest and largest
            load and tilts; see step.Memory.

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
    # slow errors of the orientation last for twelve windows
    R += 12.0 * (3e-4 * W) ** 2 * J @ np.diag([1.0, 1.0, 0.3]) @ J.T
    spread = ranges[:, 1:, 1] - ranges[:, 1:, 0]
    R *= 1.0 + (max(float(spread.max()), 0.0) / 0.004) ** 2
    touch = 0.006 * float((ranges[:, 0, 1] - ranges[:, 0, 0]).max())
    R += np.diag((touch * np.array([0.15, 0.15, 1.0, 0.03, 0.03, 0.03])) ** 2)
    return Window(time, columns[:, :-1], columns[:, -1], R, ranges[:, 0] / W, a)


class WindowSums:
    """Sums of all windows, exponentially forgotten, and of those since a grid of onsets.

    Args:
        layout: with the number of parameters.

    Attributes:
        total: sums of all windows.
        count: number of windows so far.
        grid: copies of the sums at possible onsets, the last 25: 10 s.
    """

    def __init__(self, layout: Layout) -> None:
        n = layout.count
        self.total = Sums(np.zeros((n, n)), np.zeros(n))
        self.count = 0
        self.grid: deque[tuple[float, int, Sums]] = deque(maxlen=25)
        self._last: Window | None = None
        self._factor = float(np.exp(-HOP / MEMORY))

    def add(self, window: Window) -> None:
        """Adds a window, after the sums so far have been forgotten by exp(-HOP / MEMORY).

        Args:
            window: later than the one before.
        """
        self._change(window, self._factor, 1.0)
        self.count, self._last = self.count + 1, window
        if self.count % GRID == 0:
            self.grid.append(self.mark(window.time - 0.5 * SUPPORT))

    def drop_last(self) -> None:
        """Removes the window that was added last, once."""
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
        """Copies the sums as they are now, for `since`.

        Args:
            time: s, of the possible onset.

        Returns:
            Time, number of windows and sums.
        """
        return time, self.count, Sums(self.total.L.copy(), self.total.e.copy())

    def since(self, mark: tuple[float, int, Sums]) -> Onset:
        """The sums of the windows that were added after a mark.

        Args:
            mark: returned by `mark`.
        """
        time, count, sums = mark
        return Onset(time, self.total.minus(sums, self._factor ** (self.count - count)))

    def onsets(self, after: float, kept: float) -> list[Onset]:
        """The start, and onsets of the grid that are late enough, at most nine of them.

        Args:
            after: s, time that onsets must be later than.
            kept: s, an onset that is among them in any case; NaN: none.

        Returns:
            Onsets with the sums since then, the start first.
        """
        grid = [
            mark
            for mark in self.grid
            if mark[0] > after and self.count - mark[1] >= GRID
        ]
        count = 9  # onsets that are tried
        if len(grid) > count:
            chosen = set(np.linspace(0, len(grid) - 1, count).astype(int).tolist())
            grid = [m for i, m in enumerate(grid) if i in chosen or m[0] == kept]
        return [Onset(-np.inf, self.total), *(self.since(mark) for mark in grid)]
