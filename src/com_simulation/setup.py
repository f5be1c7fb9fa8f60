"""How colcon and pip build com_simulation."""

import sys

from setuptools import find_packages, setup

PACKAGE = "com_simulation"
COMMANDS = {
    "compare_urdfs": "commands.compare_urdfs",
    "find_urdf": "commands.find_urdf",
    "record_bag": "commands.record_bag",
    "simulator": "nodes.simulator",
    "sway": "nodes.sway",
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
        "com_model",
        "matplotlib>=3.6",
        "mujoco>=3.3",
        "numpy>=1.26",
        "rich>=13",
        "rosbags>=0.11",
        "scipy>=1.11",
    ],
    extras_require={"test": ["pytest"]},  # colcon test
    entry_points={"console_scripts": [f"{c} = {PACKAGE}.{m}:main" for c, m in COMMANDS.items()]},
)
