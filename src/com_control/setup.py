"""Commands of com_control; setup.cfg has the rest."""

import sys

from setuptools import setup

COMMANDS = {
    "check_motion": "com_control.commands.check_motion:main",
    "convert_motion": "com_control.commands.convert_motion:main",
    "ccgd_gait": "com_control.nodes.ccgd_gait:main",
    "com_balancer": "com_control.nodes.com_balancer:main",
    "hoap2moves": "com_control.nodes.hoap2moves:main",
    "motion_player": "com_control.nodes.motion_player:main",
    "trot_gait": "com_control.nodes.trot_gait:main",
}
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):  # pip: com-a-command on the PATH
    COMMANDS = {f"com-{c.removeprefix('com_').replace('_', '-')}": m for c, m in COMMANDS.items()}

setup(entry_points={"console_scripts": [f"{c} = {m}" for c, m in COMMANDS.items()]})
