"""Enumerations of the maths have the values of the messages that carry them."""

import pytest

from com_control.balance import session as balance
from com_control.motion import player
from com_control.trot import session as trot
from com_control.walking import session as walking
from com_estimation.trunk import interface as trunk
from com_estimation.whole_body import com_state
from com_identification.capture.recorder import CaptureStatus
from com_identification.feet.feet_reading import Verdict
from com_msgs import msg


@pytest.mark.parametrize(
    ("values", "message", "prefix"),
    [
        (balance.BalancePhase, msg.BalanceState, ""),
        (player.MotionPhase, msg.MotionState, ""),
        (trot.TrotPhase, msg.GaitPhase, ""),
        (walking.WalkPhase, msg.WalkState, ""),
        (trunk.TrunkStatus, msg.TrunkCom, "STATUS_"),
        (com_state.ComStatus, msg.CenterOfMass, "STATUS_"),
        (com_state.Ground, msg.CenterOfMass, "GROUND_"),
        (CaptureStatus, msg.IdentificationState, ""),
        (Verdict, msg.ModelCheck, ""),
    ],
)
def test_values_are_those_of_the_message(values, message, prefix):
    for value in values:
        assert getattr(message, prefix + value.name) == value
