"""Command lines of com_bags."""

import com_model.interrupt  # noqa: F401
