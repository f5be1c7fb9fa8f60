"""Manifests: complete, consistent, and with all that is imported."""

import ast
import re
import subprocess
import sys
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
MANIFESTS = [
    *sorted((ROOT / "src").glob("*/package.xml")),
    *sorted((ROOT / "demos").glob("*/package.xml")),
    ROOT / "launch" / "package.xml",
]
PYTHON = [path.parent for path in MANIFESTS if (path.parent / "setup.py").exists()]
# that pip installs
WITHOUT_ROS = (
    *("com_bags", "com_control", "com_estimation", "com_identification", "com_model"),
    "com_simulation",
)
KEYS = {
    "ament_index_python": "ament_index_python",
    "defusedxml": "python3-defusedxml",
    "lxml": "python3-lxml",
    "matplotlib": "python3-matplotlib",
    "mujoco": "python3-mujoco-pip",
    "numba": "python3-numba",
    "numpy": "python3-numpy",
    "PIL": "python3-pil",
    "rich": "python3-rich",
    "rosbags": "python3-rosbags-pip",
    "scipy": "python3-scipy",
    "tf_transformations": "tf_transformations",
    "urdf_parser_py": "urdfdom_py",
    "viser": "python3-viser-pip",
    "websockets": "python3-viser-pip",  # viser serves by it
    "yaml": "python3-yaml",
}
"""rosdep keys of Python modules; those of ROS packages are the modules' names."""
PIP = {
    "PIL": "pillow",
    "urdf_parser_py": "urdfdom-py",
    "websockets": "viser",
    "yaml": "PyYAML",
}
"""What pip calls modules, where it is not their name."""
SHARED = {"maintainer", "license", "version"}


def manifest(package):
    return ElementTree.parse(package / "package.xml").getroot()


def imports(package):
    """Top-level modules that a package imports, its own and Python's left out."""
    found = set()
    for path in package.joinpath(package.name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {package.name}


@pytest.mark.parametrize("package", PYTHON, ids=lambda path: path.name)
def test_what_is_imported_is_depended_on(package):
    root = manifest(package)
    modules = imports(package)
    keys = {KEYS.get(module, module) for module in modules}
    named = {element.text for element in root.iter("exec_depend")}
    without_module = {"com_bringup", "robot_descriptions"}  # found by the ament index
    assert named - without_module == keys


@pytest.mark.parametrize("package", PYTHON, ids=lambda path: path.name)
def test_pip_installs_what_rosdep_does(package):
    from_pip = {key: PIP.get(module, module) for module, key in KEYS.items()}
    needed = {
        from_pip.get(element.text, element.text)
        + (f">={element.get('version_gte')}" if element.get("version_gte") else "")
        + (f",<{element.get('version_lt')}" if element.get("version_lt") else "")
        for element in manifest(package).iter("exec_depend")
        if element.text.startswith(("python3-", "urdfdom", "xacro", *WITHOUT_ROS))
    }
    config = ConfigParser()
    config.read(package / "setup.cfg")
    assert set(config["options"]["install_requires"].split()) == needed
    for key in ("name", "version", "license"):
        assert config["metadata"][key] == manifest(package).findtext(key)


def test_all_packages_have_the_same_maintainer_licence_and_version():
    values = [
        {
            tag: [e.text for e in ElementTree.parse(path).getroot().findall(tag)]
            for tag in SHARED
        }
        for path in MANIFESTS
    ]
    assert all(value == values[0] for value in values)
    assert all(len(texts) == 1 and texts[0] for texts in values[0].values())


def programs():
    """(package/program, module) of all that is installed."""
    for package in PYTHON:
        config = ConfigParser()
        config.read(package / "setup.cfg")
        text = config.get("options.entry_points", "console_scripts", fallback="")
        for line in text.split("\n")[1:]:
            name, module = line.partition(":")[0].split(" = ")
            yield f"{package.name}/{name}", module


def test_every_command_runs_by_its_module():
    """As python -m, where no ROS and no pip gives it a name."""
    for name, module in programs():
        if ".nodes." not in module:
            package = next(
                path for path in PYTHON if path.name == module.partition(".")[0]
            )
            source = package.joinpath(*module.split(".")).with_suffix(".py").read_text()
            last = ast.unparse(ast.parse(source).body[-1])
            assert last == "if __name__ == '__main__':\n    sys.exit(main())", name


def test_every_program_is_quiet_at_ctrl_c_before_it_imports_anything_slow():
    for name, module in programs():
        package = next(path for path in PYTHON if path.name == module.partition(".")[0])
        folder = package.joinpath(*module.split(".")[:-1])
        firsts = [
            next(
                (node for node in ast.parse(path.read_text()).body if is_import(node)),
                None,
            )
            for path in (package / package.name / "__init__.py", folder / "__init__.py")
        ]
        assert "import com_model.interrupt" in [
            ast.unparse(node) for node in firsts if node
        ], name


def is_import(node):
    """Whether a statement imports something that takes time."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.partition(".")[0] not in sys.stdlib_module_names for name in names)


def test_ctrl_c_tries_every_program():
    text = (ROOT / "benchmarks" / "ctrl_c.py").read_text()
    missing = [name for name, _ in programs() if f'"{name}"' not in text]
    assert missing == ["com_identification/identify_bag"]  # a second name


def part_of(module, package):
    """The folder or file of a package that a module is in; "" where it is in none."""
    first, *rest = module.split(".")
    return rest[0] if first == package and rest else ""


def layers(package):
    """Level of each folder and file in a package: 1 + the highest one that it imports.

    What counts for type checkers alone is left out.
    """
    needs = {}
    for path in package.joinpath(package.name).rglob("*.py"):
        own = path.relative_to(package / package.name).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text())
        typing = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.If) and "TYPE" in ast.unparse(n.test)
        ]
        left_out = {id(node) for block in typing for node in ast.walk(block)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in left_out:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                names = inner if node.module == package.name else [node.module]
                needs.setdefault(own, set()).update(
                    part_of(name, package.name) for name in names
                )
    needs = {
        part: needed - {part, ""}
        for part, needed in needs.items()
        if part != "__init__"
    }
    order = TopologicalSorter(needs).static_order()  # raises CycleError
    found = {}
    for part in order:
        found[part] = 1 + max((found[n] for n in needs.get(part, ())), default=0)
    return found


@pytest.mark.parametrize("package", PYTHON, ids=lambda path: path.name)
def test_parts_of_a_package_build_on_each_other_in_one_direction(package):
    levels = layers(package)
    assert max(levels.values()) <= (6 if package.name == "com_identification" else 12)


@pytest.mark.parametrize("package", PYTHON, ids=lambda path: path.name)
def test_colcon_test_finds_the_unit_tests(package):
    settings = ConfigParser()
    settings.read(package / "setup.cfg")
    assert list((package / settings["tool:pytest"]["testpaths"]).rglob("test_*.py"))


@pytest.mark.parametrize("package", PYTHON, ids=lambda path: path.name)
def test_files_beside_the_code_are_installed(package):
    config = ConfigParser()
    config.read(package / "setup.cfg")
    patterns = config.get("options.package_data", "*", fallback="none").split(", ")
    code = package / package.name
    beside = [
        p for p in code.rglob("*") if p.is_file() and p.parent.name != "__pycache__"
    ]
    beside = [p.name for p in beside if p.suffix != ".py"]
    assert [name for name in beside if not any(map(Path(name).match, patterns))] == []


def test_scripts_of_demos_import_nothing_that_only_tests_have():
    names = re.findall(
        r"benchmarks/(\w+_demo|closed_loop)\.py", (ROOT / "Makefile").read_text()
    )
    assert len(names) >= 4
    absent = "pinocchio", "example_robot_data", "pink", "placo", "mink"
    code = (
        f"import sys, importlib; sys.modules.update(dict.fromkeys({absent}));"
        "sys.path[:0] = ['benchmarks', 'benchmarks/baselines'];"
        f"[importlib.import_module(name) for name in {names}]"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
