"""The command com-view."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
