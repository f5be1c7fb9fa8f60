"""The commands of com_demos; see package.xml and src/package_setup.py for the rest."""

from pathlib import Path
from runpy import run_path

COMMANDS = {
    "identify_demo": "com_demos.identify_demo:main",
    "sway_demo": "com_demos.sway_demo:main",
    "trot_demo": "com_demos.trot_demo:main",
    "walk_demo": "com_demos.walk_demo:main",
}

shared = run_path(str(Path(__file__).resolve().parents[1] / "package_setup.py"))
shared["setup_package"](__file__, COMMANDS)
