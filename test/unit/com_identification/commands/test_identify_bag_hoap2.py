"""HOAP-2 on one foot, on the other, on both."""

import numpy as np
import pytest
import yaml

from com_model import RobotModel, Sesc

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(bags, tmp_path_factory):
    """The robot, and the directory with what the command made of 36 postures."""
    from com_identification.commands.identify import main

    root = bags.Path(__file__).resolve().parents[4] / "src/robot_descriptions"
    urdf, config = root / "urdf/hoap2.urdf", root / "config/hoap2.yaml"
    scene = bags.Scene(urdf, config)
    stands = [
        ((0,), np.array([1.0, 0.0])),
        ((1,), np.array([0.0, 1.0])),
        ((0, 1), None),
    ]
    postures = np.vstack([scene.postures(12, stands=(feet,)) for feet, _ in stands])
    fractions = [fraction for _, fraction in stands for _ in range(12)]
    folder = tmp_path_factory.mktemp("hoap2")
    with bags.BagWriter(folder / "bag", scene) as writer:
        tour = bags.Tour(rate=100.0, moving=0.5)
        for block in bags.samples(scene, postures, tour, fractions=fractions):
            writer.write(block)
    arguments = [
        folder / "bag",
        "--robot",
        urdf,
        "--config",
        config,
        "--output",
        folder / "out",
    ]
    assert main([str(argument) for argument in arguments]) == 0
    return scene, folder / "out"


def test_the_truth_is_found_within_the_stds(found):
    scene, out = found
    links = yaml.safe_load((out / "result.yaml").read_text())
    assert links
    corrected = RobotModel.from_file(out / "corrected.urdf")
    truth = RobotModel.from_urdf(scene.xml)
    Q = scene.postures(30, seed=5)
    errors, before = [], []
    for q in Q:
        up = truth_up(scene, q)
        flat = np.eye(3) - np.outer(up, up)
        com = Sesc(truth).com(q)
        errors.append(np.linalg.norm(flat @ (Sesc(corrected).com(q) - com)))
        before.append(np.linalg.norm(flat @ (Sesc(scene.model).com(q) - com)))
    assert np.sqrt(np.mean(np.square(errors))) < 5e-4
    assert np.sqrt(np.mean(np.square(before))) > 1e-3


def truth_up(scene, q):
    """Normal of the first sole, root axes."""
    from com_model.dynamics.link_frames import LinkFrames

    return LinkFrames(scene.model, [scene.feet[0].frame]).poses(q)[0][0][:, 2]


def test_the_report_tells_on_which_foot_each_posture_stands(found):
    _, out = found
    page = (out / "report.html").read_text()
    assert page.count('<td class="words">l_sole</td>') == 12
    assert page.count('<td class="words">r_sole</td>') == 12
    assert page.count('<td class="words">l_sole, r_sole</td>') == 12
