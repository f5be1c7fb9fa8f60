"""Evidence on the total CoM asked of the node: two tilts of one shape, and a CoM that is known."""

import numpy as np
import pytest
from geometry_msgs.msg import PointStamped
from identification_bench import Scenario

from com_model import RobotModel, Sesc
from com_msgs import srv
from com_ros.conversions import ns_to_stamp, numpy_to_point, vector3_to_numpy

LOAD = np.array([0.5, 0.5])


@pytest.fixture
def start(world, make_standing_robot, tmp_path):
    return lambda **parameters: Scenario(
        world, make_standing_robot("biped3"), tmp_path, **parameters
    )


def capture(scenario, q, **how):
    """Plays and captures a posture; a busy machine may need to play it again."""
    for _ in range(5):
        answer = scenario.capture(q, LOAD, **how)
        if answer.success:
            return answer
    raise AssertionError(answer.message)


def posture(robot, ankle):
    """The standing robot with both ankles turned."""
    names = robot.model.joint_names
    return np.array([ankle if "ankle" in name else 0.0 for name in names])


def test_a_shape_that_was_tilted_gives_the_height(start):
    scenario, ask = start(), "identify_two_postures"
    none = scenario.call(srv.IdentifyTotalCom, ask)
    assert not none.success
    assert "no postures are stored" in none.message
    robot = scenario.robot
    for ankle in (0.0, 0.025):
        capture(scenario, posture(robot, ankle))
    refused = scenario.call(srv.IdentifyTotalCom, ask)
    assert not refused.success
    assert "the largest tilt of one shape is 1." in refused.message
    capture(scenario, posture(robot, 0.2))
    found = scenario.call(srv.IdentifyTotalCom, ask, postures=[1, 3])
    assert found.success, found.message
    assert found.used == 2
    assert "in posture 1: (" in found.message
    assert "), 3: (" in found.message
    assert "tilted by 11.5 deg" in found.message
    q = posture(robot, 0.0)
    true = robot.com(q) - robot.com(q, robot.model.xml)
    std = vector3_to_numpy(found.offset_std)
    assert (np.abs(vector3_to_numpy(found.offset) - true) < 4.0 * std + 3e-4).all()
    assert std.max() < 5e-3  # of the height, too, which one posture leaves unknown
    one = scenario.call(srv.IdentifyTotalCom, "identify_total_com", postures=[1])
    assert np.isnan(one.offset.z)


def test_links_are_identified_by_a_known_com_without_forces(start, world):
    scenario = start(capture__missing_feet=True, prior__mass_std_fraction=0.0)
    robot, feet = (
        scenario.robot,
        tuple(foot.frame for foot in scenario.robot.config.feet),
    )
    rng = np.random.default_rng(5)

    def tell(q, frame):
        msg = PointStamped(point=numpy_to_point(robot.com(q)))
        msg.header.frame_id, msg.header.stamp = frame, ns_to_stamp(scenario.time_ns)
        world.send("known_com", msg)
        world.spin_for(0.2)

    for k in range(9):
        q = rng.uniform(-0.5, 0.5, robot.model.n_joints)
        for _ in range(5):
            scenario.play(q, LOAD, 150, without=feet)  # longer than capture.lag
            tell(q, ("base_link", "", "nose")[k % 3])
            answer = scenario.call(srv.CapturePosture, "capture_posture", timeout=0.3)
            if answer.success:
                break
        assert answer.success, answer.message
        assert ("3 components of the CoM by known_com" in answer.message) == (k % 3 < 2)
        if k % 3 == 2:  # of no link of the robot: nothing is known in this posture
            assert scenario.call(srv.RemovePosture, "remove_posture", id=k + 1).success
    found = scenario.call(srv.IdentifyLinks, "identify_links")
    assert found.success, found.message
    assert found.result.residual_rms < 0.3 * found.result.prior_residual_rms
    written = scenario.call(srv.ExportUrdf, "export_urdf", name="corrected")
    assert written.success, written.message
    Q = rng.uniform(-0.5, 0.5, (20, robot.model.n_joints))
    corrected = Sesc(RobotModel.from_file(written.path)).com_batch(Q)
    true, before = (
        np.array([robot.com(q, *xml) for q in Q]) for xml in ((), (robot.model.xml,))
    )
    left, was = (np.linalg.norm(com - true) for com in (corrected, before))
    assert left < 0.6 * was
