"""Import this before numpy: OpenBLAS then works in one thread.

The matrices here are small. Handing them to several threads takes up to ten times as long as
computing them, most of all where the other cores are busy; and OpenBLAS reads the variable only
when numpy loads it. Who sets it from outside is obeyed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
