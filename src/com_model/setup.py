"""Commands of com_model; setup.cfg has the rest."""

import sys

from setuptools import setup

COMMANDS = {
    "audit": "com_model.commands.audit:main",
    "com_setup": "com_model.commands.setup:main",
    "setup": "com_model.commands.setup:main",
    "workspace": "com_model.commands.workspace:main",
}
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):  # pip: com-a-command on the PATH
    COMMANDS = {f"com-{c.removeprefix('com_').replace('_', '-')}": m for c, m in COMMANDS.items()}
    COMMANDS["com_setup"] = COMMANDS["com-setup"]

setup(entry_points={"console_scripts": [f"{c} = {m}" for c, m in COMMANDS.items()]})
