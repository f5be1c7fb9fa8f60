"""Demonstrations of the suite: what `make demo` and its kin run."""

import com_model.interrupt  # noqa: F401 (a name would be exported)
