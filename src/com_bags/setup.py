"""How colcon and pip build com_bags."""

from setuptools import find_packages, setup

PACKAGE = "com_bags"
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
    install_requires=["com_model", "numpy>=1.26", "rosbags>=0.11", "PyYAML>=6"],
    extras_require={"test": ["pytest"]},  # colcon test
)
