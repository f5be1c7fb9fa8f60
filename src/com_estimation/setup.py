from setuptools import find_packages, setup

package_name = "com_estimation"

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
    description="Estimators of the centre of mass and their nodes.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "com_identification = com_estimation.nodes.com_identification:main",
            "identify_bag = com_estimation.commands.identify_bag:main",
            "posture_protocol = com_estimation.commands.posture_protocol:main",
            "posture_protocol_server = com_estimation.nodes.posture_protocol:main",
            "posture_tour = com_estimation.nodes.posture_tour:main",
            "propose_postures = com_estimation.commands.propose_postures:main",
            "sesc_publisher = com_estimation.nodes.sesc_publisher:main",
            "trot_com_estimator = com_estimation.nodes.trot_com_estimator:main",
        ],
    },
)
