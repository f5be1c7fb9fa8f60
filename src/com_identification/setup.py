from setuptools import find_packages, setup

package_name = "com_identification"

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
    description="Centre of mass and mass of every link from a robot's own sensors.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "com_identification = com_identification.nodes.com_identification:main",
            "identify_bag = com_identification.commands.identify_bag:main",
            "posture_protocol = com_identification.commands.posture_protocol:main",
            "posture_protocol_server = com_identification.nodes.posture_protocol:main",
            "posture_tour = com_identification.nodes.posture_tour:main",
            "propose_postures = com_identification.commands.propose_postures:main",
        ],
    },
)
