"""Builds what setup.cfg says; pip names the commands com-a-command, and leaves nodes to ROS."""

import sys

from setuptools import setup
from setuptools.config.setupcfg import read_configuration

commands = read_configuration("setup.cfg")["options"]["entry_points"]["console_scripts"]
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):
    pairs = [
        c.removeprefix("com_").split(" = ") for c in commands if ".nodes." not in c
    ]
    commands = [
        f"com-{name.replace('_', '-')} = {function}" for name, function in pairs
    ]
setup(entry_points={"console_scripts": commands})
