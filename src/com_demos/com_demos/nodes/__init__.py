"""Nodes that listen to a demonstration."""

import com_ros.interrupt  # noqa: F401 (a name would be exported)
