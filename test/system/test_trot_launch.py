"""scalf2.launch.xml end to end over DDS: the trunk's CoM is found while the robot trots."""

import numpy as np
import pytest
from read_back import ground_reaction_to_numpy, root_body_inertial, trunk_com_to_numpy
from std_msgs.msg import String
from std_srvs.srv import Trigger

from com_model import RobotModel
from com_msgs.msg import CenterOfMass, GaitPhase, GroundReaction, TrunkCom
from com_ros.conversions import point_to_numpy, stamp_to_ns
from com_ros.qos import LATCHED

OFFSET = (-0.03, 0.05, 0.0)
BOUND = 0.005  # m, of x and y
WEIGHT = 312 * 9.81  # N
LOCKSTEP = [
    "lockstep:=true",
    "use_sim_time:=true",
    "input_timeout:=60.0",
    "real_time_factor:=0.0",
]
QUIET = ["sesc:=false", "rviz:=false"]


def matched(estimates, truths, since_ns=0):
    """Converged estimates with the truths of their stamps."""
    truth = {stamp_to_ns(message.header.stamp): message for message in truths}
    return [
        (trunk_com_to_numpy(message), truth[stamp_to_ns(message.header.stamp)])
        for message in list(estimates)
        if message.status == TrunkCom.STATUS_CONVERGED
        and stamp_to_ns(message.header.stamp) in truth
        and stamp_to_ns(message.header.stamp) > since_ns
    ]


def trots(phases):
    """Stamps of the trot's steps, ns."""
    return [
        stamp_to_ns(p.header.stamp) for p in phases if p.state == GaitPhase.TROTTING
    ]


def call(ear, name):
    client = ear.node.create_client(Trigger, name)
    ear.until(client.service_is_ready, f"service {name}")
    answer = client.call_async(Trigger.Request())
    ear.until(answer.done, f"answer of {name}")
    return answer.result()


def test_scalf2_trots_and_its_trunk_is_found(launch, ear):
    estimates = ear.listen(TrunkCom, "trunk_com")
    truths = ear.listen(CenterOfMass, "ground_truth/trunk_com")
    reactions = ear.listen(GroundReaction, "ground_reaction")
    phases = ear.listen(GaitPhase, "gait/stance")
    corrected = []
    ear.node.create_subscription(
        String, "robot_description_corrected", corrected.append, LATCHED
    )
    offsets = [
        f"offset_{axis}:={value}" for axis, value in zip("xyz", OFFSET, strict=True)
    ]
    run = launch(
        "com_bringup",
        "scalf2.launch.xml",
        *QUIET,
        *LOCKSTEP,
        *offsets,
        "corrected:=true",
    )

    ear.until(lambda: trots(phases), "trot")
    second = trots(phases)[0] + 10**9
    ear.until(
        lambda: len(matched(estimates, truths, second)) > 100, "converged estimates"
    )
    for values, truth in matched(estimates, truths, second):
        error = np.abs(values.com - point_to_numpy(truth.position))
        assert (error[:2] < BOUND).all(), error
        assert (error < 4.0 * np.sqrt(np.diag(values.covariance))).all(), error
        assert values.mass == pytest.approx(truth.mass, abs=4.0 * values.mass_std)
    assert values.offset_from_urdf[:2] == pytest.approx(OFFSET[:2], abs=BOUND)

    lifts = [
        ground_reaction_to_numpy(message).forces[:, 2].sum() for message in reactions
    ]
    assert np.nanmedian(lifts) == pytest.approx(WEIGHT, rel=0.1)
    assert {tuple(p.stance) for p in phases if p.state == GaitPhase.TROTTING} >= {
        (True, False, False, True),
        (False, True, True, False),
    }

    ear.until(lambda: corrected, "robot_description_corrected")
    found = root_body_inertial(RobotModel.from_urdf(corrected[-1].data)).com
    assert found[:2] == pytest.approx(OFFSET[:2], abs=2 * BOUND)

    assert call(ear, "trunk_estimator/reset").message == "the estimation restarts"
    ear.until(
        lambda: estimates[-1].status != TrunkCom.STATUS_CONVERGED, "new beginning"
    )
    ear.until(
        lambda: estimates[-1].status == TrunkCom.STATUS_CONVERGED, "estimate again"
    )
    assert call(ear, "trot_gait/stop").success
    ear.until(lambda: phases[-1].state == GaitPhase.STANDING, "stand")

    assert run.stop() == 0, run.output
    assert run.processes() == {}
    assert "Traceback" not in run.output
