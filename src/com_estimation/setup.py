"""Commands of com_estimation; setup.cfg has the rest."""

import sys

from setuptools import setup

COMMANDS = {
    "sesc_publisher": "com_estimation.nodes.sesc_publisher:main",
    "trunk_estimator": "com_estimation.nodes.trunk_estimator:main",
}
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):  # pip: com-a-command on the PATH
    COMMANDS = {f"com-{c.removeprefix('com_').replace('_', '-')}": m for c, m in COMMANDS.items()}

setup(entry_points={"console_scripts": [f"{c} = {m}" for c, m in COMMANDS.items()]})
