"""A real Go2 by tools/real_data.py; docs/real_data.md says where its recordings come from.

  tools/in_env python benchmarks/run_all.py real_go2 -- --source FOLDER

FOLDER has the files by the names there, such as go2_real/test_4_imu.csv. The last line is the JSON
object of tools/real_data.py go2. Without FOLDER the exit code is 2.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from real_data import main

if __name__ == "__main__":
    raise SystemExit(main(["go2", *sys.argv[1:]]))
