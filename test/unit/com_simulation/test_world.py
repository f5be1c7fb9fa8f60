"""The MuJoCo model has the URDF's masses, stands on the ground, and says what it left out."""

import itertools

import mujoco
import numpy as np
import pytest

from com_model import ConfigError, RobotConfig, RobotModel, UrdfError, link_poses
from com_simulation.exceptions import WorldError
from com_simulation.physics.contacts import lowest_height, neighbours
from com_simulation.physics.world_builder import build_world

pytestmark = pytest.mark.slow

EXACT = 1e-9  # of the robot's mass (kg) and size (m)


def data_of(world):
    data = mujoco.MjData(world.mj)
    data.qpos[:] = world.qpos
    mujoco.mj_forward(world.mj, data)
    return data


def true_com(world, q):
    """The centre of mass in the world from com_model's bodies and link poses."""
    robot = world.robot
    data = data_of(world)
    R, p = data.xmat[1].reshape(3, 3), data.xpos[1]
    R_links, p_links = link_poses(robot, q, R, p)
    centers = p_links + np.einsum("lij,lj->li", R_links, robot.link_coms)
    return robot.link_masses @ centers / robot.mass


@pytest.mark.exhaustive
def test_masses_and_com_of_every_example(examples):
    loaded = 0
    for name, path in examples.items():
        try:
            robot = RobotModel.from_file(path)
        except UrdfError:
            continue
        # Meshes carry no mass and take time: they are not found.
        robot = RobotModel.from_urdf(
            robot.xml.replace("package://", "package://elsewhere/")
        )
        world = build_world(robot)
        data = data_of(world)
        assert world.mj.body_subtreemass[0] == pytest.approx(
            robot.mass, rel=0, abs=EXACT
        ), name
        np.testing.assert_allclose(
            data.subtree_com[1],
            true_com(world, world.posture),
            rtol=0,
            atol=EXACT,
            err_msg=name,
        )
        loaded += 1
    assert loaded > 60


def test_masses_with_meshes_and_a_floating_base(robot_files):
    robot, config, path = robot_files("talos", "talos_data/robots/talos_full_v2.urdf")
    world = build_world(robot, config, urdf_path=path)
    assert world.mj.nmesh > 20
    assert world.mj.body_subtreemass[0] == pytest.approx(robot.mass, rel=0, abs=EXACT)
    com = data_of(world).subtree_com[1]
    np.testing.assert_allclose(com, true_com(world, world.posture), rtol=0, atol=EXACT)


def test_mimic_joints_and_massless_links(arm):
    world = build_world(arm)
    assert arm.joint_names == ("shoulder", "slide")
    assert world.mj.njnt == 3
    assert world.mj.nu == 2
    data = mujoco.MjData(world.mj)
    data.qpos[:], data.ctrl[:] = world.qpos, [0.3, 0.15]
    mujoco.mj_step(world.mj, data, 3000)
    slide = data.qpos[world.joint_qpos[1]]
    assert slide == pytest.approx(0.15, abs=0.005)
    assert data.qpos[2] == pytest.approx(0.02 - 0.5 * slide, abs=1e-5)


@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_lowest_contact_just_touches_the_ground(robot_files, slope):
    for name, urdf in (("hoap2", None), ("a1", "a1_description/urdf/a1.urdf")):
        robot, config, path = robot_files(name, urdf)
        world = build_world(robot, config, urdf_path=path, ground_slope=slope)
        data = data_of(world)
        assert world.floating
        heights = [
            lowest_height(world.mj, data, world.normal, g)
            for g in range(1, world.mj.ngeom)
        ]
        assert min(heights) == pytest.approx(0.0, abs=1e-9)
        distances = [
            mujoco.mj_geomDistance(world.mj, data, 0, g, 10.0, None)
            for g in range(1, world.mj.ngeom)
        ]
        assert min(distances) == pytest.approx(0.0, abs=1e-6)


def test_slope_rises_forwards(arm):
    normal = build_world(arm, ground_slope=0.2).normal
    np.testing.assert_allclose(normal, [-np.sin(0.2), 0, np.cos(0.2)], atol=1e-15)


def test_a_robot_without_feet_hangs_out_of_reach(arm):
    world = build_world(arm)
    assert not world.floating
    # hand at 0.1 + 0.4 + 0.2 (slide) below the base, tip 0.1 and 0.08 (finger) further
    assert data_of(world).xpos[1][2] > 0.88
    assert not data_of(world).ncon


def test_base_can_be_chosen(arm):
    assert build_world(arm, base="floating").floating
    with pytest.raises(
        WorldError, match="base is 'flying': give one of auto, floating, fixed"
    ):
        build_world(arm, base="flying")


def test_the_ground_carries_feet_though_a_shape_of_the_ankle_reaches_it(robot_files):
    robot, config, _ = robot_files("hoap2")
    index = robot.link_index(config.feet[0].frame)
    foot = int(robot.bodies.body_of_link[index])
    ankle = int(robot.bodies.parent[foot])
    R, p = link_poses(robot, config.nominal_posture(robot))
    name = robot.bodies.names[ankle]
    at = R[robot.link_index(name)].T @ (p[index] - p[robot.link_index(name)])
    shape = (
        f'<collision><origin xyz="{at[0]} {at[1]} {at[2]}"/>'
        '<geometry><sphere radius="0.002"/></geometry></collision>'
    )
    begin = robot.xml.index(">", robot.xml.index(f'<link name="{name}"')) + 1
    xml = robot.xml[:begin] + shape + robot.xml[begin:]
    world = build_world(RobotModel.from_urdf(xml), config)
    note = "shapes beside the soles, which the ground does not carry: "
    assert [each for each in world.notes if each.startswith(note)] == [note + name]
    data = mujoco.MjData(world.mj)
    data.qpos[:], data.ctrl[:] = world.qpos, world.posture
    mujoco.mj_step(world.mj, data, 500)
    touching = set(world.mj.geom_bodyid[data.contact.geom[:, 1]].tolist())
    assert foot + 1 in touching
    assert ankle + 1 not in touching


def test_bare_feet_stand_on_balls_at_the_corners(robot_files):
    robot, config, _ = robot_files("talos", "talos_data/robots/talos_reduced.urdf")
    robot = RobotModel.from_urdf(robot.xml, robot.frames)  # no path: no mesh is found
    world = build_world(robot, config)
    lines = [note for note in world.notes if "left out" in note]
    assert len(lines) == 1
    assert lines[0].startswith("47 collision shapes left out: ")
    assert (
        "feet carried by balls at their soles, for want of simple shapes: "
        "left_sole_link, right_sole_link" in world.notes
    )
    data = mujoco.MjData(world.mj)
    data.qpos[:], data.ctrl[:] = world.qpos, world.posture
    mujoco.mj_step(world.mj, data, 500)
    assert data.ncon == 8
    index = robot.link_index("left_sole_link")
    R, p = link_poses(
        robot, data.qpos[world.joint_qpos], data.xmat[1].reshape(3, 3), data.xpos[1]
    )
    in_sole = (data.contact.pos - p[index]) @ R[index]
    corners = config.feet[0].corners
    distance = np.linalg.norm(in_sole[:, None, :2] - corners[None], axis=2).min(axis=0)
    assert distance.max() < 2e-3


def test_a_point_foot_gets_the_ball_of_its_radius(robot_files):
    robot, config, _ = robot_files("solo12", "solo_description/robots/solo12.urdf")
    world = build_world(robot, config)
    balls = [
        g for g in range(world.mj.ngeom) if world.mj.geom(g).name.endswith("_FOOT0")
    ]
    assert len(balls) == 4
    np.testing.assert_allclose(world.mj.geom_size[balls, 0], config.feet[0].radius)


def test_shapes_that_touch_at_the_start_never_collide(robot_files):
    robot, config, path = robot_files("icub", "icub_description/robots/icub.urdf")
    world = build_world(robot, config, urdf_path=path)
    data = data_of(world)
    pairs = data.contact.geom.reshape(-1, 2)
    assert world.mj.nexclude > 0
    assert (pairs == 0).any(axis=1).all()  # with the ground alone


def test_links_named_world_and_odd_names():
    robot = RobotModel.from_urdf(
        '<robot name="r"><link name="world"/><joint name="j" type="revolute"><parent link="world"/>'
        '<child link="a/b &lt;c&gt;"/><axis xyz="0 0 1"/></joint><link name="a/b &lt;c&gt;">'
        '<inertial><mass value="1"/></inertial></link></robot>'
    )
    world = build_world(robot)
    assert world.mj.nbody == 3


def test_limits_that_leave_nothing_or_one_side_only():
    robot = RobotModel.from_urdf(
        '<robot name="r"><link name="a"/><joint name="j" type="revolute"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/><limit lower="0.3" upper="0.3" effort="1" '
        'velocity="1"/></joint><link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    world = build_world(robot)
    assert world.posture[0] == pytest.approx(0.3)
    data = mujoco.MjData(world.mj)
    data.qpos[:], data.ctrl[:] = world.qpos, world.posture
    mujoco.mj_step(world.mj, data, 1000)
    assert data.qpos[0] == pytest.approx(0.3, abs=1e-3)


def test_impossible_inertia_is_enlarged_and_named():
    robot = RobotModel.from_urdf(
        '<robot name="r"><link name="a"/><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/></joint><link name="b"><inertial>'
        '<origin xyz="0.1 0 0"/><mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.9" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    world = build_world(robot)
    assert world.notes == ("inertias enlarged to what a body can have: b",)
    small, middle, large = np.sort(world.mj.body_inertia[2])
    assert large == pytest.approx(0.9)
    assert small + middle >= large
    np.testing.assert_allclose(world.mj.body_ipos[2], [0.1, 0, 0])


def test_a_configuration_of_another_robot(arm, robot_files):
    _, config, _ = robot_files("hoap2")
    with pytest.raises(
        ConfigError, match="root_link: the URDF's root is 'base', not 'base_link'"
    ):
        build_world(arm, config)


def test_posture_is_clipped_into_the_limits(arm):
    config = RobotConfig.from_dict(
        {"name": "arm", "posture": {"shoulder": 2.0, "slide": -1.0}}
    )
    np.testing.assert_allclose(build_world(arm, config).posture, [1.0, 0.0])


def test_neighbours_up_to_two_joints_apart_never_collide():
    chain = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i - 1}"/><child link="l{i}"/></joint>'
        for i in range(1, 4)
    )
    side = '<joint name="s" type="revolute"><parent link="l0"/><child link="side"/></joint>'
    links = "".join(
        f'<link name="{name}"><inertial><mass value="1"/></inertial></link>'
        for name in ("l0", "l1", "l2", "l3", "side")
    )
    robot = RobotModel.from_urdf(f'<robot name="r">{links}{chain}{side}</robot>')
    names = robot.bodies.names
    pairs = {frozenset((names[a - 1], names[b - 1])) for a, b in neighbours(robot)}
    all_pairs = {frozenset(pair) for pair in itertools.combinations(names, 2)}
    assert all_pairs - pairs == {
        frozenset(("l0", "l3")),
        frozenset(("l2", "side")),
        frozenset(("l3", "side")),
    }
