"""HOAP-2's sample motion is what its script writes, and the soles stay where they are."""

import importlib.util
from pathlib import Path

import numpy as np
import pinocchio

from com_control.motion.limits import load_motion

SHARE = Path(__file__).resolve().parents[4] / "src" / "robot_descriptions"


def script():
    path = SHARE.parents[1] / "tools" / "robots" / "make_hoap2_motion.py"
    spec = importlib.util.spec_from_file_location("make_hoap2_motion", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_script_writes(monkeypatch, tmp_path):
    module = script()
    monkeypatch.setattr("sys.argv", ["make_hoap2_motion.py", str(tmp_path / "again.csv")])
    module.main()
    assert (tmp_path / "again.csv").read_text() == module.FILE.read_text()


def test_soles_stay_level_and_the_centre_of_mass_inside_them(layout, config):
    """Seen from the left sole, the right one does not turn, and the CoM stays between both."""
    motion = load_motion(script().FILE, layout).motion
    oracle = pinocchio.buildModelFromUrdf(str(config.urdf))
    data = oracle.createData()
    frames = [oracle.getFrameId(name) for name in ("l_sole", "r_sole")]
    q = np.zeros(oracle.nq)
    for row in motion.positions[::10]:
        for name, value in zip(motion.joints, row, strict=True):
            q[oracle.joints[oracle.getJointId(name)].idx_q] = value
        com = pinocchio.centerOfMass(oracle, data, q)
        pinocchio.updateFramePlacements(oracle, data)
        left, right = (data.oMf[frame] for frame in frames)
        apart = left.actInv(right)
        np.testing.assert_allclose(apart.rotation, np.eye(3), atol=2e-4)
        assert abs(apart.translation[0]) < 1e-4
        x, y, _ = left.actInv(com)
        assert -0.0346 + 0.02 < x < 0.0543 - 0.02
        assert -0.055 < y < -0.02
