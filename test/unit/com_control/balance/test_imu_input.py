"""An IMU beyond a joint of the trunk: gravity in the root's axes, whatever the joint does."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu
from shipped_robot import shipped_robot

from com_control.balance.session import BalanceSession
from com_control.nodes.com_balancer import BalancedRobot
from com_model import link_pose
from com_ros.inputs import ImuInput
from com_ros.joint_input import JointSample


@pytest.mark.parametrize("bent", [0.0, 0.3])
def test_hoap3s_chest_may_bend_or_give_way(bent):
    robot = shipped_robot("hoap3")
    model, q = robot.model, robot.posture.copy()
    q[model.joint_index("WAIST_CHEST_joint")] = bent
    R_world_root = Rotation.from_rotvec([0.1, -0.05, 0.4]).as_matrix()
    R_world_imu = R_world_root @ link_pose(model, q, robot.config.imu_link)[0]
    msg = Imu()
    x, y, z, w = Rotation.from_matrix(R_world_imu).as_quat()
    msg.orientation.x, msg.orientation.y, msg.orientation.z, msg.orientation.w = (
        x,
        y,
        z,
        w,
    )
    imu = ImuInput(timeout_s=0.1)
    imu.update(msg, 10**9)
    session = BalanceSession(model, robot.config)
    balanced = BalancedRobot(session, robot.config, imu, wrenches=None)
    nan = np.full(model.n_joints, np.nan)
    reading = balanced.read(JointSample(q, nan, nan, time_ns=10**9))
    assert not reading.missing
    np.testing.assert_allclose(reading.up, R_world_root[2], atol=1e-9)
