"""RobotModel on models small enough to check by hand, and against Pinocchio on real ones."""

import numpy as np
import pinocchio
import pytest

from com_model import RobotModel, ShapeError, UnknownNameError, UrdfError
from com_model.bodies import PRISMATIC, REVOLUTE, ROOT


def test_arm_has_the_masses_limits_and_names_of_its_urdf(load, data):
    model = load("arm")
    assert model.name == "arm"
    assert (model.root_link, model.n_links, model.n_joints) == ("base", 2, 1)
    assert model.link_names == ("base", "forearm")
    assert model.joint_names == ("shoulder",)
    assert model.joint_types == ("revolute",)
    assert model.mass == 3.0
    assert repr(model) == "<RobotModel 'arm': 2 links, 1 joints, 3 kg>"
    np.testing.assert_array_equal(model.link_parents, [-1, 0])
    np.testing.assert_array_equal(model.link_masses, [2, 1])
    np.testing.assert_array_equal(model.link_coms, [[0.1, 0, 0], [0.5, 0, 0]])
    np.testing.assert_array_equal(model.link_inertias[1], np.eye(3) * 0.01)
    limits = model.lower, model.upper, model.velocity_limits, model.effort_limits
    assert [array.tolist() for array in limits] == [[-1.5], [2.5], [3], [4]]
    assert model.xml == (data / "arm.urdf").read_text()


def test_axes_are_normalised_and_default_to_x(load):
    np.testing.assert_array_equal(load("arm").bodies.axis, [[0, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(
        load("slider").bodies.axis, [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    )


def test_neutral_is_zero_clipped_into_the_limits(load):
    model = load("slider")
    np.testing.assert_array_equal(model.neutral, [0.2, 0.0])
    assert model.joint_types == ("prismatic", "continuous")
    np.testing.assert_array_equal(model.bodies.joint_type, [ROOT, PRISMATIC, REVOLUTE])


def test_missing_limits_are_infinite(load):
    model = load("slider")
    assert (model.lower[1], model.upper[1]) == (-np.inf, np.inf)
    assert (model.velocity_limits[1], model.effort_limits[1]) == (np.inf, np.inf)
    hip, toe = load("floating").lower, load("floating").upper
    assert (hip[0], toe[0]) == (-np.inf, np.inf)  # a limit without lower and upper
    assert (hip[1], toe[1]) == (0.0, 0.0)  # one alone: the other is 0, as URDF says


def test_limits_as_converters_from_sdf_write_them_are_none():
    xml = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/></inertial>
      </link><joint name="j" type="revolute"><parent link="a"/><child link="b"/>
      <limit lower="-1.79769e+308" upper="1.79769e+308" effort="-1" velocity="-1"/></joint>
      </robot>"""
    model = RobotModel.from_urdf(xml)
    assert model.upper[0] == 1.79769e308
    assert (model.velocity_limits[0], model.effort_limits[0]) == (np.inf, np.inf)


def test_links_and_joints_stand_depth_first_in_document_order(load):
    model = load("gripper")
    assert model.link_names == ("palm", "thumb", "finger_1", "finger_2", "finger_3")
    assert model.joint_names == ("thumb_joint", "proximal")
    assert model.bodies.joint_names == ("", "thumb_joint", "proximal", "distal", "tip")
    np.testing.assert_array_equal(model.bodies.parent, [-1, 0, 0, 2, 3])
    np.testing.assert_array_equal(model.bodies.subtree_end, [5, 2, 5, 5, 5])
    np.testing.assert_allclose(model.bodies.subtree_mass, [1.5, 0.2, 0.3, 0.2, 0.1])


def test_mimic_chains_end_at_the_joint_that_moves_by_itself(load):
    bodies = load("gripper").bodies
    np.testing.assert_array_equal(bodies.q_index, [-1, 0, 1, 1, 1])
    np.testing.assert_allclose(bodies.multiplier, [0, 1, 1, 2, -2])
    np.testing.assert_allclose(bodies.offset, [0, 0, 0, 0.1, 0.2], atol=1e-16)


def test_world_above_a_free_joint_is_dropped_and_fixed_links_fold(load):
    model = load("floating")
    assert model.link_names == ("trunk", "leg", "sensor", "toe")
    assert model.joint_names == ("hip", "toe_joint")
    assert model.mass == 6.0
    bodies = model.bodies
    assert bodies.names == ("trunk", "leg", "toe")
    np.testing.assert_array_equal(bodies.body_of_link, [0, 1, 1, 2])
    np.testing.assert_array_equal(bodies.mass, [4, 2, 0])
    np.testing.assert_allclose(
        bodies.first_moment[1], [0, 0.1 + 0.1, -0.2 - 0.4], atol=1e-15
    )
    np.testing.assert_allclose(bodies.p_body_link[2], [0, 0.1, -0.4])
    np.testing.assert_allclose(bodies.d[2], [0, 0.2, -0.4], atol=1e-15)
    np.testing.assert_allclose(
        bodies.R[2], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15
    )


def test_inertia_is_turned_into_link_axes():
    xml = """<robot name="r"><link name="a"><inertial>
      <origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><mass value="1"/>
      <inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0.5"/></inertial></link></robot>"""
    inertia = RobotModel.from_urdf(xml).link_inertias[0]
    np.testing.assert_allclose(
        inertia, [[2, 0, -0.5], [0, 1, 0], [-0.5, 0, 2.5]], atol=1e-15
    )


def test_quaternion_origins_are_read():
    xml = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/></inertial>
      </link><joint name="j" type="continuous"><parent link="a"/><child link="b"/>
      <origin quat_xyzw="0 0 0.7071067811865476 0.7071067811865476"/></joint></robot>"""
    R = RobotModel.from_urdf(xml).bodies.R[1]
    np.testing.assert_allclose(R, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_bytes_are_read_in_the_encoding_that_they_declare(encoding):
    declared = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    xml = (
        f'<?xml version="1.0" encoding="{declared}"?>\n<robot name="Gelenkträger">'
        '<link name="a"><inertial><mass value="1"/></inertial></link></robot>'
    )
    model = RobotModel.from_urdf(xml.encode(encoding))
    assert model.name == "Gelenkträger"
    assert model.xml == xml


def test_text_keeps_its_encoding_whatever_it_declares():
    xml = '<?xml version="1.0" encoding="iso-8859-1"?><robot name="ü"><link name="a"><inertial>'
    xml += '<mass value="1"/></inertial></link></robot>'
    assert RobotModel.from_urdf(xml).name == "ü"


def test_names_are_found_or_listed(load):
    model = load("gripper")
    assert model.joint_index("proximal") == 1
    assert model.link_index("thumb") == 1
    with pytest.raises(UnknownNameError) as error:
        model.joint_index("proximale")
    assert str(error.value) == (
        "no joint 'proximale', did you mean 'proximal'? valid: thumb_joint, proximal"
    )
    with pytest.raises(
        UnknownNameError, match="no link 'x'; valid: palm, thumb, finger_1"
    ):
        model.link_index("x")
    with pytest.raises(UnknownNameError, match="no joint 'tip'"):
        model.joint_index("tip")  # follows another: not in q


def test_wrong_joint_positions_name_the_joints(load):
    with pytest.raises(ShapeError) as error:
        load("gripper").check_q([0.0])
    assert str(error.value) == (
        "q: expected shape (2,), got (1,). The joints are thumb_joint, proximal"
    )
    with pytest.raises(ShapeError, match="q: expected numbers of shape"):
        load("gripper").check_q(["a", "b"])


def test_arrays_are_read_only(load):
    model = load("gripper")
    values = (*vars(model).values(), *vars(model.bodies).values())
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    assert len(arrays) >= 20
    for array in arrays:
        assert not array.flags.writeable
        assert array.base is None
    with pytest.raises(AttributeError):
        model.mass = 1.0


def test_arrays_are_copies_of_what_they_were_made_from(load):
    model = load("gripper")
    masses = np.array(model.link_masses)
    fields = {name: getattr(model, name) for name in model.__dataclass_fields__}
    copy = RobotModel(**{**fields, "link_masses": masses})
    masses[0] = 99.0
    assert copy.link_masses[0] == 1.0


def test_a_long_chain_is_no_recursion():
    n = 3000
    links = "".join(f'<link name="l{i}"/>' for i in range(n))
    links += f'<link name="l{n}"><inertial><mass value="1"/></inertial></link>'
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/>'
        f'<child link="l{i + 1}"/></joint>'
        for i in range(n)
    )
    model = RobotModel.from_urdf(f'<robot name="snake">{links}{joints}</robot>')
    assert model.n_joints == n
    assert model.bodies.subtree_mass.tolist() == [1.0] * (n + 1)


def test_all_example_urdfs_load_but_two_invalid_ones(example_urdfs):
    refused = {}
    for name, path in example_urdfs.items():
        try:
            RobotModel.from_file(path)
        except UrdfError as error:
            refused[name] = str(error)
    assert len(example_urdfs) >= 69
    assert set(refused) == {
        "ur_description/urdf/ur3.urdf",
        "alex_description/urdf/alex_psyonic_hands.urdf",
    }
    assert refused["ur_description/urdf/ur3.urdf"] == (
        "<robot> (line 6): has no <link>. This is a xacro file that defines no robot: "
        "expand the one that uses it."
    )
    assert refused["alex_description/urdf/alex_psyonic_hands.urdf"].startswith(
        "<mimic> of joint 'Left_index_q2' (line 1030): follows 'index_q1', which does not exist. "
        "Did you mean 'Left_index_q1'?"
    )


def test_nothing_is_written_to_stderr(example_urdfs, capfd):
    RobotModel.from_file(example_urdfs["pr2_description/urdf/pr2.urdf"])
    RobotModel.from_file(example_urdfs["solo_description/robots/solo12.urdf"])
    assert capfd.readouterr() == ("", "")


def test_joints_masses_and_limits_are_pinocchios(example_urdfs, example_models):
    for name, model in example_models.items():
        oracle = pinocchio.buildModelFromUrdf(str(example_urdfs[name]))
        assert set(model.bodies.joint_names[1:]) == set(oracle.names[1:]), name
        mass = sum(inertia.mass for inertia in oracle.inertias)
        assert model.mass == pytest.approx(mass, rel=1e-12), name
        for joint, lower, upper in zip(
            model.joint_names, model.lower, model.upper, strict=True
        ):
            index = oracle.joints[oracle.getJointId(joint)].idx_q
            bounds = oracle.lowerPositionLimit[index], oracle.upperPositionLimit[index]
            if model.joint_types[
                model.joint_index(joint)
            ] != "continuous" and np.isfinite(lower):
                assert (lower, upper) == pytest.approx(bounds), (name, joint)


def test_body_inertias_and_subtree_masses_are_pinocchios(example_urdfs, example_models):
    for name, model in example_models.items():
        oracle = pinocchio.buildModelFromUrdf(str(example_urdfs[name]))
        data = oracle.createData()
        pinocchio.computeSubtreeMasses(oracle, data)
        for b, joint in enumerate(model.bodies.joint_names):
            index = oracle.getJointId(joint) if b else 0
            inertia = oracle.inertias[index]
            assert model.bodies.mass[b] == pytest.approx(inertia.mass, rel=1e-12), (
                name,
                joint,
            )
            moment = inertia.mass * inertia.lever
            np.testing.assert_allclose(
                model.bodies.first_moment[b], moment, atol=1e-12 * model.mass
            )
            subtree = data.mass[index] + (0.0 if b else inertia.mass)
            assert model.bodies.subtree_mass[b] == pytest.approx(
                subtree, rel=1e-12, abs=1e-15
            )
