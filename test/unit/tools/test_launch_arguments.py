"""The arguments of the launch files that ship reach what they are described to set."""

import dataclasses
import importlib
import re
from collections import defaultdict
from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]
FILES = {
    path.name: ElementTree.parse(path)
    for path in sorted((ROOT / "launch").glob("*.xml"))
}
FILES.pop("package.xml")
INCLUDED = re.compile(r"/(\w+\.launch\.xml)$")
VARIABLE = re.compile(r"\$\(var (\w+)\)")
TIMEOUTS = ("joint_timeout", "imu_timeout", "wrench_timeout")


def with_included(name):
    """The elements of a file, and of those that it includes."""
    for element in FILES[name].iter():
        yield element
        if element.tag == "include":
            yield from with_included(INCLUDED.search(element.get("file"))[1])


@pytest.mark.parametrize("name", FILES)
def test_each_argument_reaches_a_node(name):
    """By a parameter, a topic, a condition, or an argument that does."""
    reached, origins = set(), defaultdict(set)
    for element in with_included(name):
        used = set(VARIABLE.findall(" ".join(element.attrib.values())))
        if element.tag in ("arg", "let"):
            origins[element.get("name")] |= used
        else:
            reached |= used
    ahead = list(reached)
    while ahead:
        new = origins[ahead.pop()] - reached
        reached |= new
        ahead += new
    declared = {e.get("name") for e in FILES[name].iter("arg") if e.get("description")}
    assert declared - reached == set()


@pytest.mark.parametrize("name", FILES)
def test_input_timeout_reaches_every_node(name):
    """All that its class has of the timeouts of inputs."""
    programs = {}
    for file in ROOT.glob("src/*/setup.cfg"):
        config = ConfigParser()
        config.read(file)
        text = config.get("options.entry_points", "console_scripts", fallback="")
        programs |= dict(re.findall(r"(\w+) = ([\w.]+\.nodes\.\w+):", text))
    for node in FILES[name].iter("node"):
        if node.get("exec") not in programs:
            continue
        module = importlib.import_module(programs[node.get("exec")])
        own = {field.name for field in dataclasses.fields(module.Parameters)}
        given = {
            element.get("name"): element.get("value") for element in node.iter("param")
        }
        for timeout in own.intersection(TIMEOUTS):
            assert given.get(timeout) == "$(var input_timeout)", (
                node.get("name"),
                timeout,
            )
