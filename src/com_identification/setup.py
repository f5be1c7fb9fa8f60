"""Commands of com_identification; setup.cfg has the rest."""

import sys

from setuptools import setup

COMMANDS = {
    "identify_bag": "com_identification.commands.identify_bag:main",
    "posture_protocol": "com_identification.commands.posture_protocol:main",
    "propose_postures": "com_identification.commands.propose_postures:main",
    "com_identification": "com_identification.nodes.com_identification:main",
    "posture_protocol_server": "com_identification.nodes.posture_protocol:main",
    "posture_tour": "com_identification.nodes.posture_tour:main",
}
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):  # pip: com-a-command on the PATH
    COMMANDS = {f"com-{c.removeprefix('com_').replace('_', '-')}": m for c, m in COMMANDS.items()}

setup(entry_points={"console_scripts": [f"{c} = {m}" for c, m in COMMANDS.items()]})
