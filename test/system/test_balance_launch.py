"""balance.launch.xml over DDS: a simulated robot keeps its CoM on a floor that tilts."""

import numpy as np
import pytest
from std_srvs.srv import Trigger

from com_msgs.msg import BalanceState
from com_ros.conversions import point_to_numpy, stamp_to_ns

QUIET = ["sesc:=false", "rviz:=false", "publish_rate_hz:=250.0"]
LOCKSTEP = [
    "lockstep:=true",
    "use_sim_time:=true",
    "input_timeout:=60.0",
    "real_time_factor:=0.0",
]
TILT = ["tilt_angle_deg:=10.0", "tilt_start:=1e6", "tilt_hold:=1000.0"]


@pytest.mark.exhaustive
def test_hoap2_balances_on_a_floor_that_tilts(launch, ear):
    states = ear.listen(BalanceState, "balance/state")
    launch("com_bringup", "balance.launch.xml", *QUIET, *LOCKSTEP, *TILT)
    ear.until(
        lambda: states and states[-1].state == BalanceState.BALANCING, "balancing"
    )
    tilt = ear.node.create_client(Trigger, "simulator/tilt")
    ear.until(tilt.service_is_ready, "simulator/tilt")
    tilt.call_async(Trigger.Request())
    ear.until(lambda: np.degrees(states[-1].slope) > 9.9, "the floor has tilted")
    tilted = stamp_to_ns(states[-1].header.stamp)
    ear.until(
        lambda: stamp_to_ns(states[-1].header.stamp) > tilted + 2 * 10**9,
        "it comes to rest",
    )
    values = states[-1]
    error = point_to_numpy(values.com) - point_to_numpy(values.com_desired)
    assert values.state == BalanceState.BALANCING
    assert np.linalg.norm(error[:2]) < 0.001
    assert values.support_margin > 0.03
    assert not values.held_at_margin
    assert all(s.com_error < 0.02 for s in states if s.state == BalanceState.BALANCING)
