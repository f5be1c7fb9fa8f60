"""How colcon and pip build com_control."""

import sys

from setuptools import find_packages, setup

PACKAGE = "com_control"
COMMANDS = {
    "check_motion": "commands.check_motion",
    "convert_motion": "commands.convert_motion",
    "ccgd_gait": "nodes.ccgd_gait",
    "com_balancer": "nodes.com_balancer",
    "hoap2moves": "nodes.hoap2moves",
    "motion_player": "nodes.motion_player",
    "trot_gait": "nodes.trot_gait",
}
if {"dist_info", "bdist_wheel", "editable_wheel"} & set(sys.argv):  # pip: com-a-command on the PATH
    COMMANDS = {f"com-{c.removeprefix('com_').replace('_', '-')}": m for c, m in COMMANDS.items()}


setup(
    name=PACKAGE,
    version="0.1.0",
    license="Apache-2.0",
    packages=find_packages(),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ],
    python_requires=">=3.10",
    install_requires=[
        "com_bags",
        "com_model",
        "numba>=0.59",
        "numpy>=1.26",
        "rosbags>=0.11",
        "scipy>=1.11",
    ],
    extras_require={"test": ["pytest"]},  # colcon test
    entry_points={"console_scripts": [f"{c} = {PACKAGE}.{m}:main" for c, m in COMMANDS.items()]},
)
