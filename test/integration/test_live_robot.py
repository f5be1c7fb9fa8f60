"""com_setup beside a running robot: its description, and what its sensors read, over DDS."""

import threading
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from com_identification.regression.postures import SensorPrediction
from com_identification.regression.statics import Statics
from com_model.commands.setup import main
from com_model.dynamics import GRAVITY
from com_model.robots import load_robot
from com_ros.conversions import numpy_to_wrench

CONFIGS = Path(__file__).resolve().parents[2] / "src/robot_descriptions/config"


@pytest.fixture
def running(world):
    """Sends HOAP-2's description and readings at rest from a thread; wrenches times a sign."""
    model, config = load_robot("hoap2")
    q, statics = config.nominal_posture(model), Statics(model)
    stand, up = tuple(range(len(config.feet))), np.array([0.0, 0.0, 1.0])
    prediction = SensorPrediction(statics, config.feet, statics.parameters, GRAVITY)
    wrenches = prediction.posture(q, up, stand, False, 1).wrenches
    world.latch("robot_description", String(data=model.xml))
    topics = {"joint_states": JointState, "imu": Imu}
    topics |= {foot.wrench_topic: WrenchStamped for foot in config.feet}
    publishers = {
        t: world.node.create_publisher(kind, t, 10) for t, kind in topics.items()
    }
    over, sign = threading.Event(), [1.0]

    def send():
        joints = JointState(name=list(model.joint_names), position=q.tolist())
        imu = Imu()
        imu.linear_acceleration.z = GRAVITY
        while not over.wait(0.005):
            publishers["joint_states"].publish(joints)
            publishers["imu"].publish(imu)
            for foot, wrench in zip(config.feet, wrenches, strict=True):
                message = WrenchStamped(wrench=numpy_to_wrench(sign[0] * wrench))
                publishers[foot.wrench_topic].publish(message)

    thread = threading.Thread(target=send)
    thread.start()
    yield model, sign
    over.set()
    thread.join()


def test_the_running_robot_fits_its_configuration_or_not(running, tmp_path, capsys):
    model, sign = running
    urdf, config = tmp_path / "hoap2.urdf", str(CONFIGS / "hoap2.yaml")
    assert main([str(urdf), "--live", "--check", "--output", config]) == 0
    assert urdf.read_text() == model.xml
    out = capsys.readouterr().out
    assert "fits   imu: it reads gravity" in out
    assert f"of the robot's {GRAVITY * model.mass:.4g} N" in out
    sign[0] = -1.0
    assert main([str(urdf), "--check", "--output", config]) == 1
    assert "WRONG  feet: " in capsys.readouterr().out


def test_a_robot_that_is_not_there(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("com_identification.nodes.live_robot.WAIT", 0.2)
    assert main([str(tmp_path / "robot.urdf"), "--live"]) == 2
    assert (
        "no robot_description within 0.2 s: start robot_state"
        in capsys.readouterr().err
    )
