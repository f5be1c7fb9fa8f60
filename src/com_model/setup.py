"""Builds for colcon what setup.cfg says; pip installs the whole suite from the root."""

from setuptools import setup

setup()
