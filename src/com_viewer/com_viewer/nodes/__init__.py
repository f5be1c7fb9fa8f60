"""The node that shows what others publish."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
