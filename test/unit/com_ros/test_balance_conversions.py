"""BalanceState round trip."""

import numpy as np
from builtin_interfaces.msg import Time

from com_control.nodes.balance_conversions import (
    BalanceValues,
    balance_state_to_values,
    values_to_balance_state,
)
from com_msgs.msg import BalanceState


def test_state_round_trip():
    values = BalanceValues(
        state=BalanceState.BALANCING,
        reason="held",
        feet=("l_sole", "r_sole"),
        com_desired=np.array([0.1, 0.2, np.nan]),
        com_reference=np.array([0.05, 0.1, np.nan]),
        com=np.array([0.04, 0.1, 0.25]),
        com_error=0.01,
        held_at_margin=True,
        limited=True,
        support_margin=0.03,
        slope=0.1,
        beyond_friction=True,
    )
    msg = values_to_balance_state(values, Time(sec=3), "balance")
    assert (msg.header.stamp.sec, msg.header.frame_id) == (3, "balance")
    back = balance_state_to_values(msg)
    for name, value in vars(values).items():
        np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)


def test_what_is_not_known_is_nan():
    msg = values_to_balance_state(BalanceValues(BalanceState.UNKNOWN), Time(), "balance")
    assert np.isnan([msg.com.x, msg.com_reference.y, msg.com_error, msg.support_margin]).all()
