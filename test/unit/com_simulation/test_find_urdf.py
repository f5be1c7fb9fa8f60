"""Launch files learn where a robot's URDF is."""

from pathlib import Path

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
