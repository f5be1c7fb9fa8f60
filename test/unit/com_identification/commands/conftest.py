"""Recordings of robots whose true centres of mass are known."""

import importlib
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from com_identification.settings import SensorPriors

ROOT = Path(__file__).resolve().parents[4]
BENCHMARKS = ROOT / "benchmarks"
CONFIGS = ROOT / "src/robot_descriptions/config"
URDFS = ROOT / "src/robot_descriptions/urdf"


@pytest.fixture(scope="session")
def bags():
    """The module that makes recordings."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("identification_bags")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="session")
def biped(bags):
    """The three-link biped, centres of mass off by 5 mm."""
    return bags.Scene(URDFS / "biped3.urdf", CONFIGS / "biped3.yaml")


@pytest.fixture(scope="session")
def recording(bags, biped, tmp_path_factory):
    """recording(name, ...): a bag of the biped; made once for each name."""
    folder = tmp_path_factory.mktemp("bags")

    def make(name, count=20, storage="mcap", change=lambda block: block, **tour):
        path = folder / name
        if not path.exists():
            options = bags.Tour(**{"rate": 100.0, "still": 2.0, "moving": 0.5, **tour})
            with bags.BagWriter(path, biped, storage) as writer:
                for block in bags.samples(biped, biped.postures(count), options):
                    writer.write(change(block))
        return path

    return make


@pytest.fixture(scope="session")
def exact(tmp_path_factory):
    """Settings that say what is true of the recordings: no errors but noise, masses known."""
    path = tmp_path_factory.mktemp("settings") / "exact.yaml"
    sensors = asdict(SensorPriors.calibrated())
    path.write_text(
        yaml.safe_dump({"sensors": sensors, "prior": {"mass_std_fraction": 0.0}})
    )
    return path


@pytest.fixture
def robot(exact):
    """Arguments that name the biped."""
    config = str(CONFIGS / "biped3.yaml")
    return [
        "--robot",
        str(URDFS / "biped3.urdf"),
        "--config",
        config,
        "--settings",
        str(exact),
    ]


@pytest.fixture
def run(capsys):
    """run(argument...): exit status, standard output, standard error."""
    from com_identification.commands.identify import main

    def call(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        return (status, *capsys.readouterr())

    return call
