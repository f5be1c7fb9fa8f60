"""New inertials in the text of a URDF: what changes is what was asked for, and nothing else."""

import difflib
import re

import numpy as np
import pytest

from com_model import RobotModel, ShapeError, UnknownNameError, UrdfError
from com_model.urdf.editing import Inertial, edit_inertials

pytestmark = pytest.mark.slow

ODD = """<?xml version = '1.0' encoding="latin-1"?>
<!-- ä <link name="body"><inertial> -->
<robot name='r'>
\t<link  name='bödy'  extra="a>b" >
    <visual><origin xyz="9 9 9"/></visual>
    <inertial>
      <mass\tvalue = '2' ><!-- > </mass> --></mass><!-- > -->
      <origin rpy="1 0 0"/>
    </inertial></link>
  <link name="bare"/>
  <link name="open"><visual/></link>
  <joint name="a" type="fixed"><parent link="bödy"/><child link="bare"/></joint>
  <joint name="b" type="fixed"><parent link="bödy"/><child link="open"/></joint>
  <gazebo><link name="bare"><inertial><mass value="7"/></inertial></link></gazebo>
</robot>
"""


def random_inertial(rng):
    A = rng.normal(size=(3, 3))
    return Inertial(rng.uniform(0.1, 50), rng.normal(size=3), A @ A.T)


def assert_reads(xml, expected, before):
    """The model of the text has the expected inertials, and the others as they were."""
    model, old = RobotModel.from_urdf(xml), RobotModel.from_urdf(before)
    for k, name in enumerate(model.link_names):
        new = expected.get(
            name, Inertial(old.link_masses[k], old.link_coms[k], old.link_inertias[k])
        )
        assert model.link_masses[k] == new.mass
        np.testing.assert_array_equal(model.link_coms[k], new.com)
        np.testing.assert_allclose(
            model.link_inertias[k], new.inertia, rtol=0, atol=1e-12
        )


def changed_lines(before, after):
    return [
        line
        for line in difflib.ndiff(before.splitlines(), after.splitlines())
        if line[0] in "+-"
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_odd_document(newline, bom):
    xml = bom + ODD.replace("\n", newline)
    rng = np.random.default_rng(3)
    new = {name: random_inertial(rng) for name in ("bödy", "bare", "open")}
    edited = edit_inertials(xml, new)
    assert_reads(edited, new, xml)
    assert edited.startswith(
        bom + "<?xml version = '1.0' encoding=\"latin-1\"?>" + newline
    )
    assert edited.count("\r\n") == (edited.count("\n") if newline == "\r\n" else 0)
    for kept in (
        '<!-- ä <link name="body"><inertial> -->',
        "\t<link  name='bödy'  extra=\"a>b\" >",
        '<visual><origin xyz="9 9 9"/></visual>',
        "' ><!-- > </mass> --></mass>",
        "<mass\tvalue = '",
        '<gazebo><link name="bare"><inertial><mass value="7"/></inertial></link></gazebo>',
    ):
        assert kept in edited


def test_only_the_given_values_change():
    model = RobotModel.from_urdf(ODD)
    k = model.link_index("bödy")
    old = Inertial(model.link_masses[k], model.link_coms[k], model.link_inertias[k])
    assert edit_inertials(ODD, {"bödy": old}) == ODD
    heavier = edit_inertials(ODD, {"bödy": Inertial(2.5, old.com, old.inertia)})
    assert heavier == ODD.replace("value = '2'", "value = '2.5'")
    moved = edit_inertials(ODD, {"bödy": Inertial(2, [0.5, 0, -1e-9], old.inertia)})
    assert moved == ODD.replace("<origin rpy", '<origin xyz="0.5 0.0 -1e-09" rpy')


def test_a_link_without_inertial_gets_one_with_its_indentation():
    bare = Inertial(1.0, [0, 0, 0.25], np.eye(3))
    lines = changed_lines(ODD, edit_inertials(ODD, {"bare": bare}))
    assert lines == [
        '-   <link name="bare"/>',
        '+   <link name="bare">',
        "+     <inertial>",
        '+       <origin xyz="0.0 0.0 0.25"/>',
        '+       <mass value="1.0"/>',
        '+       <inertia ixx="1.0" ixy="0.0" ixz="0.0" iyy="1.0" iyz="0.0" izz="1.0"/>',
        "+     </inertial>",
        "+   </link>",
    ]


@pytest.mark.exhaustive
def test_every_link_of_real_robots(example_models):
    rng = np.random.default_rng(5)
    for model in example_models.values():
        names = rng.permutation(model.link_names)[:6]
        new = {str(name): random_inertial(rng) for name in names}
        edited = edit_inertials(model.xml, new)
        assert_reads(edited, new, model.xml)
        # Without what may change, both texts are the same.
        assert _bare(edited) == _bare(model.xml)
        assert edit_inertials(edited, new) == edited


def _bare(xml):
    """The text without inertials and without what is left of links that had none."""
    text = re.sub(r"\s*<inertial>.*?</inertial>", "", xml, flags=re.DOTALL)
    return re.sub(r'(<link\s+name="[^"]*"\s*)(/>|>\s*</link>)', r"\1", text)


def test_no_such_link():
    with pytest.raises(UnknownNameError, match=r"no link 'bodi'.*valid: .*bare"):
        edit_inertials(ODD, {"bodi": Inertial(1, np.zeros(3), np.eye(3))})


@pytest.mark.parametrize(
    ("mass", "com", "inertia", "problem"),
    [
        (
            -1.0,
            np.zeros(3),
            np.eye(3),
            r"link 'bare' \(line 10\): the new mass is negative \(-1 kg",
        ),
        (
            np.nan,
            np.zeros(3),
            np.eye(3),
            "the new inertial is not finite. Give finite numbers",
        ),
        (1.0, [np.inf, 0, 0], np.eye(3), "the new inertial is not finite"),
        (
            1.0,
            np.zeros(3),
            np.tri(3),
            "the new inertia is not symmetric. Give the inertia about",
        ),
    ],
)
def test_inertials_that_no_link_can_have(mass, com, inertia, problem):
    with pytest.raises(UrdfError, match=problem):
        edit_inertials(ODD, {"bare": Inertial(mass, com, inertia)})


def test_shapes_of_an_inertial():
    with pytest.raises(ShapeError, match=r"com: expected shape \(3,\), got \(2,\)"):
        Inertial(1.0, [0, 0], np.eye(3))
    with pytest.raises(ShapeError, match=r"inertia: expected shape \(3, 3\)"):
        Inertial(1.0, [0, 0, 0], np.ones(3))


def test_an_inertial_keeps_no_hold_of_its_arguments():
    com = np.zeros(3)
    inertial = Inertial(1, com, np.eye(3))
    com[0] = 5.0
    assert inertial.com[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        inertial.inertia[0, 0] = 2.0


def test_entities_are_refused():
    xml = '<!DOCTYPE robot [<!ENTITY m "2">]>' + ODD.split("\n", 1)[1]
    with pytest.raises(UrdfError, match=r"entities are never.*Remove the <!DOCTYPE"):
        edit_inertials(xml, {"bare": Inertial(1, np.zeros(3), np.eye(3))})


def test_not_well_formed():
    with pytest.raises(UrdfError, match="is not well-formed XML"):
        edit_inertials(ODD.replace("</robot>", ""), {})
