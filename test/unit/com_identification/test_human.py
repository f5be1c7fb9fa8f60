"""A person's model: the table's sums, markers, force plates of C3D files, and the truth found."""

import numpy as np
import pytest
import yaml

from com_bags import TableError
from com_identification.commands.human import main
from com_identification.human import (
    SEGMENTS,
    STATURE,
    MarkerFit,
    human_urdf,
    read_c3d,
    trial_postures,
)
from com_identification.store.results import corrected_inertials
from com_model import RobotModel, Sesc
from com_model.arrays import Array
from com_model.exceptions import ConfigError
from com_model.geometry.rotations import rotations_about
from com_model.urdf.editing import edit_inertials

PAIRED = ("upper_arm", "forearm", "hand", "thigh", "shank", "foot")
G = 9.80665


@pytest.fixture(scope="module")
def person() -> RobotModel:
    return RobotModel.from_urdf(human_urdf(1.75, 68.0, "f"))


@pytest.mark.parametrize("sex", [0, 1])
def test_the_masses_of_the_table_sum_to_the_body(sex):
    whole = sum((2 if name in PAIRED else 1) * row[0][sex] for name, row in SEGMENTS.items())
    assert whole == pytest.approx(100.0, abs=0.011)
    heights = {name: row[2][sex] for name, row in SEGMENTS.items()}
    down = heights["thigh"] + heights["shank"] + 39.0 * STATURE[sex]
    trunk = heights["lower_trunk"] + heights["middle_trunk"] + (228.0, 242.1)[sex]
    assert down + trunk + heights["head"] == pytest.approx(1000.0 * STATURE[sex], rel=0.03)


# Of the table's other columns and rows, percent of the length: sagittal radii of gyration of the
# trunk's three parts and of all of it, and the upper part's centre of mass from the cervicale.
RADII = {0: (74.6, 43.3, 43.3, 35.7), 1: (71.6, 48.2, 61.5, 37.2)}
FROM_CERVICALE = (50.50, 50.66)


@pytest.mark.parametrize("sex", [0, 1])
def test_the_parts_of_the_trunk_make_the_whole(sex):
    """Lengths that were copied wrong would contradict numbers that the model does not use."""
    rows = [SEGMENTS[f"{part}_trunk"] for part in ("upper", "middle", "lower")]
    mass, com, length = (np.array([row[k][sex] for row in rows]) for k in range(3))
    own, whole = np.array(RADII[sex][:3]) / 100.0 * length, RADII[sex][3] / 100.0 * length.sum()
    center = np.cumsum(length) - length + com / 100.0 * length
    spread = center - np.average(center, weights=mass)
    radius = np.sqrt(np.average(own**2 + spread**2, weights=mass))
    assert radius == pytest.approx(whole, abs=0.0005 * length.sum())
    by_neck = (228.0, 242.1)[sex] * (1.0 - FROM_CERVICALE[sex] / 100.0)
    assert length[0] * (1.0 - com[0] / 100.0) == pytest.approx(by_neck, abs=0.1)


def test_the_person_is_symmetric_and_has_the_mass(person):
    assert person.mass == pytest.approx(68.0)
    com = Sesc(person).com(np.zeros(person.n_joints))
    assert abs(com[1]) < 1e-9
    assert 0.0 < com[2] < 0.15, "above the hips"
    for mass, height, sex in ((0.0, 1.7, "f"), (70.0, 17.0, "m"), (70.0, 1.7, "x")):
        with pytest.raises(ConfigError, match=r"expected 0\.5 to 2\.6 m"):
            human_urdf(height, mass, sex)


def markers_of(model) -> dict[str, tuple[str, Array]]:
    spread = np.array([[0.06, 0.04, 0.0], [-0.05, 0.05, -0.1], [0.03, -0.06, -0.2]])
    links = [n for n in model.link_names if n.removeprefix("l_").removeprefix("r_") in SEGMENTS]
    return {f"{link}{k}": (link, at) for link in links for k, at in enumerate(spread)}


def pose_of(rng, n):
    turn = rotations_about(np.array([[0.6, 0.0, 0.8]]), rng.normal(0.0, 0.3, 1))[0]
    return rng.normal(0.0, 0.4, n), turn, rng.normal(0.0, 0.3, 3)


def test_markers_give_the_posture(person):
    rng = np.random.default_rng(0)
    fit = MarkerFit(person, markers_of(person))
    for _ in range(3):
        q, R, p = pose_of(rng, person.n_joints)
        seen = fit.place(q[None], R[None], p[None])[0]
        seen[4] = np.nan  # hidden
        found_q, found_R, found_p = fit.solve(seen)
        np.testing.assert_allclose(found_R, R, atol=1e-3)
        np.testing.assert_allclose(found_p, p, atol=1e-3)
        np.testing.assert_allclose(found_q, q, atol=5e-3)


def write_c3d(path, names, markers, wrench):
    """A trial with one plate of type 2 in mm and N mm, two readings a frame."""
    ezc3d = pytest.importorskip("ezc3d")
    c3d, frames = ezc3d.c3d(), len(markers)
    p = c3d["parameters"]
    p["POINT"]["RATE"]["value"], p["POINT"]["UNITS"]["value"] = [10], ["mm"]
    p["POINT"]["LABELS"]["value"] = tuple(names)
    p["ANALOG"]["RATE"]["value"] = [20]
    p["ANALOG"]["LABELS"]["value"] = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")
    p["ANALOG"]["UNITS"]["value"] = ("N", "N", "N", "Nmm", "Nmm", "Nmm")
    p["ANALOG"]["SCALE"]["value"], p["ANALOG"]["OFFSET"]["value"] = [1.0] * 6, [0] * 6
    points = np.ones((4, len(names), frames))
    points[:3] = 1e3 * markers.transpose(2, 1, 0)
    c3d["data"]["points"] = points
    # the plate is turned about a vertical line and its transducer is 40 mm below, z points down
    corners = np.array([[600, 400, 0], [600, 0, 0], [0, 0, 0], [0, 400, 0]], dtype=float)
    offset = np.array([3.0, -5.0, -40.0])
    R = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    force, moment = -wrench[:, :3], -wrench[:, 3:]  # of the person on the plate
    moment = 1e3 * moment - np.cross(corners.mean(axis=0), force)
    force, moment = force @ R, moment @ R
    raw = np.hstack((force, moment + np.cross(offset, force)))
    c3d["data"]["analogs"] = np.repeat(raw, 2, axis=0).T[None]
    plates = {"USED": [1], "TYPE": [2], "CHANNEL": np.arange(1, 7).reshape(6, 1)}
    plates |= {"CORNERS": corners.T.reshape(3, 4, 1), "ORIGIN": offset.reshape(3, 1)}
    for name, value in plates.items():
        c3d.add_parameter("FORCE_PLATFORM", name, np.array(value, dtype=float))
        whole = name in ("USED", "TYPE", "CHANNEL")
        c3d["parameters"]["FORCE_PLATFORM"][name]["type"] = 2 if whole else 4  # integer, float
        c3d["parameters"]["FORCE_PLATFORM"][name]["value"] = np.array(value)
    c3d.write(str(path))


def test_the_command_finds_a_persons_own_centre_of_mass(person, tmp_path, capsys):
    rng, bodies = np.random.default_rng(1), person.bodies
    com = np.zeros((bodies.count, 3))
    heavy = bodies.mass > 0.0
    com[heavy] = bodies.first_moment[heavy] / bodies.mass[heavy, None]
    com[heavy] += rng.normal(0.0, 0.015, (int(heavy.sum()), 3))
    xml = edit_inertials(person.xml, corrected_inertials(person, bodies.mass, com))
    truth = Sesc(RobotModel.from_urdf(xml))
    where = markers_of(person)
    fit, seen, wrench = MarkerFit(person, where), [], []
    for _ in range(12):
        q, R, p = pose_of(rng, person.n_joints)
        placed = fit.place(q[None], R[None], p[None])[0] + rng.normal(0.0, 1e-3, (len(where), 3))
        force = np.array([0.0, 0.0, G * person.mass])
        true = np.concatenate((force, np.cross(p + R @ truth.com(q), force)))
        seen += [placed] * 5
        wrench += [true + rng.normal(0.0, 0.5, 6)] * 5
    path = tmp_path / "trial.c3d"
    write_c3d(path, where, np.array(seen), np.array(wrench))
    trial = read_c3d(path)
    np.testing.assert_allclose(trial.wrench, wrench, atol=0.1)
    np.testing.assert_allclose(trial.markers, seen, atol=1e-5)
    lines = {name: {"link": link, "at": at.tolist()} for name, (link, at) in where.items()}
    (tmp_path / "markers.yaml").write_text(yaml.safe_dump(lines))
    words = ["--height", "1.75", "--mass", "68", "--sex", "f", "--angle-std", "1"]
    words += ["--output", str(tmp_path / "person.urdf"), "--trial", str(path)]
    assert main([*words, "--markers", str(tmp_path / "markers.yaml")]) == 0
    assert "trial.c3d: 12 postures; used 6.0 s" in capsys.readouterr().out
    found = Sesc(RobotModel.from_file(tmp_path / "person.urdf"))
    errors = []
    for _ in range(20):
        q, R, _ = pose_of(rng, person.n_joints)
        across = np.eye(3) - np.outer(R[2], R[2])
        errors.append(
            [np.linalg.norm(across @ (s.com(q) - truth.com(q))) for s in (Sesc(person), found)]
        )
    table, own = np.sqrt(np.mean(np.square(errors), axis=0))
    assert own < 0.7 * table
    with pytest.raises(TableError, match="has none of the markers"):
        trial_postures(person, trial, {"X": ("head", np.zeros(3))})


def test_broken_trials_are_one_kind_of_error(tmp_path):
    path = tmp_path / "bad.c3d"
    for data in (b"", b"\x02\x50" + bytes(600), np.random.default_rng(0).bytes(3000)):
        path.write_bytes(data)
        with pytest.raises(TableError, match="cannot be read"):
            read_c3d(path)
