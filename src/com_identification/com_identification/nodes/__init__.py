"""ROS nodes of com_identification.

OpenBLAS works in one thread: the matrices here are small, and handing them to several takes up to
ten times as long as computing them. It reads the variable, which may be set outside, when numpy
loads it.
"""

import os

import com_model.interrupt  # noqa: F401 (a name would be exported)

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
