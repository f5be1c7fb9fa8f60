"""What a motion would determine: plan_sway, propose_sway."""

import numpy as np
import pytest
from slow_recording import make_robot

from com_control.commands.plan_sway import main as plan
from com_control.motion.sway_tour import plan_hang, plan_sway
from com_identification.commands.propose_sway import main as propose
from com_identification.slow.proposal import predict_com_std
from com_model import Frame
from com_model.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    model, config = load_robot("hoap3")
    return config.attach(model), config


def test_the_height_is_weak_and_a_still_pelvis_does_not_show_it(robot):
    model, config = robot
    tour = plan_sway(model, config, 40.0).motion
    after, before = predict_com_std(model, config, tour.times, tour.positions)
    assert (after < before).all()
    assert after[2] > after[:2].max()
    little = tour.positions[0] + 0.1 * (tour.positions - tour.positions[0])
    less, _ = predict_com_std(model, config, tour.times, little)
    assert less[2] > 1.2 * after[2]


def test_hanging_is_predicted_by_its_rope(robot):
    model, config = robot
    heavy = model.link_names[int(np.argmax(model.link_masses))]
    tour = plan_hang(model, config, 40.0).motion
    rope = Frame("rope", heavy, (0.0, 0.0, 0.15))
    after, before = predict_com_std(model, config, tour.times, tour.positions, rope)
    assert (after < before).all()


def test_sigma_is_that_of_a_recording():
    """Compared with the identification of exact readings of the same motion."""
    from slow_recording import sway

    from com_identification.slow.identify import identify_slow
    from com_identification.walking.unknowns import Scale

    robot = make_robot(3, size=0.2)
    tour = plan_sway(robot.believed, robot.config, 40.0).motion
    predicted, _ = predict_com_std(
        robot.believed, robot.config, tour.times, tour.positions
    )
    result = identify_slow(
        [sway(robot, 40.0)],
        [False],
        robot.believed,
        robot.config,
        Scale(robot.true.mass),
    )
    np.testing.assert_allclose(result.advice.com_std, predicted, rtol=0.4)


def test_commands(tmp_path, capsys):
    file = str(tmp_path / "sway.csv")
    assert plan(["--robot", "hoap3", "--seconds", "30", "--output", file]) == 0
    assert "mm inside the feet" in capsys.readouterr().out
    assert propose([file, "--robot", "hoap3"]) == 0
    out = capsys.readouterr().out
    assert out.count("CoM of the whole robot") == 2
    assert (
        plan(["--robot", "hoap3", "--hang", "--seconds", "30", "--output", file]) == 0
    )
    assert "hanging" in capsys.readouterr().out
    rope = ["--rope", "nowhere", "0", "0", "0"]
    assert propose([file, "--robot", "hoap3", *rope]) == 2
    assert "nowhere" in capsys.readouterr().err
    (tmp_path / "wrong.csv").write_text("t,a\n0,1\n1,2\n")
    assert propose([str(tmp_path / "wrong.csv"), "--robot", "hoap3"]) == 2
    assert "expected time (s) and joints" in capsys.readouterr().err
