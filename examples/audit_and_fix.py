"""What is wrong with the masses in a URDF, and the URDF with what is beyond doubt corrected.

python examples/audit_and_fix.py robot.urdf fixed.urdf
"""

import sys
from pathlib import Path

from com_model import RobotModel, audit
from com_model.checks.audit import correct


def main(urdf: str, output: str) -> None:
    """Print the issues and the corrections; write the corrected URDF where there are any."""
    path = Path(urdf)
    print(audit(RobotModel.from_file(path)).text())
    text, done = correct(path.read_bytes(), path)
    for sentence in done:
        print(f"corrected: {sentence}")
    if done:
        Path(output).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
