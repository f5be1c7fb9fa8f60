"""URDFs that must be refused: each message names the element and how to fix it."""

import re
import resource

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from com_model import ComModelError, RobotModel, UrdfError, audit
from com_model.urdf import xml_reader as reader

MASS = '<inertial><mass value="1"/></inertial>'
A = f'<link name="a">{MASS}</link>'
B = f'<link name="b">{MASS}</link>'
C = f'<link name="c">{MASS}</link>'


def joint(parent="a", child="b", name="j", kind="revolute", inside=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{inside}</joint>"
    )


def robot(*parts):
    return '<robot name="r">' + "".join(parts) + "</robot>"


def refusal(xml):
    with pytest.raises(UrdfError) as error:
        RobotModel.from_urdf(xml)
    assert error.value.fix
    assert error.value.element
    return str(error.value)


def test_the_parts_of_these_tests_are_a_valid_robot():
    assert RobotModel.from_urdf(robot(A, B, joint())).mass == 2.0


DOUBTFUL = """<limit lower="1" upper="-0.5" velocity="1" effort="1"/>
  <axis xyz="0 1 0"/><axis xyz="0 0 1"/>"""


def test_what_can_only_mean_one_thing_is_read_with_a_warning():
    xml = robot(A, B, joint(inside=DOUBTFUL))
    model = RobotModel.from_urdf(xml)
    assert (model.lower[0], model.upper[0]) == (-0.5, 1.0)
    assert model.bodies.axis[1].tolist() == [0.0, 1.0, 0.0]
    assert model.warnings == (
        "joint 'j' (line 1): lower (1) is above upper (-0.5): read the other way round. Swap them, "
        "or leave them out if it turns freely, as Bullet reads it",
        "joint 'j' (line 1): has <axis> twice, on lines 2 and 2: the first counts, as in ROS. "
        "Keep the right one and delete the other",
    )
    found = [i.message for i in audit(xml).issues if i.severity == "warning"]
    assert sum("above upper" in text or "<axis> twice" in text for text in found) == 2
    assert audit(xml).ok
    assert RobotModel.from_urdf(robot(A, B, joint())).warnings == ()


# --- XML -----------------------------------------------------------------------------------------


def test_broken_xml_gives_line_and_column():
    assert refusal('<robot name="r">\n  <link name="a">\n</robot>') == (
        "line 3, column 3: is not well-formed XML: mismatched tag. "
        "Fix the XML there, or write the file again with the tool that made it."
    )
    assert refusal("").startswith(
        "line 1, column 1: is not well-formed XML: no element found. The"
    )
    assert "give the text of a URDF, or its path to from_file()" in refusal(
        "robots/r.urdf"
    )
    assert "is not well-formed XML" in refusal(robot(A) + "<robot/>")
    assert "is not well-formed XML" in refusal(b"\x00\xff\x13")


def test_two_root_elements_are_broken_xml():
    assert "junk after document element" in refusal(
        '<robot name="r"/><robot name="s"/>'
    )


def test_an_entity_bomb_is_not_expanded():
    levels = "".join(
        f'<!ENTITY b{i} "{f"&b{i - 1};" * 10}">\n' if i else '<!ENTITY b0 "boom">\n'
        for i in range(10)
    )
    bomb = f'<!DOCTYPE robot [\n{levels}]><robot name="r"><link name="&b9;"/></robot>'
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal(bomb) == (
        "<!DOCTYPE> (line 1): carries declarations; entities are never expanded. "
        "Remove the <!DOCTYPE ...> declaration and write the text of entities out."
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY secret SYSTEM "file:///etc/passwd">',
        '<!ENTITY % outer SYSTEM "http://localhost:1/x.dtd"> %outer;',
        '<!ENTITY secret "value">',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_entities_are_refused_in_any_encoding(declaration, encoding):
    xml = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE robot [{declaration}]>'
        + robot(A)
    )
    message = refusal(xml.encode(encoding))
    assert (
        "<!DOCTYPE> (line 1): carries declarations; entities are never expanded"
        in message
    )


def test_an_external_entity_is_never_read(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    xml = f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{secret.as_uri()}">]>' + robot(
        '<link name="&x;"/>'
    )
    assert "entities are never expanded" in refusal(xml)
    assert "the secret" not in refusal(xml)


def test_a_doctype_with_a_file_or_attributes_is_refused():
    external = '<!DOCTYPE robot SYSTEM "file:///etc/passwd">' + robot(A)
    assert "refers to another document ('file:///etc/passwd')" in refusal(external)
    attributes = '<!DOCTYPE robot [<!ATTLIST mass value CDATA "9">]>' + robot(A)
    assert "<!DOCTYPE> (line 1): carries declarations; entities" in refusal(attributes)
    assert RobotModel.from_urdf("<!DOCTYPE robot>" + robot(A)).mass == 1.0


def test_size_and_depth_are_bounded(monkeypatch, tmp_path):
    deep = robot(A, "<gazebo>" * 200 + "</gazebo>" * 200)
    assert "'gazebo' (line 1): nests deeper than 100 levels" in refusal(deep)
    file = tmp_path / "big.urdf"
    file.write_text(robot(A))
    monkeypatch.setattr(reader, "MAX_BYTES", 50)
    assert "document: is larger than" in refusal(robot(A))
    with pytest.raises(
        UrdfError, match=r"big.urdf': is larger than .*Meshes belong into files of"
    ):
        RobotModel.from_file(file)
    monkeypatch.undo()
    monkeypatch.setattr(reader, "MAX_NODES", 5)
    assert "document: has more than 5 elements" in refusal(robot(A, B, joint()))


def test_files_that_cannot_be_read_are_refused(tmp_path):
    for path, message in [
        (tmp_path / "none.urdf", "does not exist. Give the path of a URDF file"),
        (tmp_path, "is not a regular file. Give the path of a URDF file"),
        ("a\0b", "Give the path of a URDF file"),
    ]:
        with pytest.raises(UrdfError, match=re.escape(message)):
            RobotModel.from_file(path)


def test_another_format_is_named():
    assert refusal("<sdf><model/></sdf>") == (
        "<sdf> (line 1): the top element must be <robot>. "
        "Convert other formats to URDF first (SDF, MJCF and the like are not read)."
    )


def test_an_unknown_encoding_is_refused():
    assert "Save the file as UTF-8" in refusal(
        b'<?xml version="1.0" encoding="zlib"?><robot/>'
    )
    assert "is not valid text" in refusal('<robot name="\ud800"/>')


# --- tree ----------------------------------------------------------------------------------------

TREES = {
    "no links": (
        robot(),
        "robot 'r' (line 1): has no <link>. A URDF needs at least one link.",
    ),
    "misspelt links": (
        robot('<lnk name="a"/>'),
        "robot 'r' (line 1): has no <link>. <lnk> looks like a misspelt <link>.",
    ),
    "two roots": (
        robot(A, B, C, joint()),
        "robot 'r' (line 1): has 2 roots: a, c. Every link but one is the child of a joint: add "
        "the missing joints (fixed, where the links do not move against each other) or delete the "
        "loose links.",
    ),
    "loop without root": (
        robot(A, B, joint(), joint("b", "a", "k")),
        "joint 'k' (line 1): the links form a loop: a -> b -> a, and no link is the root. "
        "A URDF is a tree: delete the joint that closes the loop.",
    ),
    "loop beside a root": (
        robot(A, B, C, joint("b", "c", "j"), joint("c", "b", "k")),
        "joint 'k' (line 1): the links form a loop: b -> c -> b. "
        "A URDF is a tree: delete the joint that closes the loop.",
    ),
    "link on itself": (
        robot(A, B, joint("b", "b")),
        "joint 'j' (line 1): the links form a loop: b -> b. "
        "A URDF is a tree: delete the joint that closes the loop.",
    ),
    "unknown parent": (
        robot(A, B, joint("aa", "b")),
        "joint 'j' (line 1): its parent link 'aa' does not exist. Add that link. "
        "The links are a, b.",
    ),
    "unknown child": (
        robot('<link name="base"/>', '<link name="hand"/>', joint("base", "hands")),
        "joint 'j' (line 1): its child link 'hands' does not exist. Did you mean 'hand'? "
        "The links are base, hand.",
    ),
    "two parents": (
        robot(A, B, C, joint("a", "c", "j"), "\n", joint("b", "c", "k")),
        "joint 'k' (line 2): its child 'c' is already the child of joint 'j' (line 1). A link has "
        "one parent: delete one of the two joints (URDF has no closed chains).",
    ),
    "link twice": (
        robot(A, "\n", A, B, joint()),
        "link 'a' (line 2): the name is taken by link 'a' (line 1). Give each link a name of its "
        "own, or delete the copy of 'a'.",
    ),
    "joint twice": (
        robot(A, B, C, joint(), joint("a", "c")),
        "joint 'j' (line 1): the name is taken by joint 'j' (line 1). Give each joint a name of "
        "its own, or delete the copy of 'j'.",
    ),
    "planar inside": (
        robot(A, B, joint(kind="planar")),
        "joint 'j' (line 1): a planar joint inside the tree. Only a massless world link above the "
        "base may carry one, as its only joint: write it as prismatic and revolute joints with "
        "massless links between them, or make it fixed.",
    ),
    "floating beside another": (
        robot(
            '<link name="w"/>',
            A,
            B,
            joint("w", "a", kind="floating"),
            joint("w", "b", "k"),
        ),
        "joint 'j' (line 1): a floating joint inside the tree. Only a massless world link above "
        "the base may carry one, as its only joint: write it as prismatic and revolute joints "
        "with massless links between them, or make it fixed.",
    ),
}


@pytest.mark.parametrize("case", TREES)
def test_links_that_are_no_tree_are_refused(case):
    xml, message = TREES[case]
    assert refusal(xml) == message


# --- numbers and elements ------------------------------------------------------------------------


def body(inside):
    return robot(f'<link name="a">{inside}</link>')


ELEMENTS = {
    "negative mass": (
        body('<inertial><mass value="-2.5"/></inertial>'),
        "<mass> of link 'a' (line 1): the mass is negative (-2.5). "
        "A mass is zero or positive: fix the value.",
    ),
    "NaN mass": (
        body('<inertial><mass value="NaN"/></inertial>'),
        "<mass> of link 'a' (line 1): value is 'NaN', which is not finite. "
        "Write a finite number; leave out a limit that does not exist.",
    ),
    "infinite mass": (
        body('<inertial><mass value="1e999"/></inertial>'),
        "<mass> of link 'a' (line 1): value is '1e999', which is not finite. "
        "Write a finite number; leave out a limit that does not exist.",
    ),
    "mass in words": (
        body('<inertial><mass value="2 kg"/></inertial>'),
        "<mass> of link 'a' (line 1): value is '2 kg', which is not a number. "
        "Write a decimal number with a point, without unit.",
    ),
    "underscores": (
        body('<inertial><mass value="1_000"/></inertial>'),
        "<mass> of link 'a' (line 1): value is '1_000', which is not a number. "
        "Write a decimal number with a point, without unit.",
    ),
    "xacro": (
        body('<inertial><mass value="${m}"/></inertial>'),
        "<mass> of link 'a' (line 1): value holds the expression '${m}'. "
        "This is a xacro file: expand it first with `xacro FILE.xacro > FILE.urdf`.",
    ),
    "xacro vector": (
        body('<inertial><origin xyz="0 0 ${l / 2}"/><mass value="1"/></inertial>'),
        "<origin> of link 'a' (line 1): xyz holds the expression '0 0 ${l / 2}'. "
        "This is a xacro file: expand it first with `xacro FILE.xacro > FILE.urdf`.",
    ),
    "no mass": (
        body("<inertial><maas value='1'/></inertial>"),
        "<inertial> of link 'a' (line 1): has no <mass>. Rename <maas> to <mass>.",
    ),
    "no value": (
        body('<inertial><mass val="1"/></inertial>'),
        "<mass> of link 'a' (line 1): the attribute value is missing. "
        'Add value="..." (it has val).',
    ),
    "two inertials": (
        body(MASS + "\n" + MASS),
        "link 'a' (line 1): has <inertial> twice, on lines 1 and 2. "
        "Keep the right one and delete the other.",
    ),
    "NaN in the centre": (
        body('<inertial><origin xyz="0 nan 0"/><mass value="1"/></inertial>'),
        "<origin> of link 'a' (line 1): xyz is 'nan', which is not finite. "
        "Write a finite number; leave out a limit that does not exist.",
    ),
    "commas": (
        body('<inertial><origin xyz="0,0,0"/><mass value="1"/></inertial>'),
        "<origin> of link 'a' (line 1): xyz is '0,0,0', not 3 numbers. "
        "Write 3 numbers with spaces between them.",
    ),
    "inertia with a gap": (
        body(
            '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
        ),
        "<inertia> of link 'a' (line 1): the attribute ixy is missing. "
        'Add ixy="..." (it has ixx, iyy, izz).',
    ),
    "no name": (
        robot("<link/>"),
        '<link> (line 1): the attribute name is missing. Add name="...".',
    ),
    "no robot name": (
        f"<robot>{A}</robot>",
        '<robot> (line 1): the attribute name is missing. Add name="...".',
    ),
    "no child": (
        robot(A, B, '<joint name="j" type="fixed"><parent link="a"/></joint>'),
        "joint 'j' (line 1): has no <child>. Add <child .../>.",
    ),
    "joint type": (
        robot(A, B, joint(kind="Revolut")),
        "joint 'j' (line 1): unknown joint type 'Revolut'. Did you mean 'revolute'? Use one of "
        "revolute, continuous, prismatic, fixed, floating, planar.",
    ),
    "zero axis": (
        robot(A, B, joint(inside='<axis xyz="0 0 0"/>')),
        "<axis> of joint 'j' (line 1): the axis is zero. "
        "Give the direction of the axis, or make the joint fixed.",
    ),
    "short axis": (
        robot(A, B, joint(inside='<axis xyz="0 1"/>')),
        "<axis> of joint 'j' (line 1): xyz is '0 1', not 3 numbers. "
        "Write 3 numbers with spaces between them.",
    ),
    "infinite limit": (
        robot(
            A,
            B,
            joint(inside='<limit lower="-inf" upper="1" velocity="1" effort="1"/>'),
        ),
        "<limit> of joint 'j' (line 1): lower is '-inf', which is not finite. "
        "Write a finite number; leave out a limit that does not exist.",
    ),
    "crossed limits": (
        robot(A, B, joint(inside='<limit lower="1" velocity="1" effort="1"/>')),
        "<limit> of joint 'j' (line 1): lower (1) is above upper (0); what is left out is 0. "
        "Give both.",
    ),
    "two orientations": (
        robot(A, B, joint(inside='<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>')),
        "<origin> of joint 'j' (line 1): has no clear orientation. "
        "Give either rpy or a unit quaternion quat_xyzw.",
    ),
    "mimic of nothing": (
        robot(A, B, joint(inside='<mimic joint="k"/>')),
        "<mimic> of joint 'j' (line 1): follows 'k', which does not exist. "
        "Name a joint that exists. The moving joints are j.",
    ),
    "mimic of a fixed joint": (
        robot(
            A, B, C, joint(inside='<mimic joint="k"/>'), joint("a", "c", "k", "fixed")
        ),
        "<mimic> of joint 'j' (line 1): follows 'k', which is fixed. "
        "Delete the <mimic>, make this joint fixed too, or let the other one move.",
    ),
    "mimic of itself": (
        robot(A, B, joint(inside='<mimic joint="j"/>')),
        "joint 'j' (line 1): mimics itself: j -> j. "
        "Let one of them move independently: delete its <mimic>.",
    ),
    "mimic circle": (
        robot(
            *(A, B, C),
            joint(inside='<mimic joint="k"/>'),
            joint("a", "c", "k", inside='<mimic joint="j"/>'),
        ),
        "joint 'j' (line 1): mimics itself: j -> k -> j. "
        "Let one of them move independently: delete its <mimic>.",
    ),
    "NaN multiplier": (
        robot(
            A,
            B,
            C,
            joint(),
            joint("a", "c", "k", inside='<mimic joint="j" multiplier="nan"/>'),
        ),
        "<mimic> of joint 'k' (line 1): multiplier is 'nan', which is not finite. "
        "Write a finite number; leave out a limit that does not exist.",
    ),
    "impossible mass": (
        body('<inertial><mass value="1e308"/></inertial>'),
        "<mass> of link 'a' (line 1): value is '1e308', which no robot has. "
        "Write it in SI units: m, kg, kg m^2, rad.",
    ),
    "overflow": (
        robot(
            '<link name="l0"/>',
            *(f'<link name="l{i}">{MASS}</link>' for i in range(1, 13)),
            *(
                joint(
                    f"l{i}",
                    f"l{i + 1}",
                    f"j{i}",
                    inside=f'<mimic joint="j{i - 1}" multiplier="1e30"/>' if i else "",
                )
                for i in range(12)
            ),
        ),
        "robot 'r' (line 1): sums of its values overflow. "
        "Masses are in kg and lengths in m: look for a value with a wrong exponent.",
    ),
}


@pytest.mark.parametrize("case", ELEMENTS)
def test_wrong_elements_are_refused(case):
    xml, message = ELEMENTS[case]
    assert refusal(xml) == message


# --- mass ----------------------------------------------------------------------------------------


def test_zero_total_mass_is_refused():
    assert refusal(robot('<link name="a"/>')) == (
        "robot 'r' (line 1): the total mass is 0 kg (0 of 1 links have an <inertial>). "
        "Add <inertial> elements with the masses of the links."
    )
    zero = body('<inertial><mass value="0"/></inertial>')
    tiny = body('<inertial><mass value="1e-320"/></inertial>')
    assert (
        "the total mass is 9.99989e-321 kg (1 of 1 links have an <inertial>)"
        in refusal(tiny)
    )
    assert refusal(zero).endswith("Give the <mass> of the links their values in kg.")


def test_zero_total_mass_names_the_misspelt_tags(data):
    with pytest.raises(UrdfError) as error:
        RobotModel.from_file(data / "misspelt.urdf")
    assert str(error.value) == (
        "robot 'misspelt' (line 3): the total mass is 0 kg (0 of 3 links have an <inertial>). "
        "Misspelt tags: <intertial> on 3 links should be <inertial>."
    )


# --- anything ------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(cuts=st.data())
def test_damaged_files_are_refused_or_give_finite_models(cuts, data):
    text = (data / "gripper.urdf").read_text()
    start = cuts.draw(st.integers(0, len(text) - 1))
    length = cuts.draw(st.integers(0, 60))
    junk = cuts.draw(st.text(alphabet='<>/"= abcjoint0123.e-&;\n', max_size=10))
    try:
        model = RobotModel.from_urdf(text[:start] + junk + text[start + length :])
    except ComModelError:
        return
    assert 0.0 < model.mass < np.inf
    assert np.isfinite(model.bodies.first_moment).all()
