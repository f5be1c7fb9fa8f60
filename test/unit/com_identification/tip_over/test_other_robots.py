"""The protocol of another humanoid, TALOS, with Pinocchio's centre of mass and poses."""

from pathlib import Path

import pinocchio
import pytest

from com_identification.tip_over.quasi_static import Protocol, QuasiStatic
from com_model import RobotConfig, RobotModel
from com_model.robots import find_robot

DESCRIPTIONS = Path(__file__).resolve().parents[4] / "src/robot_descriptions"


def load(robot):
    files = find_robot(robot)
    protocol = Protocol.from_file(DESCRIPTIONS / f"config/posture_protocol/{robot}.yaml")
    config = RobotConfig.from_file(files.config)
    return (
        files.urdf,
        config,
        QuasiStatic.from_protocol(RobotModel.from_file(files.urdf), config, protocol),
    )


@pytest.fixture(scope="module")
def talos():
    return load("talos")


def test_talos_tips_where_its_com_is_over_an_edge(talos):
    urdf, config, simulation = talos
    free = pinocchio.JointModelFreeFlyer()  # a fixed base would leave out the root's mass
    model = pinocchio.buildModelFromUrdf(str(urdf), free)
    data = model.createData()
    corners = {foot.frame: foot.corners for foot in config.feet}
    column = {"front": (0, 1), "back": (0, -1), "left": (1, 1), "right": (1, -1)}
    falls = 0
    for case, tip in zip(simulation.cases, simulation.find_tips(), strict=True):
        if not tip.falls:
            continue
        q = pinocchio.neutral(model)
        angles = case.start + tip.angle * case.rate
        for name, angle in zip(simulation.model.joint_names, angles, strict=True):
            if model.existJointName(name):
                q[model.joints[model.getJointId(name)].idx_q] = angle
        pinocchio.framesForwardKinematics(model, data, q)
        sole = data.oMf[model.getFrameId(case.test.feet[0])]
        com = sole.actInv(pinocchio.centerOfMass(model, data, q))
        axis, side = column[case.test.falls]
        edge = max(side * corners[case.test.feet[0]][:, axis])
        assert side * com[axis] == pytest.approx(edge, abs=1e-6), tip.test
        falls += 1
    assert falls == 14  # its waist does not bend so far


def test_both_sides_of_talos_tip_at_like_angles(talos):
    tips = {tip.test: tip.angle for tip in talos[2].find_tips()}
    for arms in ("arms_down", "forearms_forward"):
        assert tips[f"roll Left, {arms}"] == pytest.approx(-tips[f"roll Right, {arms}"], abs=0.005)
        assert tips[f"ankle Back, {arms}"] > 0.0 > tips[f"ankle Front, {arms}"]


def test_the_protocol_of_hoap3_falls_to_the_sides_that_it_names():
    """In arms_forward the CoM is further in front than in arms_lowered."""
    tips = {tip.test: tip for tip in load("hoap3")[2].find_tips()}
    assert {name for name, tip in tips.items() if not tip.falls} == {
        "waist Front, arms_forward",  # it does not bend so far
        "waist Front, arms_lowered",
    }
    for move in ("hip", "ankle"):
        for side, sign in (("Back", 1.0), ("Front", -1.0)):
            forward, lowered = (
                tips[f"{move} {side}, arms_{arms}"].angle for arms in ("forward", "lowered")
            )
            assert min(sign * forward, sign * lowered) > 0.0
            assert forward > lowered
    for arms in ("arms_forward", "arms_lowered"):
        roll = (tips[f"roll {side}, {arms}"].angle for side in ("Left", "Right"))
        assert sum(roll) == pytest.approx(0.0, abs=0.01)
