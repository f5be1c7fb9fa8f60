"""The panel of the page: status table, tabs with sliders, layers and plots, player, buttons."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from viser import GuiApi

from com_model import ComModelError, RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.setup.limbs import find_limbs
from com_model.shapes.hulls import read_outside
from com_viewer.timeline import Timeline


class JointRange(NamedTuple):
    """Range of one joint's slider.

    Attributes:
        joint: its index in q.
        label: text of the slider.
        low: deg or mm, smallest value of the slider.
        high: deg or mm, largest value of the slider.
        scale: deg per rad, or mm per m.
    """

    joint: int
    label: str
    low: float
    high: float
    scale: float

    def shown(self, q: Array) -> float:
        """Value of the slider for joint positions.

        Args:
            q: (n,) rad or m.

        Returns:
            deg or mm, within the slider's range.
        """
        return float(np.clip(round(q[self.joint] * self.scale, 1), self.low, self.high))


def joint_ranges(model: RobotModel, joints: Sequence[int]) -> list[JointRange]:
    """The ranges of joints in degrees or mm, at most half a turn or 1 m either way.

    Args:
        model: the robot.
        joints: their indices.
    """
    ranges = []
    for j in joints:
        sliding = model.joint_types[j] == "prismatic"
        scale, reach = (1e3, 1e3) if sliding else (180.0 / np.pi, 180.0)
        low = round(max(float(model.lower[j]) * scale, -reach), 1)
        high = round(min(float(model.upper[j]) * scale, reach), 1)
        label = model.joint_names[j] + " (mm)" * sliding
        ranges.append(JointRange(j, label, low, max(low, high), scale))
    return ranges


def joint_groups(
    model: RobotModel, config: RobotConfig, urdf: Path | None
) -> dict[str, list[JointRange]]:
    """Groups joints by limb: those of the configuration, or those found in the kinematic tree.

    Joints of neither are grouped by the link at which their branch of the tree starts.

    Args:
        model: the robot.
        config: its configuration, with or without joint_groups.
        urdf: path of the URDF, for the shapes of its feet; None if it has none.

    Returns:
        Ranges of the joints by name of the group; at most 300 outside named groups.
    """
    named = dict(config.joint_groups)
    if not named:
        with suppress(ComModelError):  # no legs
            named = find_limbs(model, read_outside(model, urdf)).groups
    groups = {
        name: [model.joint_index(joint) for joint in named[name]] for name in named
    }
    grouped = {j for joints in groups.values() for j in joints}
    # further joints stay in the posture
    for j in range(min(model.n_joints, 300)):
        if j not in grouped:
            groups.setdefault(_branch(model, j), []).append(j)
    return {
        name: joint_ranges(model, joints) for name, joints in groups.items() if joints
    }


def _branch(model: RobotModel, joint: int) -> str:
    """Name of the first link of the branch of the tree that a joint belongs to."""
    bodies = model.bodies
    path = bodies.path_to(np.flatnonzero(bodies.q_index == joint)[0])
    starts = [
        b for b in path if np.count_nonzero(bodies.parent == bodies.parent[b]) > 1
    ]
    return bodies.names[starts[-1] if starts else path[0]]


JOINTS, PLOTS = "Joints (°)", "Plots"
PLOT_EVERY_S = 0.25
BLUE = "#0072b2"
COLORS = {"y": "#009e73", "z": "#cc79a7", "event": "#e69f00", "now": "#888888"}


class Panel:
    """The controls of one page; controls without content are not shown.

    Args:
        gui: viser's.
    """

    def __init__(self, gui: GuiApi) -> None:
        self._gui = gui
        self._status = gui.add_html("")
        self._rows: dict[str, str] = {}
        self._player = gui.add_folder(None)
        self._tabs: Any = None
        self._named_tabs: dict[str, Any] = {}
        self._plots: dict[str, tuple[Any, deque[tuple[float, float]]]] = {}
        self._plotted = 0.0
        self._actions: Any = None
        self._labels: tuple[str, ...] = ()

    def tab(self, name: str) -> Any:
        """The tab of a name, created on first use.

        Args:
            name: of the tab.

        Returns:
            A context in which controls are added to it.
        """
        self._tabs = self._tabs or self._gui.add_tab_group()
        if name not in self._named_tabs:
            self._named_tabs[name] = self._tabs.add_tab(name)
        return self._named_tabs[name]

    def set_status(self, rows: Mapping[str, str]) -> None:
        """Adds or replaces rows of the status table.

        Args:
            rows: text by name.
        """
        rows = {**self._rows, **rows}
        if rows != self._rows:
            self._rows = rows
            self._status.content = table(rows)

    # --- plots ---------------------------------------------------------------------------------
    def plot(self, numbers: Mapping[str, float], at: float) -> None:
        """Appends finite numbers to the time plots.

        Args:
            numbers: by name with unit.
            at: s, the time of the bag or the robot.
        """
        for name, value in numbers.items():
            if not np.isfinite(value):
                continue
            if name not in self._plots:
                chart = self._chart(name, np.zeros(1), {name: np.zeros(1)})
                self._plots[name] = chart, deque(maxlen=900)
            points = self._plots[name][1]
            if points and at < points[-1][0]:
                points.clear()  # another run, or a bag went back
            points.append((at, value))
        now = time.monotonic()
        if now - self._plotted > PLOT_EVERY_S:
            self._plotted = now
            for chart, points in self._plots.values():
                chart.data = tuple(np.array(points).reshape(-1, 2).T.copy())

    def _chart(self, title: str, times: Array, lines: Mapping[str, Array]) -> Any:
        """Adds a plot of lines (T,) over the time (T,) s; all finite, as uPlot requires."""
        styles = [
            {"label": k, "stroke": COLORS.get(k, BLUE), "width": 2} for k in lines
        ]
        with self.tab(PLOTS):
            return self._gui.add_uplot(
                (times, *lines.values()),
                ({"label": "s"}, *styles),
                scales={"x": {"time": False}},
                title=title,
                axes=({"label": "time (s)"}, {}),
                aspect=1.6,
            )

    # --- joints --------------------------------------------------------------------------------
    def add_sliders(
        self,
        groups: Mapping[str, Sequence[JointRange]],
        postures: Mapping[str, Array],
        move: Callable[[Mapping[int, float]], None],
    ) -> None:
        """Adds sliders of the joints, in folders, and buttons that set a posture.

        Args:
            groups: joints by the name of their folder; the first one is open.
            postures: positions (n,) rad or m by the name of their button; the first one is
                initial.
            move: called with new positions, rad or m, by the indices of their joints.
        """
        gui, sliders = self._gui, list[tuple[JointRange, Any]]()
        start = next(iter(postures.values()))
        with self.tab(JOINTS):
            reset = gui.add_button_group("posture", tuple(postures))
            for name, joints in groups.items():
                with gui.add_folder(name, expand_by_default=not sliders):
                    for joint in joints:
                        value = joint.shown(start)
                        limits = joint.low, joint.high
                        slider = gui.add_slider(joint.label, *limits, 0.1, value)
                        slider.on_update(
                            lambda event, joint=joint: move(
                                {joint.joint: event.target.value / joint.scale}
                            )
                        )
                        sliders.append((joint, slider))

        def set_posture(event: Any) -> None:
            q = postures[event.target.value]
            move({joint.joint: float(q[joint.joint]) for joint, _ in sliders})
            for joint, slider in sliders:
                slider.value = joint.shown(q)

        reset.on_click(set_posture)

    # --- player --------------------------------------------------------------------------------
    def add_player(
        self, seconds: float, timeline: Timeline, show: Callable[[float], None]
    ) -> Callable[[float], None]:
        """Adds controls to play, pause, scrub and go to an event, with plots.

        Args:
            seconds: length of the recording.
            timeline: its plots and events; the events are marks on the slider.
            show: shows the recording at a time, s.

        Returns:
            A function that lets real time, s, pass.
        """
        gui, events = self._gui, [event.time for event in timeline.events]
        places = {
            f"{event.time:.2f} s  {event.text}": event.time for event in timeline.events
        }
        with self._player:
            marks = tuple(events) or None
            slider = gui.add_slider(
                "time (s)", 0.0, max(seconds, 0.01), 0.01, 0.0, marks=marks
            )
            button = gui.add_button("pause")
            speed = gui.add_dropdown(
                "speed", ("0.25", "0.5", "1", "2", "4"), initial_value="1"
            )
            if places:
                gui.add_dropdown("event", ("go to", *places)).on_update(
                    lambda event: setattr(
                        slider,
                        "value",
                        round(places.get(event.target.value, slider.value), 2),
                    )
                )
        com = dict(zip("xyz", timeline.com.T, strict=True))
        plots = {"margin (mm)": {"margin": timeline.margin}, "CoM, root link (mm)": com}
        charts = []
        for title, lines in plots.items():
            values = 1e3 * np.array([*lines.values()])
            known = np.isfinite(values).all(axis=0)
            times, values = timeline.times[known], values[:, known]
            if len(times):
                ends = float(values.min()), float(values.max())
                shown = dict(zip(lines, values, strict=True))
                shown |= {"event": _spikes(times, events, *ends)} if events else {}
                charts.append(
                    (self._chart(title, times, shown | {"now": values[0]}), ends)
                )

        def toggle(_: Any) -> None:
            button.label = "play" if button.label == "pause" else "pause"

        def step(passed: float) -> None:
            if button.label == "pause":
                at = slider.value + passed * float(speed.value)
                slider.value = 0.0 if at > seconds else round(at, 2)

        def moved(event: Any) -> None:
            show(event.target.value)
            if time.monotonic() - self._plotted > PLOT_EVERY_S:
                self._plotted = time.monotonic()
                for chart, ends in charts:
                    now = _spikes(chart.data[0], [event.target.value], *ends)
                    chart.data = (*chart.data[:-1], now)

        button.on_click(toggle)
        slider.on_update(moved)
        return step

    # --- buttons -------------------------------------------------------------------------------
    def set_actions(self, labels: Sequence[str], press: Callable[[str], None]) -> None:
        """Sets the buttons of the tab "Services".

        Args:
            labels: of the buttons; the same ones as before change nothing.
            press: called with the label, from another thread, once that was confirmed.
        """
        if tuple(labels) == self._labels:
            return
        self._labels = tuple(labels)
        if self._actions is not None:
            self._actions.remove()
        with self.tab("Services"):
            self._actions = self._gui.add_folder(None)
        with self._actions:
            for label in labels:
                self._gui.add_button(label).on_click(
                    lambda event, label=label: _confirm(
                        event.client.gui, label, partial(press, label)
                    )
                )


def _confirm(gui: GuiApi, label: str, press: Callable[[], None]) -> None:
    """Asks in one browser whether a button was meant, and only then does what it says."""
    with gui.add_modal(f"{label}?") as question:
        gui.add_markdown("The robot, or a running node, does this at once.")
        yes, no = gui.add_button(f"yes: {label}"), gui.add_button("cancel")

    def answer(event: Any) -> None:
        question.close()
        if event.target is yes:
            press()

    for button in (yes, no):
        button.on_click(answer)


def _spikes(times: Array, places: Sequence[float], low: float, high: float) -> Array:
    """A line (T,) at a low value, and at a high one at the samples nearest to places, s."""
    line = np.full(len(times), low)
    line[np.minimum(np.searchsorted(times, places), len(times) - 1)] = high
    return line


def table(rows: Mapping[str, str]) -> str:
    """HTML table of rows with a name and a text each.

    Args:
        rows: text by name; both are escaped.
    """
    cells = "".join(
        f"<tr><td style='opacity:.6;padding-right:.8em;vertical-align:top'>{escape(name)}</td>"
        f"<td>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    return f"<table style='font-size:13px;padding:.6em'>{cells}</table>"
