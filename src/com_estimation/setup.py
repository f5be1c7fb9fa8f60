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
            "sesc_publisher = com_estimation.nodes.sesc_publisher:main",
            "trunk_estimator = com_estimation.nodes.trunk_estimator:main",
        ],
    },
)
