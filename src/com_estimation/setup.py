"""The commands of com_estimation; see package.xml and src/package_setup.py for the rest."""

from pathlib import Path
from runpy import run_path

COMMANDS = {
    "sesc_publisher": "com_estimation.nodes.sesc_publisher:main",
    "trunk_estimator": "com_estimation.nodes.trunk_estimator:main",
}

shared = run_path(str(Path(__file__).resolve().parents[1] / "package_setup.py"))
shared["setup_package"](__file__, COMMANDS)
