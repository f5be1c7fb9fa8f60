"""The diagnosis of a robot with four point feet: a weight on its back is named, nothing else."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_estimation.humanoid.diagnosis import EventKind
from com_estimation.humanoid.estimator import HumanoidEstimator, Mode
from com_model.robot_config import ground_wrenches
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.true_errors import Payload
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow
PERIOD, LOADED_AT = 0.005, 2.0  # s
NOISE = NoiseLevels(position=5e-5, force=1.0, orientation=3e-5)


def test_a_weight_on_the_back_of_a_quadruped_is_named() -> None:
    config, model = shipped_robot("scalf2")[:2]
    model = config.attach(model)
    mass = 0.05 * model.mass
    load = Payload(mass, (0.1, 0.05, 0.2), LOADED_AT)
    simulation = Simulation(build_world(model, config), PERIOD, NOISE, payload=load)
    estimator = HumanoidEstimator(model, config)
    assert len(estimator.layout.plant.foot_body) == 4
    named: dict[str, float] = {}
    while simulation.time < 5.0:
        reading = simulation.advance()
        R = Rotation.from_quat(reading.root_orientation).as_matrix()
        wrenches = ground_wrenches(reading.wrenches, config.feet)
        out = estimator.update(reading.time, reading.position, R, wrenches)
        assert out is not None
        assert not out.fall_warning
        assert out.mode is not Mode.FROZEN or reading.time < 0.1, out.reason
        estimator.process()
        for finding in estimator.diagnosis.verdict.findings:
            if finding.named:
                name = estimator.layout.culprits[finding.culprit].name
                named.setdefault(name, reading.time - LOADED_AT)
    assert set(named) == {"payload on the trunk"}
    assert 0.0 < named["payload on the trunk"] < 1.0
    assert [event.kind for event in estimator.diagnosis.events] == [EventKind.CHANGE]
    np.testing.assert_allclose(out.mass_correction, mass, atol=4.0 * out.mass_std)
    error = out.com - reading.com
    before = error - out.correction
    assert np.linalg.norm(error[:2]) < 0.2 * np.linalg.norm(before[:2])
