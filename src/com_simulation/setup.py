"""Commands of com_simulation; setup.cfg has the rest."""

import sys

from setuptools import setup

COMMANDS = {
    "compare_urdfs": "com_simulation.commands.compare_urdfs:main",
    "find_urdf": "com_simulation.commands.find_urdf:main",
    "record_bag": "com_simulation.commands.record_bag:main",
    "simulator": "com_simulation.nodes.simulator:main",
    "sway": "com_simulation.nodes.sway:main",
}
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):  # pip: com-a-command on the PATH
    COMMANDS = {f"com-{c.removeprefix('com_').replace('_', '-')}": m for c, m in COMMANDS.items()}

setup(entry_points={"console_scripts": [f"{c} = {m}" for c, m in COMMANDS.items()]})
