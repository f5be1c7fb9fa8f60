"""The posture protocol as a service over DDS."""

from pathlib import Path

import numpy as np
import pytest
from std_msgs.msg import String

from com_identification.exceptions import ProtocolError
from com_identification.nodes.posture_protocol import PostureProtocol
from com_model import ConfigError
from com_msgs.srv import TipAngles
from com_ros.exceptions import ParameterError

DESCRIPTIONS = Path(__file__).resolve().parents[2] / "src/robot_descriptions"
URDF = (DESCRIPTIONS / "urdf/hoap2.urdf").read_text()
FILES = {
    "robot_config": str(DESCRIPTIONS / "config/hoap2.yaml"),
    "protocol": str(DESCRIPTIONS / "config/posture_protocol/hoap2.yaml"),
}
ERRORS = """
robot: hoap2
zero_offset_rad: {RLEG_JOINT5: -0.01, LLEG_JOINT5: -0.01}
"""


@pytest.fixture
def ask(world):
    def ask(**request):
        client = world.node.create_client(TipAngles, "posture_protocol/tip_angles")
        world.spin_until(client.service_is_ready, "the service")
        answer = client.call_async(TipAngles.Request(**request))
        world.spin_until(answer.done, "the answer")
        return answer.result()

    return ask


def test_all_tests_and_some(world, ask):
    world.start(PostureProtocol, robot_description=URDF, **FILES)
    answer = ask()
    assert answer.success, answer.message
    assert len(answer.names) == len(answer.angles) == len(answer.falls) == 16
    angles = dict(zip(answer.names, np.degrees(answer.angles), strict=True))
    assert angles["leg3 Back, arms_forward"] == pytest.approx(31.48, abs=0.01)
    assert angles["leg6 Left, arms_lowered"] == pytest.approx(
        -angles["leg6 Right, arms_lowered"], abs=0.5
    )
    some = ask(tests=["leg5 Back, arms_lowered", "leg3 Back, arms_forward"])
    assert list(some.names) == ["leg5 Back, arms_lowered", "leg3 Back, arms_forward"]
    np.testing.assert_allclose(
        np.degrees(some.angles), [angles[name] for name in some.names]
    )


def test_errors_of_the_joints_count_unless_the_robot_is_to_be_rigid(
    world, ask, tmp_path
):
    errors = tmp_path / "errors.yaml"
    errors.write_text(ERRORS)
    world.start(
        PostureProtocol, robot_description=URDF, joint_errors=str(errors), **FILES
    )
    test = "leg5 Front, arms_forward"
    erring, rigid = ask(tests=[test]), ask(tests=[test], rigid=True)
    assert erring.angles[0] - rigid.angles[0] == pytest.approx(0.01, abs=1e-6)


def test_wrong_requests_tell_what_there_is(world, ask):
    world.start(PostureProtocol, robot_description=URDF, **FILES)
    answer = ask(tests=["leg3 Back, arms_forward", "leg9 Up"])
    assert not answer.success
    assert "no tests leg9 Up; valid: leg3 Back, arms_forward" in answer.message
    assert not answer.names


def test_it_waits_for_the_description_and_refuses_another_robot(world, ask, walker):
    world.start(PostureProtocol, **FILES)
    answer = ask()
    assert not answer.success
    assert "no robot_description yet" in answer.message
    world.latch("robot_description", String(data=walker))
    world.spin_until(lambda: "no usable" in ask().message, "the walker is refused")
    world.latch("robot_description", String(data=URDF))
    world.spin_until(lambda: ask().success, "HOAP-2 is taken")
    world.latch("robot_description", String(data="<robot"))
    world.spin_for(0.3)
    assert ask().success


def test_files_that_cannot_be_used(world, tmp_path):
    with pytest.raises(
        ParameterError, match="parameter 'protocol' is '': give the path"
    ):
        world.start(PostureProtocol, robot_config=FILES["robot_config"])
    empty = tmp_path / "empty.yaml"
    empty.write_text("robot: hoap2\n")
    with pytest.raises(ProtocolError, match="there are no moves"):
        world.start(
            PostureProtocol, robot_config=FILES["robot_config"], protocol=str(empty)
        )
    with pytest.raises(ConfigError, match=r"none.yaml: does not exist"):
        world.start(
            PostureProtocol, robot_config=FILES["robot_config"], protocol="none.yaml"
        )


def test_bad_joint_errors_are_a_refusal_with_the_fix(world, ask, tmp_path):
    errors = tmp_path / "errors.yaml"
    errors.write_text("robot: nao\n")
    world.start(
        PostureProtocol, robot_description=URDF, joint_errors=str(errors), **FILES
    )
    answer = ask()
    assert not answer.success
    assert "joint errors of robot 'nao', but the robot is 'hoap2'" in answer.message
