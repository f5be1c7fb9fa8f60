"""The gait runs without ROS: all but the nodes import with rclpy and messages blocked."""

import subprocess
import sys

SCRIPT = """
import importlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in ("rclpy", "com_ros", "tf_transformations") or top.endswith(
            ("_msgs", "_interfaces")
        ):
            raise ImportError("maths must not import " + name)

sys.meta_path.insert(0, Blocker())
import com_control
names = [m.name for m in pkgutil.iter_modules(com_control.__path__, "com_control.")]
for name in names:
    importlib.import_module(name)
print(*names)
"""


def test_com_control_imports_without_ros():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "com_control.trot" in done.stdout
