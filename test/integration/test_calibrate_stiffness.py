"""~/calibrate_stiffness of ccgd_gait: HOAP-2 in the simulator sways, and knows its ankles."""

import numpy as np
import pytest
from ccgd_bench import FEET, Bench
from shipped_robot import shipped_robot
from std_srvs.srv import Trigger

from com_control.nodes.ccgd_gait import CcgdGaitNode
from com_control.walking.stabiliser import ankle_stiffness
from com_model.dynamics import GRAVITY
from com_msgs.msg import WalkState
from com_simulation.nodes.simulator import Simulator

EXHAUSTIVE = pytest.mark.exhaustive
SERVICE = "/ccgd_gait/calibrate_stiffness"


@pytest.mark.parametrize("stabiliser", [pytest.param(True, marks=EXHAUSTIVE), False])
def test_the_stiffness_of_the_simulated_servos_is_found(world, stabiliser):
    hoap2 = shipped_robot("hoap2")
    states = world.collect(WalkState, "gait/state")
    simulated = {"noise__position": 2e-4, "noise__force": 0.14, "noise__torque": 0.007}
    simulated |= {
        "real_time_factor": 0.0,
        "publish_rate_hz": 100.0,
        "lockstep__nodes": "ccgd_gait",
    }
    world.start(Simulator, **hoap2.parameters, **simulated)
    timeouts = {"joint_timeout": 30.0, "wrench_timeout": 30.0, "imu_timeout": 30.0}
    wrong = {"ankle_stiffness": [90.0, 250.0]}
    node = world.start(
        CcgdGaitNode, stabiliser=stabiliser, **hoap2.parameters, **timeouts, **wrong
    )
    world.spin_until(
        lambda: states and states[-1].state == WalkState.READY, "it stands", 60.0
    )
    client = world.node.create_client(Trigger, SERVICE)
    future = client.call_async(Trigger.Request())
    world.spin_until(future.done, "the sway", 120.0)
    answer = future.result()
    assert answer.success, answer.message
    robot = node._control.robot
    true = ankle_stiffness(robot.biped, hoap2.config)
    found = np.array(node.get_parameter("ankle_stiffness").value)
    np.testing.assert_allclose(found, true, rtol=0.03)
    assert "LLEG_JOINT6 and RLEG_JOINT6 1" in answer.message
    assert " ± 0." in answer.message
    assert f"LLEG_JOINT5: {{stiffness: {found[1]:.4g}}}" in answer.message
    if stabiliser:
        body = robot.session.stabiliser.body
        np.testing.assert_allclose(
            body.kappa, found / (body.mass * GRAVITY * body.height)
        )
    world.spin_until(lambda: states[-1].state == WalkState.READY, "it stands again")


def message(answer):
    assert not answer.success
    return answer.message


def test_when_it_is_refused(world):
    robot = Bench(world, approach_time=0.1)
    assert "no joint_states yet" in message(world.trigger(SERVICE))
    robot.load = 0.05 * robot.load
    robot.until(WalkState.REFUSED)
    assert "the left foot carries" in message(world.trigger(SERVICE))
    robot.load *= 20.0
    robot.until(WalkState.READY)
    handle, _ = robot.walk(steps=[2], step_length=[0.1])
    robot.until(WalkState.WALKING)
    assert "a walk is under way" in message(world.trigger(SERVICE))
    assert robot.result(handle).completed


def test_without_wrenches_it_is_refused(world):
    robot = Bench(world, use_wrench=False)
    robot.stale = FEET
    robot.until(WalkState.READY)
    assert "wrenches are needed" in message(world.trigger(SERVICE))
    assert robot.ways == []


def ask(robot):
    client = robot.world.node.create_client(Trigger, SERVICE)
    robot.world.spin_until(client.service_is_ready)
    return client.call_async(Trigger.Request())


def test_servos_that_show_no_deflection_and_a_stop(world):
    robot = Bench(world)
    robot.until(WalkState.READY)
    future = ask(robot)
    robot.until(WalkState.WALKING)
    assert robot.state.steps == 0
    robot.until(WalkState.READY, 40.0)
    world.spin_until(future.done)
    assert "does not show how stiff l_ankle_roll_joint" in message(future.result())
    assert list(robot.node.get_parameter("ankle_stiffness").value) == []
    last = robot.q
    future = ask(robot)
    robot.until(WalkState.WALKING)
    for _ in range(80):
        robot.sample()
    assert np.abs(robot.q - last).max() > 0.002, "it sways"
    world.trigger("/ccgd_gait/stop")
    for _ in range(10):
        robot.sample()
    world.spin_until(future.done)
    assert message(future.result()) == "stopped by ~/stop"
    assert robot.state.state == WalkState.READY
