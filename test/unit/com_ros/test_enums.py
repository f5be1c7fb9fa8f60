"""Enumerations of the maths have the values of the messages that carry them."""

import pytest

from com_control.balance import session as balance
from com_control.motion import player
from com_control.trot import session as trot
from com_control.walking import session as walking
from com_estimation.whole_body import com_state
from com_identification.capture.recorder import CaptureStatus
from com_identification.feet.feet_reading import ModelVerdict
from com_model.status import Status
from com_msgs import msg


@pytest.mark.parametrize(
    ("values", "message", "prefix"),
    [
        (balance.BalancePhase, msg.BalanceState, ""),
        (player.MotionPhase, msg.MotionState, ""),
        (trot.TrotPhase, msg.GaitPhase, ""),
        (walking.WalkPhase, msg.WalkState, ""),
        (com_state.Ground, msg.CenterOfMass, "GROUND_"),
        (CaptureStatus, msg.IdentificationState, ""),
        (ModelVerdict, msg.ModelCheck, ""),
    ],
)
def test_values_are_those_of_the_message(values, message, prefix):
    for value in values:
        assert getattr(message, prefix + value.name) == value


@pytest.mark.parametrize(
    "message", [msg.TrunkCom, msg.CenterOfMass, msg.IdentificationResult]
)
def test_a_status_has_one_name_and_one_number_in_all_messages(message):
    constants = type(message).__prepare__("", ())
    found = {
        name: value for name, value in constants.items() if name.startswith("STATUS_")
    }
    assert {"STATUS_UNKNOWN", "STATUS_DEGRADED"} < set(found)
    assert found == {name: Status[name.removeprefix("STATUS_")] for name in found}
