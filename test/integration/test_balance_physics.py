"""The control of the CoM in MuJoCo, whose own CoM is the judge, on a floor that tilts."""

import importlib
from dataclasses import fields, replace

import numpy as np
import pytest

from com_control.balance.options import BalanceOptions, StandingLimits
from com_model.robots import known_robots
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.suspension_rig import STAYS, Tilt

RATE = 250.0


@pytest.fixture(scope="module")
def lab():
    return importlib.import_module("balance_lab")


@pytest.mark.parametrize(
    "direction", [pytest.param(0.0, marks=pytest.mark.exhaustive), 2.0]
)
def test_a_floor_that_tilts_by_5_deg_s_to_10_deg(lab, direction):
    tilt = Tilt(10.0, 5.0, np.degrees(direction), lab.SETTLE + 0.5, STAYS)
    done = lab.run(4.5, lambda _, __: None, tilt, rate_hz=RATE)
    assert not done.fell
    assert np.degrees(done.slope[-1]) == pytest.approx(10.0, abs=0.1)
    assert done.error().max() < 0.002
    assert done.error()[done.time > 4.2].max() < 1e-4
    assert done.tilt[-1] < 0.002


def test_without_control_it_falls(lab):
    tilt = Tilt(10.0, 5.0, 0.0, lab.SETTLE, STAYS)
    assert lab.run(4.0, lambda _, __: None, tilt, control=False, rate_hz=RATE).fell


def test_the_com_goes_where_it_is_desired(lab):
    desired = np.array([0.02, 0.015, 0.245])
    done = lab.run(3.0, lambda _, __: (desired, np.zeros(3)), rate_hz=RATE)
    np.testing.assert_allclose(done.com[-1, :2], desired[:2], atol=1e-4)
    assert done.com[-1, 2] == pytest.approx(0.245, abs=1e-3)
    assert done.reasons == ()


@pytest.mark.skipif(
    "talos" not in known_robots(), reason="example-robot-data is missing"
)
def test_encoders_half_a_degree_off_tilt_the_soles_and_talos_rocks(lab):
    """On the edges of its soles; taken for ground that rotates, this made it fall within 2 s.

    The rocking grows: after 4.6 s it falls all the same.
    """
    noise = NoiseLevels(position_bias=np.radians(0.5))
    done = lab.run(
        3.0, lambda _, __: None, noise=noise, rate_hz=100.0, robot="talos", seed=2
    )
    assert not done.fell
    assert done.time[-1] > 2.9
    assert done.reasons == ()


def live_bounds():
    """Each live number of the balancer at both ends of what it may be."""
    for kind in (BalanceOptions, StandingLimits):
        for item in fields(kind):
            if item.metadata.get("live") and item.metadata["bounds"] is not None:
                for value in item.metadata["bounds"]:
                    yield pytest.param(
                        kind, item.name, value, id=f"{item.name} {value:g}"
                    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [*live_bounds(), pytest.param(BalanceOptions, "resonance", 2.0, id="slowest")],
)
def test_no_live_parameter_drops_a_robot_that_sways(lab, kind, name, value):
    new = {BalanceOptions: BalanceOptions(), StandingLimits: StandingLimits()}
    new[kind] = replace(new[kind], **{name: value})
    changed = []

    def sway(time, session):
        if time > 2.0 and not changed:
            changed.append(name)
            session.set_options(*new.values())
        place = 0.009 * np.array([np.sin(2.5 * time), np.cos(2.5 * time), np.nan])
        return place, np.zeros(3)

    run = lab.run(6.0, sway)
    assert not run.fell
    assert run.tilt.max() < 0.1
    assert run.slope.max() < 0.01
    assert run.time[-1] > 5.9
