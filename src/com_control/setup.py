from setuptools import find_packages, setup

package_name = "com_control"

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
    description="Gaits of robots on four legs and on two, and their nodes.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "ccgd_gait = com_control.nodes.ccgd_gait:main",
            "check_motion = com_control.commands.check_motion:main",
            "com_balancer = com_control.nodes.com_balancer:main",
            "convert_motion = com_control.commands.convert_motion:main",
            "hoap2moves = com_control.nodes.hoap2moves:main",
            "motion_player = com_control.nodes.motion_player:main",
            "trot_gait = com_control.nodes.trot_gait:main",
        ],
    },
)
