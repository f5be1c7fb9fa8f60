from setuptools import find_packages, setup

package_name = "com_demos"

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
    description="Demonstrations that run on any machine: live tables, recordings, pictures, plots.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "identify_demo = com_demos.identify_demo:main",
            "sway_demo = com_demos.sway_demo:main",
            "trot_demo = com_demos.trot_demo:main",
            "walk_demo = com_demos.walk_demo:main",
        ],
    },
)
