"""What a finding's parameters are in words: units, axes, and a payload as mass and place."""

import re

import numpy as np
import pytest
from shipped_robot import shipped_robot

from com_estimation.humanoid.diagnosis import Finding
from com_estimation.humanoid.layout import Kind, make_layout
from com_estimation.humanoid.story import how_much


@pytest.fixture(scope="module")
def layout():
    robot = shipped_robot("hoap2")
    return make_layout(robot.model, robot.config)


def find(layout, kind, values, stds):
    """A finding of the first culprit of a kind."""
    index = next(i for i, culprit in enumerate(layout.culprits) if culprit.kind is kind)
    covariance = np.diag(np.square(stds))
    return Finding(index, 0.99, True, True, 1.0, np.array(values), covariance)


def numbers(text):
    return [float(v.replace("−", "-")) for v in re.findall(r"[−\d.]*\d", text)]


def test_a_payload_has_a_mass_and_a_place_in_the_frame_of_its_link(layout):
    mass, place = 0.4, np.array([0.012, -0.034, 0.056])
    culprit = next(c for c in layout.culprits if c.kind is Kind.PAYLOAD)
    model = shipped_robot("hoap2").model
    body = model.bodies.names.index(culprit.parts[0])
    com = model.bodies.first_moment[body] / model.bodies.mass[body]
    moment = mass * layout.plant.triad[body].T @ (place - com)
    text = how_much(
        layout, find(layout, Kind.PAYLOAD, [mass, *moment], [0.01, *[4e-4] * 3])
    )
    assert text.endswith(f"m in the frame of {culprit.parts[0]}")
    kilograms, std, x, _, y, _, z, _ = numbers(text.partition(" m in")[0])
    assert (kilograms, std) == (mass, 0.01)
    np.testing.assert_allclose([x, y, z], place, atol=5e-4)


def test_where_a_payload_is_stays_open_if_its_mass_is_hardly_known(layout):
    text = how_much(
        layout, find(layout, Kind.PAYLOAD, [0.02, 0.1, 0.1, 0.1], [0.01] * 4)
    )
    assert numbers(text) == [0.02, 0.01]
    assert "frame" not in text


@pytest.mark.parametrize(
    ("kind", "values", "units"),
    [
        (Kind.WRENCH_ZERO, [1, 2, 3, 4, 5, 6], ["N"] * 3 + ["N m"] * 3),
        (Kind.IMU_TILT, np.radians([1.5, 2.5]), ["deg"] * 2),
        (Kind.ENCODER_ZERO, np.radians([1.5, 2.5]), ["deg"] * 2),
    ],
)
def test_each_number_has_an_axis_and_a_unit(layout, kind, values, units):
    finding = find(layout, kind, values, np.full(len(values), 0.1))
    parts = how_much(layout, finding).split(", ")
    assert len(parts) == len(units)
    scale = 180.0 / np.pi if units[0] == "deg" else 1.0
    for part, value, unit in zip(parts, values, units, strict=True):
        assert part.endswith(f" {unit}")
        assert f" {scale * value:.2f} ± " in part
    if kind is Kind.ENCODER_ZERO:
        assert parts[0].startswith(layout.culprits[finding.culprit].parts[0])


def test_a_moment_of_the_trunk_moves_the_com_of_the_robot(layout):
    moment = [1e-3 * layout.mass, 0.0, -2e-3 * layout.mass]
    text = how_much(layout, find(layout, Kind.TRUNK_COM, moment, [1e-4] * 3))
    assert "forwards 1.00 ± " in text
    assert "up −2.00 ± " in text
