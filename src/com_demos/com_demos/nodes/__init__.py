"""Nodes that listen to a demonstration."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
