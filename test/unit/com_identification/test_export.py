"""The corrected URDF: into one directory, all else byte for byte, nothing half written."""

import os
import resource
from dataclasses import replace

import numpy as np
import pytest

from com_identification.exceptions import IdentificationError, OutputError
from com_identification.regression.identify import identify
from com_identification.settings import IdentificationSettings, SensorNoise
from com_identification.store.results import export_urdf, trusted_bodies
from com_model import RobotModel

NOISE = SensorNoise()


@pytest.fixture(scope="module")
def found(hoap2, perturbed, random_q):
    """The arms are never moved, so that nothing is known of the hands."""
    rng = np.random.default_rng(0)
    robot, _, _ = perturbed(rng, 0.005)
    model = hoap2[0]
    still = [i for i, name in enumerate(model.joint_names) if "ARM" in name]
    postures = []
    for _ in range(20):
        q = random_q(rng)
        q[still] = 0.0
        postures.append(robot.posture(q, [1.0, 0.0], NOISE, rng, 100))
    settings = IdentificationSettings.from_dict(
        {"fit": {"folds": 0}, "prior": {"mass_std_fraction": 0.0}}
    )
    return identify(*hoap2, postures, settings)


def export(hoap2, found, tmp_path, name="robot", **keys):
    return export_urdf(hoap2[0], found, tmp_path, name, **keys)


def test_what_the_data_tell_is_written_and_nothing_else(hoap2, found, tmp_path):
    model = hoap2[0]
    done = export(hoap2, found, tmp_path)
    assert done.path == tmp_path / "robot.urdf"
    new = RobotModel.from_file(done.path)
    trusted = trusted_bodies(found)
    assert 0 < trusted.sum() < len(trusted)
    assert len(done.unchanged) == int((~trusted).sum())
    assert all("stays as in the URDF" in text for text in done.unchanged)
    com = new.bodies.first_moment / new.bodies.mass[:, None]
    old = model.bodies.first_moment / model.bodies.mass[:, None]
    np.testing.assert_allclose(com[trusted], found.com[trusted], atol=1e-12)
    np.testing.assert_array_equal(com[~trusted], old[~trusted])
    before, after = model.xml.splitlines(), new.xml.splitlines()
    assert len(before) == len(after)
    changed = [a for a, b in zip(before, after, strict=True) if a != b]
    assert all("<origin" in line for line in changed)
    assert len(changed) == len(done.changed)
    everything = export(hoap2, found, tmp_path, "all.urdf", untrusted=True)
    assert everything.unchanged == ()
    assert set(done.changed) < set(everything.changed)
    full = RobotModel.from_file(everything.path).bodies
    np.testing.assert_allclose(
        full.first_moment / full.mass[:, None], found.com, atol=1e-12
    )


def test_what_is_told_of_all_together_is_not_torn_apart(hoap2, found, tmp_path):
    """Each foot alone is hardly identifiable, but together they move the CoM of the robot."""
    model = hoap2[0]
    feet = [found.bodies.index(name) for name in ("LLEG6", "RLEG6")]
    com, std = found.prior_com.copy(), found.com_std.copy()
    com[feet] += [0.005, 0.0, 0.0]
    std[feet] = 1.3 * found.prior_com_std[feet]  # by a variance factor above 1
    moved = replace(found, com=com, com_std=std, mass=found.prior_mass)
    assert trusted_bodies(moved)[feet].all()
    new = RobotModel.from_file(export(hoap2, moved, tmp_path).path).bodies
    expected = (model.bodies.mass[:, None] * com).sum(axis=0)
    np.testing.assert_allclose(new.first_moment.sum(axis=0), expected, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".urdf",
        "..",
        "../x",
        "a/b",
        "/etc/x",
        "a\\b",
        ".x",
        "a\nb",
        "a\0b",
        "x" * 300,
    ],
)
def test_names_that_leave_the_directory_are_refused(hoap2, found, tmp_path, name):
    with pytest.raises(OutputError, match="give a plain file name, which is put into"):
        export(hoap2, found, tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed(hoap2, found, tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "robot.urdf").symlink_to(tmp_path / "outside")
    with pytest.raises(OutputError, match="is a link or no regular file"):
        export(hoap2, found, tmp_path / "inside", overwrite=True)
    assert not (tmp_path / "outside").exists()
    (tmp_path / "way").symlink_to(tmp_path / "inside")
    done = export(hoap2, found, tmp_path / "way", "fine")
    assert done.path == tmp_path / "inside" / "fine.urdf"


def test_nothing_is_overwritten_unasked(hoap2, found, tmp_path):
    (tmp_path / "robot.urdf").write_text("precious")
    with pytest.raises(
        OutputError, match="exists already: give another name, or allow"
    ):
        export(hoap2, found, tmp_path)
    assert (tmp_path / "robot.urdf").read_text() == "precious"
    export(hoap2, found, tmp_path, overwrite=True)
    assert "<robot" in (tmp_path / "robot.urdf").read_text()
    assert os.listdir(tmp_path) == ["robot.urdf"]


def test_bad_directories_and_a_full_disk(hoap2, found, tmp_path):
    with pytest.raises(OutputError, match="does not exist: make it first"):
        export(hoap2, found, tmp_path / "none")
    with pytest.raises(OutputError, match="the directory"):
        export(hoap2, found, "a\0b")
    with pytest.raises(OutputError, match="cannot be written"):
        export(hoap2, found, "/proc")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(
            OutputError, match=r"File too large\. Free space on the disk"
        ):
            export(hoap2, found, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_another_robots_result_is_refused(hoap2, found, tmp_path):
    other = replace(found, bodies=("x", *found.bodies[1:]))
    with pytest.raises(
        IdentificationError, match="belongs to another robot: it has 26 bodies from 'x'"
    ):
        export(hoap2, other, tmp_path)
    assert list(tmp_path.iterdir()) == []
