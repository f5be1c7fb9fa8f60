"""The commands of com_identification; see package.xml and src/package_setup.py for the rest."""

from pathlib import Path
from runpy import run_path

COMMANDS = {
    "com_identification": "com_identification.nodes.com_identification:main",
    "identify_bag": "com_identification.commands.identify_bag:main",
    "posture_protocol": "com_identification.commands.posture_protocol:main",
    "posture_protocol_server": "com_identification.nodes.posture_protocol:main",
    "posture_tour": "com_identification.nodes.posture_tour:main",
    "propose_postures": "com_identification.commands.propose_postures:main",
}

shared = run_path(str(Path(__file__).resolve().parents[1] / "package_setup.py"))
shared["setup_package"](__file__, COMMANDS)
