"""The commands of com_simulation; see package.xml and src/package_setup.py for the rest."""

from pathlib import Path
from runpy import run_path

COMMANDS = {
    "compare_urdfs": "com_simulation.commands.compare_urdfs:main",
    "find_urdf": "com_simulation.commands.find_urdf:main",
    "record_bag": "com_simulation.commands.record_bag:main",
    "simulator": "com_simulation.nodes.simulator:main",
    "sway": "com_simulation.nodes.sway:main",
}

shared = run_path(str(Path(__file__).resolve().parents[1] / "package_setup.py"))
shared["setup_package"](__file__, COMMANDS)
