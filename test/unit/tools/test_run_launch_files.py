"""What tools/run_launch understands of a launch file, and how it refuses the rest."""

from pathlib import Path

import pytest
from launcher.document import LaunchError
from launcher.interpreter import load, nodes_of

ROOT = Path(__file__).parents[3]


def refusal(path, arguments=None):
    with pytest.raises(LaunchError) as caught:
        nodes_of(path, arguments or {})
    return str(caught.value)


# --- XML ---------------------------------------------------------------------------------------
def test_elements_know_file_and_line(launch_file):
    path = launch_file(
        '<arg name="a" default="1"/>\n<group>\n  <let name="b" value="2"/>\n</group>'
    )
    argument, group = load(path).children
    assert (argument.line, group.line, group.children[0].line) == (2, 3, 4)
    assert group.children[0].path == path


def test_entities_are_refused(tmp_path):
    path = tmp_path / "bomb.launch.xml"
    path.write_text('<!DOCTYPE launch [<!ENTITY a "aaaaaaaa">]>\n<launch>&a;</launch>')
    assert (
        refusal(path)
        == f"{path}:1: a document type declaration (<!DOCTYPE ...>) is refused"
    )


def test_undeclared_entity_is_refused(launch_file):
    path = launch_file('<let name="a" value="&file;"/>')
    assert refusal(path) == f"{path}:2: not well-formed XML: undefined entity"


def test_broken_xml_names_the_line(launch_file):
    path = launch_file('<group>\n<let name="a" value="1">\n</group>')
    assert refusal(path) == f"{path}:4: not well-formed XML: mismatched tag"


def test_text_between_elements_is_refused(launch_file):
    path = launch_file("<group>stray words</group>")
    assert refusal(path) == f"{path}:2: <group>: unexpected text 'stray words'"


def test_missing_file(tmp_path):
    path = tmp_path / "none.launch.xml"
    assert refusal(path) == f"{path}: cannot be read: No such file or directory"


def test_python_launch_file_is_refused(tmp_path):
    path = tmp_path / "x.launch.py"
    assert refusal(path) == f"{path}: only launch files in XML are understood"


def test_other_root_is_refused(tmp_path):
    path = tmp_path / "x.launch.xml"
    path.write_text("<robot/>")
    assert (
        refusal(path)
        == f"{path}:1: <robot>: the root of a launch file must be <launch>"
    )


# --- elements and attributes -------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            '<executable cmd="ls"/>',
            "<executable>: is not understood inside <launch>; known: 'arg', 'group', 'include', "
            "'let', 'node', 'push-ros-namespace', 'push_ros_namespace', 'set_env'",
        ),
        (
            '<node pkg="a" exec="b" respawn="true"/>',
            "<node>: attribute 'respawn' is not understood; known: 'args', 'exec', 'if', 'name', "
            "'namespace', 'output', 'pkg', 'ros_args', 'unless'",
        ),
        ('<node pkg="a"/>', "<node>: attribute 'exec' is missing"),
        (
            '<node pkg="a" exec="b"><env name="A" value="1"/></node>',
            "<env>: is not understood inside <node>; known: 'param', 'remap'",
        ),
        (
            '<let name="a" value="1" if="1" unless="0"/>',
            "<let>: 'if' and 'unless' exclude each other",
        ),
        (
            '<node pkg="a" exec="b"><param name="p"/></node>',
            "<param>: give either name, value and optionally type, or from alone",
        ),
        (
            '<node pkg="a" exec="b"><param from="f" name="p" value="1"/></node>',
            "<param>: give either name, value and optionally type, or from alone",
        ),
        (
            '<arg name="$(var a)"/>',
            "<arg>: attribute 'name' takes no substitution and no backslash",
        ),
        (
            '<let name="a" value="$(eval 1+1)"/>',
            "<let>: attribute 'value': $(eval) is not understood; known: $(var), $(dirname), "
            "$(find-pkg-share), $(env), $(command)",
        ),
    ],
)
def test_what_is_not_understood_is_named(launch_file, body, message):
    path = launch_file(body)
    assert refusal(path) == f"{path}:2: {message}"


def test_branches_that_are_left_out_are_checked_too(launch_file):
    path = launch_file('<group if="false"><node pkg="a" exec="b" machine="c"/></group>')
    assert "attribute 'machine' is not understood" in refusal(path)


# --- variables, groups, includes ---------------------------------------------------------------
NODE = '<node pkg="p" exec="e" args="$(var a)"/>'


def seen(path, **arguments):
    """First word behind the program of each node."""
    return [node.arguments[0] for node in nodes_of(path, arguments)]


def test_argument_keeps_a_value_that_is_given(launch_file):
    path = launch_file(f'<arg name="a" default="1"/>{NODE}')
    assert seen(path) == ["1"]
    assert seen(path, a="2") == ["2"]


def test_required_argument(launch_file):
    path = launch_file('<arg name="urdf" description="path of the URDF"/>')
    assert refusal(path) == (
        f"{path}:2: <arg>: argument 'urdf' (path of the URDF) is required: give urdf:=..."
    )
    assert nodes_of(path, {"urdf": "x"}) == []


def test_required_argument_behind_a_condition_counts_only_there(launch_file):
    path = launch_file('<arg name="a" default="false"/><arg name="b" if="$(var a)"/>')
    assert nodes_of(path, {}) == []
    assert "argument 'b' (no description) is required" in refusal(path, {"a": "true"})


def test_group_restores_variables_and_namespace(launch_file):
    path = launch_file(
        f'<let name="a" value="1"/><group><let name="a" value="2"/>'
        f'<push_ros_namespace namespace="left"/>{NODE}</group>{NODE}'
    )
    assert seen(path) == ["2", "1"]
    assert [node.namespace for node in nodes_of(path, {})] == ["/left", None]


def test_include_gives_arguments_that_stay_set(launch_file):
    launch_file(
        f'<arg name="a" default="9"/><arg name="b" default="3"/>{NODE}',
        "inner.launch.xml",
    )
    path = launch_file(
        '<include file="$(dirname)/inner.launch.xml"><arg name="a" value="2"/></include>'
        '<node pkg="p" exec="e" args="$(var a)$(var b)"/>'
    )
    assert seen(path) == ["2", "23"]


def test_include_in_a_group_leaves_nothing_behind(launch_file):
    launch_file('<arg name="b" default="3"/>', "inner.launch.xml")
    path = launch_file(
        '<group><include file="$(dirname)/inner.launch.xml"/></group>'
        '<let name="c" value="$(var b)"/>'
    )
    assert refusal(path) == (
        f"{path}:2: <let>: attribute 'value': variable 'b' is not set; set here: none"
    )


def test_outer_value_reaches_the_argument_of_an_include(launch_file):
    launch_file(f'<arg name="a" default="9"/>{NODE}', "inner.launch.xml")
    path = launch_file('<include file="$(dirname)/inner.launch.xml"/>')
    assert seen(path, a="4") == ["4"]


def test_include_must_give_what_the_file_requires(launch_file):
    launch_file('<arg name="a"/>', "inner.launch.xml")
    path = launch_file(
        '<let name="a" value="1"/><include file="$(dirname)/inner.launch.xml"/>'
    )
    assert (
        "inner.launch.xml:2: <arg>: argument 'a' (no description) is required"
        in refusal(path)
    )


def test_file_that_includes_itself(launch_file):
    path = launch_file('<include file="$(dirname)/test.launch.xml"/>')
    assert "more than 20 files deep: do they include each other?" in refusal(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", 1), ("1", 1), (" True ", 1), ("false", 0), ("0", 0), ("FALSE", 0)],
)
def test_conditions(launch_file, text, expected):
    path = launch_file(
        f'<node pkg="p" exec="e" if="{text}"/>'
        f'<group unless="{text}"><node pkg="p" exec="e"/></group>'
    )
    assert len(nodes_of(path, {})) == 1
    only = launch_file(f'<node pkg="p" exec="e" if="{text}"/>')
    assert len(nodes_of(only, {})) == expected


@pytest.mark.parametrize("text", ["yes", "", "2", "not true"])
def test_other_conditions_are_refused(launch_file, text):
    path = launch_file(f'<group if="{text}"/>')
    assert refusal(path) == (
        f"{path}:2: <group>: attribute 'if': '{text}' is not a condition: true, false, 1 or 0"
    )


# --- substitutions -----------------------------------------------------------------------------
def value(launch_file, text, **arguments):
    path = launch_file(f"<let name='a' value={text}/>{NODE}")
    return nodes_of(path, arguments)[0].arguments[0]


def test_dirname_and_package_share(launch_file, tmp_path, package):
    share = package("tiny")
    assert value(launch_file, '"$(dirname)/x"') == f"{tmp_path}/x"
    assert value(launch_file, '"$(find-pkg-share tiny)"') == str(share)


def test_missing_package_share(launch_file):
    path = launch_file('<let name="a" value="$(find-pkg-share nowhere)"/>')
    assert refusal(path).endswith(
        "attribute 'value': package 'nowhere' is not installed"
    )


def test_environment(launch_file, monkeypatch):
    monkeypatch.setenv("COM_TEST", "here")
    monkeypatch.delenv("COM_NONE", raising=False)
    assert value(launch_file, '"$(env COM_TEST)"') == "here"
    assert value(launch_file, "\"$(env COM_NONE 'a b')\"") == "a b"
    assert value(launch_file, "\"$(env COM_NONE '')-\"") == "-"
    path = launch_file('<let name="a" value="$(env COM_NONE)"/>')
    assert refusal(path).endswith("environment variable 'COM_NONE' is not set")


def test_nesting_and_escapes(launch_file):
    assert value(launch_file, '"$(var $(var b))"', b="c", c="deep") == "deep"
    assert value(launch_file, '"\\$(var b) costs \\\\ 5$"') == "$(var b) costs \\ 5$"


def test_command_runs_without_a_shell(launch_file, tmp_path):
    file = tmp_path / "name with space; touch x"
    file.write_text("<robot/>")
    text = "\"$(command 'cat &quot;$(var b)&quot;')\""
    assert value(launch_file, text, b=str(file)) == "<robot/>"
    assert value(launch_file, "\"$(command 'echo $HOME | cat')\"") == "$HOME | cat\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("false", "command 'false' failed: exit code 1"),
        ("cat /no/such/file", "failed: cat: /no/such/file: No such file or directory"),
        ("no_such_program_here", "cannot be run: [Errno 2] No such file or directory"),
        ("ls \\'", "cannot be run: No closing quotation"),
    ],
)
def test_command_that_fails(launch_file, command, reason):
    assert reason in refusal(
        launch_file(f'<let name="a" value="$(command \'{command}\')"/>')
    )


def test_command_that_complains_fails_like_with_ros(launch_file, package):
    package("tiny", noisy="echo careful >&2; echo ok")
    text = "$(command '$(find-pkg-share tiny)/../../lib/tiny/noisy')"
    assert refusal(launch_file(f'<let name="a" value="{text}"/>')).endswith(
        "failed: careful"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$(var a", "$(var is not closed by )"),
        ("$(var  a)", "one space, then an argument, is expected"),
        ("$(var)", "$(var) takes 1 argument(s), got 0"),
        ("$(env a b c)", "$(env) takes 1 or 2 argument(s), got 3"),
        ("$( var a)", "a name must follow $("),
        ("$(env a 'b)", "' is not closed"),
        ("$(var (a))", "unexpected (, write \\("),
        ("\\\\$(var a)", "a backslash just before $ has no clear meaning"),
    ],
)
def test_malformed_substitutions(launch_file, text, reason):
    assert f"attribute 'value': {reason}" in refusal(
        launch_file(f'<let name="a" value="{text}"/>')
    )


# --- the files that ship -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "screen", "started"),
    [
        ({}, False, {"robot_state_publisher", "simulator"}),
        ({}, True, {"robot_state_publisher", "simulator", "rviz2"}),
        ({"rviz": "auto"}, True, {"robot_state_publisher", "simulator", "rviz2"}),
        ({"rviz": "false"}, True, {"robot_state_publisher", "simulator"}),
        ({"rviz": "true"}, False, {"robot_state_publisher", "simulator", "rviz2"}),
        ({"simulation": "false"}, False, set()),
        (
            {"simulation": "false", "state_publisher": "true"},
            False,
            {"robot_state_publisher"},
        ),
    ],
)
def test_what_starts_by_default(monkeypatch, arguments, screen, started):
    """No second robot_state_publisher beside a robot's own, no rviz without a screen."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if screen:
        monkeypatch.setenv("DISPLAY", ":0")
    nodes = nodes_of(ROOT / "launch" / "hoap2.launch.xml", arguments)
    assert {node.executable for node in nodes} == {"sesc_publisher"} | started
