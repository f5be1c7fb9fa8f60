"""The commands of com_control; see package.xml and src/package_setup.py for the rest."""

from pathlib import Path
from runpy import run_path

COMMANDS = {
    "ccgd_gait": "com_control.nodes.ccgd_gait:main",
    "check_motion": "com_control.commands.check_motion:main",
    "com_balancer": "com_control.nodes.com_balancer:main",
    "convert_motion": "com_control.commands.convert_motion:main",
    "hoap2moves": "com_control.nodes.hoap2moves:main",
    "motion_player": "com_control.nodes.motion_player:main",
    "trot_gait": "com_control.nodes.trot_gait:main",
}

shared = run_path(str(Path(__file__).resolve().parents[1] / "package_setup.py"))
shared["setup_package"](__file__, COMMANDS)
