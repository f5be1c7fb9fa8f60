"""The maths must run without ROS: every module imports with rclpy and messages blocked."""

import os
import subprocess
import sys

SCRIPT = """
import importlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top.startswith(("rclpy", "rosidl", "rpyutils", "tf2", "launch")) or top.endswith(
            ("_msgs", "_interfaces", "_srvs")
        ) or top in ("com_ros", "tf_transformations", "mujoco", "pinocchio", "ament_index_python"):
            raise ImportError("the maths must not import " + name)

sys.meta_path.insert(0, Blocker())
import com_model
names = [m.name for m in pkgutil.walk_packages(com_model.__path__, "com_model.")]
for name in names:
    importlib.import_module(name)
print(len(names))
for name in com_model.__all__:
    getattr(com_model, name)
"""


def test_com_model_imports_without_ros():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 15
    assert done.stderr == ""
