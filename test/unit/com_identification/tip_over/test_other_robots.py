"""Protocols of other humanoids, with Pinocchio's centre of mass and poses."""

from pathlib import Path

import numpy as np
import pinocchio
import pytest

from com_identification.tip_over.protocol import TipProtocol
from com_identification.tip_over.quasi_static import QuasiStatic
from com_model import RobotConfig, RobotModel, Sesc, SupportPolygon, link_pose
from com_model.robots import find_robot

DESCRIPTIONS = Path(__file__).resolve().parents[4] / "src/robot_descriptions"


def load(robot):
    files = find_robot(robot)
    protocol = TipProtocol.from_file(
        DESCRIPTIONS / f"config/posture_protocol/{robot}.yaml"
    )
    config = RobotConfig.from_file(files.config)
    return (
        files.urdf,
        config,
        QuasiStatic.from_protocol(RobotModel.from_file(files.urdf), config, protocol),
    )


@pytest.fixture(scope="module")
def talos():
    return load("talos")


# by robot, how many tests tip it before its joints' limits
@pytest.mark.parametrize(
    ("robot", "falling"), [("talos", 14), ("icub", 14), ("romeo", 10)]
)
def test_it_tips_where_its_com_is_over_an_edge(robot, falling):
    urdf, config, simulation = load(robot)
    # a fixed base would leave out the root's mass
    free = pinocchio.JointModelFreeFlyer()
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
        frames = [data.oMf[model.getFrameId(name)] for name in case.test.feet]
        points = [
            sole.actInv(frame.act(np.append(corner, 0.0)))
            for name, frame in zip(case.test.feet, frames, strict=True)
            for corner in corners[name]
        ]
        margin = SupportPolygon.from_points(np.array(points)).margin(com)
        assert margin == pytest.approx(0.0, abs=1e-6), tip.test
        axis, side = column[case.test.falls]
        edge = max(side * corners[case.test.feet[0]][:, axis])
        # on the side that it names; iCub's soles are not quite parallel
        assert side * com[axis] == pytest.approx(edge, abs=1e-5), tip.test
        falls += 1
    assert falls == falling  # waists (of Romeo the hips, backwards) do not bend so far


@pytest.mark.parametrize("robot", ["hoap2", "hoap3", "icub", "romeo", "talos"])
def test_on_the_way_to_one_foot_it_does_not_fall(robot):
    """CoM over both soles until it is over the one that stays, where the ramp begins."""
    _, config, simulation = load(robot)
    feet = {foot.frame: foot for foot in config.feet}
    sesc, model = Sesc(simulation.model), simulation.model
    for case in simulation.cases:
        if len(case.test.feet) > 1:
            continue
        (standing,) = case.test.feet
        (other,) = set(feet) - {standing}
        lifted = False
        for q in case.way:
            R, p = link_pose(model, q, standing)
            _, p_other = link_pose(model, q, other)
            height = float((R.T @ (p_other - p))[2])
            soles = [standing] if height > 0.005 or lifted else [standing, other]
            lifted |= height > 0.005
            poses = [link_pose(model, q, name) for name in soles]
            corners = np.vstack(
                [
                    (R.T @ (R_s @ feet[name].points.T + (p_s - p)[:, None])).T
                    for name, (R_s, p_s) in zip(soles, poses, strict=True)
                ]
            )
            com = R.T @ (sesc.com(q) - p)
            assert SupportPolygon.from_points(corners).margin(com) > 0.0, (
                case.test.name,
                q,
            )
        assert lifted, case.test.name


def test_both_sides_of_talos_tip_at_like_angles(talos):
    tips = {tip.test: tip.angle for tip in talos[2].find_tips()}
    for arms in ("arms_down", "forearms_forward"):
        assert tips[f"roll Left, {arms}"] == pytest.approx(
            -tips[f"roll Right, {arms}"], abs=0.005
        )
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
                tips[f"{move} {side}, arms_{arms}"].angle
                for arms in ("forward", "lowered")
            )
            assert min(sign * forward, sign * lowered) > 0.0
            assert forward > lowered
    for arms in ("arms_forward", "arms_lowered"):
        roll = (tips[f"roll {side}, {arms}"].angle for side in ("Left", "Right"))
        assert sum(roll) == pytest.approx(0.0, abs=0.01)
