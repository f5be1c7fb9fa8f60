"""The sway node moves a simulated robot, which goes on standing."""

import time
from pathlib import Path

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from com_demos.background import free_domain_id
from com_model import RobotConfig, RobotModel
from com_ros import qos
from com_simulation.exceptions import ComSimulationError
from com_simulation.nodes.simulator import Simulator
from com_simulation.nodes.sway import HORIZON, LEAD_IN, SwayNode, next_piece

DESCRIPTIONS = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
HOAP2 = {
    "robot_description": (DESCRIPTIONS / "urdf" / "hoap2.urdf").read_text(),
    "robot_config": str(DESCRIPTIONS / "config" / "hoap2.yaml"),
}
WARN = "com_ros.diagnostics.ThrottledLog.warn"


@pytest.fixture
def context():
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=free_domain_id())
    yield context
    rclpy.try_shutdown(context=context)


@pytest.fixture
def make(context):
    """make(cls, **parameters): a node that spins in make.executor."""
    nodes = []
    executor = SingleThreadedExecutor(context=context)

    def create(cls, **parameters):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        nodes.append(cls(context=context, parameter_overrides=overrides))
        executor.add_node(nodes[-1])
        return nodes[-1]

    create.executor = executor
    yield create
    executor.shutdown()
    for node in nodes:
        node.destroy_node()


def until(executor, condition, what):
    end = time.monotonic() + 200.0
    while not condition():
        assert time.monotonic() < end, f"no {what}"
        executor.spin_once(timeout_sec=0.05)


def test_hoap2_sways_and_stands(context, make):
    ear = rclpy.create_node("ear", context=context)
    joints, imu = [], []
    ear.create_subscription(JointState, "joint_states", joints.append, qos.stream(1000))
    ear.create_subscription(Imu, "imu", imu.append, qos.stream(1000))
    make.executor.add_node(ear)
    fast = {"publish_clock": True, "real_time_factor": 3.0, "publish_rate_hz": 50.0}
    make(
        SwayNode, **HOAP2, use_sim_time=True, period=4.0
    )  # plans; the simulation runs at once
    make(Simulator, **HOAP2, **fast)
    until(make.executor, lambda: joints, "joint_states")
    begin = joints[0].header.stamp.sec
    until(
        make.executor,
        lambda: joints[-1].header.stamp.sec > begin + LEAD_IN + 12.0,
        "simulated time",
    )
    q = np.array([msg.position for msg in joints])
    model = RobotModel.from_urdf(HOAP2["robot_description"])
    posture = RobotConfig.from_file(HOAP2["robot_config"]).nominal_posture(model)
    assert np.ptp(q[:, model.joint_index("LLEG_JOINT6")]) > 0.05
    assert np.abs(q - posture).max() < 0.4
    up = [1.0 - 2.0 * (m.orientation.x**2 + m.orientation.y**2) for m in imu]
    assert min(up) > 0.99
    ear.destroy_node()


def test_pieces_join_without_gaps():
    def motion(t):
        return np.array([np.sin(t)]), np.array([np.cos(t)])

    for time_now in (0.0, 0.73, 1.99, 5.0, 5.04):
        msg = next_piece(["a"], motion, time_now)
        assert msg.joint_names == ["a"]
        for point in msg.points:
            ahead = point.time_from_start.sec + point.time_from_start.nanosec * 1e-9
            assert ahead > 0
            assert point.positions[0] == pytest.approx(
                np.sin(time_now + ahead - LEAD_IN), abs=1e-8
            )
            assert point.velocities[0] == pytest.approx(
                np.cos(time_now + ahead - LEAD_IN), abs=1e-8
            )
        assert ahead >= min(HORIZON - 0.1 - 1e-9, LEAD_IN - time_now)
    first = next_piece(["a"], motion, 0.0).points
    assert len(first) == 1  # straight to the nominal posture
    assert first[0].time_from_start.sec == LEAD_IN


def test_waits_for_a_listener_and_for_the_description(context, make, monkeypatch):
    texts = []
    monkeypatch.setattr(WARN, lambda self, kind, text: texts.append(text))
    make(SwayNode)
    until(make.executor, lambda: texts, "warning")
    assert "no robot_description yet" in texts[0]
    publisher = rclpy.create_node("publisher", context=context)
    latched = publisher.create_publisher(String, "robot_description", qos.LATCHED)
    latched.publish(String(data=HOAP2["robot_description"]))
    until(make.executor, lambda: "nobody listens" in texts[-1], "warning")
    assert texts[-1].endswith("/joint_trajectory: start the robot or simulator")
    publisher.destroy_node()


def test_a_motion_that_is_not_safe_ends_the_node(make, tmp_path):
    config = tmp_path / "outside.yaml"
    corners = "[[0.5, 0.1], [0.5, -0.1], [0.4, 0.0]]"
    config.write_text(f"name: hoap2\nfeet: {{l_sole: {{corners: {corners}}}}}\n")
    with pytest.raises(
        ComSimulationError, match=r"in the nominal posture the CoM is \d+ mm outside"
    ):
        make(SwayNode, **{**HOAP2, "robot_config": str(config)})
