"""Command lines of com_simulation."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
