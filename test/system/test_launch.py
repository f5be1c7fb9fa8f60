"""The launch files, started through tools/run_launch as a user starts them."""

import os
import signal

import numpy as np
import pytest
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from numpy.testing import assert_allclose
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from com_model import RobotModel
from com_model.robots import find_robot
from com_msgs.msg import CenterOfMass


def is_installed(package):
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


# Where rviz2 is installed it would open a window; where not, run_launch must say so.
RVIZ = "rviz:=false" if is_installed("rviz2") else "rviz:=true"


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


def xyz(vector):
    return np.array([vector.x, vector.y, vector.z])


def pairs(computed, true):
    """Messages of both topics with the same stamp, where the computed one is OK."""
    truth = {stamp_of(message): message for message in true}
    return [
        (message, truth[stamp_of(message)])
        for message in list(computed)
        if message.status == CenterOfMass.STATUS_OK and stamp_of(message) in truth
    ]


def stop_cleanly(run):
    """Ctrl-C: exit code 0, no child left, no traceback."""
    code = run.stop()
    assert code == 0, run.output
    assert run.processes() == {}
    assert "Traceback" not in run.output


def test_hoap2_sways_and_its_com_is_the_true_one(launch, ear):
    computed = ear.listen(CenterOfMass, "com")
    true = ear.listen(CenterOfMass, "ground_truth/com")
    run = launch("com_bringup", "hoap2.launch.xml", "sway:=true", RVIZ)
    ear.until(lambda: len(pairs(computed, true)) > 200, "200 pairs of com and truth")
    for message, truth in pairs(computed, true):
        assert_allclose(xyz(message.position), xyz(truth.position), atol=1e-6)
        assert message.header.frame_id == truth.header.frame_id == "base_link"
    message = pairs(computed, true)[-1][0]
    assert message.mass == pytest.approx(7.1200448, abs=1e-6)
    assert message.ground == CenterOfMass.GROUND_FEET
    assert set(message.contacts) == {"l_sole", "r_sole"}
    assert message.support_margin > 0.0
    if RVIZ == "rviz:=true":
        assert (
            "[run_launch] rviz2 skipped: package 'rviz2' is not installed\n"
            in run.lines
        )
    stop_cleanly(run)


def test_namespace_moves_all_topics_but_tf_and_a_node_that_dies_is_reported(
    launch, ear
):
    computed = ear.listen(CenterOfMass, "lab/com")
    true = ear.listen(CenterOfMass, "lab/ground_truth/com")
    frames = ear.listen(TFMessage, "/tf")
    run = launch(
        *(
            "com_bringup",
            "hoap2.launch.xml",
            "rviz:=false",
            "namespace:=lab",
            "use_imu:=true",
        )
    )
    ear.until(lambda: pairs(computed, true), "pair of com and truth in the namespace")

    def children():
        return {
            transform.child_frame_id
            for message in frames
            for transform in message.transforms
        }

    ear.until(
        lambda: {"com", "com_projection", "base_link"} <= children(), "frames on /tf"
    )
    topics = [name for name, _ in ear.node.get_topic_names_and_types()]
    outside = {name for name in topics if not name.startswith("/lab/")}
    assert outside <= {
        "/tf",
        "/tf_static",
        "/diagnostics",
        "/parameter_events",
        "/rosout",
    }

    os.kill(run.pid_of("simulator"), signal.SIGKILL)
    run.wait_for("[run_launch] lab/simulator died by signal SIGKILL")
    ear.until(
        lambda: computed[-1].status == CenterOfMass.STATUS_UNKNOWN,
        "word of the silence",
    )
    assert "joint_states timed out" in computed[-1].reason
    assert run.stop() == 1
    assert run.processes() == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("robot", ["ur5", "solo12"])
def test_any_urdf(launch, ear, robot):
    computed = ear.listen(CenterOfMass, "com")
    true = ear.listen(CenterOfMass, "ground_truth/com")
    run = launch("com_bringup", "robot.launch.xml", f"robot:={robot}", RVIZ)
    ear.until(lambda: len(pairs(computed, true)) > 20, "20 pairs of com and truth")
    for message, truth in pairs(computed, true):
        assert_allclose(xyz(message.position), xyz(truth.position), atol=1e-6)
    stop_cleanly(run)


def test_the_configuration_beside_a_urdf(launch, ear, tmp_path):
    """With a sole frame that the URDF does not have."""
    xml = find_robot("biped3").urdf.read_text()
    (tmp_path / "mine.urdf").write_text(xml.replace("l_sole", "l_plate"))
    config = find_robot("biped3").config.read_text().replace("urdf:", "# urdf:")
    mounted = "  l_sole: {link: l_plate, corners: [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05]]}\n"
    start, end = config.index("  l_sole:"), config.index("  r_sole:")
    (tmp_path / "mine.yaml").write_text(config[:start] + mounted + config[end:])
    computed = ear.listen(CenterOfMass, "com")
    run = launch(
        "com_bringup", "robot.launch.xml", f"robot:={tmp_path}/mine.urdf", "rviz:=false"
    )
    ear.until(
        lambda: computed and computed[-1].contacts == ["l_sole", "r_sole"],
        "both contacts",
    )
    stop_cleanly(run)


def test_real_robot_on_other_topics_and_a_killed_launcher_leaves_no_node(launch, ear):
    """simulation:=false: the same nodes listen to a driver, here the test."""
    computed = ear.listen(CenterOfMass, "com")
    driver = ear.node.create_publisher(JointState, "hoap2/joints", 10)
    run = launch(
        *("com_bringup", "hoap2.launch.xml", "simulation:=false", "rviz:=false"),
        "joint_states:=hoap2/joints",
    )
    model = RobotModel.from_file(find_robot("hoap2").urdf)
    message = JointState(name=list(model.joint_names), position=[0.0] * model.n_joints)

    def received():
        message.header.stamp = ear.node.get_clock().now().to_msg()
        driver.publish(message)
        return computed and computed[-1].status == CenterOfMass.STATUS_OK

    ear.until(received, "com of a robot on other topics")
    # The report's CoM in the initial posture, from the waist axis.
    assert_allclose(xyz(computed[-1].position), [-0.0263, 0.00009, -0.0140], atol=1e-4)

    assert run.pid_of("sesc_publisher") != run.process.pid
    run.process.kill()
    run.process.wait()
    run.wait_until_gone()


def test_wrong_urdf_is_said(launch, tmp_path):
    run = launch("com_bringup", "view_robot.launch.xml", f"urdf:={tmp_path}/none.urdf")
    assert run.finish() == 1
    assert "none.urdf': there is no such file" in run.output
