"""Check-up of a trotting quadruped: causes are named from exact recordings, a right URDF is not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from slow_recording import make_robot, sway

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.slow.checkup import check_up


def turned(log: WalkLog, degrees: float) -> WalkLog:
    """The recording of an IMU that is turned about y."""
    R = Rotation.from_euler("y", -degrees, degrees=True)
    return replace(
        log,
        angular_velocity=R.apply(log.angular_velocity),
        specific_force=R.apply(log.specific_force),
        up=R.apply(log.up),
    )


def test_a_payload_is_named_with_its_mass(recorded):
    found = check_up(
        [recorded.log], recorded.believed, recorded.config, recorded.true.mass
    )
    assert found.named is not None
    assert found.named.kind == "payload"
    # 1.5 kg heavier than the URDF
    assert float(found.named.size.split()[0]) == pytest.approx(1.5, abs=0.3)
    assert sum(each.probability for each in found.causes) + found.none == pytest.approx(
        1.0
    )


def test_a_robot_like_its_urdf_is_not_accused(recorded):
    found = check_up([recorded.log], recorded.true, recorded.config, recorded.true.mass)
    assert found.named is None
    assert found.healthy
    assert 0.0005 < found.bound < 0.02  # m
    assert "floor slope" not in {each.kind for each in found.causes}


@pytest.mark.parametrize("degrees", [-3.0, 3.0])
def test_a_tilted_imu_is_named(recorded, degrees):
    log = turned(recorded.log, degrees)
    found = check_up([log], recorded.true, recorded.config, recorded.true.mass)
    assert found.named is not None
    assert found.named.kind == "IMU tilt"
    pitch = float(found.named.size.split(", ")[1].removesuffix(" deg"))
    assert pitch == pytest.approx(degrees, abs=0.8)


def test_the_joint_of_a_wrong_torque_scale_is_named(recorded):
    effort, joint = recorded.log.effort.copy(), "FL_thigh_joint"
    effort[:, recorded.true.joint_names.index(joint)] *= 1.4
    log = replace(recorded.log, effort=effort)
    found = check_up([log], recorded.true, recorded.config, recorded.true.mass)
    assert found.named is not None
    assert (found.named.kind, found.named.joint) == ("torque scale", joint)


def test_no_joint_is_named_of_an_encoder(recorded):
    found = check_up([recorded.log], recorded.true, recorded.config)
    own = next(each for each in found.causes if each.kind == "encoder zero")
    assert not own.joint
    assert "sway" in own.size


def test_recordings_of_two_kinds_are_refused(recorded):
    n = recorded.log.position.shape[1]
    still = replace(
        recorded.log,
        position=np.tile(recorded.log.position[0], (len(recorded.log.time), 1)),
    )
    assert still.position.shape[1] == n
    with pytest.raises(WalkError, match="one kind"):
        check_up([recorded.log, still], recorded.true, recorded.config)


def test_without_an_imu_it_says_what_to_record(recorded):
    nothing = np.full_like(recorded.log.specific_force, np.nan)
    log = replace(
        recorded.log, angular_velocity=nothing, specific_force=nothing, up=None
    )
    with pytest.raises(WalkError, match="imu"):
        check_up([log], recorded.true, recorded.config)


def test_a_walking_humanoid_is_refused():
    robot = make_robot(1, 0.4, "hoap3")
    log = sway(robot, 40.0)
    wave = 0.3 * np.sin(2.0 * np.pi * 2.0 * log.time)
    position = log.position.copy()
    position[:, robot.believed.joint_names.index("R_LFE_R_KN_joint")] += wave
    log = replace(log, position=position)
    with pytest.raises(WalkError, match="stands on all feet"):
        check_up([log], robot.believed, robot.config)
