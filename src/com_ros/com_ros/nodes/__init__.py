"""ROS nodes of com_ros."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
