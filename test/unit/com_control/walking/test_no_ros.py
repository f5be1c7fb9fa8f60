"""The walking part runs without ROS."""

import subprocess
import sys

SCRIPT = """
import importlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in ("rclpy", "com_ros") or top.endswith(("_msgs", "_interfaces")):
            raise ImportError("maths must not import " + name)

sys.meta_path.insert(0, Blocker())
import com_control.walking as walking
for module in pkgutil.iter_modules(walking.__path__, "com_control.walking."):
    importlib.import_module(module.name)
    print(module.name)
"""


def test_walking_imports_without_ros():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "com_control.walking.com_ik" in done.stdout
