"""colcon builds what has a setup.py; setup.cfg says what."""

from setuptools import setup

setup()
