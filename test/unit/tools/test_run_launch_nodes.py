"""From <node> to its command line, by the rules of launch_ros."""

from pathlib import Path

import pytest
import yaml
from launcher.document import LaunchError
from launcher.interpreter import nodes_of
from launcher.nodes import join_namespace


def read_yaml(path):
    return yaml.safe_load(Path(path).read_text())


def only_node(path, **arguments):
    (node,) = nodes_of(path, arguments)
    return node


def refusal(path, **arguments):
    with pytest.raises(LaunchError) as caught:
        nodes_of(path, arguments)
    return str(caught.value).split(": ", 1)[1]


def parameters(launch_file, *params, **arguments):
    """Value of parameter p that the attributes `params` of one <param name="p"> give."""
    path = launch_file(
        f'<node pkg="t" exec="e"><param name="p" {" ".join(params)}/></node>'
    )
    return only_node(path, **arguments).parameters[0]["p"]


# --- command line ------------------------------------------------------------------------------
def test_order_of_the_words(launch_file, package, tmp_path):
    package("tiny", talk="true")
    file = tmp_path / "more.yaml"
    file.write_text("/**: {ros__parameters: {rate: 5}}")
    path = launch_file(
        '<node pkg="tiny" exec="talk" name="nina" namespace="lab" output="screen"'
        ' args="-d $(var f)" ros_args="--enclave /lab/nina">'
        '<remap from="imu" to="base/imu"/><param name="a" value="1"/><param name="b.c" value="x"/>'
        f'<param from="{file}"/><param name="a" value="2"/></node>'
    )
    node = only_node(path, f="two words")
    program, *words = node.command(tmp_path)
    assert program == str(tmp_path / "prefix/lib/tiny/talk")
    first, second = words[11], words[15]
    assert words == [
        *("-d", "two words", "--ros-args", "--enclave", "/lab/nina"),
        *("--ros-args", "-r", "__node:=nina", "-r", "__ns:=/lab"),
        *("--params-file", first, "--params-file", str(file), "--params-file", second),
        *("-r", "imu:=base/imu"),
    ]
    assert read_yaml(first) == {"/lab/nina": {"ros__parameters": {"a": 1, "b.c": "x"}}}
    assert read_yaml(second) == {"/lab/nina": {"ros__parameters": {"a": 2}}}
    assert node.label == "lab/nina"


def test_parameters_of_a_node_whose_full_name_is_not_known(
    launch_file, package, tmp_path
):
    package("tiny", talk="true")
    path = launch_file(
        '<node pkg="tiny" exec="talk" name="n"><param name="a" value="1"/></node>'
    )
    node = only_node(path)
    words = node.command(tmp_path)[1:]
    assert words[:4] == ["--ros-args", "-r", "__node:=n", "--params-file"]
    assert read_yaml(words[4]) == {"/**": {"ros__parameters": {"a": 1}}}
    assert node.label == "n"


def test_missing_programs_are_named(launch_file, package, tmp_path):
    package("tiny", talk="true")
    path = launch_file('<node pkg="tiny" exec="sing"/><node pkg="rviz9" exec="rviz9"/>')
    first, second = nodes_of(path, {})
    with pytest.raises(
        FileNotFoundError, match="package 'tiny' has no executable 'sing'"
    ):
        first.command(tmp_path)
    with pytest.raises(FileNotFoundError, match="package 'rviz9' is not installed"):
        second.command(tmp_path)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("", []),
        ("a  b", ["a", "b"]),
        ("-f 'a b' $(var v)", ["-f", "a b", "x y"]),
        ("--file=$(var v)/z", ["--file=x y/z"]),
        ("$(var v)$(var v) c", ["x yx y", "c"]),
    ],
)
def test_words_of_args(launch_file, args, words):
    path = launch_file(f'<node pkg="t" exec="e" args="{args}"/>')
    assert only_node(path, v="x y").arguments == words


def test_unclosed_quote_in_args(launch_file):
    path = launch_file('<node pkg="t" exec="e" args="\'a"/>')
    assert refusal(path) == "<node>: No closing quotation"


# --- names -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("base", "namespace", "joined"),
    [
        (None, None, None),
        (None, "", "/"),
        (None, "a", "/a"),
        (None, "/a/b", "/a/b"),
        ("/", "a", "/a"),
        ("/a", None, "/a"),
        ("/a", "", "/a"),
        ("/a", "b/", "/a/b"),
        ("/a", "/b", "/b"),
    ],
)
def test_namespaces(base, namespace, joined):
    assert join_namespace(base, namespace) == joined


def test_namespaces_of_groups_add_up(launch_file):
    path = launch_file(
        '<push_ros_namespace namespace="a"/><group><push-ros-namespace namespace="b"/>'
        '<node pkg="t" exec="e" namespace="c"/></group><node pkg="t" exec="e"/>'
    )
    assert [node.namespace for node in nodes_of(path, {})] == ["/a/b/c", "/a"]


def test_invalid_names(launch_file):
    rule = "is not valid: letters, digits and _ only, no digit at the start"
    path = launch_file('<node pkg="t" exec="e" name="a-b"/>')
    assert refusal(path) == f"<node>: name 'a-b' {rule}"
    path = launch_file('<push_ros_namespace namespace="x//2y"/>')
    assert refusal(path).startswith(
        "<push_ros_namespace>: attribute 'namespace': namespace"
    )


# --- parameters --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("1.5", 1.5),
        ("true", True),
        ("off", False),
        ("abc", "abc"),
        ("", ""),
        ("[1, 2]", [1, 2]),
        ("[a, b]", ["a", "b"]),
        ("['']", [""]),
        ("[]", []),
        ("'5'", "5"),
    ],
)
def test_without_a_type_yaml_decides(launch_file, text, expected):
    result = parameters(launch_file, f'value="{text}"')
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize("text", ["1", "true", "[a, b]", ""])
def test_type_str_keeps_the_text(launch_file, text):
    assert parameters(launch_file, f'value="{text}" type="str"') == text
    assert parameters(launch_file, 'value="$(var v)" type="str"', v=text) == text


@pytest.mark.parametrize(
    ("type_name", "text", "expected"),
    [
        ("float", "500", 500.0),
        ("float", "1e-3", 0.001),
        ("int", "-4", -4),
        ("bool", "0", False),
        ("bool", "1", True),
        ("bool", "False", False),
        ("yaml", "[1.0, 2.0]", [1.0, 2.0]),
    ],
)
def test_types_of_expanded_values(launch_file, type_name, text, expected):
    result = parameters(launch_file, f'value="$(var v)" type="{type_name}"', v=text)
    assert result == expected
    assert type(result) is type(expected)
    assert parameters(launch_file, f'value="{text}" type="{type_name}"') == expected


def test_description_of_a_robot_is_passed_unchanged(launch_file, package, tmp_path):
    package("tiny", talk="true")
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(
        '<?xml version="1.0"?>\n<robot name="é: [1] # x">\n\t<link name="a"/>\n</robot>\n'
    )
    path = launch_file(
        '<node pkg="tiny" exec="talk"><param name="robot_description" '
        f'value="$(command \'cat {urdf}\')" type="str"/></node>'
    )
    words = only_node(path).command(tmp_path)
    written = read_yaml(words[-1])["/**"]["ros__parameters"]["robot_description"]
    assert written == urdf.read_text()


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ('value="x" type="int"', "'x' is not of type 'int'"),
        ('value="2" type="bool"', "'2' is not of type 'bool'"),
        ('value="null"', "'null' is not of type 'yaml'"),
        ('value="{a: 1}"', "'{a: 1}' is not of type 'yaml'"),
        ('value="[1, a]"', "'[1, a]' is not of type 'yaml'"),
        (
            'value="[1, 2]" type="list_of_float"',
            "'[1, 2]' is not of type 'list_of_float'",
        ),
        ('value="a: b: c"', "'a: b: c' is not of type 'yaml'"),
        (
            'value="1" type="double"',
            "type 'double' is not known; known: str, bool, int, float, ",
        ),
        (
            'value="$(var v)" type="list_of_str"',
            "takes no substitution: leave the type away",
        ),
        (
            'value="[$(var v)]"',
            "a substitution inside a list or quotes: make it the whole value",
        ),
        ('value="$(var v)" type="float"', "'fast' is not of type 'float'"),
    ],
)
def test_values_that_are_refused(launch_file, attributes, reason):
    path = launch_file(f'<node pkg="t" exec="e"><param name="p" {attributes}/></node>')
    message = refusal(path, v="fast")
    assert message.startswith("<param>: attribute 'value': ")
    assert reason in message


def test_missing_parameter_file(launch_file):
    path = launch_file('<node pkg="t" exec="e"><param from="/no/file.yaml"/></node>')
    assert refusal(path) == "<param>: parameter file /no/file.yaml does not exist"
