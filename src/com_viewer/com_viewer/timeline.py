"""The course of a recording: the CoM and its margin over time, and events."""

from typing import NamedTuple

import numpy as np

from com_estimation.whole_body.com_state import ComObserver, ComState
from com_model.arrays import Array
from com_viewer.bag_run import BagRun

MAX_EVENTS = 60


class Event(NamedTuple):
    """An event of a recording.

    Attributes:
        time: s, from the start of the recording.
        text: in words.
    """

    time: float
    text: str


class Timeline(NamedTuple):
    """CoM and margin of a recording in T samples, thinned out where it is long.

    Attributes:
        times: (T,) s, from its start.
        margin: (T,) m, of the CoM's projection in the support polygon; NaN where unknown.
        com: (T, 3) m, in the root link's frame; NaN where unknown.
        events: in the order of time.
    """

    times: Array
    margin: Array
    com: Array
    events: tuple[Event, ...]


def make_timeline(run: BagRun, observer: ComObserver) -> Timeline:
    """Computes margin, CoM, and events of a recording.

    Events are gaps of more than 0.5 s, feet that lift and land, changes of the CoM's status, and
    the CoM's projection leaving the support polygon; after MAX_EVENTS they are only counted.

    Args:
        run: the recording.
        observer: of the robot in it.

    Returns:
        At most 800 samples.
    """
    events: list[Event] = []
    margin, com = np.full(len(run.times), np.nan), np.full((len(run.times), 3), np.nan)
    before: ComState | None = None
    for k, at in enumerate(run.times.tolist()):
        state = run.state(observer, k)
        margin[k], com[k] = state.margin, state.position
        texts = _changes(before, state) if before else []
        # without joint states
        if k and at - run.times[k - 1] > 0.5:
            texts.append(f"after a gap of {at - run.times[k - 1]:.1f} s")
        events += [Event(at, text) for text in texts]
        before = state
    if len(events) > MAX_EVENTS:
        more = f"and {len(events) - MAX_EVENTS} more events"
        events = [*events[:MAX_EVENTS], Event(events[MAX_EVENTS].time, more)]
    shown = np.unique(np.linspace(0, len(run.times) - 1, 800).astype(int))
    return Timeline(run.times[shown], margin[shown], com[shown], tuple(events))


def _changes(before: ComState, after: ComState) -> list[str]:
    """Differences from one state to the next, in words."""
    texts = [f"{foot} lifts" for foot in before.contacts if foot not in after.contacts]
    texts += [f"{foot} lands" for foot in after.contacts if foot not in before.contacts]
    if before.status != after.status:
        texts.append(
            f"CoM {after.status.name}" + f": {after.reason}" * bool(after.reason)
        )
    if after.margin < 0.0 and not before.margin < 0.0:
        texts.append("CoM outside the feet")
    elif before.margin < 0.0 <= after.margin:
        texts.append("CoM inside the feet again")
    return texts
