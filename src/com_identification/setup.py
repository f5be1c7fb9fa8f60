"""The commands of com_identification; see package.xml and src/package_setup.py for the rest."""

from pathlib import Path
from runpy import run_path

COMMANDS = {
    "commands": "identify_bag posture_protocol propose_postures",
    "nodes": "com_identification posture_protocol_server=posture_protocol posture_tour",
}

shared = run_path(str(Path(__file__).resolve().parents[1] / "package_setup.py"))
shared["setup_package"](__file__, COMMANDS)
