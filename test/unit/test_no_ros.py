"""The maths runs without ROS, and imports run one way.

Every module outside nodes/ is imported in a process of its own in which ROS, oracles and the
packages that it must not know cannot be imported.
"""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import importlib, json, pkgutil, sys

package, *blocked = sys.argv[1:]

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in blocked or top.startswith(("rclpy", "rosidl", "rpyutils", "tf2", "launch")):
            raise ImportError(package + " must not import " + name)
        if top.endswith(("_msgs", "_interfaces", "_srvs")):
            raise ImportError(package + " must not import " + name)

def modules(folder, prefix):
    for found in pkgutil.iter_modules(folder, prefix):
        if found.name.endswith(".nodes"):
            continue
        module = importlib.import_module(found.name)
        yield found.name
        if found.ispkg:
            yield from modules(module.__path__, found.name + ".")

sys.meta_path.insert(0, Blocker())
top = importlib.import_module(package)
names = list(modules(top.__path__, package + "."))
for name in getattr(top, "__all__", ()):
    getattr(top, name)
print(json.dumps(names))
"""
EVERYWHERE = ("com_ros", "tf_transformations", "ament_index_python", "pinocchio")
# What each package may import of the others; MuJoCo is com_simulation's.
MAY = {
    "com_model": (),
    "com_bags": ("com_model",),
    "com_estimation": ("com_model", "com_bags"),
    "com_identification": ("com_model", "com_bags"),
    "com_control": ("com_model", "com_bags"),
    "com_simulation": ("com_model", "mujoco"),
    "com_viewer": ("com_model", "com_bags", "com_estimation", "com_simulation"),
}
OTHERS = {
    package: tuple({*MAY, "com_demos", "mujoco"} - {package, *own})
    for package, own in MAY.items()
}
SOME = {
    "com_model": "com_model.sesc.sesc",
    "com_bags": "com_bags.bag",
    "com_estimation": "com_estimation.trunk.floating_base",
    "com_identification": "com_identification.regression.identify",
    "com_control": "com_control.walking.com_ik",
    "com_simulation": "com_simulation.physics.world_builder",
    "com_viewer": "com_viewer.page",
}


@pytest.mark.parametrize("package", OTHERS)
def test_modules_import_without_ros(package):
    if package == "com_viewer":
        pytest.importorskip("viser")
    warnings = ["-W", "error"] if package == "com_model" else []
    done = subprocess.run(
        [
            sys.executable,
            *warnings,
            "-c",
            SCRIPT,
            package,
            *EVERYWHERE,
            *OTHERS[package],
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)
    assert SOME[package] in names
    assert len(names) >= 5


def test_the_blocker_blocks():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "com_model", "scipy"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode != 0
    assert "com_model must not import scipy" in done.stderr
