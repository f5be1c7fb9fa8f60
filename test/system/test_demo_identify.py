"""The demo of the identification, as a user runs it, and what it says when something is wrong."""

import json

import pytest

from com_model import RobotModel

DEMO = "com_demos.identify_demo"


@pytest.mark.exhaustive
def test_the_biped_is_mended_and_a_busy_machine_changes_no_figure(run_twice):
    """Planar legs: 4 bodies that move; its URDF is wrong by 5 mm, and is found out."""
    figures, out = run_twice("--robot", "biped3", "--postures", 3, "--speed", 4)
    assert figures["robot"] == "biped3"
    assert figures["captured"] == 3
    assert figures["com_rms_after_mm"] < 0.7 * figures["com_rms_before_mm"]
    assert json.loads((out / "biped3_identify.json").read_text()) == figures
    assert (out / "biped3_identify.png").stat().st_size > 10_000
    folder = out / "biped3_identification"
    written = [path for path in folder.glob("*.urdf") if path.name != "truth.urdf"]
    true, found = (
        RobotModel.from_file(folder / "truth.urdf"),
        RobotModel.from_file(written[0]),
    )
    assert found.joint_names == true.joint_names


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--robot", "nobody"],
            "demo: robot 'nobody': unknown, and no URDF's path; valid names: ",
        ),
        (
            ["--robot", "ur5"],
            "ur5 has none; one is needed, with the feet and their sensors",
        ),
        (
            ["--robot", "scalf2"],
            "scalf2 cannot be shown: postures are compared on flat",
        ),
        (["--postures", "0"], "--postures 0: give 1 to 500"),
        (["--speed", "99"], "--speed 99: give 0.05 to 10"),
    ],
)
def test_wrong_commands(tmp_path, refusal, words, message):
    assert message in refusal(*words, "--output", tmp_path)
