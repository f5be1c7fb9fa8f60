"""HOAP-2 and the balance of it."""

import pytest
from shipped_robot import shipped_robot


@pytest.fixture(scope="session")
def hoap2():
    return shipped_robot("hoap2")


@pytest.fixture(scope="session")
def config(hoap2):
    return hoap2.config


@pytest.fixture(scope="session")
def model(hoap2):
    return hoap2.model


@pytest.fixture
def posture(hoap2):
    return hoap2.posture
