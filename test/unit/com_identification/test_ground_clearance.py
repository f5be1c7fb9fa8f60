"""Nothing but the soles touches the ground: heights against MuJoCo's boxes, planned postures."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from com_identification.planning.feasible import SelfCollision
from com_identification.planning.planner import PosturePlanner
from com_identification.regression.statics import Statics
from com_identification.settings import IdentificationSettings, PlanOptions
from com_model import RobotConfig, RobotModel, link_poses
from com_simulation.physics.world_builder import build_world

CONFIG = (
    Path(__file__).resolve().parents[3] / "src/robot_descriptions/config/hoap2.yaml"
)


@pytest.fixture(scope="module")
def robot():
    config = RobotConfig.from_file(CONFIG)
    return RobotModel.from_file(config.urdf), config


def test_heights_are_those_of_boxes_and_frames(robot):
    model, config = robot
    rest = config.nominal_posture(model)
    collision = SelfCollision(Statics(model), rest)
    q = rest + np.random.default_rng(0).uniform(-0.3, 0.3, model.n_joints)
    up = np.array([0.1, -0.2, 1.0]) / np.linalg.norm([0.1, -0.2, 1.0])
    found = collision.heights(q[None], up[None], np.array([0.05]))[0]
    world = build_world(model, config, base="fixed")
    mj, data = world.mj, mujoco.MjData(world.mj)
    data.qpos[world.joint_qpos] = q
    mujoco.mj_kinematics(mj, data)
    up_world = data.xmat[1].reshape(3, 3) @ up
    heights = []
    for geom in range(1, mj.ngeom):
        if mj.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
            center = float(up_world @ (data.geom_xpos[geom] - data.xpos[1]))
            along = up_world @ data.geom_xmat[geom].reshape(3, 3)
            heights.append(center - np.abs(along) @ mj.geom_size[geom] - 0.05)
    assert len(heights) > 5
    for height in heights:
        assert np.abs(found - height).min() < 1e-9


def test_only_soles_touch_the_ground_in_what_is_planned(robot):
    model, config = robot
    rest = config.nominal_posture(model)
    plan = PlanOptions(margin=0.015, most_tilt=np.pi, one_foot=0.0)
    planner = PosturePlanner(
        model, config.feet, rest, IdentificationSettings(plan=plan)
    )
    boxes = SelfCollision(Statics(model), rest)
    soles = [model.link_index(foot.frame) for foot in config.feet]
    own = model.bodies.body_of_link[soles]
    for q, _, _ in planner.feasible.sample(60):
        R, p = link_poses(model, q)
        up = R[soles[0]][:, 2]
        heights = boxes.heights(q[None], up[None], np.array([up @ p[soles[0]]]))[0]
        assert heights[~np.isin(boxes.bodies, own)].min() > 0.0
