"""HOAP-2's sample motion is what its script writes, and the soles stay where they are."""

import importlib.util
from pathlib import Path

import numpy as np
import pinocchio
import pytest

from com_control.motion.limits import load_motion

SHARE = Path(__file__).resolve().parents[4] / "src" / "robot_descriptions"


def script():
    path = SHARE.parents[1] / "tools" / "robots" / "make_hoap2_motions.py"
    spec = importlib.util.spec_from_file_location("make_hoap2_motions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_script_writes(monkeypatch, tmp_path):
    module = script()
    monkeypatch.setattr("sys.argv", ["make_hoap2_motions.py", str(tmp_path)])
    module.main()
    for name in ("squat_and_wave", "walk", "rise"):
        file = f"hoap2_{name}.csv"
        assert (tmp_path / file).read_text() == (module.FOLDER / file).read_text()


@pytest.mark.parametrize("name", ["squat_and_wave", "rise"])
def test_soles_stay_level_and_the_centre_of_mass_inside_them(name, layout, config):
    """Seen from the left sole, the right one does not turn, and the CoM stays between both."""
    motion = load_motion(script().FOLDER / f"hoap2_{name}.csv", layout).motion
    # with a fixed root Pinocchio would leave the trunk's mass out
    oracle = pinocchio.buildModelFromUrdf(
        str(config.urdf), pinocchio.JointModelFreeFlyer()
    )
    data = oracle.createData()
    frames = [oracle.getFrameId(name) for name in ("l_sole", "r_sole")]
    q = pinocchio.neutral(oracle)
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
