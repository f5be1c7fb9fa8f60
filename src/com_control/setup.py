"""The commands of com_control; see package.xml and src/package_setup.py for the rest."""

from pathlib import Path
from runpy import run_path

COMMANDS = {
    "commands": "check_motion convert_motion",
    "nodes": "ccgd_gait com_balancer hoap2moves motion_player trot_gait",
}

shared = run_path(str(Path(__file__).resolve().parents[1] / "package_setup.py"))
shared["setup_package"](__file__, COMMANDS)
