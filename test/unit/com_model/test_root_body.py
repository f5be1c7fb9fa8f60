"""The inertial of the root body, and the one link that takes a correction of it."""

import numpy as np
import pinocchio
import pytest
from read_back import root_body_inertial

from com_model import RobotModel, UrdfError
from com_model.urdf.editing import correct_body, edit_inertials

TRUNK = """<robot name="r">
  <link name="base"><inertial><origin xyz="0.1 0 0" rpy="0 0 0.3"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
  <link name="trunk"><inertial><origin xyz="0 0.2 0"/><mass value="10"/>
    <inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0.1" iyz="0"/></inertial></link>
  <link name="leg"><inertial><origin xyz="0 0 -0.2"/><mass value="3"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="mount" type="fixed"><parent link="base"/><child link="trunk"/>
    <origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/></joint>
  <joint name="hip" type="revolute"><parent link="trunk"/><child link="leg"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""


def oracle(xml):
    """Mass, CoM and inertia about it of the root body, by Pinocchio."""
    data = pinocchio.buildModelFromXML(xml, pinocchio.JointModelFreeFlyer())
    return data.inertias[1]


def test_sum_agrees_with_pinocchio(example_models):
    xmls = {"trunk": TRUNK} | {
        name: model.xml for name, model in example_models.items()
    }
    checked = 0
    for xml in xmls.values():
        model = RobotModel.from_urdf(xml)
        try:
            expected = oracle(xml)
        except (ValueError, IndexError):
            continue  # Pinocchio reads fewer URDFs
        if expected.mass == 0.0 or model.bodies.count < 2:
            continue
        got = root_body_inertial(model)
        assert got.mass == pytest.approx(expected.mass, rel=1e-12)
        np.testing.assert_allclose(got.com, expected.lever, atol=1e-12)
        np.testing.assert_allclose(got.inertia, expected.inertia, atol=1e-9)
        checked += 1
    assert checked > 20


def test_the_corrected_urdf_has_the_new_trunk():
    model = RobotModel.from_urdf(TRUNK)
    mass, com = 31.0, np.array([-0.05, 0.3, 0.1])
    change = correct_body(model, mass, com)
    assert list(change) == ["trunk"]
    corrected = RobotModel.from_urdf(edit_inertials(TRUNK, change))
    got = root_body_inertial(corrected)
    assert got.mass == pytest.approx(mass, rel=1e-14)
    np.testing.assert_allclose(got.com, com, atol=1e-14)
    np.testing.assert_array_equal(corrected.link_inertias[1], model.link_inertias[1])
    for k in (0, 2):
        assert corrected.link_masses[k] == model.link_masses[k]
        np.testing.assert_array_equal(corrected.link_coms[k], model.link_coms[k])


def test_the_old_trunk_changes_nothing():
    model = RobotModel.from_urdf(TRUNK)
    old = root_body_inertial(model)
    new = correct_body(model, old.mass, old.com)["trunk"]
    assert new.mass == pytest.approx(10.0, rel=1e-14)
    np.testing.assert_allclose(new.com, [0, 0.2, 0], atol=1e-14)
    np.testing.assert_allclose(new.inertia, model.link_inertias[1], atol=1e-13)


def test_a_body_of_less_mass_than_its_other_links():
    model = RobotModel.from_urdf(TRUNK)
    with pytest.raises(
        UrdfError, match=r"'trunk': its mass would be -0.5 kg.*correct their masses"
    ):
        correct_body(model, 0.5, np.zeros(3))
    with pytest.raises(UrdfError, match="its mass would be nan kg"):
        correct_body(model, np.nan, np.zeros(3))
