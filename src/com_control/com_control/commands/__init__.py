"""Commands of com_control (no ROS)."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
