from setuptools import find_packages, setup

package_name = "com_simulation"

setup(
    name=package_name,
    version="0.1.0",
    packages=find_packages(),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="Center of Mass suite maintainers",
    maintainer_email="maintainers@example.org",
    description=(
        "MuJoCo in the place of a robot and its drivers: the same topics, and the true centre of "
        "mass."
    ),
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "compare_urdfs = com_simulation.commands.compare_urdfs:main",
            "find_urdf = com_simulation.commands.find_urdf:main",
            "record_bag = com_simulation.commands.record_bag:main",
            "simulator = com_simulation.nodes.simulator:main",
            "sway = com_simulation.nodes.sway:main",
        ],
    },
)
