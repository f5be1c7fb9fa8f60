"""One recording and its result for all tests."""

import pytest
from walk_recording import Recorded, record

from com_identification.walking.identify import WalkResult


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    """See walk_recording."""
    return record()


@pytest.fixture(scope="session")
def result(recorded: Recorded) -> WalkResult:
    """What the recording says."""
    return recorded.identify()
