"""Commands of com_demos; setup.cfg has the rest."""

import sys

from setuptools import setup

COMMANDS = {
    "compile_kernels": "com_demos.compile_kernels:main",
    "identify_demo": "com_demos.identify_demo:main",
    "sway_demo": "com_demos.sway_demo:main",
    "trot_demo": "com_demos.trot_demo:main",
    "walk_demo": "com_demos.walk_demo:main",
}
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):  # pip: com-a-command on the PATH
    COMMANDS = {f"com-{c.removeprefix('com_').replace('_', '-')}": m for c, m in COMMANDS.items()}

setup(entry_points={"console_scripts": [f"{c} = {m}" for c, m in COMMANDS.items()]})
