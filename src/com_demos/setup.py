"""How colcon and pip build com_demos."""

import sys

from setuptools import find_packages, setup

PACKAGE = "com_demos"
COMMANDS = {
    "compile_kernels": "compile_kernels",
    "identify_demo": "identify_demo",
    "sway_demo": "sway_demo",
    "trot_demo": "trot_demo",
    "walk_demo": "walk_demo",
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
    install_requires=["com_model", "matplotlib>=3.6", "numpy>=1.26", "rich>=13"],
    extras_require={"test": ["pytest"]},  # colcon test
    entry_points={"console_scripts": [f"{c} = {PACKAGE}.{m}:main" for c, m in COMMANDS.items()]},
)
