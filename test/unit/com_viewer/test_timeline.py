"""Events on the time line of a recording."""

from dataclasses import dataclass

import numpy as np
import pytest

from com_estimation.whole_body.com_state import unknown_state
from com_model import Status
from com_viewer.timeline import make_timeline


@dataclass
class Margins:
    """A recording of which only the margins are known."""

    margins: list

    @property
    def times(self):
        return 0.1 * np.arange(len(self.margins))

    def state(self, _, k):
        state = unknown_state("")
        return state._replace(status=Status.OK, margin=self.margins[k])


@pytest.mark.parametrize(
    ("margins", "expected"),
    [
        ([0.1, -0.1, 0.1], ["CoM outside the feet", "CoM inside the feet again"]),
        ([-0.1, np.nan, np.nan], []),
        ([0.1, np.nan, -0.1], ["CoM outside the feet"]),
        ([0.1, np.nan, 0.1], []),
    ],
)
def test_what_is_not_known_is_no_event(margins, expected):
    events = make_timeline(Margins(margins), None).events
    assert [event.text for event in events] == expected
