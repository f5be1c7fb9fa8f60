"""ROS nodes of com_simulation."""

import os

import com_model.interrupt  # noqa: F401 (a name would be exported)

# No node draws by MuJoCo, whose windows take a third of a second of each start.
os.environ.setdefault("MUJOCO_GL", "disable")
