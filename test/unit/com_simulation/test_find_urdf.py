"""Launch files get the path of a robot's URDF; the package exports its public names."""

from pathlib import Path

import pytest

import com_simulation
from com_simulation.commands.find_urdf import main


def test_path_alone_is_printed(capsys):
    assert main(["scalf2"]) == 0
    printed = capsys.readouterr().out
    assert Path(printed).name == "scalf2.urdf"
    assert Path(printed).is_file()


def test_unknown_robot(capsys):
    assert main(["scalf3"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(
        "find_urdf: robot 'scalf3': unknown, and no URDF's path; valid names: scalf2"
    )


def test_the_package_exports_its_public_names() -> None:
    assert all(
        getattr(com_simulation, name).__name__ == name
        for name in com_simulation.__all__
    )
    with pytest.raises(AttributeError, match="no attribute 'gone'"):
        _ = com_simulation.gone
