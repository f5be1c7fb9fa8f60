"""HOAP-2 with wrong centres of mass, and postures of it without noise."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from com_identification.regression.postures import make_posture

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="session")
def scene():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        module = importlib.import_module("identification_bags")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    folder = ROOT / "src/robot_descriptions"
    return module.Scene(folder / "urdf/hoap2.urdf", folder / "config/hoap2.yaml")


@pytest.fixture(scope="session")
def postures(scene):
    """40 postures on both feet, the last one on the left foot."""
    made = []
    for i, q in enumerate(scene.postures(40)):
        fractions = np.array([1.0, 0.0]) if i == 39 else None
        wrenches, effort, _ = scene.readings(q, fractions)
        made.append(
            make_posture(scene.model, q, wrenches, effort, samples=100, label=f"p{i}")
        )
    return made


@pytest.fixture(scope="session")
def found(scene, postures):
    from com_identification.regression.identify import identify
    from com_identification.settings import (
        IdentificationSettings,
        PriorSettings,
        SensorPriors,
    )

    known = IdentificationSettings(
        sensors=SensorPriors.calibrated(), prior=PriorSettings(mass_std_fraction=0.0)
    )
    return identify(scene.model, scene.feet, postures, known)


@pytest.fixture(scope="session")
def fits(scene, postures, found):
    from com_identification.report.comparison import compare_postures

    return compare_postures(scene.model, scene.feet, postures, found, 9.81)
