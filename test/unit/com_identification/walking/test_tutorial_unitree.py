"""The tutorial's script for Unitree's robots: motors become joints of the URDF."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from com_model.robots import load_robot

TUTORIAL = Path(__file__).parents[4] / "docs" / "tutorial_identification.md"


class _Node:
    """What a node of rclpy is to the script."""

    def __init__(self) -> None:
        self.sent, self.callbacks = [], []

    def create_publisher(self, kind, topic, depth):
        def publish(msg) -> None:
            self.sent.append((msg.header.stamp, {**vars(msg)}))

        return SimpleNamespace(publish=publish)

    def create_subscription(self, kind, topic, callback, depth) -> None:
        self.callbacks.append((kind, topic, callback))

    def get_clock(self):
        return SimpleNamespace(
            now=lambda: SimpleNamespace(nanoseconds=10**18 + len(self.sent))
        )


class _Imu(SimpleNamespace):
    def __init__(self) -> None:
        names = "header", "orientation", "angular_velocity", "linear_acceleration"
        super().__init__(**{name: SimpleNamespace() for name in names})


class _JointState(SimpleNamespace):
    def __init__(self, name) -> None:
        super().__init__(header=SimpleNamespace(), name=name)


@pytest.mark.parametrize(
    ("robot", "package"), [("go2", "unitree_go"), ("g1", "unitree_hg")]
)
def test_motors_become_joints(
    robot: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), flags=re.DOTALL)
    (script,) = [block for block in blocks if "motor_state" in block]
    node = _Node()
    stand_ins = {
        "rclpy": {
            "init": lambda: None,
            "create_node": lambda name: node,
            "spin": lambda node: None,
        },
        "rclpy.time": {
            "Time": lambda nanoseconds: SimpleNamespace(to_msg=lambda: nanoseconds)
        },
        "sensor_msgs": {},
        "sensor_msgs.msg": {"Imu": _Imu, "JointState": _JointState},
        package: {},
        f"{package}.msg": {"LowState": package},
    }
    for name, values in stand_ins.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "argv", ["script", robot])
    exec(script, {})
    ((kind, topic, callback),) = node.callbacks
    assert (kind, topic) == (package, "lowstate")
    motors = [SimpleNamespace(q=i, dq=10 * i, tau_est=100 * i) for i in range(35)]
    imu = SimpleNamespace(
        quaternion=[1, 2, 3, 4], gyroscope=[5, 6, 7], accelerometer=[8, 9, 10]
    )
    for tick in (500, 502):
        callback(SimpleNamespace(motor_state=motors, imu_state=imu, tick=tick))
    assert [stamp - 10**18 for stamp, _ in node.sent] == [0, 0, 2_000_000, 2_000_000]
    (_, joints), (_, read) = node.sent[-2:]
    assert joints["position"] == list(range(len(joints["name"])))
    assert joints["velocity"] == [10 * i for i in joints["position"]]
    assert joints["effort"] == [100 * i for i in joints["position"]]
    assert vars(read["orientation"]) == {"w": 1, "x": 2, "y": 3, "z": 4}
    assert vars(read["angular_velocity"]) == {"x": 5, "y": 6, "z": 7}
    assert vars(read["linear_acceleration"]) == {"x": 8, "y": 9, "z": 10}
    model, config = load_robot(robot)
    expected = list(model.joint_names)
    if robot == "go2":  # each front or hind pair, right before left
        expected = [
            name
            for leg in ("FR", "FL", "RR", "RL")
            for name in expected
            if name[:2] == leg
        ]
    assert joints["name"] == expected
    assert config.imu_link in model.link_names
