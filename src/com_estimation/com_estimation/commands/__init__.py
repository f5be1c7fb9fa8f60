"""Command lines of com_estimation."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
