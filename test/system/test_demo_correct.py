"""The first demo, as a user runs it: a robot falls, is measured, and stands by the new URDF."""

import json

import pytest

from com_model import RobotModel, load_robot

DEMO = "com_demos.correct_demo"


@pytest.mark.exhaustive
def test_hoap2_falls_is_measured_and_stands(run, tmp_path):
    done = run("--output", tmp_path, "--speed", 10)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["fell_before"]
    assert not figures["fell_after"]
    assert figures["found_kg"] == pytest.approx(figures["load_kg"], abs=0.05)
    assert figures["believed_error_mm"] > 10.0
    assert figures["corrected_error_mm"] < 1.0
    assert figures["truths_matched"] > 400  # 4.5 s at 100 Hz
    believed, _ = load_robot("hoap2")
    (urdf,) = (
        path
        for path in (tmp_path / "hoap2_corrected").glob("*.urdf")
        if path.stem != "truth"
    )
    true = RobotModel.from_file(tmp_path / "hoap2_corrected/truth.urdf")
    corrected = RobotModel.from_file(urdf)
    assert abs(corrected.mass - true.mass) < 0.1 * abs(believed.mass - true.mass)
    for name in ("picture", "plot", "report"):
        assert (tmp_path / figures[name].split("/")[-1]).stat().st_size > 10_000
    assert json.loads((tmp_path / "hoap2.json").read_text()) == figures


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--robot", "nobody"], ("nobody", "biped3")),
        (["--speed", "99"], ("--speed", "0.05", "10")),
    ],
)
def test_what_cannot_be_shown_is_refused_at_once(tmp_path, refusal, words, names):
    told = refusal(*words, "--output", tmp_path)
    assert all(name in told for name in names)
